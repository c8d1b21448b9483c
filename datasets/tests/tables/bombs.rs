//! Decompression bombs: refused with the file and the limit before a source holds more memory than
//! its limit.

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

/// Zeros in each file.
const BOMB_BYTES: usize = 8 << 20;
/// Memory limit of a source.
const LIMIT: u64 = 1 << 20;
/// Additional memory of a reader: its buffers, and the window of a decompressor.
const BESIDE: usize = 6 << 20;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Expects a refusal below the limit, and a sample with more memory.
fn is_refused(path: &Path, kind: &str, file: &str) {
    refused_within(path, kind, file, 1);
}

/// As above, with this number of samples.
fn refused_within(path: &Path, kind: &str, file: &str, samples: usize) {
    let options = SourceOptions { memory_bytes_max: Some(LIMIT), ..SourceOptions::default() };
    let (result, held) = most(|| open(path, Some(kind), &options).and_then(read));
    let Err(Error::OverBudget { origin, over }) = result.map(|got| got.items.len()) else {
        panic!("{file} is not refused");
    };
    assert!(origin.file.ends_with(file), "{origin}");
    assert!(matches!(over, OverBudget::Memory { limit: LIMIT, .. }), "{over:?}");
    assert!(held <= LIMIT as usize + BESIDE, "{file}: {held} bytes are held");
    let whole = open(path, Some(kind), &SourceOptions::default()).and_then(read);
    assert_eq!(whole.unwrap().items.len(), samples);
}

/// The masked checksum that TensorFlow stores.
fn masked(bytes: &[u8]) -> [u8; 4] {
    let crc = meetpoint_format::checksum::crc32c(bytes);
    crc.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// A field of bytes in the wire format of protocol buffers.
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
    let Err(Error::OverBudget { origin, .. }) = opened else { panic!("it is not refused") };
    assert_eq!(origin.member.as_deref(), Some("record 0"));
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
                // The crate that decompresses it holds a page before it is counted.
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

/// Rows that refer to one value with the length of the limit, in an Arrow file.
#[test]
fn a_value_that_an_arrow_dictionary_or_a_run_names_often_is_refused() {
    use arrow_array::builder::StringRunBuilder;
    use arrow_array::types::{Int8Type, Int32Type};
    let long = "x".repeat(LIMIT as usize / 4);
    let dictionary: arrow_array::DictionaryArray<Int8Type> =
        vec![long.as_str(); 32].into_iter().collect();
    let mut runs = StringRunBuilder::<Int32Type>::new();
    runs.extend(vec![Some(long.as_str()); 32]);
    let images = BinaryArray::from_vec(vec![b"\xff\xd8\xff".as_slice(); 32]);
    let columns: [ArrayRef; 2] = [Arc::new(dictionary), Arc::new(runs.finish())];
    for column in columns {
        let folder = tempfile::tempdir().unwrap();
        let image = Arc::new(images.clone()) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("image", image), ("text", column)]).unwrap();
        let writer = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema());
        let mut writer = writer.unwrap();
        writer.write(&batch).unwrap();
        let path = put(&folder, "a.arrow", &writer.into_inner().unwrap());
        refused_within(&path, "arrow", "a.arrow", 32);
    }
}

/// A tar file with these members.
fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, *bytes).unwrap();
    }
    archive.into_inner().unwrap()
}

#[test]
fn a_member_of_a_compressed_tar_file_that_unfolds_to_more_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = gzip(&tar(&[("a.jpg", &vec![0; BOMB_BYTES])]));
    is_refused(&put(&folder, "a.tar.gz", &bytes), "tar", "a.tar.gz");
    // A list whose values take more memory than its bytes.
    let list = format!("[{}0]", "0,".repeat(LIMIT as usize / 16));
    let plain = tar(&[("a.jpg", b"x"), ("a.json", list.as_bytes())]);
    is_refused(&put(&folder, "b.tar", &plain), "tar", "b.tar");
}

#[test]
fn a_tar_file_that_grows_by_more_than_data_do_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let picture = vec![0; 4 << 20];
    let names: Vec<String> = (0..20).map(|index| format!("{index}.jpg")).collect();
    let members: Vec<(&str, &[u8])> =
        names.iter().map(|name| (name.as_str(), picture.as_slice())).collect();
    let path = put(&folder, "a.tar.gz", &gzip(&tar(&members)));
    let opened = open(&path, Some("tar"), &SourceOptions::default()).and_then(read);
    let Err(Error::OverBudget { over, .. }) = opened.map(|got| got.items.len()) else {
        panic!("it is not refused");
    };
    assert!(matches!(over, OverBudget::Ratio { .. }), "{over:?}");
}

#[test]
fn a_member_of_a_zip_archive_that_inflates_to_more_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = rawzip::ZipArchiveWriter::new(Vec::new());
    let (mut entry, config) = archive
        .new_file("a.jpg")
        .compression_method(rawzip::CompressionMethod::DEFLATE)
        .start()
        .unwrap();
    let encoder = flate2::write::DeflateEncoder::new(&mut entry, Compression::fast());
    let mut writer = config.wrap(encoder);
    writer.write_all(&vec![0; BOMB_BYTES]).unwrap();
    let (encoder, descriptor) = writer.finish().unwrap();
    encoder.finish().unwrap();
    entry.finish(descriptor).unwrap();
    is_refused(&put(&folder, "a.zip", &archive.finish().unwrap()), "zip", "a.zip");
}

#[test]
fn an_idx_picture_and_a_cifar_archive_that_unfold_to_more_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let header = [0x0000_0803_u32, 1, 2048, 4096].map(u32::to_be_bytes).concat();
    let name = "train-images-idx3-ubyte.gz";
    let bytes = gzip(&[header, vec![0; BOMB_BYTES]].concat());
    is_refused(&put(&folder, name, &bytes), "idx", name);
    let folder = tempfile::tempdir().unwrap();
    let records = vec![0; 3073 * 24_000];
    let bytes = gzip(&tar(&[("cifar-10-batches-bin/data_batch_1.bin", &records)]));
    let path = put(&folder, "cifar.tar.gz", &bytes);
    let opened = open(&path, Some("cifar"), &SourceOptions::default()).and_then(read);
    let Err(Error::OverBudget { over, .. }) = opened.map(|got| got.items.len()) else {
        panic!("it is not refused");
    };
    assert!(matches!(over, OverBudget::Ratio { .. }), "{over:?}");
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
