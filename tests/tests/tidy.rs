//! Rules for source files: opening sentences, lengths of files and lines, forbidden words.

use crate::layers::root;
use std::path::{Path, PathBuf};

/// Longest source file in lines.
const LINES_MAX: usize = 800;

/// Longest line in characters.
const COLUMNS_MAX: usize = 100;

/// Every Rust source of the workspace, generated ones left out.
pub(crate) fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = std::fs::read_dir(root())
        .expect("the root reads")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.join("Cargo.toml").is_file())
        .collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder reads") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") && !is_generated(&path) {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 40, "only {} sources found", found.len());
    found
}

fn is_generated(path: &Path) -> bool {
    path.ends_with("wire/generated.rs")
}

/// One complaint per rule that a file breaks.
fn complaints(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let body: Vec<&str> = text.lines().skip_while(|line| line.starts_with("#!")).collect();
    if !body.first().is_some_and(|line| line.starts_with("//!") || line.starts_with("// ")) {
        found.push(format!("{name}: does not open with a sentence on what it is for"));
    }
    if text.lines().count() > LINES_MAX {
        found.push(format!("{name}: more than {LINES_MAX} lines"));
    }
    for (number, line) in text.lines().enumerate() {
        // A literal that cannot be broken may be longer.
        let columns = line.chars().count();
        if columns > COLUMNS_MAX && !is_one_literal(line) {
            found.push(format!("{name}:{}: {columns} columns", number + 1));
        }
        // Split so that this file does not name them itself.
        for word in [concat!("to", "do!("), concat!("#[al", "low("), concat!("#[ign", "ore")] {
            if line.trim_start().starts_with("//") {
                continue;
            }
            if line.contains(word) {
                found.push(format!("{name}:{}: {word}", number + 1));
            }
        }
    }
    found
}

/// Whether a line is nothing but one text without a space, and what closes it.
fn is_one_literal(line: &str) -> bool {
    let inside = line.trim().trim_end_matches([',', ';', ')']);
    let is_quoted = inside.len() > 1 && inside.ends_with(['"', '#']);
    let begins = ["\"", "r\"", "r#\"", "b\""].iter().any(|quote| inside.starts_with(quote));
    is_quoted && begins && !inside.contains(' ')
}

#[test]
fn every_source_is_tidy() {
    let found: Vec<String> = sources()
        .iter()
        .flat_map(|path| {
            let text = std::fs::read_to_string(path).expect("a source reads");
            let name = path.strip_prefix(root()).expect("below the root").display().to_string();
            complaints(&name, &text)
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn sources_of_datasets_reach_files_only_through_a_store() {
    let folder = root().join("datasets/src/source");
    let mut found = Vec::new();
    for path in sources().into_iter().filter(|path| path.starts_with(&folder)) {
        let text = std::fs::read_to_string(&path).expect("a source reads");
        let body = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = body.lines().filter(|line| *line != "use std::fs::File;");
        let ways = ["std::fs", " File::open", "OpenOptions", "walkdir", "WalkDir", "open_regular"];
        for line in lines.filter(|line| ways.iter().any(|way| line.contains(way))) {
            found.push(format!("{}: {}", path.display(), line.trim()));
        }
    }
    assert!(found.is_empty(), "use StorePath instead:\n{}", found.join("\n"));
}

#[test]
fn an_untidy_source_is_found() {
    let text = concat!("fn f() { to", "do!() }\n");
    assert_eq!(complaints("f.rs", text).len(), 2);
    assert_eq!(complaints("f.rs", "//! What it is for.\n").len(), 0);
    let long = format!("//! What it is for.\n// {}\n", "x ".repeat(50));
    assert_eq!(complaints("f.rs", &long), ["f.rs:2: 103 columns"]);
    let literal = format!("//! What it is for.\n    \"{}\",\n", "x".repeat(100));
    assert_eq!(complaints("f.rs", &literal).len(), 0);
}

/// Crates that compute lengths and offsets from bytes that others wrote.
const PARSERS: [&str; 6] = [
    "meetpoint-datasets",
    "meetpoint-device",
    "meetpoint-format",
    "meetpoint-host",
    "meetpoint-link",
    "meetpoint-prepare",
];

#[test]
fn crates_that_parse_check_for_overflow_in_release_builds() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("a manifest reads");
    let section = manifest.split("[profile.release.package]").nth(1).expect("there is a section");
    let lines: Vec<&str> = section.lines().take_while(|line| !line.starts_with('[')).collect();
    for parser in PARSERS {
        let is_checked = lines.iter().any(|line| {
            line.split_once(" = ").is_some_and(|(name, settings)| {
                name == parser && settings.contains("overflow-checks = true")
            })
        });
        assert!(is_checked, "{parser} wraps around in release builds");
    }
}
