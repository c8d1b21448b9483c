//! Opens sources and converts their output to JSON.

use arrow_array::RecordBatch;
use meetpoint_datasets::Error;
use meetpoint_datasets::source::{
    Content, ContentKind, Entry, Item, Source, SourceOptions, arrow, datadings, ffcv, mds,
    meetpoint, parquet, tfrecord,
};
use meetpoint_datasets::store::StorePath;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A way to open a source.
pub(crate) type Open = fn(&StorePath, &SourceOptions) -> Result<Box<dyn Source>, Error>;
type RecogniseFn = fn(&StorePath) -> Result<Option<String>, Error>;

/// All sources here.
pub(crate) const SOURCES: [(&str, RecogniseFn, Open); 7] = [
    ("parquet", parquet::recognise, parquet::open),
    ("arrow", arrow::recognise, arrow::open),
    ("tfrecord", tfrecord::recognise, tfrecord::open),
    ("mds", mds::recognise, mds::open),
    ("datadings", datadings::recognise, datadings::open),
    ("ffcv", ffcv::recognise, ffcv::open),
    ("meetpoint", meetpoint::recognise, meetpoint::open),
];

/// The folder with the files that other programs wrote.
pub(crate) fn tables() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/sources/tables")
}

/// The one source that recognises the path.
pub(crate) fn recognised(path: &Path) -> Vec<(&'static str, Open)> {
    let path = StorePath::local(path);
    let is_such = |recognise: RecogniseFn| recognise(&path).unwrap().is_some();
    let found = SOURCES.iter().filter(|(_, recognise, _)| is_such(*recognise));
    found.map(|(name, _, open)| (*name, *open)).collect()
}

/// Options from names and values.
pub(crate) fn options(values: &Value) -> SourceOptions {
    let text = |name: &str| values[name].as_str().map(str::to_owned);
    SourceOptions {
        content: text("content"),
        label: text("label"),
        key: text("key"),
        split: text("split"),
        columns: text("columns").map(|names| names.split(',').map(str::to_owned).collect()),
        ..SourceOptions::default()
    }
}

/// Reads the bytes of a sample.
pub(crate) fn bytes_of(content: &Content) -> Vec<u8> {
    match content {
        Content::Bytes(bytes) => bytes.clone(),
        Content::File { path, .. } => std::fs::read(path.path()).unwrap(),
        Content::Range { file, offset, bytes } => {
            let mut read = vec![0; *bytes as usize];
            file.file.read_exact_at(&mut read, *offset).unwrap();
            read
        }
    }
}

/// A sample in the format of the golden file.
pub(crate) fn sample(item: &Item) -> Value {
    let bytes = bytes_of(&item.content);
    let digest = Sha256::digest(&bytes);
    let content: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let extra = item.extra.as_ref().map(|(batch, row)| row_json(batch, *row));
    json!({ "key": item.key, "content": content, "label": item.label, "extra": extra })
}

/// A row of a record batch, by the JSON writer of Arrow.
fn row_json(batch: &RecordBatch, row: usize) -> Value {
    let mut text = Vec::new();
    let builder = arrow_json::WriterBuilder::new().with_explicit_nulls(true);
    let mut writer = builder.build::<_, arrow_json::writer::LineDelimited>(&mut text);
    writer.write(&batch.slice(row, 1)).unwrap();
    writer.finish().unwrap();
    drop(writer);
    serde_json::from_slice(&text).unwrap()
}

/// The complete output of a source.
pub(crate) struct SourceOutput {
    pub(crate) items: Vec<Item>,
    pub(crate) unreadable: Vec<String>,
    pub(crate) labels: Vec<String>,
    pub(crate) kind: ContentKind,
    pub(crate) name: String,
}

/// Reads a source to its end.
pub(crate) fn read(mut source: Box<dyn Source>) -> Result<SourceOutput, Error> {
    let (mut items, mut unreadable) = (Vec::new(), Vec::new());
    while let Some(entry) = source.next()? {
        match entry {
            Entry::Sample(item) => {
                if let Some((batch, _)) = &item.extra {
                    assert_eq!(batch.schema(), source.schema().extra);
                }
                items.push(*item);
            }
            Entry::Unreadable(left) | Entry::NotASample(left) => {
                unreadable.push(format!("{}: {}", left.path, left.reason));
            }
            Entry::Ignored => {}
        }
    }
    let labels = source.finish()?.labels;
    let (kind, name) = (source.schema().kind, source.schema().name.clone());
    Ok(SourceOutput { items, unreadable, labels, kind, name })
}

/// Copies a folder or file.
pub(crate) fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        std::fs::copy(from, to).unwrap();
    }
}
