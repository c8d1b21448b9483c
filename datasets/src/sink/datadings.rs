//! A datadings dataset, byte for byte as Python's datadings 3.4.7 writes the same samples.
//!
//! `data.msgpack` contains a map per sample; beside it are the offsets, the keys, their hashes, a
//! Bloom filter of the keys, and the MD5 of all five.

use super::bloom::Bloom;
use super::files::{Output, write_labels, write_whole};
use super::{Closed, KEY, LABEL, OutSample, Refusal, Sink, SinkKind, Tally};
use super::{content_name, type_notes, unheld, value};
use crate::Error;
use crate::source::{ContentKind, SourceSchema};
use blake2::Blake2sMac256;
use blake2::digest::{FixedOutput, Update};
use md5::{Digest, Md5};
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// The files, that of the checksums last.
pub(super) const FILE_NAMES: [&str; 6] = [
    "data.msgpack",
    "data.msgpack.offsets",
    "data.msgpack.keys",
    "data.msgpack.key_hashes",
    "data.msgpack.filter",
    "data.msgpack.md5",
];
/// Names at the top level of a sample that are reserved by msgpack-numpy.
const RESERVED: [&str; 2] = ["nd", "complex"];
/// File of keys until their number is known.
const PENDING_NAME: &str = ".keys.pending";
/// Maximum number of salts to try for hashes without collisions.
const SALTS_MAX: u32 = 1000;

/// Writes the six files.
pub(super) struct Datadings {
    folder: PathBuf,
    content: Option<String>,
    is_text: bool,
    data: Output,
    data_md5: Md5,
    offsets: Output,
    /// The keys as msgpack, without the header of their array.
    keys: Output,
    /// First two words of each key's hash.
    hashes: Vec<(u64, u64)>,
    /// The same hashes as 16 bytes each, to find duplicate keys.
    seen: HashSet<(u64, u64)>,
    tally: Tally,
    notes: Vec<String>,
}

impl Datadings {
    pub(super) fn create(folder: PathBuf, schema: &SourceSchema) -> Result<Self, Error> {
        let content = (schema.kind != ContentKind::None).then(|| content_name(schema).to_owned());
        let names = schema.extra.fields().iter().map(|field| field.name().as_str());
        for name in names.chain(content.as_deref()) {
            if RESERVED.contains(&name) {
                let reason = "msgpack-numpy gives that name another meaning";
                return Err(unheld(SinkKind::Datadings, name, reason));
            }
        }
        let notes = type_notes(&schema.extra, "msgpack", &|field| {
            use arrow_schema::DataType;
            value::is_determined_by_its_values(field.data_type())
                || matches!(field.data_type(), DataType::Binary | DataType::LargeBinary)
        });
        let mut offsets = Output::create(folder.join(FILE_NAMES[1]))?;
        offsets.append(&0_u64.to_be_bytes())?;
        Ok(Self {
            data: Output::create(folder.join(FILE_NAMES[0]))?,
            keys: Output::create(folder.join(PENDING_NAME))?,
            folder,
            content,
            is_text: schema.kind == ContentKind::Text,
            data_md5: Md5::new(),
            offsets,
            hashes: Vec::new(),
            seen: HashSet::new(),
            tally: Tally::default(),
            notes,
        })
    }

    /// A sample as a msgpack map: key, content, label, further columns.
    fn encode(&self, sample: &OutSample<'_>) -> Result<Vec<u8>, Refusal> {
        let written = "a vector takes all that is written";
        let values: Vec<_> = sample.values().collect();
        let count = 1
            + u32::from(self.content.is_some())
            + u32::from(sample.label.is_some())
            + u32::try_from(values.len()).expect("a schema has fewer than 2^32 columns");
        let mut packed = Vec::with_capacity(sample.file.len() + 256);
        rmp::encode::write_map_len(&mut packed, count).expect(written);
        let name = |packed: &mut Vec<u8>, name: &str| {
            rmp::encode::write_str(packed, name).expect(written);
        };
        name(&mut packed, KEY);
        rmp::encode::write_str(&mut packed, sample.key).expect(written);
        if let Some(content) = &self.content {
            name(&mut packed, content);
            if u32::try_from(sample.file.len()).is_err() {
                let problem = "it has 2^32 bytes, more than msgpack can hold".to_owned();
                return Err(Refusal::Sample(problem));
            }
            match std::str::from_utf8(sample.file) {
                Ok(text) if self.is_text => {
                    rmp::encode::write_str(&mut packed, text).expect(written);
                }
                _ => rmp::encode::write_bin(&mut packed, sample.file).expect(written),
            }
        }
        if let Some(label) = sample.label {
            name(&mut packed, LABEL);
            rmp::encode::write_sint(&mut packed, label.into()).expect(written);
        }
        for (column, value) in &values {
            name(&mut packed, column);
            value::msgpack(value, &mut packed);
        }
        Ok(packed)
    }

    /// Writes the keys after the header of their array.
    fn write_keys(&mut self, failed: &dyn Fn(std::io::Error) -> Error) -> Result<Md5, Error> {
        self.keys.flush().map_err(failed)?;
        let pending = self.keys.path().to_path_buf();
        let count = u32::try_from(self.hashes.len()).expect("it was checked for each sample");
        let mut head = Vec::new();
        rmp::encode::write_array_len(&mut head, count).expect("a vector takes all");
        let mut md5 = Md5::new();
        let mut output = Output::create(self.folder.join(FILE_NAMES[2]))?;
        md5::Digest::update(&mut md5, &head);
        output.append(&head)?;
        let mut from = BufReader::new(File::open(&pending).map_err(failed)?);
        let mut block = vec![0; 1 << 16];
        loop {
            let bytes = from.read(&mut block).map_err(failed)?;
            if bytes == 0 {
                break;
            }
            md5::Digest::update(&mut md5, &block[..bytes]);
            output.append(&block[..bytes])?;
        }
        output.finish(&mut self.tally)?;
        Ok(md5)
    }

    /// The salt and the salted hashes, which are unique.
    fn salted(&self, failed: &dyn Fn(std::io::Error) -> Error) -> Result<Vec<u8>, Error> {
        for salt in 0..SALTS_MAX {
            let salt = first_word(salt.to_string().as_bytes(), &[]).to_be_bytes();
            let mut file = Vec::with_capacity(8 * (self.hashes.len() + 1));
            file.extend(salt);
            let mut seen = HashSet::with_capacity(self.hashes.len());
            let mut keys = BufReader::new(File::open(self.keys.path()).map_err(failed)?);
            let mut is_unique = true;
            for _ in &self.hashes {
                let key = read_key(&mut keys).map_err(failed)?;
                let hash = first_word(&key, &salt);
                is_unique = seen.insert(hash);
                if !is_unique {
                    break;
                }
                file.extend(hash.to_be_bytes());
            }
            if is_unique {
                return Ok(file);
            }
        }
        let problem = format!("hashes of keys collide with each of {SALTS_MAX} salts");
        Err(failed(std::io::Error::other(problem)))
    }
}

/// Reads a msgpack string that was written here.
fn read_key(from: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let length = rmp::decode::read_str_len(from).map_err(std::io::Error::other)?;
    let mut key = vec![0; length as usize];
    from.read_exact(&mut key)?;
    Ok(key)
}

/// BLAKE2s with a salt and no key.
fn blake2s(bytes: &[u8], salt: &[u8]) -> [u8; 32] {
    let mut hasher = Blake2sMac256::new_with_salt_and_personal(None, salt, &[])
        .expect("a salt of at most 8 bytes is allowed");
    hasher.update(bytes);
    hasher.finalize_fixed().into()
}

fn first_word(bytes: &[u8], salt: &[u8]) -> u64 {
    words(&blake2s(bytes, salt)).0
}

/// The first two words of a hash, big endian.
fn words(hash: &[u8; 32]) -> (u64, u64) {
    let word =
        |at: usize| u64::from_be_bytes(hash[at..at + 8].try_into().expect("a hash has four words"));
    (word(0), word(8))
}

impl Sink for Datadings {
    fn root(&self) -> Option<Arc<super::Root>> {
        None
    }

    fn put(&mut self, sample: &OutSample<'_>, is_kept: bool) -> Result<(), Refusal> {
        let packed = self.encode(sample)?;
        let hash = words(&blake2s(sample.key.as_bytes(), &[]));
        if !self.seen.insert(hash) {
            return Err(Refusal::Sample("its key occurs twice".to_owned()));
        }
        if self.hashes.len() as u64 >= u64::from(u32::MAX) {
            return Err(Refusal::Sample("datadings holds fewer than 2^32 samples".to_owned()));
        }
        if !is_kept {
            return Ok(());
        }
        self.hashes.push(hash);
        self.data.append(&packed)?;
        md5::Digest::update(&mut self.data_md5, &packed);
        self.offsets.append(&self.data.bytes().to_be_bytes())?;
        let mut key = Vec::with_capacity(sample.key.len() + 5);
        rmp::encode::write_str(&mut key, sample.key).expect("a vector takes all");
        self.keys.append(&key)?;
        Ok(())
    }

    fn finish(mut self: Box<Self>, labels: &[String]) -> Result<Closed, Error> {
        let folder = self.folder.clone();
        let failed = |source| Error::Write { path: folder.clone(), source };
        self.seen = HashSet::new();
        let keys_md5 = self.write_keys(&failed)?;
        let key_hashes = self.salted(&failed)?;
        std::fs::remove_file(self.keys.path()).map_err(failed)?;
        write_whole(folder.join(FILE_NAMES[3]), &key_hashes, &mut self.tally)?;
        let mut filter = Bloom::new(self.hashes.len() as u64);
        self.hashes.iter().for_each(|(first, second)| filter.add(*first, *second));
        let filter = filter.into_bytes();
        write_whole(folder.join(FILE_NAMES[4]), &filter, &mut self.tally)?;
        self.data.finish(&mut self.tally)?;
        self.offsets.finish(&mut self.tally)?;
        let offsets = std::fs::read(folder.join(FILE_NAMES[1])).map_err(failed)?;
        let digests = [
            self.data_md5.finalize(),
            Md5::digest(&offsets),
            keys_md5.finalize(),
            Md5::digest(&key_hashes),
            Md5::digest(&filter),
        ];
        let lines = FILE_NAMES.iter().zip(digests).map(|(name, digest)| {
            let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{digits}  {name}\n")
        });
        let text: String = lines.collect();
        write_whole(folder.join(FILE_NAMES[5]), text.as_bytes(), &mut self.tally)?;
        if write_labels(&folder, labels, &mut self.tally)? {
            let note = "the names of the labels are in labels.json, since samples hold numbers";
            self.notes.push(note.to_owned());
        }
        Ok(Closed { tally: self.tally, notes: self.notes })
    }
}
