//! The wheel and the tests share one build of every dependency, and builds for users are fully
//! optimised.

use crate::layers::{cargo, root};
use std::collections::BTreeSet;

/// Every dependency of a selection of packages with its features: `name version|feature,feature`.
fn features(selection: &[&str]) -> BTreeSet<String> {
    let tree = [&["tree", "--locked", "--prefix=none", "--format={p}|{f}"], selection].concat();
    let printed = cargo(&tree);
    let is_dependency = |line: &&str| !line.starts_with("meetpoint-") && line.contains('|');
    let found = printed.lines().filter(is_dependency);
    found.map(|line| line.replace(" (proc-macro)", "").replace(" (*)", "")).collect()
}

#[test]
fn the_wheel_and_the_tests_enable_the_same_features_of_every_dependency() {
    let wheel = features(&["--package=meetpoint-python", "--edges=normal,build"]);
    let tests = features(&["--workspace", "--edges=normal,build,dev"]);
    assert!(wheel.len() > 100, "only {} dependencies found", wheel.len());
    let twice: Vec<_> = wheel.difference(&tests).collect();
    assert!(
        twice.is_empty(),
        "built once for the wheel and once more, with other features, for the tests:\n{twice:#?}"
    );
}

/// Packages with an optimisation level of their own in a profile, and the level.
fn levels(manifest: &str, profile: &str) -> Vec<(String, String)> {
    let table = format!("[profile.{profile}.package]\n");
    let rows = manifest.split(&table).nth(1).expect("Cargo.toml has the table").lines();
    let rows = rows.take_while(|row| !row.starts_with('['));
    rows.filter_map(|row| {
        let (name, settings) = row.split_once(" = {")?;
        let level = settings.split("opt-level = ").nth(1)?.split([',', ' ']).next()?;
        Some((name.to_owned(), level.to_owned()))
    })
    .collect()
}

#[test]
fn what_release_leaves_unoptimised_the_profile_for_users_optimises() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml reads");
    let (release, dist) = (levels(&manifest, "release"), levels(&manifest, "dist"));
    assert!(!release.is_empty(), "no package has a level of its own");
    let optimised = |name: &str| dist.iter().any(|(other, level)| other == name && level != "0");
    let forgotten: Vec<_> = release.iter().filter(|(name, _)| !optimised(name)).collect();
    assert!(forgotten.is_empty(), "add to [profile.dist.package]: {forgotten:?}");
}
