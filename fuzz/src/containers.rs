//! Container formats of datasets: any bytes give samples or errors, and only the input is read.
//!
//! An input of several files starts with their lengths, four bytes little-endian each, except for
//! the last, which is the remainder. All files are in a separate folder in memory. After each
//! input, the folder must contain nothing else.

use crate::tally;
use meetpoint_datasets::source::{Content, Entry, OpenSource, SourceOptions, kind_named};
use meetpoint_datasets::store::StorePath;
use meetpoint_datasets::{Error, SinkKind, UnpackOptions, convert, verify};
use meetpoint_format::key_index::{KeyIndex, KeyIndexBuilder, key_hash};
use meetpoint_prepare::Dataset;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Maximum number of entries that are read: a few bytes of gzip may contain millions.
const ENTRIES_MAX: usize = 20_000;
/// Maximum bytes of a sample that are read.
const READ_BYTES_MAX: u64 = 1 << 20;
/// Name of the folder with the input, so that escapes from it are detected.
const INSIDE: &str = "inside";
/// SHA-256 of the manifest of the index of keys.
const MANIFEST: [u8; 32] = [7; 32];
/// Keys of the index from which inputs are derived.
const KEYS: [&str; 5] = ["a", "b/c.jpg", "b/d.jpg", "é", "long-long-long-long-long-key"];

/// Where inputs are written: one folder per process, in memory where possible. `scripts/fuzz.sh`
/// names the parent folder and removes it, since a target that is killed cannot.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let root = match std::env::var_os("FUZZ_FOLDER") {
        Some(folder) => PathBuf::from(folder),
        None if memory.is_dir() => memory.to_owned(),
        None => std::env::temp_dir(),
    };
    root.join(format!("fuzz-of-meetpoint-{}", std::process::id()))
});

/// A tar file, which may be compressed.
pub fn tar(data: &[u8]) {
    drain("tar", &["a.tar"], "a.tar", data);
}

/// A ZIP archive.
pub fn zip(data: &[u8]) {
    drain("zip", &["a.zip"], "a.zip", data);
}

/// CIFAR-100 with the names of its labels, or, depending on its first byte, an archive of CIFAR-10.
pub fn cifar(data: &[u8]) {
    match data.split_first() {
        Some((0, archive)) => drain("cifar", &["cifar.tar.gz"], "cifar.tar.gz", archive),
        Some((_, files)) => {
            let names = ["fine_label_names.txt", "coarse_label_names.txt", "train.bin"];
            drain("cifar", &names, "", files);
        }
        None => {}
    }
}

/// Pictures of MNIST and their labels.
pub fn idx(data: &[u8]) {
    drain("idx", &["train-labels-idx1-ubyte", "train-images-idx3-ubyte"], "", data);
}

/// A table of files; its first byte selects CSV, TSV or JSON Lines.
pub fn table(data: &[u8]) {
    let Some((kind, text)) = data.split_first() else { return };
    let name = ["metadata.csv", "metadata.tsv", "metadata.jsonl"][usize::from(kind % 3)];
    let mut input = 3_u32.to_le_bytes().to_vec();
    input.extend_from_slice(b"GIF");
    input.extend_from_slice(text);
    drain("table", &["a.png", name], "", &input);
}

/// A Parquet file.
pub fn parquet(data: &[u8]) {
    drain("parquet", &["a.parquet"], "a.parquet", data);
}

/// An Arrow file or stream.
pub fn arrow(data: &[u8]) {
    drain("arrow", &["a.arrow"], "a.arrow", data);
}

/// A TFRecord file; if its first byte is odd, records with right checksums, each given by a length
/// of two bytes and that many bytes.
pub fn tfrecord(data: &[u8]) {
    let Some((is_framed, mut rest)) = data.split_first() else { return };
    if is_framed & 1 == 0 {
        return drain("tfrecord", &["a.tfrecord"], "a.tfrecord", rest);
    }
    let mut file = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(behind.len());
        let (record, behind) = behind.split_at(length);
        let head = (length as u64).to_le_bytes();
        file.extend(head);
        file.extend(masked(&head).to_le_bytes());
        file.extend(record);
        file.extend(masked(record).to_le_bytes());
        rest = behind;
    }
    drain("tfrecord", &["a.tfrecord"], "a.tfrecord", &file);
}

/// The checksum of TFRecord.
fn masked(bytes: &[u8]) -> u32 {
    let crc = meetpoint_format::checksum::crc32c(bytes);
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// An MDS dataset of one shard; its first byte selects the name of the shard.
pub fn mds(data: &[u8]) {
    let Some((kind, files)) = data.split_first() else { return };
    let endings = ["", ".br", ".gz", ".snappy", ".zstd"];
    let shard = format!("shard.00000.mds{}", endings[usize::from(*kind) % endings.len()]);
    drain("mds", &["index.json", &shard], "", files);
}

/// A datadings file with its offsets and keys, or, depending on its first byte, with its legacy
/// index.
pub fn datadings(data: &[u8]) {
    let Some((kind, files)) = data.split_first() else { return };
    let names: &[&str] = match kind & 1 {
        0 => &["a.msgpack.offsets", "a.msgpack.keys", "a.msgpack"],
        _ => &["a.msgpack.index", "a.msgpack"],
    };
    drain("datadings", names, "a.msgpack", files);
}

/// An FFCV file.
pub fn ffcv(data: &[u8]) {
    drain("ffcv", &["a.beton"], "a.beton", data);
}

/// Our own dataset: manifest and part, verified and read.
pub fn dataset(data: &[u8]) {
    let Some(folder) = put(&["dataset.json", "part-00000.arrow"], data) else { return };
    match Dataset::open(&folder) {
        Err(_) => tally::add("not opened"),
        Ok(dataset) => {
            tally::add("opened");
            for batch in 0..dataset.record_batches().min(64) {
                let _ = dataset.keyed_rows(batch);
            }
            for sample in 0..dataset.len().min(16) {
                tally::add(match (dataset.read_sample(sample), dataset.read_file(sample)) {
                    (Ok(_), _) => "samples read",
                    _ => "samples refused",
                });
            }
            let _ = dataset.find("a");
        }
    }
    let _ = verify(&folder, &mut |_| {});
    check_nothing_else(&["dataset.json", "part-00000.arrow"]);
    drain("meetpoint", &["dataset.json", "part-00000.arrow"], "", data);
}

/// An index of keys.
pub fn key_index(data: &[u8]) {
    let read = |offset: u64, into: &mut [u8]| {
        let from = usize::try_from(offset).ok();
        let part = from.and_then(|from| data.get(from..)?.get(..into.len()));
        into.copy_from_slice(part.ok_or(std::io::ErrorKind::UnexpectedEof)?);
        Ok(())
    };
    let Ok(index) = KeyIndex::open(MANIFEST, KEYS.len() as u64, data.len() as u64, &read) else {
        return tally::add("not opened");
    };
    tally::add("opened");
    for key in KEYS {
        if let Ok(found) = index.candidates(key, &read) {
            let _ = key_hash(key);
            assert!(found.iter().all(|sample| *sample < KEYS.len() as u64), "{found:?}");
        }
    }
    let _ = index.check(&read, &mut |_, _| {});
}

/// A tar file is unpacked to a folder of files, all inside that folder.
pub fn tar_to_folder(data: &[u8]) {
    to_folder("tar", "a.tar", data);
}

/// A ZIP archive is unpacked to a folder of files, all inside that folder.
pub fn zip_to_folder(data: &[u8]) {
    to_folder("zip", "a.zip", data);
}

/// Converts a source and checks where the files are.
fn to_folder(kind: &str, name: &str, data: &[u8]) {
    let Some(folder) = put(&[name], data) else { return };
    let kind = kind_named(kind).expect("the table lists it");
    let Ok(mut source) = (kind.open)(&StorePath::local(folder.join(name)), &SourceOptions::default()) else {
        return tally::add("not opened");
    };
    let options = UnpackOptions {
        sink: SinkKind::Folder,
        on_error: meetpoint_datasets::OnError::Skip,
        threads: 1,
        ..UnpackOptions::default()
    };
    let to = folder.join("out");
    let made = convert(source.as_mut(), &folder.join(name), &to, &options, &mut |_| {});
    tally::add(if made.is_ok() { "converted" } else { "refused" });
    if let Ok(summary) = made {
        assert!(summary.samples > 0 && to.is_dir(), "a conversion without a result");
        for link in links(&to) {
            panic!("{} is a link", link.display());
        }
        fs::remove_dir_all(&to).expect("what was written can be removed");
    }
    check_nothing_else(&[name]);
}

/// Links below a folder.
fn links(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => found.push(entry.path()),
            Ok(kind) if kind.is_dir() => found.extend(links(&entry.path())),
            _ => {}
        }
    }
    found
}

/// Writes the files of an input; returns their folder, or `None` if the input is incomplete.
fn put(names: &[&str], data: &[u8]) -> Option<PathBuf> {
    let mut rest = data;
    let mut files = Vec::with_capacity(names.len());
    for number in 0..names.len() {
        let mut bytes = rest;
        if number + 1 < names.len() {
            let (length, behind) = rest.split_first_chunk::<4>()?;
            let length = u32::from_le_bytes(*length) as usize;
            (bytes, rest) = behind.split_at_checked(length)?;
        }
        files.push(bytes);
    }
    let folder = FOLDER.join(INSIDE);
    fs::create_dir_all(&folder).expect("a folder in memory");
    for (name, bytes) in names.iter().zip(files) {
        fs::write(folder.join(name), bytes).expect("memory takes the input");
    }
    Some(folder)
}

/// Panics if anything else is beside the input, and removes the input.
fn check_nothing_else(names: &[&str]) {
    let folder = FOLDER.join(INSIDE);
    for entry in fs::read_dir(&folder).expect("it was made").flatten() {
        let name = entry.file_name();
        assert!(names.iter().any(|known| name == *known), "{name:?} was written");
    }
    for entry in fs::read_dir(&*FOLDER).expect("it was made").flatten() {
        assert!(entry.file_name() == INSIDE, "{:?} was written outside", entry.file_name());
    }
    names.iter().for_each(|name| drop(fs::remove_file(folder.join(name))));
}

/// Reads a source to its end, or to its first error.
fn drain(kind: &str, names: &[&str], opened: &str, data: &[u8]) {
    let Some(folder) = put(names, data) else { return };
    let kind = kind_named(kind).expect("the table lists it");
    let path = StorePath::local(if opened.is_empty() { folder } else { folder.join(opened) });
    // Detecting the format must not panic either.
    let _ = (kind.recognise)(&path);
    match read_all(kind.open, &path) {
        Ok(()) => tally::add("read to the end"),
        Err(Error::Malformed { .. }) => tally::add("malformed"),
        Err(_) => tally::add("refused"),
    }
    check_nothing_else(names);
}

fn read_all(open: OpenSource, path: &StorePath) -> Result<(), Error> {
    let mut source = open(path, &SourceOptions::default())?;
    let columns = source.schema().extra.fields().len();
    let _ = source.size();
    let mut labels = -1;
    for _ in 0..ENTRIES_MAX {
        match source.next()? {
            Some(Entry::Sample(item)) => {
                tally::add("samples");
                if let Some((batch, row)) = &item.extra {
                    assert!(*row < batch.num_rows() && batch.num_columns() == columns);
                }
                labels = labels.max(item.label.unwrap_or(-1));
                read_content(&item.content);
            }
            Some(_) => {}
            None => {
                let names = source.finish()?.labels;
                let has_name = names.is_empty() || (labels as i64) < names.len() as i64;
                tally::add(if has_name { "labels have names" } else { "labels without names" });
                return Ok(());
            }
        }
    }
    tally::add("left before the end");
    Ok(())
}

/// Reads the content of a sample, as far as it exists.
fn read_content(content: &Content) {
    match content {
        Content::Bytes(_) => {}
        Content::File { path, .. } => {
            assert!(path.path().starts_with(FOLDER.join(INSIDE)), "{path:?}");
        }
        Content::Range { file, offset, bytes } => {
            let mut read = vec![0; (*bytes).min(READ_BYTES_MAX) as usize];
            let length = file.file.metadata().expect("an open file").len();
            let is_inside = offset.checked_add(*bytes).is_some_and(|end| end <= length);
            let got = file.file.read_exact_at(&mut read, *offset);
            assert!(got.is_ok() || !is_inside);
        }
    }
}

/// A valid index of keys.
pub(crate) fn key_index_seed() -> Vec<u8> {
    let mut builder = KeyIndexBuilder::default();
    KEYS.iter().for_each(|key| builder.push(key));
    let mut bytes = Vec::new();
    builder.write(MANIFEST, &mut bytes).expect("memory takes it");
    bytes
}
