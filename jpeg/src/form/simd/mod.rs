//! The inner loops of unpacking, for each instruction set.
//!
//! Rows of the compact form become rows of the fast form by [`mod@coded`], and blocks of these are
//! unpacked by [`mod@groups`]. Those of version 1 pass through [`Zigzag`]: the coefficients but DC,
//! in zigzag order, a byte each. [`expand_widths`] and [`expand_masks`] make it of stored bytes,
//! [`spread`] makes blocks in natural order of it.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod coded;
mod groups;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

use super::bank::DecodeTable;
use super::geometry::GROUPS;
use super::lanes::Lanes;
use super::unpack::{Patch, RowComponent, Target};
use crate::Cpu;
pub(super) use coded::{
    OVERRUN as CODED_OVERRUN, find_escapes, group_contexts, portable as portable_contexts,
    read as read_coded, width_contexts,
};
pub(super) use groups::{GroupedBlocks, group_bytes, prefix_sums, sum, unpack_groups};

/// A block's coefficients 1..=63 in zigzag order and a byte without meaning; 0 is a zero.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Zigzag(pub(super) [u8; 64]);

impl Default for Zigzag {
    fn default() -> Self {
        Self([0; 64])
    }
}

/// Numbers of up to this many bits fit a byte.
const NARROW: u8 = 8;

/// An instruction set that the machine has, as far as these loops care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernel {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Kernel {
    /// The loops for an instruction set.
    pub(super) fn new(cpu: Cpu) -> Self {
        assert!(cpu.is_available(), "this machine has no {}", cpu.name());
        match cpu {
            #[cfg(target_arch = "x86_64")]
            Cpu::Avx512 => Self::Avx512,
            #[cfg(target_arch = "x86_64")]
            Cpu::Avx2 => Self::Avx2,
            #[cfg(target_arch = "aarch64")]
            Cpu::Neon => Self::Neon,
            _ => Self::Portable,
        }
    }
}

/// Reads `count` symbols from lanes, see [`Lanes::read`].
pub(super) fn read_lanes<const N: usize>(
    kernel: Kernel,
    lanes: &mut Lanes<N>,
    bytes: &[u8],
    table: &DecodeTable,
    out: &mut [u8],
    count: usize,
) {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 | Kernel::Avx512 => avx2::read_lanes(lanes, bytes, table, out, count),
        _ => lanes.read(bytes, table, out, count),
    }
}

/// Bits that are set in these bytes.
pub(super) fn ones(kernel: Kernel, masks: &[u8]) -> usize {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 | Kernel::Avx512 => avx2::ones(masks),
        _ => portable::ones(masks),
    }
}

/// How many of these bytes are `wanted`.
pub(super) fn count(kernel: Kernel, bytes: &[u8], wanted: u8) -> usize {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 | Kernel::Avx512 => avx2::count(bytes, wanted),
        _ => portable::count(bytes, wanted),
    }
}

/// Which of a block's bytes are `wanted`, the first in the lowest bit.
pub(super) fn places_of(kernel: Kernel, bytes: &Zigzag, wanted: u8) -> u64 {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 | Kernel::Avx512 => avx2::places_of(bytes, wanted),
        _ => portable::places_of(bytes, wanted),
    }
}

/// Splits bytes into their low and high halves, and gives the largest.
pub(super) fn nibbles(kernel: Kernel, from: &[u8], to: &mut [u8]) -> u8 {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 | Kernel::Avx512 => avx2::nibbles(from, to),
        _ => portable::nibbles(from, to),
    }
}

/// Makes folded bytes of groups of a width each; gives where the next ones start.
///
/// `widths` are `2 * class` a block, each up to 16. Behind the groups `data` has 72 bytes more.
/// Groups that are wider than a byte leave ones where a number is not zero, and `patches`.
pub(super) fn expand_widths(
    kernel: Kernel,
    class: usize,
    (widths, data): (&[u8], &[u8]),
    at: usize,
    out: &mut [Zigzag],
    patches: &mut Vec<Patch>,
) -> usize {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 | Kernel::Avx512 => avx2::expand_widths(class, widths, data, at, out, patches),
        _ => portable::expand_widths(class, widths, data, at, out, patches),
    }
}

/// Masks of blocks: the byte of a group and block is at `starts[group] + block`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Masks<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) starts: [usize; GROUPS],
}

/// Makes bytes of masks and values. `at` says for each group where its values start, and is left
/// where the next block's do. Behind the values there are eight bytes more.
pub(super) fn expand_masks(
    kernel: Kernel,
    class: usize,
    masks: Masks<'_>,
    values: &[u8],
    at: &mut [usize; GROUPS],
    out: &mut [Zigzag],
) {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 | Kernel::Avx512 => avx2::expand_masks(class, masks, values, at, out),
        _ => portable::expand_masks(class, masks, values, at, out),
    }
}

/// Writes blocks of a class; the bytes are two's complement.
pub(super) fn spread(
    kernel: Kernel,
    class: usize,
    from: &[Zigzag],
    targets: &[Target],
    into: &mut RowComponent<'_>,
) {
    spread_any::<false>(kernel, class, from, targets, into);
}

/// Writes blocks of a class; the bytes are folded: 0, -1, 1, -2, .. are 0, 1, 2, 3, ..
pub(super) fn spread_folded(
    kernel: Kernel,
    class: usize,
    from: &[Zigzag],
    targets: &[Target],
    into: &mut RowComponent<'_>,
) {
    spread_any::<true>(kernel, class, from, targets, into);
}

fn spread_any<const FOLDED: bool>(
    kernel: Kernel,
    class: usize,
    from: &[Zigzag],
    targets: &[Target],
    into: &mut RowComponent<'_>,
) {
    match kernel {
        Kernel::Portable => portable::spread::<FOLDED>(class, from, targets, into),
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => avx2::spread::<FOLDED>(class, from, targets, into),
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx512 => avx512::spread::<FOLDED>(class, from, targets, into),
        #[cfg(target_arch = "aarch64")]
        Kernel::Neon => neon::spread::<FOLDED>(class, from, targets, into),
    }
}

/// Eight numbers of a group of a width up to 16. `data` has eight bytes more.
#[inline]
pub(super) fn wide_group(kernel: Kernel, width: u8, data: &[u8]) -> [i16; GROUPS] {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 | Kernel::Avx512 => avx2::wide_group(width, data),
        _ => portable::wide_group(width, data),
    }
}

/// A group that is wider than a byte: marks what is not zero, the rest is left to a patch.
#[inline(always)]
fn mark_wide(
    values: [i16; GROUPS],
    (member, group): (usize, usize),
    out: &mut [u8; GROUPS],
) -> Patch {
    *out = values.map(|value| u8::from(value != 0));
    Patch { member, group, values }
}

/// Place in [`Zigzag`] of each coefficient in natural order; the top bit for none, which is DC.
const PLACES: [u8; 64] = {
    let mut places = [0x80; 64];
    let mut zigzag = 1;
    while zigzag < 64 {
        places[super::geometry::NATURAL[zigzag] as usize] = zigzag as u8 - 1;
        zigzag += 1;
    }
    places
};
