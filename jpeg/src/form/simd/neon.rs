//! Unpacking with NEON: table look-ups of 64 bytes take a block from zigzag to natural order.
//!
//! Widths and masks are expanded in plain Rust: there is no `pdep`.
#![expect(unsafe_code, reason = "loads and stores of vectors")]

use super::super::geometry::GROUPS;
use super::super::unpack::{RowComponent, Target};
use super::{PLACES, Zigzag};
use std::arch::aarch64::{
    int8x16_t, uint8x16_t, uint8x16x4_t, vandq_u8, vdupq_n_u8, veorq_s8, vget_high_s8, vget_low_s8,
    vld1q_u8, vmovl_s8, vnegq_s8, vqtbl4q_u8, vreinterpretq_s8_u8, vshrq_n_u8, vst1q_s16,
};

/// See [`super::spread`].
pub(super) fn spread<const FOLDED: bool>(
    class: usize,
    from: &[Zigzag],
    targets: &[Target],
    into: &mut RowComponent<'_>,
) {
    for (bytes, target) in from.iter().zip(targets) {
        let mut used = Zigzag::default();
        let end = 2 * class * GROUPS;
        used.0[..end].copy_from_slice(&bytes.0[..end]);
        used.0[63] = 0;
        let last = used.0.iter().rposition(|byte| *byte != 0);
        let index = target.index as usize;
        into.extents[index] = last.map_or(0, |last| last as u8 + 1);
        let parts = used.0.as_chunks::<16>().0;
        let table =
            uint8x16x4_t(load(&parts[0]), load(&parts[1]), load(&parts[2]), load(&parts[3]));
        let block = &mut into.blocks[index].0;
        for (rows, places) in block.as_chunks_mut::<16>().0.iter_mut().zip(PLACES.as_chunks().0) {
            // SAFETY: NEON is part of every machine that this is compiled for.
            unsafe {
                // A place of 0x80 is beyond the table and gives 0.
                let natural = vqtbl4q_u8(table, load(places));
                let natural = if FOLDED { unfold(natural) } else { vreinterpretq_s8_u8(natural) };
                let (low, high) = rows.split_at_mut(8);
                vst1q_s16(low.as_mut_ptr(), vmovl_s8(vget_low_s8(natural)));
                vst1q_s16(high.as_mut_ptr(), vmovl_s8(vget_high_s8(natural)));
            }
        }
        block[0] = target.dc;
    }
}

fn load(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the load takes the 16 bytes of the array and needs no alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// Turns 0, 1, 2, 3, .. into 0, -1, 1, -2, ..
fn unfold(folded: uint8x16_t) -> int8x16_t {
    // SAFETY: NEON is part of every machine that this is compiled for.
    unsafe {
        let halved = vreinterpretq_s8_u8(vshrq_n_u8::<1>(folded));
        let odd = vreinterpretq_s8_u8(vandq_u8(folded, vdupq_n_u8(1)));
        veorq_s8(halved, vnegq_s8(odd))
    }
}
