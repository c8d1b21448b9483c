//! Small files that decompress to much: refused at the memory that a source may take, with the
//! file and the limit, before more than that is held.

use crate::memory::most;
use crate::support::read;
use arrow_array::{ArrayRef, BinaryArray, RecordBatch};
use flate2::Compression;
use flate2::write::GzEncoder;
use meetpoint_datasets::Error;
use meetpoint_datasets::source::{OverBudget, SourceOptions, open};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Zeros that each file holds.
const BOMB_BYTES: usize = 8 << 20;
/// What a source may take.
const LIMIT: u64 = 1 << 20;
/// What a reader holds besides: its buffers, and the window of a decompressor.
const BESIDE: usize = 6 << 20;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Expects a refusal below the limit, and samples with more memory.
fn is_refused(path: &Path, kind: &str, file: &str) {
    let options = SourceOptions { memory_bytes_max: Some(LIMIT), ..SourceOptions::default() };
    let (result, held) = most(|| open(path, Some(kind), &options).and_then(read));
    let Err(Error::OverBudget { whence, over }) = result.map(|got| got.items.len()) else {
        panic!("{file} is not refused");
    };
    assert!(whence.file.ends_with(file), "{whence}");
    assert!(matches!(over, OverBudget::Memory { limit: LIMIT, .. }), "{over:?}");
    assert!(held <= LIMIT as usize + BESIDE, "{file}: {held} bytes are held");
    let whole = open(path, Some(kind), &SourceOptions::default()).and_then(read);
    assert_eq!(whole.unwrap().items.len(), 1);
}

/// What TensorFlow stores of a checksum.
fn masked(bytes: &[u8]) -> [u8; 4] {
    let crc = meetpoint_format::checksum::crc32c(bytes);
    crc.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// A field of bytes on the wire of protocol buffers.
fn message(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    prost::encode_length_delimiter(content.len(), &mut bytes).unwrap();
    bytes.extend_from_slice(content);
    bytes
}

/// A TFRecord file of one record with one feature, `image`.
fn tfrecord(list: &[u8]) -> Vec<u8> {
    let feature = [message(1, b"image"), message(2, list)].concat();
    let record = message(1, &message(1, &feature));
    let length = (record.len() as u64).to_le_bytes();
    [&length[..], &masked(&length), &record, &masked(&record)].concat()
}

fn batch(columns: usize) -> RecordBatch {
    let zeros = vec![0; BOMB_BYTES / columns];
    let column = || Arc::new(BinaryArray::from_vec(vec![zeros.as_slice()])) as ArrayRef;
    let name = |index: usize| match index {
        0 => "image".to_owned(),
        _ => format!("c{index}"),
    };
    let names = (0..columns).map(name);
    RecordBatch::try_from_iter(names.map(|name| (name, column()))).unwrap()
}

fn put(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_tfrecord_that_decompresses_to_more_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = gzip(&tfrecord(&message(1, &message(1, &vec![0; BOMB_BYTES]))));
    is_refused(&put(&folder, "a.tfrecord.gz", &bytes), "tfrecord", "a.tfrecord.gz");
}

#[test]
fn a_tfrecord_whose_numbers_take_more_memory_than_its_bytes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = LIMIT as usize / 2;
    let bytes = tfrecord(&message(3, &message(1, &vec![0; numbers])));
    let path = put(&folder, "a.tfrecord", &bytes);
    let limited = |limit| SourceOptions {
        memory_bytes_max: Some(limit),
        kind: Some(meetpoint_datasets::source::ContentKind::None),
        ..SourceOptions::default()
    };
    let opened = open(&path, Some("tfrecord"), &limited(LIMIT)).and_then(read);
    let Err(Error::OverBudget { whence, .. }) = opened else { panic!("it is not refused") };
    assert_eq!(whence.member.as_deref(), Some("record 0"));
    let opened = open(&path, Some("tfrecord"), &limited(64 << 20)).and_then(read);
    assert_eq!(opened.unwrap().items.len(), 1);
}

#[test]
fn an_mds_shard_that_unfolds_to_more_is_refused() {
    for compression in ["gz", "br"] {
        let folder = tempfile::tempdir().unwrap();
        let sample = [&(BOMB_BYTES as u32).to_le_bytes()[..], &vec![0; BOMB_BYTES]].concat();
        let start = 12_u32;
        let words = [1, start, start + sample.len() as u32];
        let plain = [words.map(u32::to_le_bytes).concat(), sample].concat();
        let folded = match compression {
            "gz" => gzip(&plain),
            _ => {
                let mut folded = Vec::new();
                let mut encoder = brotli::CompressorWriter::new(&mut folded, 1 << 16, 1, 16);
                encoder.write_all(&plain).unwrap();
                drop(encoder);
                folded
            }
        };
        let name = format!("shard.mds.{compression}");
        put(&folder, &name, &folded);
        let index = serde_json::json!({ "version": 2, "shards": [{
            "format": "mds", "version": 2, "samples": 1, "compression": compression,
            "column_names": ["image"], "column_encodings": ["bytes"], "column_sizes": [null],
            "raw_data": { "basename": "shard.mds", "bytes": plain.len(), "hashes": {} },
            "zip_data": { "basename": name, "bytes": folded.len(), "hashes": {} },
        }]});
        put(&folder, "index.json", index.to_string().as_bytes());
        is_refused(folder.path(), "mds", &name);
    }
}

#[test]
fn an_mds_index_whose_numbers_have_no_sum_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let shard = serde_json::json!({
        "format": "mds", "version": 2, "samples": u64::MAX,
        "column_names": ["image"], "column_encodings": ["bytes"], "column_sizes": [null],
        "raw_data": { "basename": "shard.mds", "bytes": 12, "hashes": {} },
    });
    let index = serde_json::json!({ "version": 2, "shards": [shard, shard] });
    put(&folder, "index.json", index.to_string().as_bytes());
    let opened = open(folder.path(), Some("mds"), &SourceOptions::default());
    assert!(matches!(opened.err(), Some(Error::Malformed { .. })));
}

#[test]
fn the_pages_of_all_columns_of_a_parquet_file_are_refused_together() {
    use parquet::basic::{BrotliLevel, Compression, GzipLevel};
    let codecs = [
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::SNAPPY,
        Compression::LZ4_RAW,
    ];
    // Each page of the last fits in the limit.
    for (columns, codecs) in [(1, &codecs[..]), (16, &codecs[..1])] {
        for codec in codecs {
            let folder = tempfile::tempdir().unwrap();
            let batch = batch(columns);
            let properties = WriterProperties::builder().set_compression(*codec);
            let properties = properties.set_dictionary_enabled(false).build();
            let mut writer =
                ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            let path = put(&folder, "a.parquet", &writer.into_inner().unwrap());
            match codec {
                // The crate that unfolds it holds a page before it is counted.
                Compression::LZ4_RAW => {
                    let options =
                        SourceOptions { memory_bytes_max: Some(LIMIT), ..SourceOptions::default() };
                    let opened = open(&path, Some("parquet"), &options).and_then(read);
                    assert!(matches!(opened.err(), Some(Error::OverBudget { .. })));
                }
                _ => is_refused(&path, "parquet", "a.parquet"),
            }
        }
    }
}

#[test]
fn the_buffers_of_an_arrow_batch_are_refused_before_they_are_unfolded() {
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
    let folder = tempfile::tempdir().unwrap();
    let batch = batch(16);
    let options = IpcWriteOptions::default();
    let options = options.try_with_compression(Some(arrow_ipc::CompressionType::LZ4_FRAME));
    let mut writer =
        FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options.unwrap()).unwrap();
    writer.write(&batch).unwrap();
    let path = put(&folder, "a.arrow", &writer.into_inner().unwrap());
    is_refused(&path, "arrow", "a.arrow");
}
