//! The arrows between crates are those of the picture in README.md, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Crate name to the crates it may use.
type Picture = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent").to_path_buf()
}

/// Reads the lines `name -> a, b` (or `name -> none`, `name -> all`) of the README's picture.
fn picture(readme: &str) -> Picture {
    let block = readme
        .split("```arrows\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("README.md has a block that starts with ```arrows");
    let mut picture = Picture::new();
    for line in block.lines().filter(|line| line.contains("->")) {
        let (name, uses) = line.split_once("->").expect("filtered for it");
        let words = |text: &str| -> BTreeSet<String> {
            let text = text.split("  ").next().unwrap_or_default();
            text.split(',').map(|word| word.trim().to_owned()).filter(|w| !w.is_empty()).collect()
        };
        for name in words(name.trim()) {
            picture.insert(name, words(uses.trim()));
        }
    }
    picture
}

/// The arrows that are not in the picture, and crates that the picture does not know.
fn violations(picture: &Picture, arrows: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    for (from, to) in arrows {
        match picture.get(from) {
            None => found.push(format!("{from} is not in the picture")),
            Some(uses) if uses.contains("all") || uses.contains(to) => {}
            Some(_) => found.push(format!("{from} -> {to} is not in the picture")),
        }
    }
    found
}

/// Every normal and build dependency between members of the workspace.
fn arrows() -> Vec<(String, String)> {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata runs");
    let short = |name: &str| name.strip_prefix("meetpoint-").map(str::to_owned);
    let mut arrows = Vec::new();
    for package in &metadata.packages {
        let from = short(&package.name).expect("packages carry the prefix meetpoint-");
        for dependency in &package.dependencies {
            if dependency.kind == cargo_metadata::DependencyKind::Development {
                continue;
            }
            if let Some(to) = short(&dependency.name) {
                arrows.push((from.clone(), to));
            }
        }
    }
    arrows
}

#[test]
fn every_arrow_between_crates_is_in_the_picture() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README.md reads");
    let arrows = arrows();
    assert!(arrows.len() > 10, "cargo metadata told of only {} arrows", arrows.len());
    assert_eq!(violations(&picture(&readme), &arrows), Vec::<String>::new());
}

#[test]
fn every_crate_of_the_picture_exists() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README.md reads");
    for name in picture(&readme).keys() {
        assert!(root().join(name).join("Cargo.toml").is_file(), "{name} has no Cargo.toml");
    }
}

#[test]
fn an_arrow_that_is_not_in_the_picture_is_found() {
    let picture = picture("```arrows\nhost -> format, storage\ndevice -> format\n```\n");
    let arrow = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    assert_eq!(violations(&picture, &[arrow("host", "format")]), Vec::<String>::new());
    assert_eq!(
        violations(&picture, &[arrow("host", "device"), arrow("attic", "host")]),
        vec!["host -> device is not in the picture", "attic is not in the picture"]
    );
}
