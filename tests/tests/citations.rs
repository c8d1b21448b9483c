//! Paths, links and Cargo targets that documents, comments and scripts name exist.

use crate::layers::{packages, root};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Endings of the files whose names are checked.
const CHECKED: [&str; 12] =
    ["rs", "md", "toml", "py", "pyi", "sh", "c", "json", "txt", "svg", "css", "proto"];

/// Documents that a comment may name without their ending.
const DOCUMENTS: [&str; 6] =
    ["ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "DESIGN", "README", "STYLE"];

/// A file with text to check.
struct Text {
    /// Path below the root.
    name: PathBuf,
    text: String,
}

impl Text {
    fn read(path: &Path) -> Self {
        let name = path.strip_prefix(root()).expect("below the root").to_path_buf();
        let text = std::fs::read_to_string(path).expect("a text file");
        Self { name, text }
    }

    fn extension(&self) -> &str {
        self.name.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
    }

    /// The lines in which a path is meant for people or a shell, with their numbers: all of a
    /// document or a script, and the comments of a source.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let comment = match self.extension() {
            "rs" => Some("//"),
            "toml" => Some("#"),
            _ => None,
        };
        self.text.lines().enumerate().filter_map(move |(index, line)| {
            let checked = match comment {
                None => line,
                Some(mark) => &line[line.find(mark)?..],
            };
            Some((index + 1, checked))
        })
    }
}

/// Every file of the repository, without build outputs and Git's own.
fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder reads") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if !path.is_dir() {
                found.push(path);
            } else if !["target", ".git", "__pycache__", "artifacts", "corpus"].contains(&name) {
                folders.push(path);
            }
        }
    }
    found
}

fn texts(files: &[PathBuf]) -> Vec<Text> {
    let is_text = |path: &&PathBuf| {
        let name = path.strip_prefix(root()).expect("below the root");
        let extension = path.extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("md" | "rs" | "toml" | "sh"))
            || [Path::new("justfile"), Path::new(".ci/run")].contains(&name)
    };
    files.iter().filter(is_text).map(|path| Text::read(path)).collect()
}

/// Words of a line that may be paths, each with the character before and after it.
fn words(line: &str) -> Vec<(Option<char>, &str, Option<char>)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    let mut found = Vec::new();
    let mut start = 0;
    while let Some(begin) = line[start..].find(is_part).map(|at| start + at) {
        let end = line[begin..].find(|c| !is_part(c)).map_or(line.len(), |at| begin + at);
        let before = line[..begin].chars().next_back();
        found.push((before, line[begin..end].trim_end_matches('.'), line[end..].chars().next()));
        start = end;
    }
    found
}

/// The paths and file names of a line that must exist.
fn cited<'a>(line: &'a str, folders: &BTreeSet<String>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for (before, word, after) in words(line) {
        let is_pattern = matches!(after, Some('*' | '{' | '<' | '…' | '$'));
        let is_tail = matches!(before, Some(':' | '*' | '}' | '>' | '…' | '$' | '~'));
        if is_pattern || is_tail || word.starts_with(['/', '-']) {
            continue;
        }
        let word = word.trim_start_matches("./");
        let extension = word.rsplit_once('.').map_or("", |(_, extension)| extension);
        match word.split_once('/') {
            Some((first, _)) if folders.contains(first) => {
                // In prose, `host/device` is not a path.
                let is_path = CHECKED.contains(&extension)
                    || ["docs", "scripts"].contains(&first)
                    || word.matches('/').count() > 1;
                found.extend(is_path.then_some(word));
            }
            Some(_) => {}
            None => {
                let has_stem = word.len() > extension.len() + 1;
                let is_file = ["rs", "md", "sh"].contains(&extension) && has_stem;
                found.extend((is_file || DOCUMENTS.contains(&word)).then_some(word));
            }
        }
    }
    found
}

/// Files that the program writes.
const WRITTEN: [&str; 1] = ["report.md"];

/// Whether a path is one of the root, of the package or of the folder of the file that names it,
/// or a bare name that some file has.
fn exists(path: &str, by: &Path, names: &BTreeSet<String>) -> bool {
    if DOCUMENTS.contains(&path) {
        return names.contains(&format!("{path}.md"));
    }
    if !path.contains('/') {
        return names.contains(path) || WRITTEN.contains(&path);
    }
    let by = root().join(by);
    by.ancestors()
        .skip(1)
        .take_while(|folder| folder.starts_with(root()))
        .any(|folder| folder.join(path).exists())
}

/// Targets of relative Markdown links of a line, without the part after `#`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ']).next()?.split('#').next()?;
        let is_relative = !target.is_empty() && !target.contains("://");
        is_relative.then_some(target)
    })
}

/// Top-level folders of the repository and the folders of packages, which paths begin with.
fn first_folders() -> BTreeSet<String> {
    let mut found: BTreeSet<String> =
        ["src", "tests", "benches", "examples"].map(str::to_owned).into();
    for entry in std::fs::read_dir(root()).expect("the root reads") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("names are UTF-8");
        if entry.path().is_dir() && name != "target" && name != ".git" {
            found.insert(name);
        }
    }
    found
}

#[test]
fn every_path_that_a_document_or_a_comment_names_exists() {
    let files = files();
    let names: BTreeSet<String> =
        files.iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect();
    let folders = first_folders();
    let mut missing = Vec::new();
    for text in texts(&files) {
        for (number, line) in text.lines() {
            for path in cited(line, &folders) {
                if !exists(path, &text.name, &names) {
                    missing.push(format!("{}:{number}: {path}", text.name.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "no such file or folder:\n{}", missing.join("\n"));
}

#[test]
fn every_relative_link_of_a_document_leads_to_a_file() {
    let mut missing = Vec::new();
    let mut count = 0;
    for text in texts(&files()).iter().filter(|text| text.extension() == "md") {
        let folder = root().join(&text.name).parent().expect("a file has a folder").to_path_buf();
        for (number, line) in text.lines() {
            for target in links(line) {
                count += 1;
                if !folder.join(target).exists() {
                    missing.push(format!("{}:{number}: {target}", text.name.display()));
                }
            }
        }
    }
    assert!(count > 20, "only {count} links found");
    assert!(missing.is_empty(), "links that lead nowhere:\n{}", missing.join("\n"));
}

/// Names of targets by their kind: `(test, all)`.
fn targets() -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        for target in packages(manifest).into_iter().flat_map(|package| package.targets) {
            found.extend(target.kind.into_iter().map(|kind| (kind, target.name.clone())));
        }
    }
    found
}

/// Targets that the Cargo commands of a text name: `--test NAME` and the like. Words in capitals
/// and variables stand for any name.
fn named_targets(text: &str) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for command in text.replace("\\\n", " ").lines().flat_map(|line| line.split("cargo ").skip(1)) {
        let own = command.split(" -- ").next().unwrap_or_default();
        let words: Vec<&str> =
            own.split([' ', '`', ',', ')', '"']).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let Some(kind) = pair[0].strip_prefix("--") else { continue };
            let is_name = pair[1].chars().all(|c| c.is_ascii_lowercase() || "_-".contains(c));
            if ["test", "bench", "bin", "example"].contains(&kind)
                && is_name
                && !pair[1].starts_with('-')
            {
                found.insert((kind.to_owned(), pair[1].to_owned()));
            }
        }
    }
    found
}

#[test]
fn every_cargo_target_that_a_command_names_exists() {
    let targets = targets();
    let mut missing = Vec::new();
    let mut count = 0;
    for text in texts(&files()).iter().filter(|text| text.extension() != "rs") {
        for target in named_targets(&text.text) {
            count += 1;
            if !targets.contains(&target) {
                missing.push(format!("{}: --{} {}", text.name.display(), target.0, target.1));
            }
        }
    }
    assert!(count > 8, "only {count} targets found");
    assert!(missing.is_empty(), "no such target:\n{}", missing.join("\n"));
}

#[test]
fn paths_are_distinguished_from_prose_and_patterns() {
    let folders = ["docs", "tests", "host"].map(str::to_owned).into();
    let cited = |line| cited(line, &folders);
    assert_eq!(cited("see docs/jobs and `tests/all.rs`."), ["docs/jobs", "tests/all.rs"]);
    assert_eq!(cited("tests/golden/jpeg holds them"), ["tests/golden/jpeg"]);
    assert_eq!(cited("STYLE.md, lib.rs, DESIGN's"), ["STYLE.md", "lib.rs", "DESIGN"]);
    // No path: prose, a pattern, an address, an ending.
    assert_eq!(cited("host/device, tests/golden/a*.txt, https://host/b.md, .rs"), [""; 0]);
}

#[test]
fn targets_of_commands_are_found() {
    let text =
        "cargo test -p a --lib --test one \\\n  --bench two -- --bin three\n`cargo run --bin X`";
    let pair = |kind: &str, name: &str| (kind.to_owned(), name.to_owned());
    assert_eq!(named_targets(text), [pair("bench", "two"), pair("test", "one")].into());
    assert_eq!(links("[a](b#c) [d](https://e) [f](#g)").collect::<Vec<_>>(), ["b"]);
}
