//! Bilinear and bicubic interpolation: weighted sums of the pixels around a position in float64,
//! truncated.
//!
//! This is the reference implementation of both, which the portable instruction set runs. A row is
//! computed in blocks: first the positions, then the pixels around them, then the weights, so that
//! the compiler vectorises the arithmetic.

use super::{RowOfMap, RowWriter, Warp};
use crate::Cpu;
use crate::planes::Planes;
use crate::vector::{BLOCK, Kernel, gather, run, whole};
use std::marker::PhantomData;

/// The positions of a block.
struct Block {
    /// The first of the two inner columns and rows around a position; -1 before the picture.
    columns: [i32; BLOCK],
    rows: [i32; BLOCK],
    /// The distance of the position from the centre of the first inner column and row.
    across: [f64; BLOCK],
    down: [f64; BLOCK],
    is_inside: [bool; BLOCK],
}

/// Rounds a position of at least -1 down.
#[inline(always)]
fn floor(position: f64) -> i32 {
    if position < 0.0 { -1 } else { whole(position) }
}

impl Block {
    /// Computes the positions of columns of the result from `first` on. A position outside the
    /// picture is replaced by the centre of the first pixel.
    #[inline(always)]
    fn of(map: &RowOfMap, first: usize, (width, height): (usize, usize)) -> Self {
        let mut block = Self {
            columns: [0; BLOCK],
            rows: [0; BLOCK],
            across: [0.0; BLOCK],
            down: [0.0; BLOCK],
            is_inside: [false; BLOCK],
        };
        // Separate loops for affine maps and perspectives.
        if map.divisor.is_none() {
            for index in 0..BLOCK {
                block.put(index, map.affine(first + index), (width as f64, height as f64));
            }
        } else {
            for index in 0..BLOCK {
                block.put(index, map.at(first + index), (width as f64, height as f64));
            }
        }
        block
    }

    /// Stores a position, given as column and row of the source.
    #[inline(always)]
    fn put(&mut self, index: usize, position: (f64, f64), size: (f64, f64)) {
        let Location { column, row, across, down, is_inside } = Location::of(position, size);
        self.columns[index] = column;
        self.rows[index] = row;
        self.across[index] = across;
        self.down[index] = down;
        self.is_inside[index] = is_inside;
    }
}

/// The location of a position among the pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Location {
    /// As in [`Block`].
    pub(super) column: i32,
    pub(super) row: i32,
    pub(super) across: f64,
    pub(super) down: f64,
    pub(super) is_inside: bool,
}

impl Location {
    /// The location of a position (column, row) in a picture of this width and height. A position
    /// outside is replaced by the centre of the first pixel.
    #[inline(always)]
    pub(super) fn of((column, row): (f64, f64), (width, height): (f64, f64)) -> Self {
        // NaN is not inside.
        let is_inside = (column >= 0.0) & (column < width) & (row >= 0.0) & (row < height);
        let (x, y) = if is_inside { (column - 0.5, row - 0.5) } else { (0.0, 0.0) };
        let (column, row) = (floor(x), floor(y));
        let (across, down) = (x - f64::from(column), y - f64::from(row));
        Self { column, row, across, down, is_inside }
    }
}

/// A row of a warp.
struct WarpRow<'a> {
    map: RowOfMap,
    from: &'a Planes,
    out: [&'a mut [u8]; 3],
    fill: [u8; 4],
}

/// An interpolation of blocks.
trait Interpolation {
    /// The data that all planes share.
    type Neighbours;

    /// Determines the pixels around the positions of a block.
    fn around(block: &Block, from: &Planes) -> Self::Neighbours;

    /// The values of a block in a plane.
    fn values(block: &Block, around: &Self::Neighbours, plane: &[u8], width: usize) -> [u8; BLOCK];
}

/// Computes a row with an interpolation.
struct InterpolateRow<'a, I>(WarpRow<'a>, PhantomData<I>);

impl<I: Interpolation> Kernel for InterpolateRow<'_, I> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let WarpRow { map, from, mut out, fill } = self.0;
        let planes = from.planes();
        for first in (0..out[0].len()).step_by(BLOCK) {
            let count = BLOCK.min(out[0].len() - first);
            let block = Block::of(&map, first, from.size());
            let around = I::around(&block, from);
            for ((plane, out), fill) in planes.iter().zip(&mut out).zip(fill) {
                let mut values = I::values(&block, &around, plane, from.size().0);
                for (value, is_inside) in values.iter_mut().zip(&block.is_inside) {
                    *value = if *is_inside { *value } else { fill };
                }
                out[first..first + count].copy_from_slice(&values[..count]);
            }
        }
    }
}

/// Two pixels of two rows.
struct Bilinear;

/// Offsets of the left pixels of two rows in a plane, and the weights of the right and lower ones.
struct Pairs {
    above: [u64; BLOCK],
    below: [u64; BLOCK],
    across: [f64; BLOCK],
    down: [f64; BLOCK],
}

impl Interpolation for Bilinear {
    type Neighbours = Pairs;

    #[inline(always)]
    fn around(block: &Block, from: &Planes) -> Pairs {
        let (width, height) = from.size();
        let stride = from.stride() as u64;
        let (right, bottom) = (width as i32 - 1, height as i32 - 1);
        let mut pairs = Pairs {
            above: [0; BLOCK],
            below: [0; BLOCK],
            across: [0.0; BLOCK],
            down: [0.0; BLOCK],
        };
        for index in 0..BLOCK {
            let (x, y) = (block.columns[index], block.rows[index]);
            // Beyond the ends both pixels are equal, so their weights do not matter; the result is
            // the same as with a weight of 0 for the second pixel, whatever its value.
            let is_alone = (x < 0) | (x >= right);
            pairs.across[index] = if is_alone { 0.0 } else { block.across[index] };
            let is_alone = (y < 0) | (y >= bottom);
            pairs.down[index] = if is_alone { 0.0 } else { block.down[index] };
            let (x, y) = (x.max(0) as u32, y.max(0));
            let lower = (y + 1).min(bottom) as u32;
            pairs.above[index] = u64::from(y as u32) * stride + u64::from(x);
            pairs.below[index] = u64::from(lower) * stride + u64::from(x);
        }
        pairs
    }

    #[inline(always)]
    fn values(_: &Block, around: &Pairs, plane: &[u8], _: usize) -> [u8; BLOCK] {
        // Rows are padded beyond their width.
        let above = gather(plane, &around.above);
        let below = gather(plane, &around.below);
        let mut values = [0; BLOCK];
        for index in 0..BLOCK {
            let across = around.across[index];
            let (above, below) = (line(above[index], across), line(below[index], across));
            values[index] = whole(above + (below - above) * around.down[index]) as u8;
        }
        values
    }
}

/// Interpolates between two pixels.
#[inline(always)]
fn line(pair: [u8; 2], across: f64) -> f64 {
    let pair = u16::from_le_bytes(pair);
    let (left, right) = (f64::from(i32::from(pair & 0xff)), f64::from(i32::from(pair >> 8)));
    between(left, right, across)
}

/// Interpolates between two numbers.
#[inline(always)]
pub(super) fn between(left: f64, right: f64, at: f64) -> f64 {
    left + (right - left) * at
}

/// The cubic through four values, between the second and the third, with the operations in
/// Pillow's order.
#[inline(always)]
pub(super) fn cubic([v1, v2, v3, v4]: [f64; 4], at: f64) -> f64 {
    let p2 = -v1 + v3;
    let p3 = 2.0 * (v1 - v2) + v3 - v4;
    let p4 = -v1 + v2 - v3 + v4;
    v2 + at * (p2 + at * (p3 + at * p4))
}

/// Four pixels of four rows.
struct Bicubic;

impl Interpolation for Bicubic {
    /// Offsets of the four rows.
    type Neighbours = [[u64; BLOCK]; 4];

    #[inline(always)]
    fn around(block: &Block, from: &Planes) -> Self::Neighbours {
        let bottom = from.size().1 as i32 - 1;
        let mut rows = [[0; BLOCK]; 4];
        for (tap, rows) in rows.iter_mut().enumerate() {
            for (row, y) in rows.iter_mut().zip(&block.rows) {
                let y = (y + tap as i32 - 1).clamp(0, bottom) as u32;
                *row = u64::from(y) * from.stride() as u64;
            }
        }
        rows
    }

    #[inline(always)]
    fn values(block: &Block, rows: &Self::Neighbours, plane: &[u8], width: usize) -> [u8; BLOCK] {
        let mut taps = [[0; BLOCK]; 4];
        let last = width as i32 - 1;
        let mut is_amid = true;
        for column in &block.columns {
            is_amid &= (*column >= 1) & (column + 2 <= last);
        }
        for (taps, rows) in taps.iter_mut().zip(rows) {
            if is_amid {
                let mut first = *rows;
                for (first, column) in first.iter_mut().zip(&block.columns) {
                    *first += (column - 1) as u64;
                }
                *taps = gather(plane, &first).map(u32::from_le_bytes);
            } else {
                for index in 0..BLOCK {
                    taps[index] = four(&plane[rows[index] as usize..], block.columns[index], last);
                }
            }
        }
        let mut values = [0; BLOCK];
        for index in 0..BLOCK {
            let mut lines = [0.0; 4];
            for (line, taps) in lines.iter_mut().zip(&taps) {
                *line = cubic_of(taps[index], block.across[index]);
            }
            // The cast truncates, after overshoot was clamped.
            let sum = cubic(lines, block.down[index]);
            values[index] = whole(if sum < 255.0 { sum } else { 255.0 }) as u8;
        }
        values
    }
}

/// The four pixels around a column of a row; the ends are repeated.
#[inline(always)]
fn four(row: &[u8], column: i32, last: i32) -> u32 {
    let at = |tap: i32| row[(column + tap).clamp(0, last) as usize];
    u32::from_le_bytes([at(-1), at(0), at(1), at(2)])
}

/// The cubic through four pixels.
#[inline(always)]
fn cubic_of(four: u32, at: f64) -> f64 {
    let tap = |shift: u32| f64::from((four >> shift & 0xff) as i32);
    cubic([tap(0), tap(8), tap(16), tap(24)], at)
}

/// The writer of a bilinear warp.
pub(super) fn bilinear(warp: &Warp, cpu: Cpu) -> RowWriter<'_> {
    Box::new(move |from: &Planes, y, out: [&mut [u8]; 3]| {
        let map = RowOfMap::new(warp.map, y);
        let row = WarpRow { map, from, out, fill: warp.fill };
        run(cpu, InterpolateRow::<Bilinear>(row, PhantomData));
    })
}

/// The writer of a bicubic warp.
pub(super) fn bicubic(warp: &Warp, cpu: Cpu) -> RowWriter<'_> {
    Box::new(move |from: &Planes, y, out: [&mut [u8]; 3]| {
        let map = RowOfMap::new(warp.map, y);
        let row = WarpRow { map, from, out, fill: warp.fill };
        run(cpu, InterpolateRow::<Bicubic>(row, PhantomData));
    })
}
