//! The contract on stores that need no server, and every kind of source read from memory.

use super::contract;
use meetpoint_datasets::Error;
use meetpoint_datasets::source::{Content, Entry, SourceOptions, detect, open_in};
use meetpoint_datasets::store::{Faulty, Memory, StorePath};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Sources written by other programs: the name, the opened path in it, and the split.
pub(crate) const SOURCES: [(&str, &str, Option<&str>); 16] = [
    ("wds-000.tar", "", None),
    ("wds.tar.zst", "", None),
    ("classes.zip", "", None),
    ("cifar-10-binary.tar.gz", "", None),
    ("cifar-100-binary", "", None),
    ("mnist", "", None),
    ("table-csv", "", None),
    ("table-jsonl", "", None),
    ("tables/parquet", "zstd-2.0.parquet", None),
    ("tables/hub", "", Some("train")),
    ("tables/arrow", "uncompressed.feather", None),
    ("tables/saved", "", Some("train")),
    ("tables/tfrecord", "photos-train.tfrecord.gz", None),
    ("tables/mds-zstd", "", None),
    ("tables/datadings", "photos.msgpack", None),
    ("tables/ffcv", "photos.beton", None),
];

pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/sources").join(name)
}

pub(crate) fn options(split: Option<&str>) -> SourceOptions {
    SourceOptions { split: split.map(str::to_owned), ..SourceOptions::default() }
}

/// A copy of a file or a folder in memory, under its name.
pub(crate) fn in_memory(from: &Path) -> StorePath {
    let mut files = Vec::new();
    let mut open = vec![from.to_path_buf()];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let name = path.strip_prefix(from.parent().unwrap()).unwrap();
            files.push((name.to_path_buf(), std::fs::read(&path).unwrap()));
        }
    }
    StorePath::new(Arc::new(Memory::new(files)), from.file_name().unwrap())
}

/// The output of a source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Yielded {
    /// Keys, labels and bytes.
    pub(crate) samples: Vec<(String, Option<i32>, Vec<u8>)>,
    /// Samples that cannot be read.
    pub(crate) unreadable: usize,
}

/// Reads a source to its end.
pub(crate) fn read(from: &StorePath, kind: &str, split: Option<&str>) -> Result<Yielded, Error> {
    let mut source = open_in(from, Some(kind), &options(split))?;
    let mut yielded = Yielded { samples: Vec::new(), unreadable: 0 };
    while let Some(entry) = source.next()? {
        match entry {
            Entry::Sample(item) => {
                let bytes = bytes_of(&item.content)?;
                yielded.samples.push((item.key, item.label, bytes));
            }
            Entry::Unreadable(_) => yielded.unreadable += 1,
            Entry::NotASample(_) | Entry::Ignored => {}
        }
    }
    source.finish()?;
    Ok(yielded)
}

fn bytes_of(content: &Content) -> Result<Vec<u8>, Error> {
    match content {
        Content::Bytes(bytes) => Ok(bytes.clone()),
        Content::File { path, bytes } => {
            let failed = |source| Error::Source { path: path.to_path_buf(), source };
            let mut read = vec![0; *bytes as usize];
            path.open().map_err(failed)?.read_exact_at(&mut read, 0).unwrap();
            Ok(read)
        }
        Content::Range { file, offset, bytes } => {
            let mut read = vec![0; *bytes as usize];
            file.file.read_exact_at(&mut read, *offset).unwrap();
            Ok(read)
        }
    }
}

#[test]
fn files_of_this_machine_fulfil_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in contract::files() {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    contract::check(&StorePath::local(folder.path()));
}

#[test]
fn files_in_memory_fulfil_the_contract_at_any_depth_and_behind_a_decorator() {
    for root in ["", "photos", "far/down"] {
        let files = contract::files();
        let files = files.into_iter().map(|(name, bytes)| (Path::new(root).join(name), bytes));
        let memory = StorePath::new(Arc::new(Memory::new(files)), root);
        contract::check(&memory);
        contract::check(&StorePath::new(Arc::new(Faulty::new(memory, [])), root));
    }
}

#[test]
fn every_kind_of_source_reads_from_memory_what_it_reads_from_this_machine() {
    for (name, inner, split) in SOURCES {
        let (here, there) = (StorePath::local(golden(name)), in_memory(&golden(name)));
        let join =
            |path: &StorePath| if inner.is_empty() { path.clone() } else { path.join(inner) };
        let (here, there) = (join(&here), join(&there));
        let kind = detect(&here).unwrap().name;
        assert_eq!(detect(&there).unwrap().name, kind, "{name}");
        let samples = read(&here, kind, split).unwrap();
        assert!(!samples.samples.is_empty(), "{name}");
        assert!(samples == read(&there, kind, split).unwrap(), "{name}: other samples from memory");
    }
}
