//! The arrows between crates are those of the picture in README.md, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Crate name to the crates it may use.
type Picture = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent").to_path_buf()
}

/// A package of a workspace, as `cargo metadata` describes it.
#[derive(serde::Deserialize)]
pub(crate) struct Package {
    name: String,
    dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

#[derive(serde::Deserialize)]
struct Dependency {
    name: String,
    /// None for one of the library itself.
    kind: Option<String>,
}

/// What Cargo builds of a package.
#[derive(serde::Deserialize)]
pub(crate) struct Target {
    pub(crate) kind: Vec<String>,
    pub(crate) name: String,
}

/// The packages of the workspace of a manifest below the root.
pub(crate) fn packages(manifest: &str) -> Vec<Package> {
    #[derive(serde::Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    let printed =
        cargo(&["metadata", "--format-version=1", "--no-deps", "--manifest-path", manifest]);
    let metadata: Metadata = serde_json::from_str(&printed).expect("cargo metadata prints JSON");
    metadata.packages
}

/// What Cargo prints, run in the root.
pub(crate) fn cargo(arguments: &[&str]) -> String {
    let command = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = std::process::Command::new(command).args(arguments).current_dir(root()).output();
    let output = output.expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
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
    let short = |name: &str| name.strip_prefix("meetpoint-").map(str::to_owned);
    let mut arrows = Vec::new();
    for package in packages("Cargo.toml") {
        let from = short(&package.name).expect("packages carry the prefix meetpoint-");
        for dependency in &package.dependencies {
            if dependency.kind.as_deref() == Some("dev") {
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
    assert!(arrows.len() > 10, "cargo metadata lists only {} arrows", arrows.len());
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
