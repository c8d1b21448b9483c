//! Warps of a whole picture: each pixel of the result comes from a position of the source, bit for
//! bit as in Pillow's `Image.transform`.
//!
//! In reading order: [`Warp`], `nearest` and `interpolate` (the arithmetic of Pillow), and cheaper
//! ways to the same bits: `taps` (float32 where it cannot differ), `slide` (along one axis) and
//! `scatter` (any map) with `packed`; `record` (warps as data). The source is `Geometry.c` of
//! Pillow's libImaging. All of it is float64 unless it says otherwise, and no product is fused with
//! a sum.

mod interpolate;
mod nearest;
mod packed;
mod record;
mod scatter;
mod slide;
mod taps;
#[cfg(test)]
mod tests;

pub(crate) use packed::packed_bytes;

use crate::pixels::Pixels;
use crate::planes::Planes;
use crate::points::Points;
use crate::{Cpu, Error};
use meetpoint_format::recipe::WarpInterpolation;
use taps::Taps;

/// Maps the centre of a pixel of the result, (x + 1/2, y + 1/2), to the source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Map {
    /// Column a0 x + a1 y + a2, row a3 x + a4 y + a5: Pillow's `AFFINE`.
    Affine([f64; 6]),
    /// Both as in an affine map, divided by a6 x + a7 y + 1: Pillow's `PERSPECTIVE`.
    Perspective([f64; 8]),
}

/// Moves by more pixels than this are not recognised as moves by whole pixels.
const SHIFT_MAX: f64 = 1_048_576.0;

impl Map {
    /// The position in the source, column and row, of the first pixel of the result, if the map is
    /// a move by whole pixels.
    pub(crate) fn shift(self) -> Option<(i32, i32)> {
        let Self::Affine([1.0, 0.0, column, 0.0, 1.0, row]) = self else { return None };
        let is_whole = |at: f64| at.abs() <= SHIFT_MAX && at.fract() == 0.0;
        (is_whole(column) && is_whole(row)).then_some((column as i32, row as i32))
    }

    /// Moves points of the source to the result, by the inverse of the map: the adjugate of its
    /// matrix, since all multiples of a matrix are the same perspective.
    pub(crate) fn move_points(self, points: &mut Points) {
        let [a0, a1, a2, a3, a4, a5, a6, a7] = match self {
            Self::Affine([a0, a1, a2, a3, a4, a5]) => [a0, a1, a2, a3, a4, a5, 0.0, 0.0],
            Self::Perspective(map) => map,
        };
        let rows = [
            [a4 - a5 * a7, a2 * a7 - a1, a1 * a5 - a2 * a4],
            [a5 * a6 - a3, a0 - a2 * a6, a2 * a3 - a0 * a5],
            [a3 * a7 - a4 * a6, a1 * a6 - a0 * a7, a0 * a4 - a1 * a3],
        ];
        points.map(|(x, y)| {
            let [column, row, divisor] = rows.map(|[a, b, c]| a * x + b * y + c);
            (column / divisor, row / divisor)
        });
        let determinant = a0 * rows[0][0] + a1 * rows[1][0] + a2 * rows[2][0];
        points.mirror(determinant < 0.0);
    }
}

/// A warp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Warp {
    /// Columns and rows of the result, not 0.
    pub(crate) size: (u32, u32),
    /// The map from the result to the source.
    pub(crate) map: Map,
    /// The interpolation of a pixel.
    pub(crate) interpolation: WarpInterpolation,
    /// Red, green, blue and alpha of pixels whose position is outside the source; for a single
    /// style, the fill of its planes.
    pub(crate) fill: [u8; 4],
}

/// Writes a row of a result, given the source, the row's index and its planes. Must be called for
/// every row from top to bottom.
type RowWriter<'a> = Box<dyn FnMut(&Planes, usize, [&mut [u8]; 3]) + 'a>;

impl Warp {
    /// Replaces a picture by its warp. Fails if the sample is interrupted.
    pub(crate) fn apply(&self, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let warp = self.of(pixels);
        if let Some(recording) = pixels.recording() {
            warp.record(1, recording);
            return Ok(());
        }
        let cpu = pixels.cpu();
        pixels.replace(self.size, warp.rows(cpu))
    }

    /// The warp with the fill and the interpolation for the style of the pixels.
    fn of(&self, pixels: &Pixels<'_>) -> Self {
        let interpolation = match pixels.is_nearest() {
            true => WarpInterpolation::Nearest,
            false => self.interpolation,
        };
        let [first, second, third] = pixels.fill(self.fill);
        Self { fill: [first, second, third, 0], interpolation, ..*self }
    }

    /// Like [`Warp::apply`], but each pixel is the mean of `samples` x `samples` pixels of a warp
    /// that is larger by this factor, like in Pillow's `Image.reduce`: the sum plus half the count,
    /// times 2^24 / count rounded down, divided by 2^24 and rounded down.
    pub(crate) fn apply_sampled(&self, samples: u32, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        if samples == 1 || pixels.is_nearest() {
            return self.apply(pixels);
        }
        let larger = self.of(pixels).times(samples);
        if let Some(recording) = pixels.recording() {
            larger.record(samples, recording);
            return Ok(());
        }
        let mut write = larger.rows(pixels.cpu());
        let (samples, width) = (samples as usize, self.size.0 as usize);
        let count = (samples * samples) as u32;
        let share = (1 << 24) / count;
        let mut row = vec![0; 3 * samples * width];
        let mut sums = vec![0; 3 * width];
        pixels.replace(self.size, |from, y, out| {
            sums.fill(0);
            for y in y * samples..(y + 1) * samples {
                let (red, rest) = row.split_at_mut(samples * width);
                let (green, blue) = rest.split_at_mut(samples * width);
                write(from, y, [red, green, blue]);
                for (sum, values) in sums.iter_mut().zip(row.chunks_exact(samples)) {
                    *sum += values.iter().map(|value| u32::from(*value)).sum::<u32>();
                }
            }
            for (out, sums) in out.into_iter().zip(sums.chunks_exact(width)) {
                for (out, sum) in out.iter_mut().zip(sums) {
                    *out = (((sum + count / 2) * share) >> 24) as u8;
                }
            }
        })
    }

    /// The warp to a result that is larger by `samples` along both sides.
    fn times(&self, samples: u32) -> Self {
        let share = f64::from(samples);
        let map = match self.map {
            Map::Affine([a0, a1, a2, a3, a4, a5]) => {
                Map::Affine([a0 / share, a1 / share, a2, a3 / share, a4 / share, a5])
            }
            Map::Perspective([a0, a1, a2, a3, a4, a5, a6, a7]) => Map::Perspective([
                a0 / share,
                a1 / share,
                a2,
                a3 / share,
                a4 / share,
                a5,
                a6 / share,
                a7 / share,
            ]),
        };
        Self { size: (self.size.0 * samples, self.size.1 * samples), map, ..*self }
    }

    /// The writer of rows on an instruction set.
    fn rows(&self, cpu: Cpu) -> RowWriter<'_> {
        match (self.interpolation, self.map) {
            (WarpInterpolation::Nearest, Map::Affine(map)) => nearest::affine(self, map, cpu),
            (WarpInterpolation::Nearest, Map::Perspective(_)) => nearest::perspective(self, cpu),
            (WarpInterpolation::Bilinear, _) => {
                self.mixed(Taps::Two, cpu, interpolate::bilinear(self, cpu))
            }
            (WarpInterpolation::Bicubic, _) => {
                self.mixed(Taps::Four, cpu, interpolate::bicubic(self, cpu))
            }
        }
    }

    /// The writer of interpolated rows; `exact` is the writer with Pillow's arithmetic.
    fn mixed<'a>(&'a self, taps: Taps, cpu: Cpu, exact: RowWriter<'a>) -> RowWriter<'a> {
        match self.map {
            _ if cpu == Cpu::Portable => exact,
            Map::Affine([a0, _, _, a3, ..]) if a0 == 1.0 && a3 == 0.0 => {
                slide::slide(self, taps, cpu, exact)
            }
            Map::Affine(_) | Map::Perspective(_) => scatter::scatter(self, taps, cpu, exact),
        }
    }
}

/// Computes the positions of a row of the result.
struct RowOfMap {
    /// Source columns: step, contribution of the row, shift.
    across: (f64, f64, f64),
    /// Source rows: step, contribution of the row, shift.
    down: (f64, f64, f64),
    /// The divisor of a perspective: step, and contribution of the row.
    divisor: Option<(f64, f64)>,
}

impl RowOfMap {
    fn new(map: Map, y: usize) -> Self {
        let y = y as f64 + 0.5;
        match map {
            Map::Affine([a0, a1, a2, a3, a4, a5]) => {
                Self { across: (a0, a1 * y, a2), down: (a3, a4 * y, a5), divisor: None }
            }
            Map::Perspective([a0, a1, a2, a3, a4, a5, a6, a7]) => Self {
                across: (a0, a1 * y, a2),
                down: (a3, a4 * y, a5),
                divisor: Some((a6, a7 * y)),
            },
        }
    }

    /// Column and row of the source for a column of the result, not yet divided.
    #[inline(always)]
    fn affine(&self, x: usize) -> (f64, f64) {
        // A picture has fewer than 2^31 columns.
        let x = f64::from(x as i32) + 0.5;
        let ((a0, a1, a2), (a3, a4, a5)) = (self.across, self.down);
        (a0 * x + a1 + a2, a3 * x + a4 + a5)
    }

    /// Column and row of the source for a column of the result.
    #[inline(always)]
    fn at(&self, x: usize) -> (f64, f64) {
        let (column, row) = self.affine(x);
        match self.divisor {
            None => (column, row),
            Some((a6, a7)) => {
                let divisor = a6 * (f64::from(x as i32) + 0.5) + a7 + 1.0;
                (column / divisor, row / divisor)
            }
        }
    }
}
