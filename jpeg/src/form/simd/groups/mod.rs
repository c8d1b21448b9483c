//! Blocks of the fast form: groups of two rows and four columns, each with a separate bit width.
//!
//! A block of class c has c bytes of widths, one for each pair of rows: the width of the group of
//! the first four columns in the low half, that of the last four in the high half.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

use super::Kernel;
use crate::Block;

/// Most bits of a number in a group that the vector code unpacks: with up to seven bits of a begun
/// byte it fits 16 bits, and two groups fit a vector. Wider groups are rare.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const NARROW: usize = 8;

/// Bytes of the groups of a block that are all narrow.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const WINDOW: usize = 8 * NARROW;

/// Some adjacent blocks.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct GroupedBlocks<'a> {
    /// The class of each, 0 to 4.
    pub(in super::super) classes: &'a [u8],
    /// The DC of each.
    pub(in super::super) dc: &'a [i16],
    /// Their widths, and four bytes more.
    pub(in super::super) widths: &'a [u8],
    /// Their groups, and [`super::super::lanes::SLACK`] bytes more.
    pub(in super::super) groups: &'a [u8],
}

/// Unpacks blocks and their extents; returns the numbers of bytes of widths and of groups that they
/// took.
pub(in super::super) fn unpack_groups(
    kernel: Kernel,
    from: GroupedBlocks<'_>,
    blocks: &mut [Block],
    extents: &mut [u8],
) -> (usize, usize) {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => avx2::unpack(from, blocks, extents),
        #[cfg(target_arch = "aarch64")]
        Kernel::Neon => neon::unpack(from, blocks, extents),
        Kernel::Portable => portable::unpack(from, blocks, extents),
    }
}

/// Bytes of the groups of these widths.
pub(in super::super) fn group_bytes(kernel: Kernel, widths: &[u8]) -> usize {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => avx2::group_bytes(widths),
        _ => portable::group_bytes(widths),
    }
}

/// The sum of these numbers.
pub(in super::super) fn sum(kernel: Kernel, numbers: &[u8]) -> usize {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => avx2::sum(numbers),
        _ => portable::sum(numbers),
    }
}

/// Turns differences into prefix sums that start from `before`.
pub(in super::super) fn prefix_sums(kernel: Kernel, before: i16, differences: &mut [i16]) {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => avx2::prefix_sums(before, differences),
        _ => portable::prefix_sums(before, differences),
    }
}

/// The widths of a block of a class; 0 for pairs of rows that it lacks.
#[inline(always)]
fn widths_of(class: u8, widths: &[u8]) -> u32 {
    let all = widths.first_chunk().map_or(0, |widths| u32::from_le_bytes(*widths));
    // Class 4 shifts by 0 bits; class 0 shifts out everything.
    (u64::from(all) & !(u64::MAX << (8 * u32::from(class)))) as u32
}

/// Whether a group of these widths is not narrow.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn is_any_wide(widths: u32) -> bool {
    // A half byte above 8 has its top bit and another one.
    ((widths & 0x7777_7777) + 0x7777_7777) & widths & 0x8888_8888 != 0
}

/// The extent of a block with these widths: whether there is anything, and if so, whether it is in
/// the first four columns of the first four rows.
#[inline(always)]
fn extent(widths: u32) -> u8 {
    const BEYOND_CORNER: u32 = 0xffff_f0f0;
    let reaching = if widths & BEYOND_CORNER == 0 { 9 } else { 63 };
    if widths == 0 { 0 } else { reaching }
}
