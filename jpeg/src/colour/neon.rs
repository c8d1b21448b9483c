//! The colour conversion with NEON: 16 pixels at a time, the last step overlapping the one before;
//! shorter rows go to the portable code.
#![expect(unsafe_code, reason = "loads and stores of vectors")]

use super::{
    Planes, PlanesMut, TWICE_CB_TO_BLUE, TWICE_CB_TO_GREEN, TWICE_CR_TO_GREEN, TWICE_CR_TO_RED,
    portable,
};
use crate::steps::steps;
use std::arch::aarch64::*;

/// Pixels of a step.
const STEP: usize = 16;

/// As [`portable::ycc_to_rgb`].
#[target_feature(enable = "neon")]
pub(super) fn ycc_to_rgb(ycc: Planes<'_>, rgb: &mut PlanesMut<'_>) {
    let count = ycc[0].len();
    if count < STEP {
        return portable::ycc_to_rgb(ycc, rgb);
    }
    for at in steps::<STEP>(count) {
        let [y, cb, cr] = ycc.map(|row| load(row, at));
        let low = pixels(vget_low_u8(y), vget_low_u8(cb), vget_low_u8(cr));
        let high = pixels(vget_high_u8(y), vget_high_u8(cb), vget_high_u8(cr));
        for (plane, (low, high)) in rgb.iter_mut().zip(low.into_iter().zip(high)) {
            store(plane, at, vcombine_u8(low, high));
        }
    }
}

/// Red, green and blue of 8 pixels.
#[target_feature(enable = "neon")]
fn pixels(y: uint8x8_t, cb: uint8x8_t, cr: uint8x8_t) -> [uint8x8_t; 3] {
    let y = vreinterpretq_s16_u16(vmovl_u8(y));
    let [cb, cr] = [cb, cr].map(|chroma| {
        let distance = vreinterpretq_s16_u16(vsubl_u8(chroma, vdup_n_u8(128)));
        vaddq_s16(distance, distance)
    });
    let red = vqrdmulhq_n_s16(cr, TWICE_CR_TO_RED);
    let blue = vqrdmulhq_n_s16(cb, TWICE_CB_TO_BLUE);
    let low = vmull_n_s16(vget_low_s16(cb), TWICE_CB_TO_GREEN);
    let low = vmlal_n_s16(low, vget_low_s16(cr), TWICE_CR_TO_GREEN);
    let high = vmull_n_s16(vget_high_s16(cb), TWICE_CB_TO_GREEN);
    let high = vmlal_n_s16(high, vget_high_s16(cr), TWICE_CR_TO_GREEN);
    let green = vcombine_s16(vrshrn_n_s32::<16>(low), vrshrn_n_s32::<16>(high));
    [red, green, blue].map(|colour| vqmovun_s16(vaddq_s16(y, colour)))
}

/// As [`portable::interleave`].
#[target_feature(enable = "neon")]
pub(super) fn interleave(rgb: Planes<'_>, pixels: &mut [u8]) {
    let count = rgb[0].len();
    if count < STEP {
        return portable::interleave(rgb, pixels);
    }
    for at in steps::<STEP>(count) {
        let [red, green, blue] = rgb.map(|row| load(row, at));
        let pixels: &mut [u8; 3 * STEP] =
            pixels[3 * at..].first_chunk_mut().expect("a step lies in its row");
        // SAFETY: the store fills the 48 bytes of the array and needs no alignment.
        unsafe { vst3q_u8(pixels.as_mut_ptr(), uint8x16x3_t(red, green, blue)) };
    }
}

#[target_feature(enable = "neon")]
fn load(row: &[u8], at: usize) -> uint8x16_t {
    let row: &[u8; STEP] = row[at..].first_chunk().expect("a step lies in its row");
    // SAFETY: the load takes the 16 bytes of the array and needs no alignment.
    unsafe { vld1q_u8(row.as_ptr()) }
}

#[target_feature(enable = "neon")]
fn store(row: &mut [u8], at: usize, values: uint8x16_t) {
    let row: &mut [u8; STEP] = row[at..].first_chunk_mut().expect("a step lies in its row");
    // SAFETY: the store fills the 16 bytes of the array and needs no alignment.
    unsafe { vst1q_u8(row.as_mut_ptr(), values) };
}
