//! Initial inputs from the containers of the tests: files that other programs wrote.

use crate::containers::key_index_seed;

/// Contents of files of the tests.
macro_rules! golden {
    ($($path:literal),+ $(,)?) => {
        [$(include_bytes!(concat!("../../datasets/tests/golden/", $path)).as_slice()),+]
    };
}

/// Longest seed.
const SEED_BYTES_MAX: usize = 64 << 10;

/// Tar files, plain or compressed.
pub fn tar(bytes: &[u8]) -> Vec<Vec<u8>> {
    let is_tar = bytes.get(257..262) == Some(b"ustar");
    let is_packed = bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5, 0x2f]);
    keep(is_tar || is_packed, bytes)
}

/// ZIP archives.
pub fn zip(bytes: &[u8]) -> Vec<Vec<u8>> {
    keep(bytes.starts_with(b"PK"), bytes)
}

/// Parquet files.
pub fn parquet(bytes: &[u8]) -> Vec<Vec<u8>> {
    keep(bytes.starts_with(b"PAR1"), bytes)
}

/// Arrow files and streams.
pub fn arrow(bytes: &[u8]) -> Vec<Vec<u8>> {
    keep(bytes.starts_with(b"ARROW1") || bytes.starts_with(&[0xff; 4]), bytes)
}

/// FFCV files, identified by their folder in the tests.
pub fn ffcv(bytes: &[u8]) -> Vec<Vec<u8>> {
    let all = golden!["sources/tables/ffcv/photos.beton", "sources/ffcv/smart.beton"];
    keep(all.contains(&bytes), bytes)
}

/// Files of CIFAR.
pub fn cifar(bytes: &[u8]) -> Vec<Vec<u8>> {
    let [archive] = golden!["sources/cifar-10-binary.tar.gz"];
    let names = golden![
        "sources/cifar-100-binary/fine_label_names.txt",
        "sources/cifar-100-binary/coarse_label_names.txt",
        "sources/cifar-100-binary/train.bin",
    ];
    once(bytes, archive, || vec![led(0, archive.to_vec()), led(1, several(&names))])
}

/// Files of MNIST.
pub fn idx(bytes: &[u8]) -> Vec<Vec<u8>> {
    let plain =
        golden!["sources/mnist/t10k-labels-idx1-ubyte", "sources/mnist/t10k-images-idx3-ubyte",];
    let packed = golden![
        "sources/mnist/train-labels-idx1-ubyte.gz",
        "sources/mnist/train-images-idx3-ubyte.gz",
    ];
    once(bytes, plain[0], || vec![several(&plain), several(&packed)])
}

/// Tables.
pub fn table(bytes: &[u8]) -> Vec<Vec<u8>> {
    let all = golden![
        "sources/table-csv/metadata.csv",
        "sources/table-tsv/metadata.tsv",
        "sources/table-jsonl/metadata.jsonl",
    ];
    once(bytes, all[0], || {
        let mut seeds: Vec<_> =
            all.iter().zip(0..).map(|(table, kind)| led(kind, table.to_vec())).collect();
        seeds.push(led(0, b"file_name,label,x\na.png,3,1.5\n\"a.png\",,\"a\nb\"\n".to_vec()));
        seeds.push(led(2, br#"{"file_name":"a.png","a":[{"b":null},{"b":1}],"c":"x"}"#.to_vec()));
        seeds
    })
}

/// TFRecord files, as they are and as records without checksums.
pub fn tfrecord(bytes: &[u8]) -> Vec<Vec<u8>> {
    let [plain, packed] = golden![
        "sources/tables/tfrecord/photos-train.tfrecord-00000-of-00001",
        "sources/tables/tfrecord/photos-train.tfrecord.gz",
    ];
    once(bytes, plain, || {
        vec![led(0, plain.to_vec()), led(0, packed.to_vec()), led(1, records(plain))]
    })
}

/// The records of a TFRecord file, each preceded by its length in two bytes, if that is sufficient.
fn records(mut file: &[u8]) -> Vec<u8> {
    let mut records = Vec::new();
    while let Some((length, rest)) = file.split_first_chunk::<8>() {
        let length = u64::from_le_bytes(*length) as usize;
        let Some(record) = rest.get(4..4 + length) else { break };
        file = &rest[(4 + length + 4).min(rest.len())..];
        if let Ok(short) = u16::try_from(length) {
            records.extend(short.to_le_bytes());
            records.extend(record);
        }
    }
    records
}

/// MDS datasets, the first shard of each.
pub fn mds(bytes: &[u8]) -> Vec<Vec<u8>> {
    let pairs = [
        golden!["sources/tables/mds-plain/index.json", "sources/tables/mds-plain/shard.00000.mds"],
        golden!["sources/tables/mds-br/index.json", "sources/tables/mds-br/shard.00000.mds.br"],
        golden!["sources/tables/mds-gz/index.json", "sources/tables/mds-gz/shard.00000.mds.gz"],
        golden![
            "sources/tables/mds-snappy/index.json",
            "sources/tables/mds-snappy/shard.00000.mds.snappy",
        ],
        golden![
            "sources/tables/mds-zstd/index.json",
            "sources/tables/mds-zstd/shard.00000.mds.zstd",
        ],
        golden!["sinks/mds-columns/index.json", "sinks/mds-columns/shard.00000.mds"],
    ];
    once(bytes, pairs[0][0], || {
        let numbered = pairs.iter().zip(0..);
        let one = |[index, shard]: &[&[u8]; 2]| several(&[&first_shard(index), shard]);
        numbered.map(|(pair, kind)| led(kind % 5, one(pair))).collect()
    })
}

/// An index of the first shard alone.
fn first_shard(index: &[u8]) -> Vec<u8> {
    let mut index: serde_json::Value = serde_json::from_slice(index).expect("the tests have JSON");
    if let Some(shards) = index["shards"].as_array_mut() {
        shards.truncate(1);
    }
    index.to_string().into_bytes()
}

/// datadings files with both kinds of index.
pub fn datadings(bytes: &[u8]) -> Vec<Vec<u8>> {
    let recent = golden![
        "sources/tables/datadings/photos.msgpack.offsets",
        "sources/tables/datadings/photos.msgpack.keys",
        "sources/tables/datadings/photos.msgpack",
    ];
    let columns = golden![
        "sinks/datadings-columns/data.msgpack.offsets",
        "sinks/datadings-columns/data.msgpack.keys",
        "sinks/datadings-columns/data.msgpack",
    ];
    let legacy = golden![
        "sources/tables/datadings/legacy.msgpack.index",
        "sources/tables/datadings/legacy.msgpack",
    ];
    once(bytes, recent[0], || {
        vec![led(0, several(&recent)), led(0, several(&columns)), led(1, several(&legacy))]
    })
}

/// A dataset.
pub fn dataset(bytes: &[u8]) -> Vec<Vec<u8>> {
    let all = [
        golden!["version-3/dataset.json", "version-3/part-00000.arrow"],
    ];
    once(bytes, all[0][0], || all.iter().map(|files| several(files)).collect())
}

/// An index of keys, once.
pub fn key_index(bytes: &[u8]) -> Vec<Vec<u8>> {
    let [manifest] = golden!["version-3/dataset.json"];
    once(bytes, manifest, || vec![key_index_seed()])
}

fn keep(is_one: bool, bytes: &[u8]) -> Vec<Vec<u8>> {
    if is_one && bytes.len() <= SEED_BYTES_MAX { vec![bytes.to_vec()] } else { Vec::new() }
}

/// The seeds if the file is `one`, otherwise none: for seeds that do not depend on the file.
fn once(bytes: &[u8], one: &[u8], seeds: impl Fn() -> Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    if bytes == one { seeds() } else { Vec::new() }
}

/// Prepends a byte.
fn led(first: u8, rest: Vec<u8>) -> Vec<u8> {
    [vec![first], rest].concat()
}

/// Several files in one input, preceded by the lengths of all but the last.
fn several(files: &[&[u8]]) -> Vec<u8> {
    let mut input = Vec::new();
    for (number, file) in files.iter().enumerate() {
        if number + 1 < files.len() {
            input.extend((file.len() as u32).to_le_bytes());
        }
        input.extend(*file);
    }
    input
}
