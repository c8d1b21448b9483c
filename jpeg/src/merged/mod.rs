//! Luma and chroma of half its columns, or of half its columns and rows, to red, green and blue:
//! the triangle filter of [`super::upsample`] and the formulas of [`super::colour`] in one pass.
//!
//! This is faster than two passes only where [`is_for`] is true: with AVX2, where chroma at full
//! resolution stays in registers.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "a call behind a CPU check"))]

#[cfg(target_arch = "x86_64")]
mod avx2;
mod portable;
#[cfg(test)]
mod tests;

use super::colour::PlanesMut;
use crate::Cpu;
use std::ops::Range;

/// The chroma of a row of pixels. Rows begin with the left neighbour of the sample in column
/// `first` of the component, and end with the right neighbour of the last sample needed, or later.
/// Beyond the edges of the component the nearest sample replaces the missing one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chroma<'a> {
    /// The row of Cb and Cr that contains the row of pixels.
    pub(super) near: [&'a [u8]; 2],
    /// Where there are half as many rows, the one above or below, whichever is nearer, or `near`
    /// again at the component's upper or lower edge.
    pub(super) far: Option<[&'a [u8]; 2]>,
    /// Column of the component.
    pub(super) first: usize,
}

impl<'a> Chroma<'a> {
    /// Rows restricted to some samples, with a neighbour at either end.
    fn cut(&self, samples: &Range<usize>) -> Self {
        let part = samples.start - self.first..samples.end - self.first + 2;
        let cut = |rows: [&'a [u8]; 2]| rows.map(|row| &row[part.clone()]);
        Self { near: cut(self.near), far: self.far.map(cut), first: samples.start }
    }
}

/// Whether an instruction set has a single pass for both.
pub(super) fn is_for(cpu: Cpu) -> bool {
    cpu == Cpu::Avx2
}

/// The pixels of a row that some samples of chroma cover, two each; `samples` are columns of the
/// component.
pub(super) fn to_rgb(
    cpu: Cpu,
    luma: &[u8],
    chroma: &Chroma<'_>,
    samples: Range<usize>,
    mut rgb: PlanesMut<'_>,
) {
    let columns = 2 * samples.len();
    let one_length = luma.len() == columns && rgb.iter().all(|plane| plane.len() == columns);
    assert!(one_length, "four rows of two columns a sample");
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    let Chroma { near: [cb, cr], far, .. } = chroma.cut(&samples);
    match (cpu, far) {
        #[cfg(target_arch = "x86_64")]
        (Cpu::Avx2, Some([far_cb, far_cr])) if samples.len() >= avx2::STEP => {
            // SAFETY: the machine has the instruction set, as just checked.
            unsafe { avx2::to_rgb(luma, [[cb, far_cb], [cr, far_cr]], &mut rgb) };
        }
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as before.
        (Cpu::Avx2, None) if samples.len() >= avx2::STEP => unsafe {
            avx2::to_rgb(luma, [[cb], [cr]], &mut rgb);
        },
        (_, Some([far_cb, far_cr])) => {
            portable::to_rgb(luma, [[cb, far_cb], [cr, far_cr]], &mut rgb);
        }
        (_, None) => portable::to_rgb(luma, [[cb], [cr]], &mut rgb),
    }
}
