//! Sources and datasets into every sink: compared with the output of other programs, and read back
//! by the sources here.

use super::memory_source::{
    Memory, SourceContent, batch, golden_columns, held, memory, pictures, plain_columns, samples,
};
use super::support::{Bench, jpeg};
use arrow_array::{ArrayRef, BinaryArray, Float64Array, Int32Array, StructArray};
use arrow_schema::{DataType, Field, Fields};
use meetpoint_datasets::source::{self, Source, SourceOptions};
use meetpoint_datasets::store::StorePath;
use meetpoint_datasets::{
    ConvertSummary, Error, OnError, PackOptions, Shards, SinkKind, UnpackOptions, convert, unpack,
};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_format::dataset::Form;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn to(sink: SinkKind) -> UnpackOptions {
    UnpackOptions { sink, threads: 3, ..UnpackOptions::default() }
}

fn converted(
    bench: &Bench,
    mut source: Memory,
    options: &UnpackOptions,
) -> Result<ConvertSummary, Error> {
    convert(&mut source, Path::new("memory"), &bench.back(), options, &mut |_| ())
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/sinks").join(name)
}

/// The files of a folder by path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap);
    let name = |path: &Path| path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
    entries
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| (name(entry.path()), std::fs::read(entry.path()).unwrap()))
        .collect()
}

#[test]
fn datadings_files_are_those_that_python_writes() {
    for (name, source) in [
        ("datadings", memory(samples(40), None, &[])),
        ("datadings-one", memory(samples(1), None, &[])),
        ("datadings-columns", memory(samples(8), Some(golden_columns()), &[])),
    ] {
        let bench = Bench::new();
        converted(&bench, source, &to(SinkKind::Datadings)).unwrap();
        let (wanted, got) = (files(&golden(name)), files(&bench.back()));
        assert_eq!(got.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
        for (file, bytes) in &wanted {
            assert!(got[file] == *bytes, "{name}/{file} has other bytes");
        }
    }
}

#[test]
fn mds_files_are_those_that_python_writes() {
    let kept = golden_columns().project(&[0, 1, 2, 3]).unwrap();
    let shards = Shards::after(Some(2000), None);
    for (name, source, shards) in [
        ("mds", memory(samples(40), None, &[]), shards),
        ("mds-columns", memory(samples(8), Some(kept), &[]), Shards::default()),
    ] {
        let bench = Bench::new();
        let options = UnpackOptions { shards, ..to(SinkKind::Mds) };
        converted(&bench, source, &options).unwrap();
        let (wanted, got) = (files(&golden(name)), files(&bench.back()));
        assert_eq!(got.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
        for (file, bytes) in &wanted {
            assert!(got[file] == *bytes, "{name}/{file} has other bytes");
        }
    }
}

/// Opens the output of a sink as a source.
fn opened(bench: &Bench, sink: SinkKind) -> Box<dyn Source> {
    let path = match sink {
        SinkKind::Datadings => bench.back().join("data.msgpack"),
        _ => bench.back(),
    };
    source::open(&path, None, &SourceOptions::default()).unwrap()
}

#[test]
fn every_sink_gives_back_keys_bytes_labels_and_names() {
    for sink in SinkKind::ALL {
        let bench = Bench::new();
        let mut wanted = held(&mut memory(pictures(20), None, &["cat", "dog"]));
        let source = memory(pictures(20), None, &["cat", "dog"]);
        let summary = converted(&bench, source, &to(sink)).unwrap();
        assert_eq!((summary.samples, summary.damaged.len()), (20, 0));
        let written = files(&bench.back());
        assert_eq!(summary.files, written.len() as u64, "{sink:?}");
        assert_eq!(summary.bytes, written.values().map(|file| file.len() as u64).sum::<u64>());
        let mut back = opened(&bench, sink);
        let got = held(back.as_mut());
        wanted.columns = Arc::clone(&got.columns);
        assert_eq!(got, wanted, "{sink:?}");
    }
}

#[test]
fn further_columns_come_back_from_every_sink() {
    for sink in SinkKind::ALL {
        let bench = Bench::new();
        let source = || memory(pictures(12), Some(plain_columns(12)), &["cat", "dog"]);
        let wanted = held(&mut source());
        let summary = converted(&bench, source(), &to(sink)).unwrap();
        let notes: Vec<_> = summary.notes.iter().filter(|note| note.contains("column")).collect();
        // A TensorFlow feature does not distinguish text from bytes.
        assert_eq!(notes.len(), usize::from(sink == SinkKind::TfRecord), "{sink:?}: {notes:?}");
        let mut back = opened(&bench, sink);
        let got = held(back.as_mut());
        assert_eq!(got.samples, wanted.samples, "{sink:?}");
        assert_eq!(got.labels, wanted.labels, "{sink:?}");
        let names = |held: &SourceContent| {
            let names = held.columns.fields().iter().map(|field| field.name().clone());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(&got), names(&wanted), "{sink:?}");
        if sink == SinkKind::Parquet {
            assert_eq!(got.rows, wanted.rows);
        }
    }
}

#[test]
fn parquet_preserves_every_type() {
    let bench = Bench::new();
    let wanted = held(&mut memory(samples(8), Some(golden_columns()), &[]));
    let source = memory(samples(8), Some(golden_columns()), &[]);
    let shards = Shards::after(None, Some(3));
    let options = UnpackOptions { shards, ..to(SinkKind::Parquet) };
    let summary = converted(&bench, source, &options).unwrap();
    assert_eq!(summary.notes, Vec::<String>::new());
    let names = ["data-00000.parquet", "data-00001.parquet", "data-00002.parquet"];
    assert_eq!(files(&bench.back()).keys().collect::<Vec<_>>(), names);
    let mut back = opened(&bench, SinkKind::Parquet);
    let got = held(back.as_mut());
    assert_eq!(got.samples, wanted.samples);
    assert_eq!(got.rows, wanted.rows);
    let types = |held: &SourceContent| {
        let types = held.columns.fields().iter().map(|field| field.data_type().clone());
        types.collect::<Vec<_>>()
    };
    assert_eq!(types(&got), types(&wanted));
}

#[test]
fn shards_end_where_requested() {
    for (sink, names) in [
        (SinkKind::WebDataset, ["shard-000000.tar", "shard-000001.tar", "shard-000002.tar"]),
        (SinkKind::TfRecord, ["data-00000.tfrecord", "data-00001.tfrecord", "data-00002.tfrecord"]),
        (SinkKind::Mds, ["shard.00000.mds", "shard.00001.mds", "shard.00002.mds"]),
    ] {
        let bench = Bench::new();
        let shards = Shards::after(None, Some(4));
        let options = UnpackOptions { shards, ..to(sink) };
        converted(&bench, memory(pictures(10), None, &[]), &options).unwrap();
        let written = files(&bench.back());
        let shards: Vec<_> = written.keys().filter(|name| *name != "index.json").collect();
        assert_eq!(shards, names);
    }
}

#[test]
fn the_same_samples_give_the_same_files_whatever_the_number_of_threads() {
    for sink in SinkKind::ALL {
        let write = |threads| {
            let bench = Bench::new();
            let options = UnpackOptions { threads, ..to(sink) };
            converted(&bench, memory(pictures(40), None, &["cat", "dog"]), &options).unwrap();
            files(&bench.back())
        };
        assert!(write(1) == write(8), "{sink:?}");
    }
}

#[test]
fn what_a_sink_cannot_hold_is_refused_with_the_column_and_a_remedy() {
    let nested = {
        let bytes: ArrayRef = Arc::new(BinaryArray::from_iter_values([b"x"; 8]));
        let field = Field::new("raw", DataType::Binary, false);
        let of = StructArray::new(Fields::from(vec![field]), vec![bytes], None);
        batch(vec![("of", Arc::new(of) as ArrayRef)])
    };
    for (sink, columns, column) in [
        (SinkKind::Folder, golden_columns(), "mask"),
        (SinkKind::WebDataset, nested.clone(), "of"),
        (SinkKind::Mds, nested.clone(), "of"),
        (SinkKind::TfRecord, nested, "of"),
    ] {
        let bench = Bench::new();
        let source = memory(samples(8), Some(columns.clone()), &[]);
        let error = converted(&bench, source, &to(sink)).unwrap_err().in_full(Surface::CommandLine);
        assert!(error.contains(&format!("--without {column}")), "{error}");
        assert_eq!(bench.names(), ["in"], "{sink:?}");
        let options = UnpackOptions { without: vec![column.to_owned()], ..to(sink) };
        let source = memory(samples(8), Some(columns), &[]);
        if sink != SinkKind::Mds {
            assert_eq!(converted(&bench, source, &options).unwrap().samples, 8);
        }
    }
}

#[test]
fn samples_that_a_sink_cannot_hold_fail_or_are_skipped_by_name() {
    let scores = |rows: usize| {
        let scores: Float64Array =
            (0..rows).map(|row| if row == 3 { f64::NAN } else { row as f64 }).collect();
        batch(vec![("score", Arc::new(scores) as ArrayRef)])
    };
    let nulls = || {
        let column: Int32Array = (0..10).map(|row| (row != 3).then_some(row)).collect();
        batch(vec![("n", Arc::new(column) as ArrayRef)])
    };
    let clash = || {
        let mut samples = pictures(10);
        samples[3].0 = samples[2].0.replace(".jpg", ".b.jpg");
        samples[2].0 = samples[2].0.replace(".jpg", "_b.jpg");
        samples
    };
    let cases = [
        (SinkKind::Folder, memory(pictures(10), Some(scores(10)), &[]), "NaN"),
        (SinkKind::WebDataset, memory(pictures(10), Some(scores(10)), &[]), "NaN"),
        (SinkKind::Mds, memory(pictures(10), Some(nulls()), &[]), "null"),
        (SinkKind::WebDataset, memory(clash(), None, &[]), "another sample"),
    ];
    for (sink, source, words) in cases {
        let again = Memory {
            schema: source.schema.clone(),
            items: source.items.clone(),
            labels: Vec::new(),
        };
        let bench = Bench::new();
        let error = converted(&bench, source, &to(sink)).unwrap_err().in_full(Surface::CommandLine);
        assert!(error.contains(words) && error.contains("1 of 10"), "{error}");
        assert_eq!(bench.names(), ["in"]);
        let options = UnpackOptions { on_error: OnError::Skip, ..to(sink) };
        let summary = converted(&bench, again, &options).unwrap();
        assert_eq!((summary.samples, summary.damaged.len()), (9, 1), "{sink:?}");
        let mut back = opened(&bench, sink);
        assert_eq!(held(back.as_mut()).samples.len(), 9, "{sink:?}");
    }
}

#[test]
fn every_sample_that_a_sink_cannot_hold_is_counted_and_its_column_named() {
    let nan = |row: usize| if row.is_multiple_of(3) { f64::NAN } else { 1.0 };
    let scores: Float64Array = (0..10).map(nan).collect();
    let scores = batch(vec![("score", Arc::new(scores) as ArrayRef)]);
    let nulls: Int32Array = (0..10).map(|row| (row % 3 != 0).then_some(row)).collect();
    let nulls = batch(vec![("n", Arc::new(nulls) as ArrayRef)]);
    for (sink, columns, column) in [
        (SinkKind::Mds, nulls, "n"),
        (SinkKind::Folder, scores.clone(), "score"),
        (SinkKind::WebDataset, scores, "score"),
    ] {
        let bench = Bench::new();
        let source = memory(pictures(10), Some(columns), &[]);
        let error = converted(&bench, source, &to(sink)).unwrap_err().in_full(Surface::CommandLine);
        assert!(error.contains("4 of 10"), "{error}");
        assert!(error.contains(&format!("--without {column}, or")), "{error}");
        assert_eq!(bench.names(), ["in"]);
    }
}

#[test]
fn a_folder_that_datadings_files_were_written_to_is_a_source() {
    let bench = Bench::new();
    let source = memory(pictures(4), None, &["cat", "dog"]);
    converted(&bench, source, &to(SinkKind::Datadings)).unwrap();
    let back_path = StorePath::local(bench.back());
    let kind = meetpoint_datasets::source::detect(&back_path).unwrap();
    assert_eq!(kind.name, "datadings");
    let mut back = (kind.open)(&back_path, &SourceOptions::default()).unwrap();
    assert_eq!(held(back.as_mut()).samples.len(), 4);
    for suffix in ["", ".offsets", ".keys"] {
        let file = |name: &str| bench.back().join(format!("{name}.msgpack{suffix}"));
        std::fs::copy(file("data"), file("more")).unwrap();
    }
    let error = (kind.open)(&back_path, &SourceOptions::default()).err().unwrap().to_string();
    assert!(error.contains("several datadings files"), "{error}");
}

#[test]
fn a_key_that_occurs_twice_is_refused_by_every_sink() {
    for sink in SinkKind::ALL {
        let mut twice = pictures(6);
        twice[5].0 = twice[1].0.clone();
        let bench = Bench::new();
        let error = converted(&bench, memory(twice, None, &[]), &to(sink)).unwrap_err();
        assert!(error.to_string().contains("twice"), "{sink:?}: {error}");
        assert_eq!(bench.names(), ["in"]);
    }
}

#[test]
fn hostile_keys_write_nothing_outside_the_destination() {
    for sink in SinkKind::ALL {
        let keys =
            ["../a.jpg", "/tmp/meetpoint-a.jpg", "a/../../b.jpg", "metadata.jsonl", "ok.jpg"];
        let samples = keys.map(|key| (key.to_owned(), jpeg(9, 9, 1), None)).to_vec();
        let bench = Bench::new();
        let options = UnpackOptions { on_error: OnError::Skip, ..to(sink) };
        let summary = converted(&bench, memory(samples, None, &[]), &options).unwrap();
        assert!(summary.samples >= 1, "{sink:?}");
        assert_eq!(bench.names(), ["back", "in"], "{sink:?}");
        assert!(!Path::new("/tmp/meetpoint-a.jpg").exists());
    }
}

#[test]
fn a_dataset_in_the_coefficient_form_comes_out_as_its_files() {
    let bench = Bench::with_images(&["cat/1.jpg", "cat/2.jpg", "dog/10.jpg", "dog/9.jpg"]);
    let mut options = PackOptions::default();
    options.jpeg.form = Form::Fast;
    bench.pack_with(&options).unwrap();
    for sink in SinkKind::ALL {
        let summary = bench.unpack_with(&UnpackOptions { force: true, ..to(sink) });
        let summary = match summary {
            Ok(summary) => summary,
            // The output of another sink is not replaced.
            Err(Error::Foreign { .. }) => {
                std::fs::remove_dir_all(bench.back()).unwrap();
                bench.unpack_with(&to(sink)).unwrap()
            }
            Err(error) => panic!("{sink:?}: {error}"),
        };
        assert_eq!((summary.samples, summary.converted), (4, 4), "{sink:?}");
        assert!(bench.unpack_with(&UnpackOptions { force: true, ..to(sink) }).unwrap().replaced);
        let mut back = opened(&bench, sink);
        let got = held(back.as_mut());
        assert_eq!(got.labels, ["cat", "dog"], "{sink:?}");
        for (key, content, _) in got.samples {
            assert!(content == std::fs::read(bench.from().join(&key)).unwrap(), "{sink:?}: {key}");
        }
    }
}

#[test]
fn what_other_programs_put_there_is_not_replaced() {
    for sink in SinkKind::ALL {
        let bench = Bench::with_images(&["a.jpg", "b.jpg"]);
        bench.pack().unwrap();
        std::fs::create_dir(bench.back()).unwrap();
        std::fs::write(bench.back().join("thesis.tex"), "years").unwrap();
        let error = bench.unpack_with(&UnpackOptions { force: true, ..to(sink) }).unwrap_err();
        assert!(matches!(&error, Error::Foreign { entry, .. } if entry == "thesis.tex"), "{error}");
        assert_eq!(std::fs::read(bench.back().join("thesis.tex")).unwrap(), b"years");
    }
}

#[test]
fn an_empty_source_leaves_nothing() {
    for sink in SinkKind::ALL {
        let bench = Bench::new();
        let error = converted(&bench, memory(Vec::new(), None, &[]), &to(sink)).unwrap_err();
        assert!(matches!(error, Error::NoSamples { .. }), "{error}");
        assert_eq!(bench.names(), ["in"]);
    }
}

#[test]
fn a_column_that_is_not_there_cannot_be_left_out() {
    let bench = Bench::with_images(&["a.jpg"]);
    bench.pack().unwrap();
    let options = UnpackOptions { without: vec!["boxes".to_owned()], ..UnpackOptions::default() };
    let error = unpack(&bench.to(), &bench.back(), &options, &mut |_| ()).unwrap_err();
    assert!(matches!(error, Error::NoColumn { .. }), "{error}");
}
