//! The dependencies between crates are exactly those that ARCHITECTURE.md lists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The document with the list.
const DOCUMENT: &str = "ARCHITECTURE.md";

/// Crate names without the prefix `meetpoint-`, in the order of the list, each with the crates that
/// it depends on.
type ListedCrates = Vec<(String, BTreeSet<String>)>;

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
    /// `None` for a dependency of the library or program itself.
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

/// Reads the lines `name -> a, b` or `name -> none` of the block that starts with "```crates".
fn listed(document: &str) -> ListedCrates {
    let block = document
        .split("```crates\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("the document has a block that starts with ```crates");
    let names = |text: &str| -> BTreeSet<String> {
        text.split([',', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let mut found = ListedCrates::new();
    for line in block.lines().filter(|line| !line.trim().is_empty()) {
        let (name, uses) = line.split_once("->").expect("each line of the block has an arrow");
        let uses = if uses.trim() == "none" { BTreeSet::new() } else { names(uses) };
        found.push((name.trim().to_owned(), uses));
    }
    found
}

/// Differences between the list and the dependencies of the workspace, in both directions, and
/// entries that depend on a crate further down the list.
fn differences(listed: &ListedCrates, actual: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut found = Vec::new();
    let mut above = BTreeSet::new();
    for (name, uses) in listed {
        match actual.get(name) {
            None => found.push(format!("{name} is listed and is not a crate of the workspace")),
            Some(actual) => {
                let unused = uses.difference(actual);
                found.extend(unused.map(|to| format!("{name} -> {to} is listed and not used")));
                let missing = actual.difference(uses);
                found.extend(missing.map(|to| format!("{name} -> {to} is not listed")));
            }
        }
        let below = uses.difference(&above);
        found.extend(below.map(|to| format!("{name} -> {to} points down the list")));
        if !above.insert(name.clone()) {
            found.push(format!("{name} is listed twice"));
        }
    }
    let unlisted = actual.keys().filter(|name| !above.contains(*name));
    found.extend(unlisted.map(|name| format!("{name} is not listed")));
    found
}

/// The normal and build dependencies of each member of the workspace on other members.
fn actual() -> BTreeMap<String, BTreeSet<String>> {
    let short = |name: &str| name.strip_prefix("meetpoint-").map(str::to_owned);
    let packages = packages("Cargo.toml").into_iter().map(|package| {
        let name = short(&package.name).expect("packages have the prefix meetpoint-");
        let uses = package.dependencies.iter();
        let uses = uses.filter(|dependency| dependency.kind.as_deref() != Some("dev"));
        (name, uses.filter_map(|dependency| short(&dependency.name)).collect())
    });
    packages.collect()
}

fn document() -> String {
    std::fs::read_to_string(root().join(DOCUMENT)).expect("the document reads")
}

#[test]
fn the_listed_dependencies_are_those_of_the_workspace() {
    let actual = actual();
    let count: usize = actual.values().map(BTreeSet::len).sum();
    assert!(count > 10, "cargo metadata lists only {count} dependencies");
    assert_eq!(differences(&listed(&document()), &actual), Vec::<String>::new());
}

#[test]
fn every_listed_crate_has_a_row_that_describes_it() {
    let document = document();
    let rows: Vec<&str> = document.lines().filter(|line| line.starts_with("| [`")).collect();
    for (name, _) in listed(&document) {
        let cell = format!("| [`{name}`](");
        let described = rows.iter().filter(|row| row.starts_with(&cell)).count();
        assert_eq!(described, 1, "{DOCUMENT} has {described} rows that begin with {cell}");
    }
}

#[test]
fn differences_in_both_directions_are_found() {
    let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    let listed = |block: &str| listed(&format!("```crates\n{block}\n```\n"));
    let actual = BTreeMap::from([
        ("format".to_owned(), set(&[])),
        ("storage".to_owned(), set(&[])),
        ("host".to_owned(), set(&["format", "storage"])),
    ]);
    let complete = "format -> none\nstorage -> none\nhost    -> format, storage";
    assert_eq!(differences(&listed(complete), &actual), Vec::<String>::new());
    let cases = [
        ("format -> none\nstorage -> none\nhost -> format", "host -> storage is not listed"),
        (
            "format -> none\nstorage -> format\nhost -> format, storage",
            "storage -> format is listed and not used",
        ),
        ("format -> none\nhost -> format, storage", "host -> storage points down the list"),
        (
            &format!("{complete}\nattic -> none"),
            "attic is listed and is not a crate of the workspace",
        ),
        (&format!("{complete}\nformat -> none"), "format is listed twice"),
    ];
    for (block, expected) in cases {
        let found = differences(&listed(block), &actual);
        assert_eq!(found.first().map(String::as_str), Some(expected), "{block}: {found:?}");
    }
    let found = differences(&listed("format -> none\nstorage -> none"), &actual);
    assert_eq!(found, ["host is not listed"]);
}
