#!/usr/bin/env python3
"""Opens pages in headless Chromium and checks what a reader would see.

    scripts/pages.py [--chromium PROGRAM] [--screenshots FOLDER] [--markdown FILE] PAGE.html ...
    scripts/pages.py [--chromium PROGRAM] --self-test     a page with every fault must be found

For each page, at 1,200 and at 480 pixels: no errors on the console and nothing that fails to load,
no text labels of a drawing that overlap or leave it, and no horizontal scrolling of the page. Then:
the Tab key reaches every link, control and area that scrolls, with a visible mark, and the page
prints with all its content. Prints one line for each page and ends with 1 if a check fails. Needs
Python 3.9 or later and nothing else: it speaks the DevTools protocol over a pair of pipes.
"""

import argparse
import base64
import json
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

WIDTHS = (1200, 480)
HEIGHT = 900
# Longest wait for an answer or an event, in seconds.
WAIT_S = 60
# Presses of Tab on one page.
TABS_MAX = 600
# Overlaps of fewer pixels than this are not seen.
OVERLAP_PX = 1.5
# An A4 page between margins of 1 cm, at 96 pixels per inch.
PRINT_WIDTH = 718

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--remote-debugging-pipe",
]  # fmt: skip

LABELS = """(() => {
  const found = [];
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    const labels = [...svg.querySelectorAll("text")].map(
      (text) => ({ words: text.textContent.trim(), box: text.getBoundingClientRect() })
    ).filter((label) => label.words && label.box.width > 0);
    for (const [index, { words, box }] of labels.entries()) {
      const out = Math.max(
        frame.left - box.left, box.right - frame.right,
        frame.top - box.top, box.bottom - frame.bottom
      );
      if (out > OVERLAP) found.push(`"${words}" leaves its drawing by ${out.toFixed(1)} px`);
      for (const other of labels.slice(index + 1)) {
        const across = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
        const down = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
        if (across > OVERLAP && down > OVERLAP) found.push(`"${words}" overlaps "${other.words}"`);
      }
    }
  }
  const labels = document.querySelectorAll("svg text").length;
  return { labels, found };
})()""".replace("OVERLAP", str(OVERLAP_PX))

WIDE = """(() => {
  const page = document.documentElement;
  if (page.scrollWidth <= page.clientWidth) return [];
  const cut = (element) => {
    for (let at = element.parentElement; at; at = at.parentElement) {
      const scrolls = getComputedStyle(at).overflowX !== "visible";
      if (scrolls && at !== document.body && at !== page) return true;
    }
    return false;
  };
  const beyond = [...document.body.querySelectorAll("*")].filter(
    (element) => element.getBoundingClientRect().right > page.clientWidth + 1 && !cut(element)
  );
  return [`${page.scrollWidth} px wide`, ...beyond.slice(0, 5).map(
    (element) => `<${element.tagName.toLowerCase()} class="${element.className}">`
  )];
})()"""

# What the Tab key must reach: each is marked, and the marks are removed as it is reached.
MARK = """(() => {
  const kinds = "a[href], button, summary, input, select, textarea, [tabindex]";
  const shown = (element) => {
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    return element.checkVisibility({ visibilityProperty: true }) && box.width > 0 && box.height > 0
      && box.right > 0 && style.pointerEvents !== "none" && !element.disabled
      && element.tabIndex >= 0 && !element.closest("[inert]");
  };
  const scrolls = (element) => element.scrollWidth > element.clientWidth + 1
    && ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
  const reachable = [...document.querySelectorAll(kinds)].filter(shown);
  const areas = [...document.querySelectorAll("main *")].filter(scrolls).filter(
    (area) => area.checkVisibility() && !area.querySelector("a[href], button")
  );
  window.scrollTo(0, 0);
  window.unreached = new Set([...reachable, ...areas]);
  window.unmarked = new Set();
  return window.unreached.size;
})()"""

FOCUS = """(() => {
  const element = document.activeElement;
  if (!element || element === document.body) return false;
  window.unreached.delete(element);
  const style = getComputedStyle(element);
  const marked = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0)
    || style.boxShadow !== "none";
  if (!marked && element.matches(":focus-visible")) window.unmarked.add(element);
  return true;
})()"""

NAMES = """(() => {
  const name = (element) => `<${element.tagName.toLowerCase()}> `
    + `${(element.textContent || element.title || element.className).trim().slice(0, 40)}`;
  return { unreached: [...window.unreached].map(name), unmarked: [...window.unmarked].map(name) };
})()"""

# Content that a printed page cuts off, because paper cannot be scrolled.
CUT = """(() => [...document.querySelectorAll("main *")].filter(
  (element) => element.scrollWidth > element.clientWidth + 1 && element.checkVisibility()
    && element.clientWidth > 0 && !["visible", "clip"].includes(getComputedStyle(element).overflowX)
).map((element) => `<${element.tagName.toLowerCase()} class="${element.className}"> `
  + `${element.scrollWidth} px in ${element.clientWidth}`))()"""


class Chromium:
    """A browser with one tab, spoken to over pipes."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="meetpoint-pages-")
        to_read, self.to_write = os.pipe()
        self.from_read, from_write = os.pipe()

        def hand_over():
            # Chromium reads from descriptor 3 and writes to 4; first out of the way of both.
            reads, writes = os.dup(to_read), os.dup(from_write)
            while reads in (3, 4) or writes in (3, 4):
                reads, writes = os.dup(reads), os.dup(writes)
            os.dup2(reads, 3)
            os.dup2(writes, 4)

        self.process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={self.folder}"], preexec_fn=hand_over,
            close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(from_write)
        self.number, self.buffered, self.events, self.session = 0, b"", [], None
        targets = self.call("Target.createTarget", url="about:blank")
        attached = self.call("Target.attachToTarget", targetId=targets["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def message(self):
        """The next message, within the limit."""
        deadline = time.monotonic() + WAIT_S
        while b"\0" not in self.buffered:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.from_read], [], [], left)[0]:
                sys.exit(f"Chromium gave no answer within {WAIT_S} s")
            piece = os.read(self.from_read, 1 << 20)
            if not piece:
                sys.exit("Chromium ended early")
            self.buffered += piece
        text, self.buffered = self.buffered.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to_write, json.dumps(request).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    sys.exit(f"{method}: {message['error']['message']}")
                return message["result"]
            self.events.append(message)

    def evaluate(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            sys.exit(f"a check failed to run: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def open(self, url, width, media="screen"):
        """Loads a page; returns what went wrong on its console."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=HEIGHT, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        self.call("Emulation.setEmulatedMedia", media=media)
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())
        # Whatever the scripts of a page do at once has happened after two frames.
        self.call(
            "Runtime.evaluate", awaitPromise=True,
            expression="new Promise(done => "
            "requestAnimationFrame(() => requestAnimationFrame(done)))",
        )  # fmt: skip
        return [text for text in map(problem, self.events) if text]

    def tab(self):
        for kind in ("rawKeyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab",
                windowsVirtualKeyCode=9,
            )  # fmt: skip

    def screenshot(self, path):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12000)}
        shot = self.call(
            "Page.captureScreenshot", captureBeyondViewport=True, clip={**clip, "scale": 1}
        )
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self):
        inch = 1 / 2.54
        margins = {f"margin{side}": inch for side in ("Top", "Bottom", "Left", "Right")}
        printed = self.call(
            "Page.printToPDF", paperWidth=21 * inch, paperHeight=29.7 * inch, **margins
        )
        return base64.b64decode(printed["data"])

    def close(self):
        self.session = None
        self.call("Browser.close")
        self.process.wait(WAIT_S)
        os.close(self.to_write)
        os.close(self.from_read)
        shutil.rmtree(self.folder, ignore_errors=True)


def problem(event):
    """What an event says went wrong, or None."""
    method, details = event.get("method"), event.get("params", {})
    if method == "Runtime.exceptionThrown":
        return f"exception: {details['exceptionDetails'].get('text')}"
    if method == "Runtime.consoleAPICalled" and details["type"] in ("error", "assert"):
        return f"console: {[part.get('value') for part in details['args']]}"
    if method == "Log.entryAdded" and details["entry"]["level"] == "error":
        return f"console: {details['entry']['text']}"
    if method == "Network.loadingFailed" and not details.get("canceled"):
        return f"failed to load: {details.get('errorText')}"
    return None


def check_page(browser, path, screenshots):
    """What is wrong with a page, and the row of the table for it."""
    url, wrong, labels = path.resolve().as_uri(), [], 0
    for width in WIDTHS:
        wrong += [f"{width} px: {text}" for text in browser.open(url, width)]
        drawn = browser.evaluate(LABELS)
        labels = max(labels, drawn["labels"])
        wrong += [f"{width} px: {text}" for text in drawn["found"]]
        wide = browser.evaluate(WIDE)
        if wide:
            wrong.append(f"{width} px: the page scrolls horizontally: {', '.join(wide)}")
        if screenshots:
            name = f"{path.parent.name}-{path.stem}-{width}.png"
            browser.screenshot(screenshots / name)
    controls = browser.evaluate(MARK)
    for _ in range(min(controls + 20, TABS_MAX)):
        browser.tab()
        browser.evaluate(FOCUS)
    names = browser.evaluate(NAMES)
    wrong += [f"Tab does not reach {name}" for name in names["unreached"]]
    wrong += [f"no mark on focus: {name}" for name in names["unmarked"]]
    wrong += [f"print: {text}" for text in browser.open(url, PRINT_WIDTH, media="print")]
    wrong += [f"print cuts off {text}" for text in browser.evaluate(CUT)]
    wrong += [f"print is too wide: {text}" for text in browser.evaluate(WIDE)]
    wrong += [f"print: {text}" for text in browser.evaluate(LABELS)["found"]]
    characters = browser.evaluate("document.body.innerText.trim().length")
    pdf = browser.pdf()
    sheets = len(re.findall(rb"/Type\s*/Page\b", pdf))
    if not pdf.startswith(b"%PDF") or sheets == 0 or characters < 100:
        wrong.append(f"print: {sheets} pages with {characters} characters")
    if screenshots:
        (screenshots / f"{path.parent.name}-{path.stem}.pdf").write_bytes(pdf)
    return wrong, (labels, controls, sheets)


# A page with a fault of every kind, and a word of what must be found for each.
FAULTY = """<!doctype html><title>faults</title><main>
<p style="width: 1500px">wide</p>
<svg width="200" height="50"><text x="5" y="20">first</text><text x="9" y="22">second</text>
<text x="190" y="40">outside</text></svg>
<div style="overflow-x: auto; width: 300px"><div style="width: 400px">cut</div></div>
<a href="#one" style="outline: none">unmarked</a>
<a href="#two" onfocus="this.blur()">unreached</a>
<img src="missing.png" alt=""><script>throw new Error("thrown")</script></main>"""
FOUND = [
    "the page scrolls horizontally", '"first" overlaps "second"', '"outside" leaves its drawing',
    "print cuts off", "no mark on focus: <a> unmarked", "Tab does not reach <a> unreached",
    "failed to load", "exception",
]  # fmt: skip


def self_test(browser):
    """Ends with an error if a fault of the page with faults is not found."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "faults.html"
        page.write_text(FAULTY)
        wrong, _ = check_page(browser, page, None)
    missing = [words for words in FOUND if not any(words in text for text in wrong)]
    if missing:
        sys.exit(f"not found on a page with faults: {missing}; found: {wrong}")
    print(f"self-test: {len(FOUND)} faults of {len(FOUND)} found")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.screenshots:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    if not arguments.pages and not arguments.self_test:
        parser.error("name pages, or --self-test")
    browser = Chromium(arguments.chromium)
    if arguments.self_test:
        self_test(browser)
    version = browser.call("Browser.getVersion")["product"]
    table = [
        "| page | labels | links, controls, areas | printed pages | result |",
        "|---|---|---|---|---|",
    ]
    failed = 0
    for path in arguments.pages:
        wrong, (labels, controls, sheets) = check_page(browser, path, arguments.screenshots)
        failed += bool(wrong)
        result = f"{len(wrong)} problems" if wrong else "passed"
        name = f"{path.parent.name}/{path.name}"
        print(f"{name}: {result}; {labels} labels, {controls} controls, {sheets} printed pages")
        for text in wrong:
            print(f"  {text}")
        table.append(f"| `{name}` | {labels} | {controls} | {sheets} | {result} |")
    browser.close()
    print(f"{len(arguments.pages)} pages in {version}, {failed} with problems")
    if arguments.markdown:
        arguments.markdown.write_text("\n".join([*table, "", f"Browser: {version}.", ""]))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
