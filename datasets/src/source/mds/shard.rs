//! One shard: its header, its checksums, its samples.

use super::hash;
use super::index::{FileEntry, ShardEntry};
use crate::Error;
use crate::message::Message;
use crate::source::OpenFile;
use crate::source::budget::{MemoryBudget, ReservedBytes, over_budget};
use crate::source::rows::malformed;
use crate::source::rows::table::{open_file, read_at, too_large, unreadable};
use crate::store::StorePath;
use std::io::{BufReader, Read};
use std::sync::Arc;

/// The location of a shard's bytes.
enum Body {
    /// Uncompressed in a file.
    File(Arc<OpenFile>),
    /// Decompressed in memory.
    Memory(ReservedBytes),
}

/// An open shard.
pub(super) struct Shard {
    pub(super) path: StorePath,
    pub(super) name: Arc<str>,
    body: Body,
    bytes: u64,
    offsets: Vec<u32>,
    next: usize,
}

impl Shard {
    /// Opens the plain file if it exists, else the compressed one.
    pub(super) fn open(
        folder: &StorePath,
        entry: &ShardEntry,
        budget: &MemoryBudget,
    ) -> Result<Self, Error> {
        let plain = folder.join(&entry.raw.name);
        let (path, body) = match &entry.folded {
            Some(folded) if !plain.exists() => {
                let path = folder.join(&folded.name);
                let body = Body::Memory(unfold(&path, folded, entry, budget)?);
                (path, body)
            }
            _ => {
                let (file, bytes) = open_file(&plain)?;
                check_file(&plain, bytes, &entry.raw)?;
                (plain, Body::File(file))
            }
        };
        let name = path.display().to_string().into();
        let bytes = entry.raw.bytes;
        let mut shard = Self { path, name, body, bytes, offsets: Vec::new(), next: 0 };
        shard.read_offsets(entry.samples)?;
        Ok(shard)
    }

    /// The file, if it contains the samples unchanged.
    pub(super) fn ranges(&self) -> Option<Arc<OpenFile>> {
        match &self.body {
            Body::File(file) => Some(Arc::clone(file)),
            Body::Memory(_) => None,
        }
    }

    pub(super) fn is_plain(&self) -> bool {
        matches!(self.body, Body::File(_))
    }

    fn fault(&self, problem: impl Into<Message>) -> Error {
        malformed(&self.path, None, problem)
    }

    fn read(&self, to: &mut [u8], offset: u64) -> Result<(), Error> {
        match &self.body {
            Body::File(file) => read_at(file, to, offset),
            Body::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let end = start.saturating_add(to.len());
                let from = bytes.bytes.get(start..end);
                to.copy_from_slice(from.ok_or_else(|| self.fault("ends too early"))?);
                Ok(())
            }
        }
    }

    fn read_offsets(&mut self, samples: u64) -> Result<(), Error> {
        let table = samples.checked_add(2).and_then(|words| words.checked_mul(4));
        let Some(table) = table.filter(|table| *table <= self.bytes) else {
            return Err(self.fault(format!(
                "has {} bytes, too few for the {samples} samples that the index claims",
                self.bytes
            )));
        };
        let mut words = vec![0; table as usize];
        self.read(&mut words, 0)?;
        let mut words =
            words.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes")));
        let stored = words.next().unwrap_or(0);
        if u64::from(stored) != samples {
            let problem = format!("holds {stored} samples, where the index claims {samples}");
            return Err(self.fault(problem));
        }
        self.offsets = words.collect();
        let is_sound = self.offsets.is_sorted()
            && u64::from(self.offsets[0]) >= table
            && self.offsets.last().is_some_and(|last| u64::from(*last) <= self.bytes);
        if !is_sound {
            return Err(self.fault("offsets that do not ascend within the file; it is damaged"));
        }
        Ok(())
    }

    /// The next sample: its index, its offset, its bytes.
    pub(super) fn next(&mut self) -> Result<Option<(u64, u64, Vec<u8>)>, Error> {
        let (Some(start), Some(end)) =
            (self.offsets.get(self.next), self.offsets.get(self.next + 1))
        else {
            return Ok(None);
        };
        let mut bytes = vec![0; (end - start) as usize];
        self.read(&mut bytes, u64::from(*start))?;
        let number = self.next as u64;
        let start = u64::from(*start);
        self.next += 1;
        Ok(Some((number, start, bytes)))
    }
}

/// Compares length and checksums with the index.
fn check_file(path: &StorePath, bytes: u64, entry: &FileEntry) -> Result<(), Error> {
    if bytes != entry.bytes {
        let problem =
            Message::from(format!("has {bytes} bytes, where the index claims {}", entry.bytes))
                .remedy("fetch it again");
        return Err(malformed(path, None, problem));
    }
    let mut known = 0;
    for (algorithm, stored) in &entry.hashes {
        let mut file = path.open().map_err(|error| unreadable(path, error))?;
        let got = hash::hash(algorithm, &mut file).map_err(|error| unreadable(path, error))?;
        let Some(got) = got else { continue };
        known += 1;
        if !got.eq_ignore_ascii_case(stored) {
            let problem = Message::from(format!(
                "the {algorithm} is {stored} in the index and {got} for the file: it is damaged"
            ))
            .remedy("fetch it again");
            return Err(malformed(path, None, problem));
        }
    }
    if known == 0 && !entry.hashes.is_empty() {
        let names: Vec<&str> = entry.hashes.iter().map(|(name, _)| name.as_str()).collect();
        let problem = Message::from(format!(
            "the index has checksums of unsupported kinds ({})",
            names.join(", ")
        ))
        .remedy(format!("take them out of {} to read the shard unchecked", super::INDEX_NAME));
        return Err(malformed(path, None, problem));
    }
    Ok(())
}

/// The plain bytes of a compressed shard.
fn unfold(
    path: &StorePath,
    folded: &FileEntry,
    entry: &ShardEntry,
    budget: &MemoryBudget,
) -> Result<ReservedBytes, Error> {
    let (file, compressed) = open_file(path)?;
    check_file(path, compressed, folded)?;
    let file = file.file.try_clone().map_err(|error| unreadable(path, error))?;
    let fault = |problem: String| malformed(path, None, problem);
    let compression = entry.compression.as_deref().unwrap_or_default();
    let algorithm = compression.split(':').next().unwrap_or_default();
    let mut file = BufReader::new(file);
    // One additional byte detects a shard that is too long.
    let limit = entry.raw.bytes + 1;
    let read = |from: &mut dyn Read| {
        budget.read_to_end(from, Vec::new(), limit, compressed).map_err(|error| {
            match over_budget(&error) {
                Some(over) => too_large(path, None, None, over),
                None => fault(format!("cannot be decompressed: {error}")),
            }
        })
    };
    let plain = match algorithm {
        "gz" => read(&mut flate2::read::MultiGzDecoder::new(file))?,
        "br" => read(&mut brotli::Decompressor::new(file, 1 << 16))?,
        "zstd" => {
            let mut decoder = ruzstd::decoding::StreamingDecoder::new(file)
                .map_err(|error| fault(format!("is not a Zstandard frame: {error}")))?;
            read(&mut decoder)?
        }
        "snappy" => {
            let mut block = Vec::new();
            file.read_to_end(&mut block).map_err(|error| unreadable(path, error))?;
            let claimed = snap::raw::decompress_len(&block).unwrap_or(usize::MAX);
            if claimed as u64 != entry.raw.bytes || claimed / 64 > block.len() {
                return Err(fault("a Snappy block of another length than the index says".into()));
            }
            let held = budget.hold(claimed as u64);
            let held = held.map_err(|over| too_large(path, None, None, over))?;
            let plain = snap::raw::Decoder::new().decompress_vec(&block);
            let plain = plain.map_err(|error| fault(format!("cannot be decompressed: {error}")))?;
            ReservedBytes::new(plain, held)
        }
        other => {
            let problem = format!(
                "is compressed with {other:?}; supported are br, gz, snappy and zstd: decompress \
                 it to {}",
                entry.raw.name
            );
            return Err(fault(problem));
        }
    };
    if plain.bytes.len() as u64 != entry.raw.bytes {
        let problem = format!(
            "decompresses to {} bytes or more, but the index claims {}",
            plain.bytes.len(),
            entry.raw.bytes
        );
        return Err(fault(problem));
    }
    for (algorithm, stored) in &entry.raw.hashes {
        let got = hash::hash(algorithm, &mut &plain.bytes[..])
            .map_err(|error| unreadable(path, error))?;
        if got.is_some_and(|got| !got.eq_ignore_ascii_case(stored)) {
            return Err(fault(format!(
                "its decompressed data do not have the {algorithm} {stored}"
            )));
        }
    }
    Ok(plain)
}
