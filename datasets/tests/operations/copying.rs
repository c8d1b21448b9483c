//! The output of shuffling, sampling, selecting and merging.

use crate::support::{TestFolder, TestSample, cases, made, options, read, silent, sorted};
use meetpoint_datasets::operations::{
    Amount, CopyOptions, MergeOrder, Progress, Selection, Share, merge, sample, select, shuffle,
};
use meetpoint_datasets::{JpegOptions, PackOptions, pack, verify, verify_deep};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_format::dataset::{EntryPointSpacing, Form};
use meetpoint_format::order::Order;
use meetpoint_prepare::Dataset;
use proptest::prelude::*;
use std::path::Path;

#[test]
fn a_shuffle_is_the_order_of_an_epoch_and_takes_everything_along() {
    let place = TestFolder::new();
    let from = place.write_some("a", 40);
    let mut last = Progress::default();
    let summary = shuffle(&from, &place.path("b"), 9, &options(), &mut |step| last = step).unwrap();
    assert_eq!((summary.samples, last.samples_done, last.samples), (40, 40, 40));
    assert_eq!(last.bytes_done, summary.image_bytes);
    assert!(summary.parts > 1);
    let order = Order::shuffled(40, 9, 0);
    let all = made(40, 3);
    let expected: Vec<TestSample> =
        (0..40).map(|at| all[order.sample_at(at) as usize].clone()).collect();
    assert_eq!(read(&place.path("b")), expected);
    let options = Dataset::open(&place.path("b")).unwrap().manifest().provenance.options.clone();
    assert_eq!(options["history"], "shuffle seed=9");
    assert_eq!(options["parents"].len(), 64);
}

#[test]
fn progress_is_reported_step_by_step() {
    let place = TestFolder::new();
    let from = place.write_some("a", 20);
    shuffle(&from, &place.path("b"), 1, &options(), &mut silent).unwrap();
    let amount = Amount::Samples(5);
    sample(&place.path("b"), &place.path("c"), amount, false, 2, &options(), &mut silent).unwrap();
    let history = |name| {
        Dataset::open(&place.path(name)).unwrap().manifest().provenance.options["history"].clone()
    };
    assert_eq!(history("c"), "shuffle seed=1; sample n=5 per-class=false seed=2");
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn a_shuffle_is_a_permutation_whatever_memory_and_threads_it_has(
        count in 1_usize..60,
        seed: u64,
        memory_bytes in 0_u64..4000,
        threads in 1_usize..4,
    ) {
        let place = TestFolder::new();
        let from = place.write_some("a", count);
        let options = CopyOptions { memory_bytes, threads, ..options() };
        shuffle(&from, &place.path("b"), seed, &options, &mut silent).unwrap();
        let shuffled = read(&place.path("b"));
        prop_assert_eq!(sorted(shuffled.clone()), sorted(made(count, 3)));
        let plenty = CopyOptions::default();
        shuffle(&from, &place.path("c"), seed, &plenty, &mut silent).unwrap();
        prop_assert_eq!(read(&place.path("c")), shuffled);
    }
}

#[test]
fn a_sample_has_the_requested_size_and_the_order_of_the_dataset() {
    let place = TestFolder::new();
    let from = place.write_some("a", 50);
    let all = made(50, 3);
    for (amount, size) in [
        (Amount::Samples(17), 17),
        (Amount::Samples(50), 50),
        (Amount::Fraction(Share::parse("0.5").unwrap()), 25),
        (Amount::Fraction(Share::ONE), 50),
    ] {
        let to = place.path("b");
        let forced = CopyOptions { force: true, ..options() };
        sample(&from, &to, amount, false, 3, &forced, &mut silent).unwrap();
        let drawn = read(&to);
        assert_eq!(drawn.len(), size);
        let in_order: Vec<TestSample> = all.iter().filter(|m| drawn.contains(m)).cloned().collect();
        assert_eq!(drawn, in_order);
    }
}

#[test]
fn a_sample_of_each_class_has_as_many_of_each() {
    let place = TestFolder::new();
    let mut all = made(31, 3);
    for made in all.iter_mut().filter(|made| made.number % 7 == 0) {
        made.label = None;
    }
    let from = place.write("a", &["class0", "class1", "class2"], &all, 500);
    let to = place.path("b");
    sample(&from, &to, Amount::Samples(4), true, 3, &options(), &mut silent).unwrap();
    let drawn = read(&to);
    for label in [Some("class0"), Some("class1"), Some("class2"), None] {
        let of =
            |all: &[TestSample]| all.iter().filter(|made| made.label.as_deref() == label).count();
        assert_eq!(of(&drawn), of(&all).min(4), "{label:?}");
    }
}

#[test]
fn samples_that_are_empty_or_larger_than_the_dataset_are_refused() {
    let place = TestFolder::new();
    let from = place.write_some("a", 5);
    let refusal = |amount| {
        let to = place.path("b");
        sample(&from, &to, amount, false, 0, &options(), &mut silent)
            .unwrap_err()
            .in_full(Surface::CommandLine)
    };
    assert_eq!(refusal(Amount::Samples(6)), "6 samples of 5; ask for at most 5");
    assert!(refusal(Amount::Samples(0)).contains("has no samples"));
    assert!(refusal(Amount::Fraction(Share::parse("1.5").unwrap())).contains("at most 1"));
    assert_eq!(place.names(), ["a"]);
}

#[test]
fn a_selection_has_the_samples_that_match_all_conditions() {
    let place = TestFolder::new();
    let from = place.write_some("a", 30);
    let all = made(30, 3);
    let to = place.path("b");
    let check = |selection: &Selection, fits: &dyn Fn(usize, &TestSample) -> bool| {
        let forced = CopyOptions { force: true, ..options() };
        select(&from, &to, selection, &forced, &mut silent).unwrap();
        let expected: Vec<TestSample> =
            all.iter().enumerate().filter(|(at, m)| fits(*at, m)).map(|(_, m)| m.clone()).collect();
        assert_eq!(read(&to), expected, "{selection:?}");
    };
    let labels = vec!["class2".to_owned(), "class0".to_owned()];
    let by_label = Selection { labels, ..Selection::default() };
    check(&by_label, &|at, _| at % 3 != 1);
    let keys = vec!["class1/*".to_owned(), "**/2?.bin".to_owned()];
    let by_key = Selection { keys, ..Selection::default() };
    check(&by_key, &|at, _| at % 3 == 1 || at >= 20);
    let both = Selection { labels: by_label.labels.clone(), range: Some(3..24), ..by_key };
    let fits = |at: usize| at % 3 != 1 && (20..24).contains(&at);
    check(&both, &|at, _| fits(at));
    check(&Selection { invert: true, ..both }, &|at, _| !fits(at));
}

#[test]
fn invalid_selections_are_refused() {
    let place = TestFolder::new();
    let from = place.write_some("a", 9);
    let refusal = |selection: &Selection| {
        let to = place.path("b");
        select(&from, &to, selection, &options(), &mut silent)
            .unwrap_err()
            .in_full(Surface::CommandLine)
    };
    let labels = vec!["clas0".to_owned()];
    assert!(refusal(&Selection { labels, ..Selection::default() }).contains("no label \"clas0\""));
    let keys = vec!["a[".to_owned()];
    assert!(refusal(&Selection { keys, ..Selection::default() }).contains("pattern \"a[\""));
    let keys = vec!["*".to_owned()];
    let nothing = refusal(&Selection { keys, ..Selection::default() });
    assert!(nothing.contains("has no samples"), "* does not cross folders: {nothing}");
    assert_eq!(place.names(), ["a"]);
}

#[test]
fn merged_labels_are_united_by_name() {
    let place = TestFolder::new();
    let first = place.write("a", &["class0", "class1"], &made(10, 2), 500);
    let mut others = made(8, 2);
    for (index, other) in others.iter_mut().enumerate() {
        other.key = format!("other/{index}");
        other.label = Some(["class3", "class1"][index % 2].to_owned());
    }
    let second = place.write("b", &["class1", "class3"], &others, 500);
    let to = place.path("c");
    let from = [first, second];
    merge(&from, &to, MergeOrder::Concat, &[], &options(), &mut silent).unwrap();
    assert_eq!(read(&to), [made(10, 2), others.clone()].concat());
    let labels = Dataset::open(&to).unwrap().manifest().labels.clone();
    assert_eq!(labels, ["class0", "class1", "class3"]);
    let forced = CopyOptions { force: true, ..options() };
    merge(&from, &to, MergeOrder::Interleave, &[], &forced, &mut silent).unwrap();
    let interleaved = read(&to);
    // 10 and 8: about five of the first nine samples are from the first dataset.
    let early = interleaved[..9].iter().filter(|made| !made.key.starts_with("other")).count();
    assert_eq!(early, 5);
    let of_first: Vec<TestSample> =
        interleaved.into_iter().filter(|made| !made.key.starts_with("other")).collect();
    assert_eq!(of_first, made(10, 2), "each keeps its order");
}

#[test]
fn a_key_in_two_datasets_is_refused_or_distinguished_by_a_prefix() {
    let place = TestFolder::new();
    let from = [place.write_some("a", 6), place.write_some("b", 4)];
    let to = place.path("c");
    let merged = |prefixes: &[String]| {
        merge(&from, &to, MergeOrder::Concat, prefixes, &options(), &mut silent)
    };
    let refusal = merged(&[]).unwrap_err().in_full(Surface::CommandLine);
    for word in ["class", "/a (sample", "/b (sample", "--prefix"] {
        assert!(refusal.contains(word), "{word}: {refusal}");
    }
    assert!(
        merged(&["x".to_owned()])
            .unwrap_err()
            .in_full(Surface::CommandLine)
            .contains("1 prefixes for 2")
    );
    merged(&["x/".to_owned(), String::new()]).unwrap();
    let keys: Vec<String> = read(&to).into_iter().map(|made| made.key).collect();
    assert_eq!(keys[0], "x/class0/0.bin");
    assert_eq!(keys[6], "class0/0.bin");
}

#[test]
fn datasets_in_other_forms_are_refused_by_what_differs() {
    let place = TestFolder::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/pictures/fine");
    let packed = |name: &str, form, entry_points| {
        let jpeg = JpegOptions { form, entry_points, ..JpegOptions::default() };
        let options = PackOptions { jpeg, ..PackOptions::default() };
        pack(&golden, &place.path(name), &options, &mut |_| ()).unwrap();
        place.path(name)
    };
    let by_row = Some(EntryPointSpacing::McuRow);
    let jpeg = packed("jpeg", Form::Jpeg, by_row);
    let bare = packed("bare", Form::Jpeg, None);
    let compact = packed("compact", Form::Compact, by_row);
    let fast = packed("fast", Form::Fast, by_row);
    let prefixes = ["x/".to_owned(), "y/".to_owned()];
    let merged = |left: &Path, right: &Path| {
        let from = [left.to_path_buf(), right.to_path_buf()];
        let to = place.path("merged");
        merge(&from, &to, MergeOrder::Concat, &prefixes, &options(), &mut silent)
    };
    let refusal = |left, right| merged(left, right).unwrap_err().in_full(Surface::CommandLine);
    assert!(refusal(&compact, &fast).contains("forms are compact and fast"));
    assert!(refusal(&jpeg, &bare).contains("entry points are one a row and none"));
    merged(&jpeg, &compact).unwrap();
    let mut report = verify(&place.path("merged"), &mut |_| ()).unwrap();
    let stop = Default::default();
    verify_deep(&place.path("merged"), 1, &stop, &mut report, &mut |_| ()).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    assert_eq!(report.deep.unwrap().converted, 3);
}

#[test]
fn datasets_with_other_columns_are_refused_by_the_column() {
    let place = TestFolder::new();
    let first = place.write_some("a", 6);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/version-3");
    let from = [first, golden];
    let merged = merge(&from, &place.path("c"), MergeOrder::Concat, &[], &options(), &mut silent);
    let refusal = merged.unwrap_err().in_full(Surface::CommandLine);
    assert!(refusal.contains("content is bytes and image"), "{refusal}");
}
