//! The skeleton as bytes.
//!
//! ```text
//! byte 0     1, or 2 if endings follow
//! varint     bytes outside of scans, once unpacked
//! steps      until those are there:
//!            varint 2 n      n literal bytes follow
//!            varint 2 n + 1  n bytes are copied from the distance in the next varint, the
//!                            dictionary coming first; only among the first 65,536
//! endings    varint count; for each: byte of filling (0 ones, 1 zeros, 2 listed), plus 4 if there
//!            is a tail; the list; the tail; both as varint of the length and bytes
//! ```
//! A varint has seven bits in each byte, the lowest first, and the top bit set in all but its last.

use super::dictionary::dictionary;
use super::{Filling, ScanEnding, Skeleton, damaged};
use crate::Error;
use std::sync::OnceLock;

/// Maximum bytes outside of scans: enough for another file appended after the end.
pub(super) const OUTSIDE_MAX: usize = 1 << 28;

/// Bytes that copies may reach; later bytes are usually another file or a preview, and are stored
/// as literals. Searching them for copies would be slow, and the limit bounds the expansion of
/// stored bytes.
const COPIED_MAX: usize = 1 << 16;

/// Shortest copy.
const MATCH_MIN: usize = 4;

/// Maximum number of positions that are tried for a copy.
const TRIES: usize = 128;

/// A copy of this length ends the search for a longer one.
const MATCH_GOOD: usize = 256;

const HASH_BITS: u32 = 12;

impl Skeleton {
    /// The skeleton as bytes; about 50 for a file like those of libjpeg.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![if self.endings.is_empty() { 1 } else { 2 }];
        put_varint(&mut out, self.outside.len());
        put_steps(&mut out, &self.outside);
        if !self.endings.is_empty() {
            put_varint(&mut out, self.endings.len());
            self.endings.iter().for_each(|ending| put_ending(&mut out, ending));
        }
        out
    }

    /// Reads a skeleton from exactly these bytes. Whether it belongs to a JPEG shows in
    /// [`assemble`](super::assemble).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let (kind, mut rest) = bytes.split_first().ok_or(CUT)?;
        let outside = take_steps(&mut rest)?;
        let endings = match kind {
            1 => Vec::new(),
            2 => {
                let count = take_varint(&mut rest)?;
                // An ending uses at least one byte.
                if count > rest.len() {
                    return Err(CUT);
                }
                (0..count).map(|_| take_ending(&mut rest)).collect::<Result<_, _>>()?
            }
            _ => return Err(damaged("its version is unknown")),
        };
        if rest.is_empty() {
            Ok(Self { outside, endings })
        } else {
            Err(damaged("bytes follow its end"))
        }
    }
}

const CUT: Error = Error::Skeleton { reason: "it is cut short" };

fn put_varint(out: &mut Vec<u8>, mut value: usize) {
    while value > 127 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Result<usize, Error> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(CUT)?;
        *bytes = rest;
        value |= usize::from(byte & 127) << shift;
        if *byte < 128 {
            return Ok(value);
        }
    }
    Err(damaged("a number is too large"))
}

fn put_list(out: &mut Vec<u8>, list: &[u8]) {
    put_varint(out, list.len());
    out.extend_from_slice(list);
}

fn take_list(bytes: &mut &[u8]) -> Result<Vec<u8>, Error> {
    let length = take_varint(bytes)?;
    let (list, rest) = bytes.split_at_checked(length).ok_or(CUT)?;
    *bytes = rest;
    Ok(list.to_vec())
}

fn put_ending(out: &mut Vec<u8>, ending: &ScanEnding) {
    let filling = match ending.filling {
        Filling::Ones => 0,
        Filling::Zeros => 1,
        Filling::Each(_) => 2,
    };
    out.push(filling | if ending.tail.is_empty() { 0 } else { 4 });
    if let Filling::Each(bits) = &ending.filling {
        put_list(out, bits);
    }
    if !ending.tail.is_empty() {
        put_list(out, &ending.tail);
    }
}

fn take_ending(bytes: &mut &[u8]) -> Result<ScanEnding, Error> {
    let (kind, rest) = bytes.split_first().ok_or(CUT)?;
    *bytes = rest;
    let filling = match kind & !4 {
        0 => Filling::Ones,
        1 => Filling::Zeros,
        2 => Filling::Each(take_list(bytes)?),
        _ => return Err(damaged("the ending of a scan is unknown")),
    };
    let tail = if kind & 4 == 0 { Vec::new() } else { take_list(bytes)? };
    Ok(ScanEnding { filling, tail })
}

/// Positions by the hash of the four bytes there: the last one, and for each the previous one.
#[derive(Debug, Clone)]
struct HashChains {
    last: Vec<u32>,
    before: Vec<u32>,
}

impl HashChains {
    /// Means no position.
    const NONE: u32 = u32::MAX;

    /// Those in the dictionary.
    fn of_dictionary() -> &'static Self {
        static CHAINS: OnceLock<HashChains> = OnceLock::new();
        CHAINS.get_or_init(|| {
            let mut places = Self { last: vec![Self::NONE; 1 << HASH_BITS], before: Vec::new() };
            places.add_to(dictionary(), dictionary().len());
            places
        })
    }

    fn slot(bytes: &[u8], at: usize) -> Option<usize> {
        let word = u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
        Some((word.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize)
    }

    /// Adds the positions up to an offset.
    fn add_to(&mut self, bytes: &[u8], end: usize) {
        for at in self.before.len()..end {
            let slot = Self::slot(bytes, at);
            self.before.push(slot.map_or(Self::NONE, |slot| self.last[slot]));
            if let Some(slot) = slot {
                self.last[slot] = at as u32;
            }
        }
    }

    /// The longest copy for the bytes at an offset: position and length.
    fn longest(&self, bytes: &[u8], at: usize) -> Option<(usize, usize)> {
        let mut best = None;
        let mut least = MATCH_MIN;
        let mut place = Self::slot(bytes, at).map_or(Self::NONE, |slot| self.last[slot]);
        for _ in 0..TRIES {
            if place == Self::NONE || least > MATCH_GOOD {
                break;
            }
            let from = place as usize;
            let ahead = bytes[at..].iter().zip(&bytes[from..]);
            let length = ahead.take_while(|(one, other)| one == other).count();
            if length >= least {
                best = Some((from, length));
                least = length + 1;
            }
            place = self.before[from];
        }
        best
    }
}

fn put_steps(out: &mut Vec<u8>, outside: &[u8]) {
    let mut places = HashChains::of_dictionary().clone();
    let bytes = [dictionary(), outside].concat();
    let mut at = dictionary().len();
    let mut as_they_are = at;
    let flush = |out: &mut Vec<u8>, range: std::ops::Range<usize>| {
        if !range.is_empty() {
            put_varint(out, range.len() << 1);
            out.extend_from_slice(&bytes[range]);
        }
    };
    let copied_end = bytes.len().min(dictionary().len() + COPIED_MAX);
    while at < copied_end {
        places.add_to(&bytes, at);
        match places.longest(&bytes, at) {
            Some((from, length)) => {
                let length = length.min(copied_end - at);
                flush(out, as_they_are..at);
                put_varint(out, length << 1 | 1);
                put_varint(out, at - from);
                at += length;
                as_they_are = at;
            }
            None => at += 1,
        }
    }
    flush(out, as_they_are..bytes.len());
}

fn take_steps(bytes: &mut &[u8]) -> Result<Vec<u8>, Error> {
    let length = take_varint(bytes)?;
    if length > OUTSIDE_MAX {
        return Err(damaged("it is too large"));
    }
    let start = dictionary().len();
    let mut all = dictionary().to_vec();
    while all.len() < start + length {
        let step = take_varint(bytes)?;
        let count = step >> 1;
        if count == 0 || count > start + length - all.len() {
            return Err(damaged("a step is empty or goes beyond the end"));
        }
        if step & 1 == 0 {
            let (plain, rest) = bytes.split_at_checked(count).ok_or(CUT)?;
            *bytes = rest;
            all.extend_from_slice(plain);
        } else {
            if all.len() + count > start + COPIED_MAX {
                return Err(damaged("a copy reaches too far"));
            }
            let from = all.len().checked_sub(take_varint(bytes)?);
            let from = from.filter(|from| *from < all.len());
            let from = from.ok_or_else(|| damaged("a copy starts before the first byte"))?;
            // A copy may overlap its own output, and then repeats.
            let period = all.len() - from;
            let mut left = count;
            while left > 0 {
                let part = left.min(period);
                let begin = all.len() - period;
                all.extend_from_within(begin..begin + part);
                left -= part;
            }
        }
    }
    all.drain(..start);
    Ok(all)
}
