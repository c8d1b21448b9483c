//! Groups in portable Rust: the reference for the vector code.

use super::super::super::geometry::width;
use super::super::super::geometry::{BANDS, GROUPS, group_places};
use super::{GroupedBlocks, extent, widths_of};
use crate::Block;

/// See [`super::unpack_groups`].
pub(super) fn unpack(
    from: GroupedBlocks<'_>,
    blocks: &mut [Block],
    extents: &mut [u8],
) -> (usize, usize) {
    let (mut widths_at, mut groups_at) = (0, 0);
    let listed = from.classes.iter().zip(from.dc);
    for ((class, dc), (block, to)) in listed.zip(blocks.iter_mut().zip(extents)) {
        let widths = widths_of(*class, &from.widths[widths_at..]);
        groups_at += unpack_block(widths, &from.groups[groups_at..], block);
        block.0[0] = *dc;
        *to = extent(widths);
        widths_at += usize::from(*class);
    }
    (widths_at, groups_at)
}

/// Unpacks all of a block but its DC; returns the bytes of its groups.
#[inline(never)]
pub(super) fn unpack_block(widths: u32, groups: &[u8], block: &mut Block) -> usize {
    let mut at = 0;
    for group in 0..2 * BANDS {
        let bits = usize::from(width((widths >> (4 * group) & 15) as u8));
        let numbers = numbers(bits, &groups[at..]);
        for (place, number) in group_places(group).into_iter().zip(numbers) {
            block.0[place] = number;
        }
        at += bits;
    }
    at
}

/// The eight numbers of a group, in two's complement of up to 16 bits.
fn numbers(bits: usize, group: &[u8]) -> [i16; GROUPS] {
    let all = group.first_chunk().map_or(0, |bytes| u128::from_le_bytes(*bytes));
    std::array::from_fn(|index| {
        let number = (all >> (index * bits)) as u16;
        // Shifting up and back extends the sign; without bits there is none.
        let left = number.checked_shl(16 - bits as u32).unwrap_or(0);
        left as i16 >> (16 - bits as u32).min(15)
    })
}

/// See [`super::group_bytes`].
#[inline(always)]
pub(super) fn group_bytes(widths: &[u8]) -> usize {
    // The sums fit bytes: each is at most 32.
    let parts = widths.chunks(7).map(|part| {
        let bytes = part.iter().map(|pair| {
            let (low, high) = (pair & 15, pair >> 4);
            low + high + u8::from(low == 15) + u8::from(high == 15)
        });
        usize::from(bytes.sum::<u8>())
    });
    parts.sum()
}

/// See [`super::sum`].
#[inline(always)]
pub(super) fn sum(numbers: &[u8]) -> usize {
    numbers.iter().map(|number| usize::from(*number)).sum()
}

/// See [`super::prefix_sums`].
#[inline(always)]
pub(super) fn prefix_sums(before: i16, differences: &mut [i16]) {
    differences.iter_mut().fold(before, |before, difference| {
        *difference = before.wrapping_add(*difference);
        *difference
    });
}
