//! Entry points of a JPEG: positions in its entropy-coded data where decoding can begin.
//!
//! ```text
//! offset
//!  0   u8   version, 1
//!  1   u8   components C of the frame: 1, 3 or 4
//!  2   u16  MCUs from one entry to the next in a row of MCUs; 0: one entry for each row
//!  4   u32  CRC-32C of the file
//!  8   u32  entries N, without the one at the beginning of the data
//! 12   u32  offset in the file of the first byte of the data
//! 16   u8   P: bits of a distance
//! 17   C*u8 D: bits of the DC value of each component
//! 17+C      N entries of P + D[0] + D[1] + .. bits, most significant first: the distance from the
//!           entry before (the first one: from the beginning of the data) in bits of the file, and
//!           for each component its DC predictor less the smallest that the bits could hold if they
//!           were two's complement, i.e. plus 2^(D - 1)
//!  ..       zero bits up to a whole byte, then u32 CRC-32C of everything before
//! ```
//!
//! Integers are little-endian. A distance counts every bit of the file, stuffed zero bytes
//! included. Entries are in order of their MCUs: row by row, in each row at columns 0, S, 2S ..,
//! S being the spacing.

use crate::checksum::crc32c;
use crate::frame::COMPONENTS_MAX;

/// Version that is written.
const VERSION: u8 = 1;

/// Bytes before the widths of the DC values.
const FIXED_BYTES: usize = 17;

/// Maximum number of entries of a file: one for each of 2^22 MCUs, which is 2^28 pixels.
pub const ENTRIES_MAX: u32 = 1 << 22;

/// A position where decoding can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entry {
    /// Offset in the file of the byte that holds the next bit.
    pub offset: u32,
    /// Bits of that byte that precede the entry point, 0..8.
    pub bits: u8,
    /// DC value of the block before, for each component.
    pub dc: [i16; COMPONENTS_MAX],
}

impl Entry {
    fn position_bits(&self) -> u64 {
        u64::from(self.offset) * 8 + u64::from(self.bits)
    }
}

/// Properties shared by all entries of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPointsHead {
    /// Components of the frame: 1, 3 or 4.
    pub components: usize,
    /// MCUs between entries of a row; 0 for one entry per row.
    pub spacing: u16,
    /// CRC-32C of the file.
    pub file_crc32c: u32,
    /// Offset in the file of the first byte of entropy-coded data.
    pub data_offset: u32,
}

/// Bytes that are not valid entry points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EntryPointsError {
    /// The checksum does not match.
    #[error("entry points are damaged: checksum mismatch")]
    Checksum,
    /// Of a later version.
    #[error("entry points are of version {0}, this program reads version 1")]
    Version(u8),
    /// Lengths that contradict each other.
    #[error("entry points are damaged: inconsistent lengths")]
    Length,
}

/// Encodes entries, which must be sorted by position.
pub fn encode(head: EntryPointsHead, entries: &[Entry]) -> Vec<u8> {
    let mut distances = Vec::with_capacity(entries.len());
    let mut before = u64::from(head.data_offset) * 8;
    for entry in entries {
        distances.push(entry.position_bits() - before);
        before = entry.position_bits();
    }
    let widest = distances.iter().copied().max().unwrap_or(0);
    let distance_bits = (64 - widest.leading_zeros()) as u8;
    let mut dc_bits = [0_u8; COMPONENTS_MAX];
    for entry in entries {
        for (bits, value) in dc_bits.iter_mut().zip(entry.dc).take(head.components) {
            // The magnitude's bits and one for the sign; 0 needs none.
            let magnitude = if value < 0 { !value } else { value };
            let needed = if value == 0 { 0 } else { 17 - magnitude.leading_zeros() };
            *bits = (*bits).max(needed as u8);
        }
    }
    let mut out = vec![VERSION, head.components as u8];
    out.extend(head.spacing.to_le_bytes());
    out.extend(head.file_crc32c.to_le_bytes());
    out.extend((entries.len() as u32).to_le_bytes());
    out.extend(head.data_offset.to_le_bytes());
    out.push(distance_bits);
    out.extend(&dc_bits[..head.components]);
    let mut writer = BitWriter { out, pending: 0, count: 0 };
    for (entry, distance) in entries.iter().zip(distances) {
        writer.put(distance, u32::from(distance_bits));
        for (bits, value) in dc_bits.iter().zip(entry.dc).take(head.components) {
            writer.put((i64::from(value) + bias(*bits)) as u64, u32::from(*bits));
        }
    }
    let mut out = writer.finish();
    out.extend(crc32c(&out).to_le_bytes());
    out
}

/// Decodes the bytes of [`encode`] into `entries`, which is cleared first.
pub fn decode(bytes: &[u8], entries: &mut Vec<Entry>) -> Result<EntryPointsHead, EntryPointsError> {
    entries.clear();
    let (bytes, sum) = bytes.split_last_chunk().ok_or(EntryPointsError::Length)?;
    if crc32c(bytes) != u32::from_le_bytes(*sum) {
        return Err(EntryPointsError::Checksum);
    }
    let fixed: &[u8; FIXED_BYTES] = bytes.first_chunk().ok_or(EntryPointsError::Length)?;
    if fixed[0] != VERSION {
        return Err(EntryPointsError::Version(fixed[0]));
    }
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| fixed[at + i]));
    let head = EntryPointsHead {
        components: usize::from(fixed[1]),
        spacing: u16::from_le_bytes([fixed[2], fixed[3]]),
        file_crc32c: word(4),
        data_offset: word(12),
    };
    let (count, distance_bits) = (word(8), u32::from(fixed[16]));
    if !matches!(head.components, 1 | 3 | 4) || count > ENTRIES_MAX || distance_bits > 36 {
        return Err(EntryPointsError::Length);
    }
    let packed_at = FIXED_BYTES + head.components;
    let widths = bytes.get(FIXED_BYTES..packed_at).ok_or(EntryPointsError::Length)?;
    if widths.iter().any(|bits| *bits > 16) {
        return Err(EntryPointsError::Length);
    }
    let entry_bits = distance_bits + widths.iter().map(|bits| u32::from(*bits)).sum::<u32>();
    let packed = &bytes[packed_at..];
    // No two entries are at the same bit, so each uses at least one bit.
    if entry_bits == 0 && count > 0 {
        return Err(EntryPointsError::Length);
    }
    if packed.len() as u64 != (u64::from(entry_bits) * u64::from(count)).div_ceil(8) {
        return Err(EntryPointsError::Length);
    }
    let mut reader = BitReader { bytes: packed, at: 0 };
    let mut position = u64::from(head.data_offset) * 8;
    entries.reserve(count as usize);
    for _ in 0..count {
        position += reader.take(distance_bits);
        let offset = u32::try_from(position / 8).map_err(|_| EntryPointsError::Length)?;
        let mut entry = Entry { offset, bits: (position % 8) as u8, dc: [0; COMPONENTS_MAX] };
        for (value, bits) in entry.dc.iter_mut().zip(widths) {
            *value = (reader.take(u32::from(*bits)) as i64 - bias(*bits)) as i16;
        }
        entries.push(entry);
    }
    Ok(head)
}

/// The bias that makes a value of `bits` bits non-negative.
fn bias(bits: u8) -> i64 {
    if bits == 0 { 0 } else { 1 << (bits - 1) }
}

struct BitWriter {
    out: Vec<u8>,
    pending: u64,
    count: u32,
}

impl BitWriter {
    /// Appends the low `count` bits of `value`, at most 40.
    fn put(&mut self, value: u64, count: u32) {
        self.pending = self.pending << count | value;
        self.count += count;
        while self.count >= 8 {
            self.count -= 8;
            self.out.push((self.pending >> self.count) as u8);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.out.push((self.pending << (8 - self.count)) as u8);
        }
        self.out
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl BitReader<'_> {
    /// The next `count` bits, at most 40; zeros after the end.
    fn take(&mut self, count: u32) -> u64 {
        let mut window = [0; 8];
        let rest = &self.bytes[(self.at / 8).min(self.bytes.len())..];
        let length = rest.len().min(8);
        window[..length].copy_from_slice(&rest[..length]);
        let window = u64::from_be_bytes(window) << (self.at % 8);
        self.at += count as usize;
        if count == 0 { 0 } else { window >> (64 - count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_entries() -> impl Strategy<Value = (EntryPointsHead, Vec<Entry>)> {
        let head = (prop_oneof![Just(1_usize), Just(3), Just(4)], any::<u16>(), any::<u32>());
        let steps = prop::collection::vec((1..1_u64 << 20, any::<[i16; 4]>(), 0..15_u32), 0..60);
        (head, 0..1_u32 << 20, steps).prop_map(|((components, spacing, crc), start, steps)| {
            let head =
                EntryPointsHead { components, spacing, file_crc32c: crc, data_offset: start };
            let mut position = u64::from(start) * 8;
            let entries = steps.into_iter().map(|(step, mut dc, shift)| {
                position += step;
                dc = dc.map(|value| value >> shift);
                dc[components..].fill(0);
                Entry { offset: (position / 8) as u32, bits: (position % 8) as u8, dc }
            });
            (head, entries.collect())
        })
    }

    proptest! {
        #[test]
        fn entries_round_trip((head, entries) in any_entries()) {
            let bytes = encode(head, &entries);
            let mut read = Vec::new();
            prop_assert_eq!(decode(&bytes, &mut read), Ok(head));
            prop_assert_eq!(read, entries);
        }

        #[test]
        fn every_flipped_bit_is_found((head, entries) in any_entries(), at: usize) {
            let mut bytes = encode(head, &entries);
            let bit = at % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(decode(&bytes, &mut Vec::new()).is_err());
        }

        #[test]
        fn bytes_with_a_valid_checksum_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200), components in 0..5_u8,
            narrow: bool,
        ) {
            let mut bytes = bytes;
            if narrow && bytes.len() > 20 {
                bytes[..2].copy_from_slice(&[VERSION, components]);
                bytes[9..12].fill(0);
                bytes[16] %= 40;
            }
            bytes.extend(crc32c(&bytes).to_le_bytes());
            let mut entries = Vec::new();
            let read = decode(&bytes, &mut entries);
            prop_assert!(read.is_ok() || entries.len() <= ENTRIES_MAX as usize);
        }
    }

    #[test]
    fn entries_that_take_no_bits_are_refused() {
        let head = EntryPointsHead { components: 1, spacing: 0, file_crc32c: 0, data_offset: 9 };
        let mut bytes = encode(head, &[]);
        let mut entries = Vec::new();
        assert_eq!(decode(&bytes, &mut entries), Ok(head));
        bytes.truncate(bytes.len() - 4);
        bytes[8..12].copy_from_slice(&ENTRIES_MAX.to_le_bytes());
        bytes.extend(crc32c(&bytes).to_le_bytes());
        assert_eq!(decode(&bytes, &mut entries), Err(EntryPointsError::Length));
        assert_eq!(entries.capacity(), 0);
    }

    /// The bytes of the table in the module's documentation, put together by hand.
    #[test]
    fn the_layout_is_the_documented_one() {
        let head =
            EntryPointsHead { components: 1, spacing: 0, file_crc32c: 0x0403_0201, data_offset: 9 };
        let entries = [
            Entry { offset: 10, bits: 3, dc: [-2, 0, 0, 0] },
            Entry { offset: 11, bits: 0, dc: [1, 0, 0, 0] },
        ];
        let mut expected = vec![1, 1, 0, 0, 1, 2, 3, 4, 2, 0, 0, 0, 9, 0, 0, 0, 4, 2];
        // 1011 00, 0101 11
        expected.extend([0b1011_0001, 0b0111_0000]);
        let sum = crc32c(&expected);
        expected.extend(sum.to_le_bytes());
        assert_eq!(encode(head, &entries), expected);
    }
}
