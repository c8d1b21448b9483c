//! A dataset as a source: yields all packed samples, or a selection.

use crate::support::{SourceOutput, options, read, recognised, sample, tables};
use meetpoint_datasets::source::SourceOptions;
use meetpoint_datasets::source::meetpoint::{Selection, open_selection};
use meetpoint_datasets::store::StorePath;
use meetpoint_datasets::{JpegOptions, PackOptions, pack};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_format::dataset::Form;
use serde_json::{Value, json};
use std::path::Path;

/// Packs the saved Hugging Face dataset: 4 samples with labels and further columns.
fn packed(folder: &Path, form: Form) -> std::path::PathBuf {
    let to = folder.join("packed");
    let options = PackOptions {
        source: SourceOptions { split: Some("train".to_owned()), ..SourceOptions::default() },
        jpeg: JpegOptions { form, ..JpegOptions::default() },
        ..PackOptions::default()
    };
    pack(&tables().join("saved"), &to, &options, &mut |_| ()).unwrap();
    to
}

fn rows(got: &SourceOutput) -> Vec<Value> {
    got.items.iter().map(sample).collect()
}

#[test]
fn what_was_packed_comes_back_from_each_form() {
    let source = tables().join("saved");
    let (_, open) = recognised(&source)[0];
    let wanted = open(&StorePath::local(&source), &options(&json!({ "split": "train" }))).unwrap();
    let wanted = read(wanted).unwrap();
    for form in [Form::Jpeg, Form::Fast] {
        let folder = tempfile::tempdir().unwrap();
        let path = packed(folder.path(), form);
        let found = recognised(&path);
        let [("meetpoint", open)] = found[..] else { panic!("{found:?}") };
        let got = read(open(&StorePath::local(&path), &SourceOptions::default()).unwrap()).unwrap();
        assert_eq!(rows(&got), rows(&wanted));
        assert_eq!((&got.labels, got.kind), (&wanted.labels, wanted.kind));
        assert_eq!(got.name, wanted.name);
    }
}

#[test]
fn samples_are_selected_by_index_key_label_and_at_random() {
    let folder = tempfile::tempdir().unwrap();
    let path = packed(folder.path(), Form::Jpeg);
    let keys = |pick: Selection| {
        let got = read(open_selection(&StorePath::local(&path), &pick)?)?;
        let keys = got.items.iter().map(|item| item.key.trim_end_matches(".jpg").to_owned());
        Ok::<_, meetpoint_datasets::Error>(keys.collect::<Vec<_>>().join(" "))
    };
    let pick = Selection::default;
    assert_eq!(keys(pick()).unwrap(), "photo0 photo1 photo2 photo3");
    assert_eq!(keys(Selection { range: Some(1..3), ..pick() }).unwrap(), "photo1 photo2");
    assert_eq!(
        keys(Selection { keys: Some("*[03].jpg".into()), ..pick() }).unwrap(),
        "photo0 photo3"
    );
    let cats = Some(vec!["cat".to_owned()]);
    assert_eq!(keys(Selection { labels: cats.clone(), ..pick() }).unwrap(), "photo0 photo3");
    let both = Selection { labels: cats, range: Some(1..4), ..pick() };
    assert_eq!(keys(both).unwrap(), "photo3");
    let two = |seed| keys(Selection { sample: Some((2, seed)), ..pick() }).unwrap();
    assert_eq!(two(7), two(7));
    let seen: std::collections::BTreeSet<String> = (0..60).map(two).collect();
    assert_eq!(seen.len(), 6, "each pair is chosen by some seed: {seen:?}");
    assert_eq!(keys(Selection { sample: Some((9, 1)), ..pick() }).unwrap().split(' ').count(), 4);
    for (pick, words) in [
        (Selection { range: Some(2..9), ..pick() }, "4 samples"),
        (Selection { labels: Some(vec!["cow".into()]), ..pick() }, "cat, dog, eel"),
        (Selection { keys: Some("[".into()), ..pick() }, "pattern"),
    ] {
        let error = keys(pick).unwrap_err().in_full(Surface::CommandLine);
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_damaged_sample_is_named_and_the_rest_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = packed(folder.path(), Form::Jpeg);
    let part = path.join("part-00000.arrow");
    let mut bytes = std::fs::read(&part).unwrap();
    let second = bytes.windows(2).enumerate().filter(|(_, two)| *two == b"\xff\xd8").nth(1);
    let at = second.unwrap().0 + 100;
    bytes[at] ^= 1;
    std::fs::write(&part, bytes).unwrap();
    let got =
        read(open_selection(&StorePath::local(&path), &Selection::default()).unwrap()).unwrap();
    assert_eq!(got.items.len(), 3);
    assert!(got.unreadable[0].contains("photo1.jpg"), "{:?}", got.unreadable);
}
