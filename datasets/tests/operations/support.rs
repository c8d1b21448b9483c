//! Datasets of synthetic samples with further columns, and a reader of all their content.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use meetpoint_datasets::operations::{CopyOptions, Progress};
use meetpoint_datasets::verify;
use meetpoint_datasets::writer::{Writer, WriterOptions};
use meetpoint_format::dataset::{Columns, ContentKind, Provenance, Row, Stored};
use meetpoint_prepare::Dataset;
use proptest::test_runner::Config;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A sample.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TestSample {
    pub(crate) key: String,
    pub(crate) label: Option<String>,
    pub(crate) content: Vec<u8>,
    pub(crate) fold: Option<String>,
    pub(crate) number: i64,
}

impl TestSample {
    /// Sample `index`, in class `index % classes`; no label for classes of 0.
    pub(crate) fn new(index: usize, classes: usize) -> Self {
        let class = (classes > 0).then(|| format!("class{}", index % classes));
        let folder = class.clone().unwrap_or_else(|| "all".to_owned());
        let length = 1 + index * 37 % 90;
        Self {
            key: format!("{folder}/{index}.bin"),
            label: class,
            content: (0..length).map(|at| (at * 31 + index * 7) as u8).collect(),
            fold: (index % 5 != 4).then(|| ["train", "val"][index % 2].to_owned()),
            number: index as i64 * 1000 - 7,
        }
    }
}

pub(crate) fn made(count: usize, classes: usize) -> Vec<TestSample> {
    (0..count).map(|index| TestSample::new(index, classes)).collect()
}

fn extra() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("fold", DataType::Utf8, true),
        Field::new("number", DataType::Int64, false),
    ]))
}

pub(crate) fn columns() -> Columns {
    Columns { kind: ContentKind::Bytes, name: "data".to_owned(), extra: extra(), prepared: None }
}

/// A folder for datasets.
pub(crate) struct TestFolder {
    folder: TempDir,
}

impl TestFolder {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The names in it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Writes samples with about `part_bytes` of content a part; labels in the order of `labels`.
    pub(crate) fn write(
        &self,
        name: &str,
        labels: &[&str],
        all: &[TestSample],
        part_bytes: u64,
    ) -> PathBuf {
        let path = self.path(name);
        let options = WriterOptions { part_bytes_target: part_bytes, ..WriterOptions::default() };
        let mut writer = Writer::create(&path, Arc::new(columns()), &options).unwrap();
        for made in all {
            let fold: ArrayRef = Arc::new(StringArray::from(vec![made.fold.as_deref()]));
            let number: ArrayRef = Arc::new(Int64Array::from(vec![made.number]));
            let batch = RecordBatch::try_new(extra(), vec![fold, number]).unwrap();
            let index = |label: &String| labels.iter().position(|known| known == label).unwrap();
            let label = made.label.as_ref().map(|label| i32::try_from(index(label)).unwrap());
            writer
                .push(Row {
                    key: made.key.clone(),
                    image: made.content.clone(),
                    label,
                    entry_points: None,
                    extra: Some((Arc::new(batch), 0)),
                })
                .unwrap();
        }
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let source_bytes = all.iter().map(|made| made.content.len() as u64).sum();
        let stored = Stored { source_bytes, ..Stored::default() };
        writer.finish(labels, stored, Provenance::default()).unwrap();
        path
    }

    /// `count` samples in three classes, some four a part.
    pub(crate) fn write_some(&self, name: &str, count: usize) -> PathBuf {
        self.write(name, &["class0", "class1", "class2"], &made(count, 3), 1200)
    }
}

/// Reads everything in a dataset, in order, and checks every checksum.
pub(crate) fn read(path: &Path) -> Vec<TestSample> {
    let report = verify(path, &mut |_| ()).unwrap();
    assert_eq!(report.problems, [], "{}", path.display());
    let dataset = Dataset::open(path).unwrap();
    (0..dataset.len())
        .map(|sample| {
            let (batch, row) = dataset.batch_of(sample).unwrap();
            let extra = dataset.extra(batch, None).unwrap();
            let fold = extra.column(0).as_string::<i32>();
            let label = dataset.locate(sample).unwrap().label;
            let name = |label| dataset.manifest().labels[usize::try_from(label).unwrap()].clone();
            TestSample {
                key: dataset.key(sample).unwrap(),
                label: label.map(name),
                content: dataset.read_sample(sample).unwrap(),
                fold: arrow_array::Array::is_valid(fold, row).then(|| fold.value(row).to_owned()),
                number: extra.column(1).as_primitive::<Int64Type>().value(row),
            }
        })
        .collect()
}

pub(crate) fn sorted(mut all: Vec<TestSample>) -> Vec<TestSample> {
    all.sort();
    all
}

/// Small parts, two threads.
pub(crate) fn options() -> CopyOptions {
    CopyOptions { part_bytes_target: 700, threads: 2, ..CopyOptions::default() }
}

pub(crate) fn silent(_: Progress) {}

/// Runs a number of cases of a property; a failing case is printed, not stored in a file.
pub(crate) fn cases(cases: u32) -> Config {
    Config { cases, failure_persistence: None, ..Config::default() }
}
