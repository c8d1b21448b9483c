//! Defects of datadings 3.4.7's tools that Meetpoint does not share.

use crate::support::{TestFolder, made, options, read, silent, sorted};
use meetpoint_datasets::operations::{
    Amount, CopyOptions, MergeOrder, Share, SplitBy, merge, sample, shuffle, split,
};
use meetpoint_datasets::{verify, verify_deep};

/// `datadings-shuffle` without sizes of buffer and chunks is a TypeError.
#[test]
fn a_shuffle_needs_no_options() {
    let place = TestFolder::new();
    let from = place.write_some("a", 30);
    shuffle(&from, &place.path("b"), 0, &CopyOptions::default(), &mut silent).unwrap();
    assert_eq!(sorted(read(&place.path("b"))), sorted(made(30, 3)));
}

/// `datadings-merge` is always an AttributeError.
#[test]
fn a_merge_merges() {
    let place = TestFolder::new();
    let from = [place.write_some("a", 7), place.write_some("b", 5)];
    let prefixes = ["a/".to_owned(), "b/".to_owned()];
    let to = place.path("c");
    merge(&from, &to, MergeOrder::Concat, &prefixes, &CopyOptions::default(), &mut silent).unwrap();
    assert_eq!(read(&to).len(), 12);
}

/// `datadings-split` writes the sample at a boundary twice, and ends with an IndexError.
#[test]
fn a_split_has_no_sample_twice_at_its_boundaries() {
    let place = TestFolder::new();
    let from = place.write_some("a", 100);
    let parts = [("x", "30"), ("y", "30"), ("z", "40")];
    let parts = parts.map(|(name, share)| (place.path(name), Share::parse(share).unwrap()));
    let by = SplitBy::Shares { parts: parts.to_vec(), stratify: false, seed: 0 };
    let summaries = split(&from, &by, &options(), &mut silent).unwrap();
    assert_eq!(summaries.iter().map(|part| part.samples).collect::<Vec<_>>(), [30, 30, 40]);
    let all = ["x", "y", "z"].map(|name| read(&place.path(name))).concat();
    assert_eq!(sorted(all), sorted(made(100, 3)));
}

/// `QuasiShuffler` takes 1 % whatever fraction is asked for.
#[test]
fn a_fraction_is_the_requested_one() {
    let place = TestFolder::new();
    let from = place.write_some("a", 100);
    for (fraction, size) in [("0.5", 50), ("1%", 1), ("0.125", 13), ("1", 100)] {
        let amount = Amount::Fraction(Share::parse(fraction).unwrap());
        let forced = CopyOptions { force: true, ..options() };
        let summary = sample(&from, &place.path("b"), amount, false, 7, &forced, &mut silent);
        assert_eq!(summary.unwrap().samples, size, "{fraction}");
    }
}

/// `verify_index` knows the index of an earlier version only.
#[test]
fn verify_knows_what_operations_write() {
    let place = TestFolder::new();
    let from = place.write_some("a", 30);
    let to = place.path("b");
    shuffle(&from, &to, 1, &options(), &mut silent).unwrap();
    let mut report = verify(&to, &mut |_| ()).unwrap();
    assert!(report.is_sound());
    verify_deep(&to, 2, &Default::default(), &mut report, &mut |_| ()).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    let part = to.join("part-00001.arrow");
    let sound = std::fs::read(&part).unwrap();
    for at in (0..sound.len()).step_by(41) {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&part, bytes).unwrap();
        assert!(!verify(&to, &mut |_| ()).unwrap().is_sound(), "byte {at}");
    }
}
