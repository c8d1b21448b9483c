//! Warps of a whole picture: each pixel of the result comes from a position of the source, bit for
//! bit as in Pillow's `Image.transform`.
//!
//! In reading order: [`Warp`], `nearest` and `interpolate` (the arithmetic). The source is
//! `Geometry.c` of Pillow's libImaging. All of it is float64 unless it says otherwise, and no
//! product is fused with a sum.

mod interpolate;
mod nearest;
#[cfg(test)]
mod tests;

use crate::Error;
use crate::pixels::Pixels;
use meetpoint_format::recipe::WarpInterpolation;

/// Where the centre of a pixel of the result, (x + 1/2, y + 1/2), lies in the source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Map {
    /// Column a0 x + a1 y + a2, row a3 x + a4 y + a5: Pillow's `AFFINE`.
    Affine([f64; 6]),
    /// Both as in an affine map, divided by a6 x + a7 y + 1: Pillow's `PERSPECTIVE`.
    Perspective([f64; 8]),
}

/// A warp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Warp {
    /// Columns and rows of the result, not 0.
    pub(crate) size: (u32, u32),
    /// From the result to the source.
    pub(crate) map: Map,
    /// How a pixel is computed.
    pub(crate) interpolation: WarpInterpolation,
    /// Red, green and blue of pixels whose position lies outside the source.
    pub(crate) fill: [u8; 3],
}

impl Warp {
    /// Replaces a picture by its warp. Fails when the sample is interrupted.
    pub(crate) fn apply(&self, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        match (self.interpolation, self.map) {
            (WarpInterpolation::Nearest, Map::Affine(map)) => nearest::affine(self, map, pixels),
            (WarpInterpolation::Nearest, Map::Perspective(map)) => {
                nearest::perspective(self, map, pixels)
            }
            (WarpInterpolation::Bilinear, _) => interpolate::bilinear(self, pixels),
            (WarpInterpolation::Bicubic, _) => interpolate::bicubic(self, pixels),
        }
    }
}

/// The positions of a row of the result.
struct RowOfMap {
    /// Columns: step, part of the row, shift.
    across: (f64, f64, f64),
    /// Rows likewise.
    down: (f64, f64, f64),
    /// What both are divided by: step and part of the row, for a perspective.
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

    /// Column and row of the source for a column of the result.
    #[inline(always)]
    fn at(&self, x: usize) -> (f64, f64) {
        let x = x as f64 + 0.5;
        let ((a0, a1, a2), (a3, a4, a5)) = (self.across, self.down);
        let (column, row) = (a0 * x + a1 + a2, a3 * x + a4 + a5);
        match self.divisor {
            None => (column, row),
            Some((a6, a7)) => {
                let divisor = a6 * x + a7 + 1.0;
                (column / divisor, row / divisor)
            }
        }
    }
}
