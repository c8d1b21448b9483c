//! `keys.idx`: finds the sample of a key with one small read, without scanning the keys.
//!
//! ```text
//! 0     header, 128 bytes: magic "MPKEYIDX", u32 version, u32 bucket bits, u64 keys,
//!       32 bytes SHA-256 of dataset.json, u32 CRC-32C of the directory, zeros,
//!       at 124 u32 CRC-32C of the 124 bytes before it
//! 128   directory: for each of 2^bits buckets u64 end (in entries), u32 CRC-32C of its
//!       entries, u32 zero
//!       entries: u64 hash, u64 index of the sample; ascending
//! ```
//!
//! All integers are little-endian. The hash of a key is the first eight bytes of its SHA-256, most
//! significant first; its highest bits select its bucket. A look-up reads the entries of one
//! bucket: a key whose hash is not among them is not in the dataset, so no separate filter is
//! needed. If the hash is found, the key itself is compared, since two keys may have the same hash.

use crate::checksum::crc32c;
use meetpoint_diagnose::{Command, Diagnose, Remedy};
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::ops::Range;

/// File name in a dataset's folder.
pub const KEY_INDEX_NAME: &str = "keys.idx";
/// Version that is written and read.
pub const KEY_INDEX_VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"MPKEYIDX";
/// Bytes of the header, which identifies the manifest that the index belongs to.
pub const HEADER_BYTES: usize = 128;
const HEADER_CRC_AT: usize = 124;
const BUCKET_BYTES: u64 = 16;
const ENTRY_BYTES: u64 = 16;
/// Maximum average number of entries of a bucket: 2 KiB, which is one or two block reads.
const ENTRIES_PER_BUCKET: u64 = 128;
/// Maximum number of entries of a bucket that is read. Hashes are uniform, so a valid index stays
/// below.
const BUCKET_ENTRIES_MAX: u64 = 1 << 16;
/// Maximum number of bits of a bucket number: enough for 2^35 keys.
const BITS_MAX: u32 = 28;

/// An index of keys that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyIndexError {
    /// It could not be read.
    #[error("{KEY_INDEX_NAME}: {0}")]
    Io(#[from] io::Error),
    /// Its content is invalid.
    #[error("{KEY_INDEX_NAME}: {problem}")]
    Damaged {
        /// What is wrong, with the position.
        problem: String,
    },
    /// It was made for another dataset.
    #[error("{KEY_INDEX_NAME} belongs to another dataset.json than the one next to it")]
    OtherDataset,
}

impl Diagnose for KeyIndexError {
    fn cause(&self) -> &'static str {
        match self {
            Self::Io(_) => "key_index_unreadable",
            Self::Damaged { .. } => "key_index_damaged",
            Self::OtherDataset => "key_index_of_other_dataset",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(Remedy::run(Command::IndexKeys))
    }
}

/// Random access to the bytes of the file: fills the buffer from an offset, whole or not at all.
pub type ReadAt<'a> = &'a dyn Fn(u64, &mut [u8]) -> io::Result<()>;

/// The hash of a key.
pub fn key_hash(key: &str) -> u64 {
    let digest = Sha256::digest(key.as_bytes());
    u64::from_be_bytes(digest[..8].try_into().expect("8 of 32 bytes"))
}

/// Collects the keys of a dataset; 16 bytes of memory each.
#[derive(Debug, Default)]
pub struct KeyIndexBuilder {
    entries: Vec<(u64, u64)>,
}

impl KeyIndexBuilder {
    /// Adds the key of the next sample.
    pub fn push(&mut self, key: &str) {
        self.entries.push((key_hash(key), self.entries.len() as u64));
    }

    /// Keys so far.
    pub fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Writes the index of the dataset whose `dataset.json` has this SHA-256.
    pub fn write(mut self, manifest_sha256: [u8; 32], to: &mut dyn Write) -> io::Result<()> {
        self.entries.sort_unstable();
        let keys = self.len();
        let bits = bits_for(keys);
        let mut directory = Vec::new();
        let mut start = 0;
        let mut bytes = Vec::new();
        for bucket in 0..1_u64 << bits {
            let rest = &self.entries[start..];
            let end = start + rest.partition_point(|(hash, _)| bucket_of(*hash, bits) <= bucket);
            encode(&self.entries[start..end], &mut bytes);
            directory.extend_from_slice(&(end as u64).to_le_bytes());
            directory.extend_from_slice(&crc32c(&bytes).to_le_bytes());
            directory.extend_from_slice(&[0; 4]);
            start = end;
        }
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&KEY_INDEX_VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&bits.to_le_bytes());
        header[16..24].copy_from_slice(&keys.to_le_bytes());
        header[24..56].copy_from_slice(&manifest_sha256);
        header[56..60].copy_from_slice(&crc32c(&directory).to_le_bytes());
        let crc = crc32c(&header[..HEADER_CRC_AT]);
        header[HEADER_CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        to.write_all(&header)?;
        to.write_all(&directory)?;
        for chunk in self.entries.chunks(4096) {
            encode(chunk, &mut bytes);
            to.write_all(&bytes)?;
        }
        to.flush()
    }
}

fn encode(entries: &[(u64, u64)], into: &mut Vec<u8>) {
    into.clear();
    for (hash, sample) in entries {
        into.extend_from_slice(&hash.to_le_bytes());
        into.extend_from_slice(&sample.to_le_bytes());
    }
}

/// The number of bits with which a bucket has at most [`ENTRIES_PER_BUCKET`] entries on average.
fn bits_for(keys: u64) -> u32 {
    let buckets = keys.div_ceil(ENTRIES_PER_BUCKET).max(1);
    buckets.next_power_of_two().trailing_zeros().min(BITS_MAX)
}

fn bucket_of(hash: u64, bits: u32) -> u64 {
    hash.checked_shr(64 - bits).unwrap_or(0)
}

/// A bucket in the directory.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    end: u64,
    crc32c: u32,
}

/// An open index: its directory, an eighth of a byte for each key.
#[derive(Debug)]
pub struct KeyIndex {
    keys: u64,
    bits: u32,
    buckets: Vec<Bucket>,
}

impl KeyIndex {
    /// Reads header and directory of an index of `file_bytes` bytes and checks them against the
    /// dataset: `samples` samples, and the SHA-256 of its `dataset.json`.
    pub fn open(
        manifest_sha256: [u8; 32],
        samples: u64,
        file_bytes: u64,
        read: ReadAt<'_>,
    ) -> Result<Self, KeyIndexError> {
        let damaged = |problem: String| KeyIndexError::Damaged { problem };
        if file_bytes < HEADER_BYTES as u64 {
            return Err(damaged(format!("{file_bytes} bytes are too few")));
        }
        let mut header = [0; HEADER_BYTES];
        read(0, &mut header)?;
        let u32_at = |at: usize| u32_of(&header[at..]);
        if &header[..8] != MAGIC {
            return Err(damaged("it does not begin as an index of keys".to_owned()));
        }
        let version = u32_at(8);
        if version != KEY_INDEX_VERSION {
            let known = KEY_INDEX_VERSION;
            return Err(damaged(format!("version is {version}, this program reads {known}")));
        }
        if crc32c(&header[..HEADER_CRC_AT]) != u32_at(HEADER_CRC_AT) {
            return Err(damaged("the checksum of its header is wrong".to_owned()));
        }
        let (bits, keys) = (u32_at(12), u64_of(&header[16..]));
        if header[24..56] != manifest_sha256 {
            return Err(KeyIndexError::OtherDataset);
        }
        if keys != samples {
            return Err(damaged(format!("it has {keys} keys, dataset.json {samples} samples")));
        }
        // More buckets than the keys need would waste memory.
        let expected = Some(bits).filter(|bits| *bits <= bits_for(keys)).and_then(|bits| {
            (BUCKET_BYTES << bits)
                .checked_add(keys.checked_mul(ENTRY_BYTES)?)?
                .checked_add(HEADER_BYTES as u64)
        });
        if expected != Some(file_bytes) {
            let problem = format!("{file_bytes} bytes for {keys} keys and {bits} bucket bits");
            return Err(damaged(problem));
        }
        // No more than the file has, as was just checked.
        let bytes = usize::try_from(BUCKET_BYTES << bits).expect("at most 2^32 bytes");
        let mut directory = vec![0; bytes];
        read(HEADER_BYTES as u64, &mut directory)?;
        if crc32c(&directory) != u32_at(56) {
            return Err(damaged("the checksum of its directory is wrong".to_owned()));
        }
        let buckets = parse_directory(&directory, keys).map_err(damaged)?;
        Ok(Self { keys, bits, buckets })
    }

    /// Keys in it.
    pub fn len(&self) -> u64 {
        self.keys
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// The samples whose keys have the hash of this one: those that may have the key. Empty if
    /// there are none.
    pub fn candidates(&self, key: &str, read: ReadAt<'_>) -> Result<Vec<u64>, KeyIndexError> {
        let hash = key_hash(key);
        let mut found = Vec::new();
        self.visit(bucket_of(hash, self.bits), read, &mut |of, sample| {
            if of == hash {
                found.push(sample);
            }
        })?;
        Ok(found)
    }

    /// Checks all entries, bucket by bucket, and so every byte.
    pub fn check(
        &self,
        read: ReadAt<'_>,
        entry: &mut dyn FnMut(u64, u64),
    ) -> Result<(), KeyIndexError> {
        (0..self.buckets.len() as u64).try_for_each(|bucket| self.visit(bucket, read, entry))
    }

    /// Passes the checked entries of a bucket (hash and sample) to a function.
    fn visit(
        &self,
        bucket: u64,
        read: ReadAt<'_>,
        entry: &mut dyn FnMut(u64, u64),
    ) -> Result<(), KeyIndexError> {
        let Range { start, end } = self.entries_of(bucket);
        let bytes = usize::try_from((end - start) * ENTRY_BYTES).expect("at most 1 MiB");
        let mut entries = vec![0; bytes];
        let base = HEADER_BYTES as u64 + (BUCKET_BYTES << self.bits);
        read(base + start * ENTRY_BYTES, &mut entries)?;
        let damaged = |problem: String| KeyIndexError::Damaged { problem };
        if crc32c(&entries) != self.buckets[bucket as usize].crc32c {
            return Err(damaged(format!("the checksum of bucket {bucket} is wrong")));
        }
        let (entries, _) = entries.as_chunks::<{ ENTRY_BYTES as usize }>();
        for bytes in entries {
            let (hash, sample) = (u64_of(bytes), u64_of(&bytes[8..]));
            if bucket_of(hash, self.bits) != bucket || sample >= self.keys {
                return Err(damaged(format!("bucket {bucket} has an entry of another bucket")));
            }
            entry(hash, sample);
        }
        Ok(())
    }

    fn entries_of(&self, bucket: u64) -> Range<u64> {
        let bucket = bucket as usize;
        let start = bucket.checked_sub(1).map_or(0, |before| self.buckets[before].end);
        start..self.buckets[bucket].end
    }
}

/// Checks that the buckets are in order, of a bounded size, and contain all keys together.
fn parse_directory(directory: &[u8], keys: u64) -> Result<Vec<Bucket>, String> {
    let mut start = 0;
    let mut buckets = Vec::with_capacity(directory.len() / BUCKET_BYTES as usize);
    for (number, bytes) in directory.chunks_exact(BUCKET_BYTES as usize).enumerate() {
        let end = u64_of(bytes);
        if end < start || end > keys || end - start > BUCKET_ENTRIES_MAX {
            return Err(format!("bucket {number} ends at entry {end} of {keys}"));
        }
        buckets.push(Bucket { end, crc32c: u32_of(&bytes[8..]) });
        start = end;
    }
    if start != keys {
        return Err(format!("its buckets have {start} of {keys} keys"));
    }
    Ok(buckets)
}

fn u32_of(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"))
}

fn u64_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const SHA: [u8; 32] = [9; 32];

    fn written<'a>(keys: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
        let mut builder = KeyIndexBuilder::default();
        keys.into_iter().for_each(|key| builder.push(key));
        let mut bytes = Vec::new();
        builder.write(SHA, &mut bytes).unwrap();
        bytes
    }

    fn reader(bytes: &[u8]) -> impl Fn(u64, &mut [u8]) -> io::Result<()> {
        |offset, into: &mut [u8]| {
            let start = offset as usize;
            let range = bytes.get(start..start + into.len());
            into.copy_from_slice(range.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        }
    }

    fn open(bytes: &[u8], samples: u64) -> Result<KeyIndex, KeyIndexError> {
        KeyIndex::open(SHA, samples, bytes.len() as u64, &reader(bytes))
    }

    #[test]
    fn the_hash_is_the_beginning_of_the_sha_256() {
        // sha256sum of "abc", FIPS 180-2 appendix B.1.
        assert_eq!(key_hash("abc"), 0xba78_16bf_8f01_cfea);
    }

    #[test]
    fn every_key_is_found_and_no_other() {
        for keys in [0, 1, 2, 128, 129, 5000] {
            let names: Vec<String> = (0..keys).map(|key| format!("class/{key}.jpg")).collect();
            let bytes = written(names.iter().map(String::as_str));
            let index = open(&bytes, keys).unwrap();
            assert_eq!((index.len(), index.is_empty()), (keys, keys == 0));
            let read = reader(&bytes);
            for (sample, name) in names.iter().enumerate() {
                assert_eq!(index.candidates(name, &read).unwrap(), [sample as u64]);
            }
            assert!(index.candidates("class/5000.jpg", &read).unwrap().is_empty());
            let mut samples = BTreeSet::new();
            index.check(&read, &mut |_, sample| assert!(samples.insert(sample))).unwrap();
            assert_eq!(samples.len() as u64, keys);
        }
    }

    #[test]
    fn another_dataset_or_number_of_samples_is_refused() {
        let bytes = written(["a", "b"]);
        let other = KeyIndex::open([8; 32], 2, bytes.len() as u64, &reader(&bytes));
        assert!(matches!(other, Err(KeyIndexError::OtherDataset)));
        assert!(open(&bytes, 3).unwrap_err().to_string().contains("2 keys"));
        let version = open(&[&b"MPKEYIDX\x02"[..], &[0; 200]].concat(), 2).unwrap_err();
        assert!(version.to_string().contains("version is 2"), "{version}");
    }

    #[test]
    fn more_buckets_than_the_keys_need_are_refused_unread() {
        let mut bytes = written(["a", "b"]);
        bytes[12..16].copy_from_slice(&BITS_MAX.to_le_bytes());
        let crc = crc32c(&bytes[..HEADER_CRC_AT]);
        bytes[HEADER_CRC_AT..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
        // A sparse file has this length and occupies no disk space.
        let file_bytes = HEADER_BYTES as u64 + (BUCKET_BYTES << BITS_MAX) + 2 * ENTRY_BYTES;
        let read = |offset: u64, into: &mut [u8]| {
            assert!(offset + into.len() as u64 <= HEADER_BYTES as u64, "the directory is read");
            reader(&bytes)(offset, into)
        };
        let opened = KeyIndex::open(SHA, 2, file_bytes, &read);
        assert!(matches!(opened, Err(KeyIndexError::Damaged { .. })), "{opened:?}");
    }

    #[test]
    fn a_flipped_bit_anywhere_is_found_or_changes_nothing() {
        let names: Vec<String> = (0..300).map(|key| key.to_string()).collect();
        let sound = written(names.iter().map(String::as_str));
        for bit in 0..sound.len() * 8 {
            let mut bytes = sound.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let read = reader(&bytes);
            let checked = open(&bytes, 300).and_then(|index| index.check(&read, &mut |_, _| ()));
            assert!(checked.is_err(), "bit {bit}");
        }
        for bytes in 0..sound.len() {
            assert!(open(&sound[..bytes], 300).is_err());
        }
    }

    proptest! {
        #[test]
        fn no_key_is_lost(keys in proptest::collection::btree_set(".{1,20}", 0..600)) {
            let bytes = written(keys.iter().map(String::as_str));
            let index = open(&bytes, keys.len() as u64).unwrap();
            for (sample, key) in keys.iter().enumerate() {
                let found = index.candidates(key, &reader(&bytes)).unwrap();
                prop_assert!(found.contains(&(sample as u64)));
            }
        }

        #[test]
        fn whatever_the_bytes_are_nothing_panics(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            bits in 0..40_u32,
            keys in 0..20_u64,
        ) {
            let mut header = [0; HEADER_BYTES];
            header[..8].copy_from_slice(MAGIC);
            header[8] = 1;
            header[12..16].copy_from_slice(&bits.to_le_bytes());
            header[16..24].copy_from_slice(&keys.to_le_bytes());
            header[24..56].copy_from_slice(&SHA);
            let directory = bytes.len().min((BUCKET_BYTES << bits.min(20)) as usize);
            header[56..60].copy_from_slice(&crc32c(&bytes[..directory]).to_le_bytes());
            let crc = crc32c(&header[..HEADER_CRC_AT]);
            header[HEADER_CRC_AT..].copy_from_slice(&crc.to_le_bytes());
            let file = [&header[..], &bytes].concat();
            if let Ok(index) = open(&file, keys) {
                let _ = index.check(&reader(&file), &mut |_, _| ());
            }
        }
    }
}
