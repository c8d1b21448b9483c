#!/usr/bin/env python3
"""Prepares the pages of the documentation site, or checks the built site for dead links.

    scripts/site.py prepare FOLDER      writes book.toml and docs/ into FOLDER, for mdbook
    scripts/site.py check FOLDER        every relative link and fragment of the HTML in FOLDER

The pages are docs/ and the documents outside of it that docs/SUMMARY.md names. A link from a page
to a source file leads to a copy of that file inside the site, so that the site is complete.
scripts/site.sh runs both.
"""

import html.parser
import os
import pathlib
import re
import shutil
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
CODE = re.compile(r"(```.*?^\s*```|`[^`\n]*`)", re.DOTALL | re.MULTILINE)


class Preparation:
    """The pages of the site, and where each document and linked file is in it."""

    def __init__(self, folder):
        self.folder = folder / "docs"
        summary = (ROOT / "docs/SUMMARY.md").read_text()
        self.pages = {ROOT / "docs/SUMMARY.md": "SUMMARY.md"}
        for target in LINK.findall(summary):
            document = (ROOT / "docs" / target).resolve()
            inside = document.relative_to(ROOT)
            page = inside.relative_to("docs") if inside.parts[0] == "docs" else inside
            # mdbook serves a README as index.html, and does not follow links to it.
            is_index = page.name == "README.md"
            self.pages[document] = str(page.with_name("index.md") if is_index else page)
        unlisted = set((ROOT / "docs").rglob("*.md")) - set(self.pages)
        if unlisted:
            sys.exit(f"docs/SUMMARY.md lacks {', '.join(sorted(map(str, unlisted)))}")

    def write(self):
        shutil.rmtree(self.folder.parent, ignore_errors=True)
        self.folder.mkdir(parents=True)
        shutil.copy(ROOT / "book.toml", self.folder.parent)
        shutil.copy(ROOT / "docs/site.css", self.folder)
        for document, page in self.pages.items():
            path = self.folder / page
            path.parent.mkdir(parents=True, exist_ok=True)
            pieces = CODE.split(document.read_text())
            # Every second piece is code, whose brackets are no links.
            pieces[::2] = [self.rewritten(piece, document, page) for piece in pieces[::2]]
            path.write_text("".join(pieces))

    def rewritten(self, text, document, page):
        """The text of a page with links that hold inside the site."""

        def target(link):
            address, _, fragment = link[1].partition("#")
            if "://" in address or address.startswith("mailto:") or not address:
                return link[1]
            file = (document.parent / urllib.parse.unquote(address)).resolve()
            inside = self.pages.get(file) or self.copied(file)
            relative = os.path.relpath(inside, pathlib.Path(page).parent)
            return relative + (f"#{fragment}" if fragment else "")

        return LINK.sub(target, text)

    def copied(self, file):
        """The copy of a source file inside the site, or of the list of a folder's files."""
        if not file.exists():
            sys.exit(f"{file.relative_to(ROOT)} is linked and does not exist")
        inside = pathlib.Path("files") / file.relative_to(ROOT)
        copy = self.folder / inside
        if file.is_dir():
            names = sorted(path.name + "/" * path.is_dir() for path in file.iterdir())
            text = f"{file.relative_to(ROOT)}/\n\n" + "\n".join(names) + "\n"
            inside = inside / "index.txt"
            copy = self.folder / inside
        else:
            text = file.read_text()
            # mdbook takes every name with .md in it for a page.
            inside = inside.with_name(file.name.replace(".md", "-md") + ".txt")
            copy = self.folder / inside
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text)
        return str(inside)


class Page(html.parser.HTMLParser):
    """The links and the fragments of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.fragments = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.fragments.add(value)
            if name in ("href", "src") and value is not None:
                self.links.append(value)


def check(folder):
    """Dead links of the pages below a folder, each as a sentence, and the number of links."""
    pages = {path: Page(path) for path in sorted(folder.rglob("*.html"))}
    dead, count = [], 0
    for path, page in pages.items():
        # The page for unknown addresses is served at any depth.
        if path.name in ("404.html", "toc.html"):
            continue
        for link in page.links:
            address = urllib.parse.urlsplit(link)
            if address.scheme or address.netloc:
                continue
            count += 1
            target = path
            if address.path:
                target = (path.parent / urllib.parse.unquote(address.path)).resolve()
            if target.is_dir():
                target = target / "index.html"
            fragment = urllib.parse.unquote(address.fragment)
            if not target.is_file():
                dead.append(f"{path.relative_to(folder)}: {link} leads to no file")
            elif fragment and target in pages and fragment not in pages[target].fragments:
                dead.append(f"{path.relative_to(folder)}: {link} leads to no heading")
    return dead, count, len(pages)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("prepare", "check"):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[2]).resolve()
    if sys.argv[1] == "prepare":
        preparation = Preparation(folder)
        preparation.write()
        print(f"{len(preparation.pages) - 1} pages")
        return
    dead, count, pages = check(folder)
    if pages == 0:
        sys.exit(f"{folder} has no pages")
    print(f"{count} links on {pages} pages, {len(dead)} dead")
    if dead:
        sys.exit("\n".join(dead))


if __name__ == "__main__":
    main()
