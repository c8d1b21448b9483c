//! Unpacking in plain Rust: the meaning of the others.

use super::super::geometry::{GROUPS, NATURAL};
use super::super::unpack::{Patch, RowComponent, Target};
use super::{Masks, NARROW, Zigzag, mark_wide};
use crate::Block;

/// See [`super::ones`].
#[inline(always)]
pub(super) fn ones(masks: &[u8]) -> usize {
    let (words, rest) = masks.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word).count_ones());
    let rest = rest.iter().map(|byte| byte.count_ones());
    words.chain(rest).sum::<u32>() as usize
}

/// See [`super::count`].
#[inline(always)]
pub(super) fn count(bytes: &[u8], wanted: u8) -> usize {
    // No more than 255 at a time, so that bytes can count them.
    let parts = bytes
        .chunks(255)
        .map(|part| usize::from(part.iter().map(|byte| u8::from(*byte == wanted)).sum::<u8>()));
    parts.sum()
}

/// See [`super::places_of`].
pub(super) fn places_of(bytes: &Zigzag, wanted: u8) -> u64 {
    let found = bytes.0.iter().map(|byte| u64::from(*byte == wanted));
    found.enumerate().map(|(place, found)| found << place).sum()
}

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

/// See [`super::expand_widths`].
pub(super) fn expand_widths(
    class: usize,
    widths: &[u8],
    data: &[u8],
    mut at: usize,
    out: &mut [Zigzag],
    patches: &mut Vec<Patch>,
) -> usize {
    for (member, (widths, out)) in widths.chunks_exact(2 * class).zip(out).enumerate() {
        let groups = out.0.as_chunks_mut::<GROUPS>().0.iter_mut();
        for (group, (width, out)) in widths.iter().zip(groups).enumerate() {
            if *width <= NARROW {
                let loaded = data[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
                for (index, byte) in out.iter_mut().enumerate() {
                    let shift = index as u32 * u32::from(*width);
                    *byte = ((loaded >> shift) & ((1 << width) - 1)) as u8;
                }
            } else {
                let values = wide_group(*width, &data[at..]);
                patches.push(mark_wide(values, (member, group), out));
            }
            at += usize::from(*width);
        }
    }
    at
}

/// See [`super::expand_masks`].
pub(super) fn expand_masks(
    class: usize,
    masks: Masks<'_>,
    values: &[u8],
    at: &mut [usize; GROUPS],
    out: &mut [Zigzag],
) {
    for (block, out) in out.iter_mut().enumerate() {
        let groups = out.0.as_chunks_mut::<GROUPS>().0[..2 * class].iter_mut();
        for (group, (out, at)) in groups.zip(&mut *at).enumerate() {
            let mask = masks.bytes[masks.starts[group] + block];
            for (index, byte) in out.iter_mut().enumerate() {
                let there = mask >> index & 1;
                *byte = values[*at] & there.wrapping_neg();
                *at += usize::from(there);
            }
        }
    }
}

/// See [`super::spread`].
pub(super) fn spread<const FOLDED: bool>(
    class: usize,
    from: &[Zigzag],
    targets: &[Target],
    into: &mut RowComponent<'_>,
) {
    for (bytes, target) in from.iter().zip(targets) {
        let mut block = Block([0; 64]);
        let mut extent = 0;
        let bytes = bytes.0[..2 * class * GROUPS].iter();
        for (zigzag, (byte, natural)) in bytes.zip(&NATURAL[1..]).enumerate() {
            let folded = (byte >> 1) ^ (byte & 1).wrapping_neg();
            let value = if FOLDED { folded } else { *byte };
            block.0[usize::from(*natural)] = i16::from(value as i8);
            extent = if *byte == 0 { extent } else { zigzag + 1 };
        }
        block.0[0] = target.dc;
        into.blocks[target.index as usize] = block;
        into.extents[target.index as usize] = extent as u8;
    }
}
