//! Resizing with Pillow's filters, bit-identical to `Image.resize(size, resample, box)`.
//!
//! Two passes, one along the rows and one along the columns, each rounding to uint8, so that their
//! order shows. It is that of Pillow 13: along the rows first, unless the other takes away many
//! more rows. (Earlier versions always went along the rows first; where the order differs, so do
//! some values, by 1 as a rule.) A pass that would change nothing is left out, and only rows that
//! the second pass needs go through the first. Source: Pillow's `src/libImaging/Resample.c`.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod coefficients;
mod portable;
#[cfg(test)]
mod tests;

pub use coefficients::Filter;

use crate::view::View;
use crate::{Cpu, Picture};
use coefficients::Coefficients;

/// Multiplications between two calls of the pause, a fraction of a millisecond.
const WORK_PER_PAUSE: usize = 1 << 19;

/// The part of a picture that a resize maps to the output: left, top, right, bottom in pixels.
pub type SourceBox = [f32; 4];

/// What to make of a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resize {
    /// Columns of the result, not 0.
    pub width: u32,
    /// Rows of the result, not 0.
    pub height: u32,
    /// Filter.
    pub filter: Filter,
    /// Part of the source that is mapped; all of it for `None`. It must lie inside. Pixels around
    /// it still count where the filter reaches them, as in Pillow.
    pub source: Option<SourceBox>,
}

/// Resizes pictures one after another, reusing its memory.
#[derive(Debug)]
pub struct Resizer {
    cpu: Cpu,
    horizontal: Coefficients,
    vertical: Coefficients,
    #[cfg(target_arch = "x86_64")]
    packed: avx2::Packed,
    /// Result of the first pass.
    between: Picture,
}

impl Resizer {
    /// A resizer for an instruction set that this machine must have.
    pub fn new(cpu: Cpu) -> Self {
        assert!(cpu.is_available(), "this machine has no {}", cpu.name());
        Self {
            cpu,
            horizontal: Coefficients::default(),
            vertical: Coefficients::default(),
            #[cfg(target_arch = "x86_64")]
            packed: avx2::Packed::default(),
            between: Picture::default(),
        }
    }

    /// Resizes `from` into `out`. `pause` is called every fraction of a millisecond.
    pub fn resize(
        &mut self,
        from: View<'_>,
        resize: Resize,
        out: &mut Picture,
        pause: &mut dyn FnMut(),
    ) {
        let Resize { width, height, filter, .. } = resize;
        let whole = [0.0, 0.0, from.width() as f32, from.height() as f32];
        let [left, top, right, bottom] = resize.source.unwrap_or(whole);
        let along_rows = width != from.width() || left != 0.0 || right != width as f32;
        let along_columns = height != from.height() || top != 0.0 || bottom != height as f32;
        if along_rows {
            self.horizontal.compute(filter, from.width(), (left, right), width);
            #[cfg(target_arch = "x86_64")]
            if self.cpu.includes_avx2() {
                self.packed.pack(&self.horizontal);
            }
        }
        if along_columns {
            self.vertical.compute(filter, from.height(), (top, bottom), height);
        }
        out.set_size(width, height);
        match (along_rows, along_columns) {
            (false, false) => {
                for (y, out) in out.pixels.chunks_exact_mut(width as usize * 3).enumerate() {
                    out.copy_from_slice(from.row(y));
                }
            }
            (true, false) => self.horizontal_pass(from, 0, out, pause),
            (false, true) => self.vertical_pass(from, 0, out, pause),
            (true, true) => self.both_passes(from, out, pause),
        }
    }

    /// Both passes, in Pillow's order.
    fn both_passes(&mut self, from: View<'_>, out: &mut Picture, pause: &mut dyn FnMut()) {
        let mut between = std::mem::take(&mut self.between);
        if vertical_first((from.width(), from.height()), (out.width, out.height)) {
            between.set_size(from.width(), out.height);
            self.vertical_pass(from, 0, &mut between, pause);
            self.horizontal_pass(View::whole(&between), 0, out, pause);
        } else {
            let (first, end) = self.vertical.used();
            between.set_size(out.width, end - first);
            self.horizontal_pass(from, first as usize, &mut between, pause);
            self.vertical_pass(View::whole(&between), first as usize, out, pause);
        }
        self.between = between;
    }

    /// Fills all rows of `out` from the rows of `from` that begin at `first`.
    fn horizontal_pass(
        &self,
        from: View<'_>,
        first: usize,
        out: &mut Picture,
        pause: &mut dyn FnMut(),
    ) {
        let row_bytes = out.width as usize * 3;
        let mut work = Work::new(row_bytes * self.horizontal.taps_max);
        for (y, out) in out.pixels.chunks_exact_mut(row_bytes).enumerate() {
            match self.cpu {
                #[cfg(target_arch = "x86_64")]
                Cpu::Avx2 | Cpu::Avx512 => {
                    let row = from.row_and_beyond(first + y);
                    avx2::horizontal(row, &self.horizontal, &self.packed, out);
                }
                _ => portable::horizontal(from.row(first + y), &self.horizontal, out),
            }
            work.row_done(pause);
        }
    }

    /// Fills all rows of `out`. Row 0 of `from` is row `first` of the picture that the coefficients
    /// are about.
    fn vertical_pass(
        &self,
        from: View<'_>,
        first: usize,
        out: &mut Picture,
        pause: &mut dyn FnMut(),
    ) {
        let row_bytes = out.width as usize * 3;
        let stride = from.stride_bytes();
        let mut work = Work::new(row_bytes * self.vertical.taps_max);
        for (y, out) in out.pixels.chunks_exact_mut(row_bytes).enumerate() {
            let (from_row, weights) = self.vertical.run(y);
            let rows = from.row_and_beyond(from_row - first);
            match self.cpu {
                #[cfg(target_arch = "x86_64")]
                Cpu::Avx2 | Cpu::Avx512 => avx2::vertical(rows, stride, weights, out),
                _ => portable::vertical(rows, stride, weights, out),
            }
            work.row_done(pause);
        }
    }
}

/// Whether the pass along the columns comes first, from (columns, rows) to (columns, rows): when it
/// takes away more than twice as many rows as the other takes away columns. So decides Pillow 13.
fn vertical_first(from: (u32, u32), to: (u32, u32)) -> bool {
    let columns = i64::from(from.0) - i64::from(to.0);
    let rows = i64::from(from.1) - i64::from(to.1);
    rows > 0 && rows > columns * 2
}

/// Counts the work since the last pause.
struct Work {
    per_row: usize,
    since_pause: usize,
}

impl Work {
    fn new(per_row: usize) -> Self {
        Self { per_row, since_pause: 0 }
    }

    fn row_done(&mut self, pause: &mut dyn FnMut()) {
        self.since_pause += self.per_row;
        if self.since_pause >= WORK_PER_PAUSE {
            self.since_pause = 0;
            pause();
        }
    }
}
