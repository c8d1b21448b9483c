//! Bilinear and bicubic: pixels around a position, weighted in float64 and truncated.
//!
//! A row is computed in blocks: first the positions, then the pixels around them, then the
//! weights, so that the compiler makes vectors of the arithmetic.

use super::{RowOfMap, RowWriter, Warp};
use crate::planes::Planes;

/// Pixels of a block.
const BLOCK: usize = 32;

/// The positions of a block.
struct Block {
    /// First of the columns and rows around a position; may lie before the picture.
    columns: [i32; BLOCK],
    rows: [i32; BLOCK],
    /// How far the position lies behind the middle of the first of the two inner ones.
    across: [f64; BLOCK],
    down: [f64; BLOCK],
    is_inside: [bool; BLOCK],
}

impl Block {
    const EMPTY: Self = Self {
        columns: [0; BLOCK],
        rows: [0; BLOCK],
        across: [0.0; BLOCK],
        down: [0.0; BLOCK],
        is_inside: [false; BLOCK],
    };

    /// Finds the positions of `count` columns of the result from `first` on.
    #[inline(always)]
    fn locate(
        &mut self,
        map: &RowOfMap,
        first: usize,
        count: usize,
        (width, height): (usize, usize),
    ) {
        let (width, height) = (width as f64, height as f64);
        // Towards 0, but for positions from -0.5 to 0; an inside position has no others.
        let floor = |position: f64| if position < 0.0 { -1 } else { position as i32 };
        for index in 0..count {
            let (column, row) = map.at(first + index);
            // NaN is not inside.
            let is_inside = column >= 0.0 && column < width && row >= 0.0 && row < height;
            let (column, row) = if is_inside { (column - 0.5, row - 0.5) } else { (0.0, 0.0) };
            let (x, y) = (floor(column), floor(row));
            self.columns[index] = x;
            self.rows[index] = y;
            self.across[index] = column - f64::from(x);
            self.down[index] = row - f64::from(y);
            self.is_inside[index] = is_inside;
        }
    }
}

/// Offsets of the N positions of an axis around a first one, those beyond the ends at the ends.
#[inline(always)]
fn around<const N: usize>(first: i32, length: usize, step: usize) -> [usize; N] {
    let last = length as i32 - 1;
    std::array::from_fn(|tap| (first + tap as i32).clamp(0, last) as usize * step)
}

/// Warps with pixels of N x N taps, of which `combine` makes the values of a block.
#[inline(always)]
fn interpolate<'a, const N: usize>(
    warp: &'a Warp,
    combine: impl Fn(&[[[u8; BLOCK]; N]; N], &Block, &mut [u8; BLOCK]) + 'a,
) -> RowWriter<'a> {
    let mut block = Block::EMPTY;
    let mut taps = [[[0; BLOCK]; N]; N];
    let mut values = [0; BLOCK];
    Box::new(move |from: &Planes, y, mut out: [&mut [u8]; 3]| {
        let (width, height) = from.size();
        let map = RowOfMap::new(warp.map, y);
        let columns = out[0].len();
        // The first tap is one before the position for every two taps more.
        let before = (N / 2 - 1) as i32;
        for first in (0..columns).step_by(BLOCK) {
            let count = BLOCK.min(columns - first);
            block.locate(&map, first, count, (width, height));
            for (plane, (out, fill)) in from.planes().iter().zip(out.iter_mut().zip(warp.fill)) {
                for index in 0..count {
                    let across: [usize; N] = around(block.columns[index] - before, width, 1);
                    let down: [usize; N] =
                        around(block.rows[index] - before, height, from.stride());
                    for (taps, row) in taps.iter_mut().zip(down) {
                        for (tap, column) in taps.iter_mut().zip(across) {
                            tap[index] = plane[row + column];
                        }
                    }
                }
                combine(&taps, &block, &mut values);
                let inside = values.iter().zip(&block.is_inside);
                for (out, (value, is_inside)) in out[first..first + count].iter_mut().zip(inside) {
                    *out = if *is_inside { *value } else { fill };
                }
            }
        }
    })
}

/// A warp, bilinear.
pub(super) fn bilinear(warp: &Warp) -> RowWriter<'_> {
    interpolate::<2>(warp, |taps, block, values| {
        for (index, out) in values.iter_mut().enumerate() {
            let (across, down) = (block.across[index], block.down[index]);
            let line = |taps: &[[u8; BLOCK]; 2]| {
                let [left, right] = [0, 1].map(|tap: usize| f64::from(taps[tap][index]));
                left + (right - left) * across
            };
            let (above, below) = (line(&taps[0]), line(&taps[1]));
            *out = (above + (below - above) * down) as i32 as u8;
        }
    })
}

/// The cubic through four values, between the second and the third, with the operations in
/// Pillow's order.
#[inline(always)]
fn cubic([v1, v2, v3, v4]: [f64; 4], at: f64) -> f64 {
    let p2 = -v1 + v3;
    let p3 = 2.0 * (v1 - v2) + v3 - v4;
    let p4 = -v1 + v2 - v3 + v4;
    v2 + at * (p2 + at * (p3 + at * p4))
}

/// A warp, bicubic.
pub(super) fn bicubic(warp: &Warp) -> RowWriter<'_> {
    interpolate::<4>(warp, |taps, block, values| {
        for (index, out) in values.iter_mut().enumerate() {
            let (across, down) = (block.across[index], block.down[index]);
            let lines = [0, 1, 2, 3].map(|row: usize| {
                let line = [0, 1, 2, 3].map(|tap: usize| f64::from(taps[row][tap][index]));
                cubic(line, across)
            });
            // The cast truncates, after what overshoots was cut off.
            *out = cubic(lines, down).clamp(0.0, 255.0) as i32 as u8;
        }
    })
}
