//! A split is a partition, and a merge reverses it.

use crate::support::{TestFolder, TestSample, cases, made, options, read, silent, sorted};
use meetpoint_datasets::Error;
use meetpoint_datasets::operations::{
    Amount, CopyOptions, MergeOrder, OperationError, Share, SplitBy, diff, merge, sample, split,
};
use meetpoint_diagnose::{Diagnose, Setting, Surface};
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

fn by_shares(place: &TestFolder, shares: &[&str], stratify: bool, seed: u64) -> SplitBy {
    let part = |(number, share): (usize, &&str)| {
        (place.path(&format!("part{number}")), Share::parse(share).unwrap())
    };
    SplitBy::Shares { parts: shares.iter().enumerate().map(part).collect(), stratify, seed }
}

fn paths(place: &TestFolder, parts: usize) -> Vec<PathBuf> {
    (0..parts).map(|number| place.path(&format!("part{number}"))).collect()
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn a_split_is_a_partition_and_merging_it_gives_the_samples_back(
        count in 8_usize..60,
        weights in proptest::collection::vec(2_u32..5, 2..4),
        stratify: bool,
        interleave: bool,
        seed: u64,
    ) {
        let place = TestFolder::new();
        let from = place.write_some("a", count);
        let texts: Vec<String> = weights.iter().map(u32::to_string).collect();
        let shares: Vec<&str> = texts.iter().map(String::as_str).collect();
        let by = by_shares(&place, &shares, stratify, seed);
        let summaries = split(&from, &by, &options(), &mut silent).unwrap();
        let all = made(count, 3);
        let total: u32 = weights.iter().sum();
        let paths = paths(&place, weights.len());
        let mut seen: Vec<TestSample> = Vec::new();
        for ((path, weight), summary) in paths.iter().zip(&weights).zip(&summaries) {
            let part = read(path);
            prop_assert_eq!(summary.samples, part.len() as u64);
            let quota = count as f64 * f64::from(*weight) / f64::from(total);
            let slack = if stratify { weights.len() as f64 } else { 1.0 };
            prop_assert!((part.len() as f64 - quota).abs() < slack, "{} of {quota}", part.len());
            let ordered: Vec<TestSample> =
                all.iter().filter(|m| part.contains(m)).cloned().collect();
            prop_assert_eq!(&part, &ordered);
            if stratify {
                for class in 0..3 {
                    let name = format!("class{class}");
                    let of = |all: &[TestSample]| {
                        all.iter().filter(|made| made.label.as_ref() == Some(&name)).count() as f64
                    };
                    let quota = of(&all) * f64::from(*weight) / f64::from(total);
                    prop_assert!((of(&part) - quota).abs() < 1.0);
                }
            }
            seen.extend(part);
        }
        prop_assert_eq!(sorted(seen), sorted(all.clone()));
        let order = if interleave { MergeOrder::Interleave } else { MergeOrder::Concat };
        let merged = place.path("merged");
        merge(&paths, &merged, order, &[], &options(), &mut silent).unwrap();
        prop_assert_eq!(sorted(read(&merged)), sorted(all));
        let found = diff(&from, &merged, &Default::default(), &Arc::default(), &mut silent);
        let mut found = found.unwrap();
        found.order = None;
        prop_assert!(found.is_empty(), "{:?}", found);
    }
}

#[test]
fn a_split_depends_on_seed_and_shares_alone() {
    let place = TestFolder::new();
    let from = place.write_some("a", 40);
    let part = |name: &str, seed| {
        let shares = [Share::parse("0.5").unwrap(); 2];
        let parts = [format!("{name}x"), format!("{name}y")].map(|name| place.path(&name));
        let parts = parts.into_iter().zip(shares).collect();
        let by = SplitBy::Shares { parts, stratify: false, seed };
        split(&from, &by, &options(), &mut silent).unwrap();
        read(&place.path(&format!("{name}x")))
    };
    assert_eq!(part("one", 1), part("two", 1));
    assert_ne!(part("three", 2), part("four", 3));
}

#[test]
fn a_column_splits_by_its_values() {
    let place = TestFolder::new();
    let from = place.write_some("a", 23);
    let folder = place.path("parts");
    let by = SplitBy::Column { column: "fold".to_owned(), folder: folder.clone() };
    let summaries = split(&from, &by, &options(), &mut silent).unwrap();
    let names: Vec<_> =
        summaries.iter().map(|s| s.destination.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["train", "val", "null"]);
    for (name, value) in [("train", Some("train")), ("val", Some("val")), ("null", None)] {
        let expected: Vec<TestSample> =
            made(23, 3).into_iter().filter(|made| made.fold.as_deref() == value).collect();
        assert_eq!(read(&folder.join(name)), expected);
    }
    let by = SplitBy::Column { column: "label".to_owned(), folder: place.path("classes") };
    assert_eq!(split(&from, &by, &options(), &mut silent).unwrap().len(), 3);
}

#[test]
fn invalid_splits_are_refused_and_nothing_is_written() {
    let place = TestFolder::new();
    let from = place.write_some("a", 5);
    let refusal = |by: &SplitBy| {
        split(&from, by, &options(), &mut silent).unwrap_err().in_full(Surface::CommandLine)
    };
    assert!(refusal(&by_shares(&place, &["1"], false, 0)).contains("1 part is not a split"));
    let empty = refusal(&by_shares(&place, &["0.99", "0.01"], false, 0));
    assert!(empty.contains("part1 has no samples"), "{empty}");
    let SplitBy::Shares { mut parts, .. } = by_shares(&place, &["1", "1"], false, 0) else {
        unreachable!()
    };
    parts[1].0 = parts[0].0.clone();
    let twice = SplitBy::Shares { parts, stratify: false, seed: 0 };
    assert!(refusal(&twice).contains("named twice"));
    let column = |column: &str| {
        let column = column.to_owned();
        refusal(&SplitBy::Column { column, folder: place.path("parts") })
    };
    assert!(column("none").contains("choose one of label, fold, number"));
    assert_eq!(place.names(), ["a"]);
    place.write_some("part1", 3);
    let exists = refusal(&by_shares(&place, &["1", "1"], false, 0));
    assert!(exists.contains("part1 exists"), "{exists}");
    assert_eq!(place.names(), ["a", "part1"], "the first part is not written either");
    let forced = CopyOptions { force: true, ..options() };
    split(&from, &by_shares(&place, &["1", "1"], false, 0), &forced, &mut silent).unwrap();
}

/// Whether this option is refused for lack of labels.
fn needs_labels(error: &Error, by: Setting) -> bool {
    matches!(error, Error::Operation(OperationError::NoLabels { option, .. }) if *option == by)
}

#[test]
fn options_per_label_are_refused_if_no_sample_has_a_label() {
    let place = TestFolder::new();
    let none = place.write("a", &[], &made(6, 0), 500);
    // A dataset with names of labels may have no labels.
    let names = place.write("b", &["class0"], &made(6, 0), 500);
    for from in [none, names] {
        let by = by_shares(&place, &["1", "1"], true, 0);
        let refusal = split(&from, &by, &options(), &mut silent).unwrap_err();
        assert!(needs_labels(&refusal, Setting::Stratify), "{refusal}");
        let amount = Amount::Samples(1);
        let to = place.path("some");
        let refusal = sample(&from, &to, amount, true, 0, &options(), &mut silent).unwrap_err();
        assert!(needs_labels(&refusal, Setting::PerClass), "{refusal}");
    }
    assert_eq!(place.names(), ["a", "b"]);
    let by = by_shares(&place, &["1", "1"], false, 0);
    split(&place.path("a"), &by, &options(), &mut silent).unwrap();
}

#[test]
fn values_that_are_no_folder_names_are_refused() {
    let place = TestFolder::new();
    let mut all = made(4, 2);
    all[1].fold = Some("../evil".to_owned());
    let from = place.write("a", &["class0", "class1"], &all, 500);
    let by = SplitBy::Column { column: "fold".to_owned(), folder: place.path("parts") };
    let refusal =
        split(&from, &by, &options(), &mut silent).unwrap_err().in_full(Surface::CommandLine);
    assert!(refusal.contains("../evil"), "{refusal}");
    assert_eq!(place.names(), ["a"]);
}
