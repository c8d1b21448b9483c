//! The differences that `diff` finds, and those that it ignores.

use crate::support::{TestFolder, TestSample, cases, made, options, silent};
use meetpoint_datasets::operations::{DiffOptions, Difference, diff, shuffle};
use meetpoint_datasets::{JpegOptions, PackOptions, pack};
use meetpoint_format::dataset::Form;
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

const LABELS: [&str; 3] = ["class0", "class1", "class2"];

fn compare(left: &Path, right: &Path) -> Difference {
    let options = DiffOptions { threads: 2, ..DiffOptions::default() };
    diff(left, right, &options, &Arc::default(), &mut silent).unwrap()
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn a_dataset_does_not_differ_from_itself_however_it_is_cut(
        count in 1_usize..50,
        part_bytes in 200_u64..5000,
    ) {
        let place = TestFolder::new();
        let left = place.write_some("a", count);
        let right = place.write("b", &LABELS, &made(count, 3), part_bytes);
        let found = compare(&left, &right);
        prop_assert!(found.is_empty(), "{:?}", found);
        prop_assert_eq!(found.same, count as u64);
    }
}

#[test]
fn every_kind_of_change_is_named_by_key() {
    let place = TestFolder::new();
    let left = place.write_some("a", 20);
    let mut all = made(20, 3);
    all[2].content.push(1);
    all[3].label = Some("class1".to_owned());
    all[4].label = None;
    all[5].fold = Some("test".to_owned());
    all[6].fold = None;
    all[7].number += 1;
    all[7].content[0] ^= 1;
    all.remove(11);
    all.push(TestSample::new(99, 3));
    let right = place.write("b", &LABELS, &all, 900);
    let found = compare(&left, &right);
    assert_eq!((found.same, found.changed), (13, 6));
    let named: Vec<(u64, Vec<&str>)> = found
        .changed_named
        .iter()
        .map(|changed| (changed.left, changed.what.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(
        named,
        [
            (2, vec!["content"]),
            (3, vec!["label"]),
            (4, vec!["label"]),
            (5, vec!["column fold"]),
            (6, vec!["column fold"]),
            (7, vec!["content", "column number"]),
        ]
    );
    assert_eq!(found.changed_named[0].key, "class2/2.bin");
    assert_eq!((found.only_left.samples, found.only_left.named), (1, vec!["class2/11.bin".into()]));
    assert_eq!(
        (found.only_right.samples, found.only_right.named),
        (1, vec!["class0/99.bin".into()])
    );
    assert_eq!((found.order, found.label_names, found.columns), (None, false, None));
}

#[test]
fn another_order_is_a_difference_and_nothing_else() {
    let place = TestFolder::new();
    let left = place.write_some("a", 30);
    shuffle(&left, &place.path("b"), 4, &options(), &mut silent).unwrap();
    let found = compare(&left, &place.path("b"));
    assert_eq!((found.same, found.changed), (30, 0));
    assert!(found.order.is_some() && !found.is_empty());
    assert!(Difference { order: None, ..found }.is_empty());
}

#[test]
fn a_label_is_the_same_by_its_name() {
    let place = TestFolder::new();
    let left = place.write_some("a", 9);
    let right = place.write("b", &["class2", "class1", "class0"], &made(9, 3), 900);
    let found = compare(&left, &right);
    assert_eq!((found.same, found.label_names), (9, true));
}

#[test]
fn lists_are_bounded_and_counts_are_not() {
    let place = TestFolder::new();
    let left = place.write_some("a", 40);
    let mut all = made(40, 3);
    all.iter_mut().for_each(|made| made.content[0] ^= 0x55);
    let right = place.write("b", &LABELS, &all, 900);
    let options = DiffOptions { named_max: 3, ..DiffOptions::default() };
    let found = diff(&left, &right, &options, &Arc::default(), &mut silent).unwrap();
    assert_eq!((found.changed, found.changed_named.len()), (40, 3));
    assert_eq!(found.changed_named[2].left, 2, "the first ones of the dataset");
}

#[test]
fn the_same_file_in_another_form_is_the_same() {
    let place = TestFolder::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/pictures/fine");
    let sets = [("a", Form::Jpeg), ("b", Form::Compact)].map(|(name, form)| {
        let jpeg = JpegOptions { form, ..JpegOptions::default() };
        let options = PackOptions { jpeg, ..PackOptions::default() };
        pack(&golden, &place.path(name), &options, &mut |_| ()).unwrap();
        place.path(name)
    });
    let found = compare(&sets[0], &sets[1]);
    // A progressive file remains progressive in a coefficient form, and is stored as baseline
    // otherwise.
    assert_eq!((found.same, found.changed), (3, 1), "{found:?}");
    assert_eq!(found.changed_named[0].key, "progressive.jpg");
    assert_eq!(found.other_form, 2);
}
