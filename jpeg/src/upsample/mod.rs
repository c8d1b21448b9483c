//! Upsampling: rows of a component at its own resolution to rows of the picture, any part of them,
//! as libjpeg-turbo's jdsample.c makes them.
//!
//! The triangle filter ("fancy") puts an output sample a quarter of the way from the nearest input
//! sample to the next nearest one. Halves are rounded down and up in turn, which avoids a bias. At
//! the edges of the component the nearest sample replaces the missing one, which is equivalent to
//! libjpeg's special cases for first and last columns. Vertically the caller does this: the row
//! beyond an edge is the edge's row.
#![expect(unsafe_code, reason = "calls behind a CPU check")]

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(test)]
mod tests;

use crate::Cpu;
use std::ops::Range;

/// How a component is upsampled to full resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upsampling {
    /// It already has full resolution.
    None,
    /// Twice the columns by the triangle filter: [`h2v1`].
    FancyH2V1,
    /// Twice the rows by the triangle filter: [`h1v2`]. Needs the rows above and below.
    FancyH1V2,
    /// Twice the columns and rows by the triangle filter: [`h2v2`]. Needs the rows above and below.
    FancyH2V2,
    /// Every sample is repeated for this many columns and rows: [`replicate`].
    Replicate {
        /// Columns of a sample.
        columns: u32,
        /// Rows of a sample.
        rows: u32,
    },
}

impl Upsampling {
    /// What libjpeg-turbo chooses for a component with sampling factors `h` and `v`, in a frame
    /// whose largest ones are `h_max` and `v_max`; `None` if a factor is not a divisor, which
    /// libjpeg refuses.
    ///
    /// `downsampled_width` is the component's width without padding, `fancy` libjpeg's
    /// `do_fancy_upsampling`, which it also takes for false when decoding to 1/8. The triangle
    /// filter along the rows needs more than two samples. After libjpeg's scaling to 4x4 or less,
    /// factors and width are those that remain.
    pub(crate) fn choose(
        h: u32,
        v: u32,
        h_max: u32,
        v_max: u32,
        downsampled_width: u32,
        fancy: bool,
    ) -> Option<Self> {
        if h == 0 || v == 0 || !h_max.is_multiple_of(h) || !v_max.is_multiple_of(v) {
            return None;
        }
        let wide = downsampled_width > 2;
        Some(match (h_max / h, v_max / v) {
            (1, 1) => Self::None,
            (2, 1) if fancy && wide => Self::FancyH2V1,
            (1, 2) if fancy => Self::FancyH1V2,
            (2, 2) if fancy && wide => Self::FancyH2V2,
            (columns, rows) => Self::Replicate { columns, rows },
        })
    }

    /// Whether a row of output needs two rows of input.
    pub(crate) fn needs_context_rows(self) -> bool {
        matches!(self, Self::FancyH1V2 | Self::FancyH2V2)
    }

    /// Output columns and rows of an input sample.
    pub(crate) fn factors(self) -> (u32, u32) {
        match self {
            Self::None => (1, 1),
            Self::FancyH2V1 => (2, 1),
            Self::FancyH1V2 => (1, 2),
            Self::FancyH2V2 => (2, 2),
            Self::Replicate { columns, rows } => (columns, rows),
        }
    }
}

/// The position of the samples of a row in their component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampleSpan {
    /// Column of the first sample provided.
    pub(crate) first: usize,
    /// Columns of the component without padding: beyond them nothing is read.
    pub(crate) width: usize,
}

impl SampleSpan {
    /// Columns of input that output columns of a [`h2v1`] or [`h2v2`] need.
    pub(crate) fn needed(width: usize, columns: Range<usize>) -> Range<usize> {
        if columns.is_empty() {
            return 0..0;
        }
        // An even column looks to the left of its sample, an odd one to the right.
        let first = columns.start.div_ceil(2).saturating_sub(1);
        first..(columns.end / 2 + 1).min(width)
    }

    /// The part of `columns` whose samples have both neighbours in the component, in whole samples;
    /// the columns before and after it are at most two each.
    fn interior(self, columns: &Range<usize>) -> Range<usize> {
        let start = columns.start.next_multiple_of(2).max(2);
        let end = (columns.end & !1).min(self.width.saturating_sub(1) * 2);
        start.min(columns.end)..end.max(start.min(columns.end))
    }

    /// Checks that the samples for `columns` are provided.
    fn check(self, given: usize, columns: &Range<usize>, out: &[u8]) {
        assert_eq!(columns.len(), out.len(), "a byte for every column");
        assert!(columns.end.div_ceil(2) <= self.width, "columns {columns:?} of {self:?}");
        let needed = Self::needed(self.width, columns.clone());
        assert!(
            needed.is_empty() || self.first <= needed.start && needed.end - self.first <= given,
            "columns {columns:?} need samples {needed:?}, of which {given} at {self:?} are given",
        );
    }
}

/// Which of the two output rows of an input row is made; it decides the rounding of [`h1v2`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The upper one: the other row is that above.
    Upper,
    /// The lower one: the other row is that below.
    Lower,
}

/// Output columns of a row with the triangle filter along it.
///
/// `row` holds samples from column `span.first` on, as [`SampleSpan::needed`] requires.
pub(crate) fn h2v1(cpu: Cpu, row: &[u8], span: SampleSpan, columns: Range<usize>, out: &mut [u8]) {
    span.check(row.len(), &columns, out);
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    let interior = span.interior(&columns);
    portable::edges_h2v1(row, span, &columns, &interior, out);
    if interior.is_empty() {
        return;
    }
    let row = &row[interior.start / 2 - 1 - span.first..interior.end / 2 + 1 - span.first];
    let out = &mut out[interior.start - columns.start..interior.end - columns.start];
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the instruction set, as just checked.
        Cpu::Avx512 => unsafe { avx512::h2v1(row, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as for AVX-512.
        Cpu::Avx2 => unsafe { avx2::h2v1(row, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as for AVX-512.
        Cpu::Neon => unsafe { neon::h2v1(row, out) },
        _ => portable::h2v1(row, out),
    }
}

/// Output columns of a row with the triangle filter along and across it: `near` is the input row
/// that the output row lies in, `far` the one above or below, whichever is nearer, or `near` again
/// at the component's upper or lower edge.
///
/// Both hold samples from column `span.first` on, as [`SampleSpan::needed`] requires.
pub(crate) fn h2v2(
    cpu: Cpu,
    near: &[u8],
    far: &[u8],
    span: SampleSpan,
    columns: Range<usize>,
    out: &mut [u8],
) {
    span.check(near.len().min(far.len()), &columns, out);
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    let interior = span.interior(&columns);
    portable::edges_h2v2(near, far, span, &columns, &interior, out);
    if interior.is_empty() {
        return;
    }
    let part = interior.start / 2 - 1 - span.first..interior.end / 2 + 1 - span.first;
    let (near, far) = (&near[part.clone()], &far[part]);
    let out = &mut out[interior.start - columns.start..interior.end - columns.start];
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the instruction set, as just checked.
        Cpu::Avx512 => unsafe { avx512::h2v2(near, far, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as for AVX-512.
        Cpu::Avx2 => unsafe { avx2::h2v2(near, far, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as for AVX-512.
        Cpu::Neon => unsafe { neon::h2v2(near, far, out) },
        _ => portable::h2v2(near, far, out),
    }
}

/// Output columns of a row with the triangle filter across it; rows as for [`h2v2`], the output as
/// long as they are.
pub(crate) fn h1v2(cpu: Cpu, near: &[u8], far: &[u8], side: Side, out: &mut [u8]) {
    assert!(near.len() == out.len() && far.len() == out.len(), "three rows of one length");
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a machine with AVX-512 has AVX2 too, and that it has one was just checked.
        Cpu::Avx2 | Cpu::Avx512 => unsafe { avx2::h1v2(near, far, side, out) },
        _ => portable::h1v2(near, far, side, out),
    }
}

/// Output columns of a row with every sample `factor` times. `row` holds samples from column
/// `first` on.
pub(crate) fn replicate(
    cpu: Cpu,
    row: &[u8],
    first: usize,
    factor: usize,
    columns: Range<usize>,
    out: &mut [u8],
) {
    assert_eq!(columns.len(), out.len(), "a byte for every column");
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    if columns.is_empty() {
        return;
    }
    let row = &row[columns.start / factor - first..columns.end.div_ceil(factor) - first];
    let before = columns.start % factor;
    match cpu {
        #[cfg(target_arch = "x86_64")]
        Cpu::Avx2 | Cpu::Avx512 if factor == 2 => {
            // SAFETY: a machine with AVX-512 has AVX2 too, and that it has one was just checked.
            unsafe { avx2::replicate(row, before, out) }
        }
        _ => portable::replicate(row, factor, before, out),
    }
}
