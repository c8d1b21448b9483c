//! Compares the features that kernels enable, and the committed test results, with what [`Cpu`]
//! declares.

#![expect(clippy::unwrap_used, reason = "failing a test")]

use meetpoint_jpeg::Cpu;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Results of testing the kernels of each instruction set.
const RESULTS: &str = "../docs/measurements/2026-11-22-instruction-sets.md";

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Sources of this crate and of `meetpoint-kernels`, which chooses by the same list.
fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![here("src"), here("../kernels/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found
}

/// The features of each `#[target_feature(enable = "..")]`.
fn enabled(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let behind = text.split("#[target_feature(enable = \"").skip(1);
    behind.map(|behind| behind.split('"').next().unwrap().split(',').collect())
}

/// The instruction set that code with these features is for.
fn user(features: &[&str]) -> Cpu {
    if features.contains(&"neon") {
        Cpu::Neon
    } else if features.iter().any(|feature| feature.starts_with("avx512")) {
        Cpu::Avx512
    } else {
        Cpu::Avx2
    }
}

#[test]
fn every_feature_that_a_kernel_enables_is_detected_before_it_runs() {
    let mut users = BTreeSet::new();
    for (path, text) in sources() {
        for features in enabled(&text) {
            let cpu = user(&features);
            users.insert(cpu.name());
            let detected: BTreeSet<_> = cpu.features().collect();
            for feature in features {
                assert!(
                    detected.contains(feature),
                    "{}: {feature} is enabled, but `Cpu::{cpu:?}` does not require it",
                    path.display()
                );
            }
        }
    }
    assert_eq!(users, BTreeSet::from(["avx2", "avx512", "neon"]));
}

#[test]
fn every_instruction_set_has_a_committed_result() {
    let results = std::fs::read_to_string(here(RESULTS)).unwrap();
    for cpu in Cpu::ALL {
        let evidence = cpu.evidence().map(|evidence| evidence.name());
        let listed = results.lines().find_map(|line| {
            let mut cells = line.split('|').map(str::trim).skip(1);
            (cells.next() == Some(cpu.name())).then(|| cells.next()).flatten()
        });
        assert!(listed.is_some(), "{} has no result in {RESULTS}", cpu.name());
        assert_eq!(evidence, listed, "{}", cpu.name());
    }
}
