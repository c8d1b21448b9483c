//! Documents do not use phrases that readers of technical English stumble over.

use crate::layers::root;
use std::path::{Path, PathBuf};

/// Phrases, and what to write instead.
const PHRASES: [(&str, &str); 15] = [
    ("told", "reported, passed"),
    ("whoever", "the caller, the user"),
    ("anew", "again"),
    ("so often", "every …"),
    ("in vain", "without result"),
    ("held against", "compared with"),
    ("what became of", "the result of"),
    ("what becomes of", "the result of"),
    ("comes to nothing", "is discarded"),
    ("came to nothing", "was discarded"),
    ("gone on with", "resumed"),
    ("goes on where", "resumes"),
    ("how-many-eth", "the ordinal of"),
    ("without chance", "deterministic"),
    ("is no source", "is not a source"),
];

/// Documents at the root and in docs/. Records of past measurements and changes stay as they are.
fn documents() -> Vec<PathBuf> {
    let entries = [root(), root().join("docs")].into_iter().flat_map(|folder| {
        std::fs::read_dir(folder).expect("a folder reads").map(|entry| entry.expect("an entry"))
    });
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .filter(|path| path.file_name().is_some_and(|name| name != "CHANGELOG.md"))
        .collect();
    found.sort();
    assert!(found.len() > 15, "only {} documents found", found.len());
    found
}

/// Each use of a phrase, as whole words, also across the end of a line.
fn uses(name: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lower = text.to_lowercase().replace('\n', " ");
    for (phrase, instead) in PHRASES {
        for (at, _) in lower.match_indices(phrase) {
            let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            let before = lower[..at].chars().next_back();
            let after = lower[at + phrase.len()..].chars().next();
            if !is_letter(before) && !is_letter(after) {
                let context = lower[at..].chars().take(40).collect::<String>();
                found.push(format!("{}: \"{context}…\": write: {instead}", name.display()));
            }
        }
    }
    found
}

#[test]
fn documents_use_plain_technical_english() {
    let mut found = Vec::new();
    for path in documents() {
        let text = std::fs::read_to_string(&path).expect("a document reads");
        found.extend(uses(path.strip_prefix(root()).expect("below the root"), &text));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn phrases_are_found_as_whole_words_and_across_lines() {
    let count = |text: &str| uses(Path::new("a.md"), text).len();
    assert_eq!(count("It is told in the report, and held\nagainst the clock."), 2);
    assert_eq!(count("What becomes of it? It goes on where it was."), 2);
    assert_eq!(count("Untold stories; a stolid fellow; totally reported."), 0);
}
