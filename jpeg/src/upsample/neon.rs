//! The upsampling with NEON: 16 samples of a row at a time, the last step overlapping the one
//! before; shorter rows go to the portable code.
#![expect(unsafe_code, reason = "loads and stores of vectors")]

use super::portable;
use crate::steps::steps;
use std::arch::aarch64::*;

/// Samples of a step.
const STEP: usize = 16;

/// As [`portable::h2v1`].
#[target_feature(enable = "neon")]
pub(super) fn h2v1(row: &[u8], out: &mut [u8]) {
    let count = out.len() / 2;
    if count < STEP {
        return portable::h2v1(row, out);
    }
    for at in steps::<STEP>(count) {
        let [left, sample, right] = around(row, at);
        // The mean that is rounded the other way compensates for the second rounding.
        let odd = vrhaddq_u8(sample, vhaddq_u8(sample, right));
        let even = vhaddq_u8(sample, vrhaddq_u8(sample, left));
        store(out, 2 * at, even, odd);
    }
}

/// As [`portable::h2v2`].
#[target_feature(enable = "neon")]
pub(super) fn h2v2(near: &[u8], far: &[u8], out: &mut [u8]) {
    let count = out.len() / 2;
    if count < STEP {
        return portable::h2v2(near, far, out);
    }
    let three = vdup_n_u8(3);
    for at in steps::<STEP>(count) {
        let (near, far) = (around(near, at), around(far, at));
        let sums = [0, 1, 2].map(|shift| {
            let (near, far) = (near[shift], far[shift]);
            [
                vmlal_u8(vmovl_u8(vget_low_u8(far)), vget_low_u8(near), three),
                vmlal_u8(vmovl_u8(vget_high_u8(far)), vget_high_u8(near), three),
            ]
        });
        let [left, sample, right] = sums;
        let even = [0, 1].map(|half| {
            let sum = vmlaq_n_u16(left[half], sample[half], 3);
            vrshrn_n_u16::<4>(sum)
        });
        let odd = [0, 1].map(|half| {
            let sum = vmlaq_n_u16(right[half], sample[half], 3);
            vshrn_n_u16::<4>(vaddq_u16(sum, vdupq_n_u16(7)))
        });
        store(out, 2 * at, vcombine_u8(even[0], even[1]), vcombine_u8(odd[0], odd[1]));
    }
}

/// The left neighbours of the samples of a step, the samples, and their right neighbours.
#[target_feature(enable = "neon")]
fn around(row: &[u8], at: usize) -> [uint8x16_t; 3] {
    let samples: &[u8; STEP + 2] = row[at..].first_chunk().expect("a step lies in its row");
    [0, 1, 2].map(|shift| {
        // SAFETY: the load takes 16 of the 18 bytes of the array and needs no alignment.
        unsafe { vld1q_u8(samples.as_ptr().add(shift)) }
    })
}

/// Stores even and odd columns in turn.
#[target_feature(enable = "neon")]
fn store(out: &mut [u8], at: usize, even: uint8x16_t, odd: uint8x16_t) {
    let out: &mut [u8; 2 * STEP] = out[at..].first_chunk_mut().expect("a step lies in its row");
    // SAFETY: the store fills the 32 bytes of the array and needs no alignment.
    unsafe { vst2q_u8(out.as_mut_ptr(), uint8x16x2_t(even, odd)) };
}
