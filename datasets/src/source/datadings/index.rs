//! The index beside a datadings file: the offsets and keys of its samples.
//!
//! `.offsets`: big-endian u64, one for each sample and the length of the file; `.keys`: a
//! MessagePack array of texts. `.index`, of datadings before 3.1: a MessagePack map of keys to
//! offsets.

use crate::Error;
use crate::source::rows::malformed;
use crate::source::rows::table::{open_file, unreadable};
use crate::store::StorePath;
use std::fs::File;
use std::io::{BufReader, Read};

/// Longest key.
const KEY_BYTES_MAX: u64 = 1 << 16;

/// An index, read incrementally.
pub(super) struct Index {
    /// Number of samples.
    pub(super) samples: u64,
    places: SampleRanges,
}

enum SampleRanges {
    Offsets { offsets: Words, keys: Option<Keys>, start: u64, left: u64, data_bytes: u64 },
    Legacy(std::vec::IntoIter<(u64, u64, String)>),
}

/// Big-endian words of a file.
pub(super) struct Words {
    path: StorePath,
    reader: BufReader<File>,
}

/// The texts of a MessagePack array, one by one.
pub(super) struct Keys {
    path: StorePath,
    reader: BufReader<File>,
    /// Number of remaining keys.
    pub(super) left: u64,
}

/// Start and end of a sample, and its key, if the index has keys.
pub(super) type SampleRange = (u64, u64, Option<String>);

/// A side file: `X.msgpack.offsets`.
pub(super) fn beside(path: &StorePath, suffix: &str) -> StorePath {
    let mut name = path.path().as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    path.at(name)
}

impl Index {
    /// Opens the existing index of a file of `data_bytes` bytes.
    pub(super) fn open(path: &StorePath, data_bytes: u64) -> Result<Self, Error> {
        let offsets_path = beside(path, "offsets");
        let legacy_path = beside(path, "index");
        if !offsets_path.exists() {
            if legacy_path.exists() {
                return Self::legacy(&legacy_path, data_bytes);
            }
            let problem = format!(
                "has no index: neither {} nor {} is there",
                offsets_path.display(),
                legacy_path.display()
            );
            return Err(malformed(path, None, problem));
        }
        let (_, bytes) = open_file(&offsets_path)?;
        if bytes < 8 || bytes % 8 != 0 {
            let problem = format!("has {bytes} bytes, expected 8 for each sample and for the end");
            return Err(malformed(&offsets_path, None, problem));
        }
        let samples = bytes / 8 - 1;
        let mut offsets = Words::open(&offsets_path)?;
        let first = offsets.next()?;
        if first != 0 {
            let problem = format!("begins with {first}, and the first sample begins at 0");
            return Err(malformed(&offsets_path, Some(0), problem));
        }
        let keys_path = beside(path, "keys");
        let keys = if keys_path.exists() { Some(Keys::open(&keys_path)?) } else { None };
        if let Some(keys) = &keys
            && keys.left != samples
        {
            let problem = format!("has {} keys for {samples} samples", keys.left);
            return Err(malformed(&keys_path, None, problem));
        }
        let places = SampleRanges::Offsets { offsets, keys, start: 0, left: samples, data_bytes };
        Ok(Self { samples, places })
    }

    fn legacy(path: &StorePath, data_bytes: u64) -> Result<Self, Error> {
        let (_, bytes) = open_file(path)?;
        let file = path.open().map_err(|error| unreadable(path, error))?;
        let mut reader = BufReader::new(file);
        let entries = length(path, &mut reader, true)?;
        // An entry has at least a key of a byte and an offset of one.
        if entries > bytes / 2 {
            let problem = format!("claims {entries} samples in {bytes} bytes");
            return Err(malformed(path, None, problem));
        }
        let mut places: Vec<(u64, u64, String)> = Vec::new();
        for _ in 0..entries {
            let key = text(path, &mut reader)?;
            let offset = rmpv::decode::read_value_with_max_depth(&mut reader, 2);
            let offset = offset.ok().and_then(|offset| offset.as_u64());
            let problem = format!("no offset for the key {key:?}");
            let offset = offset.ok_or_else(|| malformed(path, None, problem))?;
            places.push((offset, 0, key));
        }
        places.sort();
        for index in 0..places.len() {
            let end = places.get(index + 1).map_or(data_bytes, |next| next.0);
            let (start, to, _) = &mut places[index];
            *to = end;
            if *start >= end {
                let problem = format!("has two samples at {start}, or one beyond the end at {end}");
                return Err(malformed(path, None, problem));
            }
        }
        if places.first().is_some_and(|first| first.0 != 0) {
            return Err(malformed(path, None, "has no sample at 0"));
        }
        Ok(Self { samples: entries, places: SampleRanges::Legacy(places.into_iter()) })
    }

    /// The next sample; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<SampleRange>, Error> {
        match &mut self.places {
            SampleRanges::Legacy(places) => {
                Ok(places.next().map(|(start, end, key)| (start, end, Some(key))))
            }
            SampleRanges::Offsets { start, left: 0, data_bytes, .. } if start == data_bytes => {
                Ok(None)
            }
            SampleRanges::Offsets { offsets, start, left: 0, data_bytes, .. } => {
                let problem = format!(
                    "ends at {start}, but the data have {data_bytes} bytes; one of the two is \
                     truncated"
                );
                Err(malformed(&offsets.path, None, problem))
            }
            SampleRanges::Offsets { offsets, keys, start, left, data_bytes } => {
                let end = offsets.next()?;
                if end <= *start || end > *data_bytes {
                    let problem = format!(
                        "a sample from {start} to {end} in a file of {data_bytes} bytes; the index \
                         is damaged or the data are truncated"
                    );
                    return Err(malformed(&offsets.path, None, problem));
                }
                let key = keys.as_mut().map(Keys::next).transpose()?;
                let place = (*start, end, key);
                *start = end;
                *left -= 1;
                Ok(Some(place))
            }
        }
    }
}

impl Words {
    pub(super) fn open(path: &StorePath) -> Result<Self, Error> {
        let file = path.open().map_err(|error| unreadable(path, error))?;
        Ok(Self { path: path.clone(), reader: BufReader::new(file) })
    }

    pub(super) fn next(&mut self) -> Result<u64, Error> {
        let mut word = [0; 8];
        let read = self.reader.read_exact(&mut word);
        read.map_err(|_| malformed(&self.path, None, "is cut off"))?;
        Ok(u64::from_be_bytes(word))
    }
}

impl Keys {
    pub(super) fn open(path: &StorePath) -> Result<Self, Error> {
        let file = path.open().map_err(|error| unreadable(path, error))?;
        let mut reader = BufReader::new(file);
        let left = length(path, &mut reader, false)?;
        Ok(Self { path: path.clone(), reader, left })
    }

    pub(super) fn next(&mut self) -> Result<String, Error> {
        self.left = self.left.saturating_sub(1);
        text(&self.path, &mut self.reader)
    }
}

fn byte(path: &StorePath, reader: &mut impl Read) -> Result<u8, Error> {
    let mut byte = [0];
    reader.read_exact(&mut byte).map_err(|_| malformed(path, None, "is cut off"))?;
    Ok(byte[0])
}

fn big_endian(path: &StorePath, reader: &mut impl Read, bytes: u8) -> Result<u64, Error> {
    (0..bytes).try_fold(0, |value, _| Ok(value << 8 | u64::from(byte(path, reader)?)))
}

/// The length of an array or a map.
fn length(path: &StorePath, reader: &mut impl Read, is_map: bool) -> Result<u64, Error> {
    match (byte(path, reader)?, is_map) {
        (head @ 0x90..=0x9f, false) | (head @ 0x80..=0x8f, true) => Ok(u64::from(head & 0x0f)),
        (0xdc, false) | (0xde, true) => big_endian(path, reader, 2),
        (0xdd, false) | (0xdf, true) => big_endian(path, reader, 4),
        (head, _) => {
            let wanted = if is_map { "map" } else { "array" };
            Err(malformed(path, Some(0), format!("begins with 0x{head:02x}, not {wanted}")))
        }
    }
}

fn text(path: &StorePath, reader: &mut impl Read) -> Result<String, Error> {
    let bytes = match byte(path, reader)? {
        head @ 0xa0..=0xbf => u64::from(head & 0x1f),
        0xd9 => big_endian(path, reader, 1)?,
        0xda => big_endian(path, reader, 2)?,
        0xdb => big_endian(path, reader, 4)?,
        head => {
            return Err(malformed(path, None, format!("has 0x{head:02x} where a key is expected")));
        }
    };
    if bytes > KEY_BYTES_MAX {
        let problem = format!("has a key of {bytes} bytes, the limit is {KEY_BYTES_MAX}");
        return Err(malformed(path, None, problem));
    }
    let mut key = vec![0; bytes as usize];
    reader.read_exact(&mut key).map_err(|_| malformed(path, None, "is cut off"))?;
    String::from_utf8(key).map_err(|_| malformed(path, None, "has a key that is not UTF-8"))
}
