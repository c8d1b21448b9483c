//! Determines which values of a column named `label` are class labels; a column with other values
//! is reported.

use crate::support::{Bench, jpeg};
use arrow_array::{BinaryArray, Float64Array, Int64Array, RecordBatch};
use arrow_ipc::writer::FileWriter;
use meetpoint_datasets::source::{self, Entry, SourceOptions, UnusedLabel};
use meetpoint_datasets::{Error, PackOptions, PackSummary};
use meetpoint_diagnose::{Remedy, Surface};
use std::sync::Arc;

/// Two images and a table with these rows, as CSV and as JSON Lines.
fn with_labels(values: [&str; 2]) -> Bench {
    let bench = Bench::with_images(&["a.jpg", "b.jpg"]);
    let [a, b] = values;
    bench.put("metadata.csv", format!("file_name,label\na.jpg,{a}\nb.jpg,{b}\n").as_bytes());
    bench
}

fn with_json_labels(values: [&str; 2]) -> Bench {
    let bench = Bench::with_images(&["a.jpg", "b.jpg"]);
    let [a, b] = values;
    let rows =
        format!("{{\"file_name\":\"a.jpg\"{a}}}\n{{\"file_name\":\"b.jpg\",\"label\":{b}}}\n");
    bench.put("metadata.jsonl", rows.as_bytes());
    bench
}

fn labels_of(bench: &Bench) -> (PackSummary, Vec<Option<i32>>) {
    let summary = bench.pack().unwrap();
    let mut source = source::open(&bench.from(), None, &SourceOptions::default()).unwrap();
    let mut labels = Vec::new();
    while let Some(entry) = source.next().unwrap() {
        let Entry::Sample(item) = entry else { continue };
        labels.push(item.label);
    }
    (summary, labels)
}

fn unused(column: &str, data_type: &str, class_label: Option<&str>) -> UnusedLabel {
    UnusedLabel {
        column: column.to_owned(),
        data_type: data_type.to_owned(),
        class_label: class_label.map(str::to_owned),
    }
}

#[test]
fn whole_numbers_are_labels_however_they_are_written_and_an_empty_cell_is_none() {
    for values in [["1", "0"], ["1.0", "0.0"], ["1.0", "0"]] {
        let (summary, labels) = labels_of(&with_labels(values));
        assert_eq!((labels, summary.unused_labels), (vec![Some(1), Some(0)], vec![]), "{values:?}");
        let [a, b] = values;
        let (_, labels) = labels_of(&with_json_labels([&format!(",\"label\":{a}"), b]));
        assert_eq!(labels, [Some(1), Some(0)], "{values:?}");
    }
    for bench in [with_labels(["", "1.0"]), with_labels(["", "1"])] {
        let (summary, labels) = labels_of(&bench);
        assert_eq!((labels, summary.unused_labels), (vec![None, Some(1)], vec![]));
    }
    for first in ["", ",\"label\":null"] {
        let (_, labels) = labels_of(&with_json_labels([first, "2.0"]));
        assert_eq!(labels, [None, Some(2)]);
    }
}

#[test]
fn a_column_of_other_values_is_a_column_of_its_type_and_is_reported() {
    for (values, data_type) in [
        (["1", "nan"], "float64"),
        (["1.5", "2"], "float64"),
        (["true", "false"], "boolean"),
        (["", ""], "null"),
    ] {
        let (summary, labels) = labels_of(&with_labels(values));
        assert_eq!(summary.unused_labels, [unused("label", data_type, None)], "{values:?}");
        assert_eq!((summary.columns, labels), (vec!["table.label".to_owned()], vec![None, None]));
    }
    for (first, second, data_type) in [
        (",\"label\":NaN", "1", "float64"),
        (",\"label\":1", "0.5", "float64"),
        (",\"label\":true", "false", "boolean"),
    ] {
        let (summary, _) = labels_of(&with_json_labels([first, second]));
        assert_eq!(summary.unused_labels, [unused("label", data_type, None)], "{first}");
    }
    let said = unused("label", "float64", None);
    let said = [Surface::CommandLine, Surface::Python].map(|surface| said.in_words(surface));
    assert!(said[0].contains("`label` is float64") && said[0].ends_with("--label"), "{}", said[0]);
    assert!(said[1].ends_with("with label=") && !said[1].contains("--"), "{}", said[1]);
}

#[test]
fn labels_of_several_types_are_an_error_at_their_line() {
    let error = with_json_labels([",\"label\":1", "\"cat\""]).pack().unwrap_err();
    let Error::Malformed { origin, problem } = &error else { panic!("{error:?}") };
    assert_eq!(origin.member.as_deref(), Some("row 2"));
    let remedy = Remedy::advice("give all values of the column one type");
    assert_eq!(problem.advice(), Some(&remedy), "{problem}");
}

#[test]
fn a_column_that_is_asked_for_and_has_fractions_is_an_error() {
    let label = Some("label".to_owned());
    let source = SourceOptions { label, ..SourceOptions::default() };
    let options = PackOptions { source, ..PackOptions::default() };
    let error = with_labels(["1.5", "2"]).pack_with(&options).unwrap_err();
    let Error::Malformed { problem, .. } = &error else { panic!("{error:?}") };
    assert!(problem.to_string().contains("not whole"), "{problem}");
    assert_eq!(with_labels(["1.0", "0"]).pack_with(&options).unwrap().labels, ["0", "1"]);
}

#[test]
fn a_label_that_gives_way_to_another_column_is_reported() {
    let bench = Bench::with_images(&["a.jpg"]);
    bench.put("metadata.csv", b"file_name,label,class\na.jpg,0.5,cat\n");
    let label = Some("class".to_owned());
    let source = SourceOptions { label, ..SourceOptions::default() };
    let options = PackOptions { source, ..PackOptions::default() };
    let summary = bench.pack_with(&options).unwrap();
    assert_eq!(summary.unused_labels, [unused("label", "float64", Some("class"))]);
    assert_eq!(summary.labels, ["cat"]);
}

#[test]
fn tables_with_declared_types_report_a_label_that_is_none() {
    let images = [jpeg(8, 8, 1), jpeg(8, 8, 2)];
    let images: Vec<&[u8]> = images.iter().map(Vec::as_slice).collect();
    let batch = RecordBatch::try_from_iter([
        ("image", Arc::new(BinaryArray::from_vec(images)) as _),
        ("label", Arc::new(Float64Array::from(vec![1.0, f64::NAN])) as _),
        ("y", Arc::new(Int64Array::from(vec![3, 4])) as _),
    ])
    .unwrap();
    for (columns, class_label) in [(&[0, 1][..], None), (&[0, 1, 2], Some("y"))] {
        let batch = batch.project(columns).unwrap();
        let bench = Bench::new();
        let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        bench.put("a.arrow", &writer.into_inner().unwrap());
        let from = bench.from().join("a.arrow");
        let options = PackOptions::default();
        let packed = meetpoint_datasets::pack(&from, &bench.to(), &options, &mut |_| ()).unwrap();
        assert_eq!(packed.unused_labels, [unused("label", "float64", class_label)]);
    }
}

#[test]
fn a_label_in_the_json_of_a_tar_sample_is_a_class_or_is_reported() {
    for (values, labels, expected) in [
        (["1.0", "0"], vec![Some(1), Some(0)], vec![]),
        (["1", "0.5"], vec![None, None], vec![unused("label", "float64", None)]),
        (["true", "false"], vec![None, None], vec![unused("label", "boolean", None)]),
    ] {
        let bench = Bench::new();
        let mut archive = tar::Builder::new(Vec::new());
        for (index, value) in values.iter().enumerate() {
            let json = format!("{{\"label\":{value}}}").into_bytes();
            for (name, bytes) in [("jpg", jpeg(8, 8, index as u8)), ("json", json)] {
                let mut header = tar::Header::new_ustar();
                header.set_size(bytes.len() as u64);
                header.set_mode(0o644);
                let name = format!("{index}.{name}");
                archive.append_data(&mut header, name, bytes.as_slice()).unwrap();
            }
        }
        bench.put("a.tar", &archive.into_inner().unwrap());
        let (summary, found) = labels_of(&bench);
        assert_eq!((found, summary.unused_labels), (labels, expected), "{values:?}");
    }
}
