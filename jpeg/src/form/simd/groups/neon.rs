//! Groups with NEON: a row of a block, which is half of two groups, at a time.
#![expect(unsafe_code, reason = "loads and stores of vectors")]

use super::{GroupedBlocks, NARROW, WINDOW, extent, is_any_wide, portable, widths_of};
use crate::Block;
use std::arch::aarch64::{
    vld1q_s16, vld1q_u8, vqtbl1q_u8, vreinterpretq_s16_u8, vshlq_s16, vst1q_s16,
};

/// How two groups are expanded to a row.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Step {
    /// The two bytes that hold each number, 255 for none.
    shuffle: [u8; 16],
    /// How far it is shifted to the top of 16 bits.
    up: [i16; 8],
    /// How far it is shifted down again, negative.
    down: [i16; 8],
}

/// Steps by the widths of both groups, for the upper and the lower row. Those with a group that is
/// not narrow are unused.
static STEPS: [[Step; 2]; 256] = {
    let mut steps = [[Step { shuffle: [255; 16], up: [0; 8], down: [0; 8] }; 2]; 256];
    let mut index = 0;
    while index < 256 {
        let widths = [index & 15, index >> 4];
        if widths[0] <= NARROW && widths[1] <= NARROW {
            let mut place = 0;
            while place < 16 {
                let (row, column) = (place / 8, place % 8);
                let bits = widths[column / 4];
                if bits > 0 {
                    let bit = 8 * (column / 4) * widths[0] + (4 * row + column % 4) * bits;
                    let step = &mut steps[index][row];
                    step.shuffle[2 * column] = (bit / 8) as u8;
                    // The byte after the last one does not matter.
                    step.shuffle[2 * column + 1] = (bit / 8 + 1) as u8 & 15;
                    step.up[column] = (16 - bits - bit % 8) as i16;
                    step.down[column] = bits as i16 - 16;
                }
                place += 1;
            }
        }
        index += 1;
    }
    steps
};

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
        let groups = &from.groups[groups_at..];
        groups_at += match groups.first_chunk::<WINDOW>() {
            Some(groups) if !is_any_wide(widths) => unpack_block(widths, groups, block),
            _ => portable::unpack_block(widths, groups, block),
        };
        block.0[0] = *dc;
        *to = extent(widths);
        widths_at += usize::from(*class);
    }
    (widths_at, groups_at)
}

/// As [`portable::unpack_block`], for narrow groups.
#[inline(always)]
fn unpack_block(widths: u32, groups: &[u8; WINDOW], block: &mut Block) -> usize {
    let mut at = 0;
    for (band, rows) in block.0.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let index = (widths >> (8 * band) & 255) as usize;
        for (step, row) in STEPS[index].iter().zip(rows.as_chunks_mut::<8>().0) {
            // SAFETY: up to three steps have passed up to 16 bytes each, and there are four times
            // 16; the others take and fill arrays of 16 bytes. None needs alignment, and all of
            // these machines have NEON.
            unsafe {
                let bytes = vld1q_u8(groups.as_ptr().add(at));
                let spread = vqtbl1q_u8(bytes, vld1q_u8(step.shuffle.as_ptr()));
                let top = vshlq_s16(vreinterpretq_s16_u8(spread), vld1q_s16(step.up.as_ptr()));
                let numbers = vshlq_s16(top, vld1q_s16(step.down.as_ptr()));
                vst1q_s16(row.as_mut_ptr(), numbers);
            }
        }
        at += (index & 15) + (index >> 4);
    }
    at
}
