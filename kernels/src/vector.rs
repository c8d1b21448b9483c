//! Compiles a computation for every instruction set from one source, and runs it on one.
//!
//! The source is a loop over slices that the compiler vectorises. Its results do not depend
//! on the instruction set: the compiler neither fuses a product with a sum nor reorders floats.

#![expect(
    unsafe_code,
    reason = "calls behind a CPU check, casts of numbers in range, loads in range"
)]

use crate::Cpu;

/// A computation with its arguments.
pub(crate) trait Kernel {
    /// The result.
    type Output;

    /// Runs the computation. Implementations are `#[inline(always)]`, so that they are compiled for
    /// the instruction set of the calling function.
    fn compute(self) -> Self::Output;
}

/// Runs a computation on an instruction set. Panics if this machine lacks it.
pub(crate) fn run<K: Kernel>(cpu: Cpu, kernel: K) -> K::Output {
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has AVX2 and the features that come with it, as asserted.
        Cpu::Avx2 => unsafe { avx2(kernel) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has all of these features, as asserted.
        Cpu::Avx512 => unsafe { avx512(kernel) },
        _ => kernel.compute(),
    }
}

/// Number of pixels in a block: loops with a constant number of steps are fully vectorised, even
/// for rows of few blocks.
pub(crate) const BLOCK: usize = 32;

/// A change of single pixels of a row.
///
/// This is a trait, because a closure would be compiled as a separate function for the portable
/// instruction set.
pub(crate) trait Change {
    /// Changes a pixel. Implementations are `#[inline(always)]`.
    fn pixel(&self, colour: [u8; 3]) -> [u8; 3];
}

/// A row of pixels to change.
pub(crate) struct Changed<'a, C> {
    pub(crate) change: C,
    pub(crate) planes: [&'a mut [u8]; 3],
}

impl<C: Change> Kernel for Changed<'_, C> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let Self { change, planes } = self;
        let [(reds, red), (greens, green), (blues, blue)] =
            planes.map(|plane| plane.as_chunks_mut::<BLOCK>());
        for ((red, green), blue) in reds.iter_mut().zip(greens).zip(blues) {
            change_block(&change, [red, green, blue]);
        }
        if !red.is_empty() {
            // Bytes after the last pixel are 0, and their results are dropped.
            let mut rest = [[0; BLOCK]; 3];
            let planes = [red, green, blue];
            for (block, plane) in rest.iter_mut().zip(&planes) {
                block[..plane.len()].copy_from_slice(plane);
            }
            change_block(&change, rest.each_mut());
            for (block, plane) in rest.iter().zip(planes) {
                plane.copy_from_slice(&block[..plane.len()]);
            }
        }
    }
}

#[inline(always)]
fn change_block<C: Change>(change: &C, [reds, greens, blues]: [&mut [u8; BLOCK]; 3]) {
    for index in 0..BLOCK {
        let changed = change.pixel([reds[index], greens[index], blues[index]]);
        [reds[index], greens[index], blues[index]] = changed;
    }
}

/// The `N` bytes at each offset. Panics if they are not all in `bytes`.
#[inline(always)]
pub(crate) fn gather<const N: usize>(bytes: &[u8], offsets: &[u64; BLOCK]) -> [[u8; N]; BLOCK] {
    let mut last = 0;
    for offset in offsets {
        last = if *offset > last { *offset } else { last };
    }
    assert!(bytes.len() >= N && last <= (bytes.len() - N) as u64, "all offsets are in the bytes");
    let mut found = [[0; N]; BLOCK];
    for (found, offset) in found.iter_mut().zip(offsets) {
        // SAFETY: `N` bytes from the largest offset on are in `bytes`, as asserted, and arrays of
        // bytes need no alignment.
        *found = unsafe { *bytes.as_ptr().add(*offset as usize).cast() };
    }
    found
}

/// Truncates a number and clamps it to 0..=255; NaN becomes 0. Equivalent to `as u8` with fewer
/// instructions.
#[inline(always)]
pub(crate) fn truncated(number: f32) -> u8 {
    let number = if number > 0.0 { number } else { 0.0 };
    let number = if number < 255.0 { number } else { 255.0 };
    // SAFETY: the number is from 0 to 255.
    let whole: i32 = unsafe { number.to_int_unchecked() };
    whole as u8
}

/// Truncates a position and clamps it to 0..=2^31 - 1; NaN becomes 0. Equivalent to `as i32` for
/// non-negative numbers, with fewer instructions.
#[inline(always)]
pub(crate) fn whole(position: f64) -> i32 {
    let position = if position > 0.0 { position } else { 0.0 };
    let position = if position < 2_147_483_647.0 { position } else { 2_147_483_647.0 };
    // SAFETY: the number is from 0 to 2^31 - 1.
    unsafe { position.to_int_unchecked() }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.compute()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
fn avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.compute()
}
