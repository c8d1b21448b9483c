//! Unpacking in portable Rust: the reference for the vector code.

use super::super::geometry::GROUPS;

/// See [`super::nibbles`].
#[inline(always)]
pub(super) fn nibbles(from: &[u8], to: &mut [u8]) -> u8 {
    let mut highest = 0;
    for (pair, both) in to.as_chunks_mut::<2>().0.iter_mut().zip(from) {
        *pair = [both & 15, both >> 4];
        highest = highest.max(pair[0].max(pair[1]));
    }
    highest
}

/// See [`super::wide_group`].
pub(super) fn wide_group(width: u8, data: &[u8]) -> [i16; GROUPS] {
    let bits = usize::from(width);
    let mut numbers = [0; GROUPS];
    for (index, number) in numbers.iter_mut().enumerate() {
        let place = index * bits;
        let loaded = data[place / 8..].first_chunk().map_or(0, |chunk| u32::from_le_bytes(*chunk));
        let folded = (loaded >> (place % 8)) & ((1 << bits) - 1);
        *number = (folded >> 1) as i16 ^ -((folded & 1) as i16);
    }
    numbers
}
