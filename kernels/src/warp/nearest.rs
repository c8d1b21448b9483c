//! The nearest pixel, with Pillow's three ways to accumulate positions, whose roundings differ.

use super::{RowOfMap, RowWriter, Warp};
use crate::Cpu;
use crate::planes::Planes;
use crate::vector::{BLOCK, Kernel, gather, run};

/// Fraction bits of a position in fixed point.
const FRACTION_BITS: u32 = 16;

/// Positions from here on do not fit into fixed point.
const FIXED_END: f64 = 32768.0;

/// Rounds a position down, with -1 for all before the picture: Pillow's `COORD`.
#[inline(always)]
fn whole(position: f64) -> i32 {
    if position < 0.0 { -1 } else { position as i32 }
}

/// Writes a row of the result with these positions of its columns (column and row of the source).
/// Positions are requested in order, including some after the last column.
struct WriteRow<'a, P> {
    from: &'a Planes,
    out: [&'a mut [u8]; 3],
    fill: [u8; 4],
    position: P,
}

impl<P: FnMut(usize) -> (i32, i32)> Kernel for WriteRow<'_, P> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        let Self { from, mut out, fill, mut position } = self;
        let (width, height) = from.size();
        let (stride, planes) = (from.stride() as u64, from.planes());
        // A picture has fewer than 2^32 columns and rows.
        let (width, height) = (width as u32, height as u32);
        for first in (0..out[0].len()).step_by(BLOCK) {
            let count = BLOCK.min(out[0].len() - first);
            let mut offsets = [0; BLOCK];
            let mut is_inside = [false; BLOCK];
            for (index, (offset, is_inside)) in offsets.iter_mut().zip(&mut is_inside).enumerate() {
                let (column, row) = position(first + index);
                // As an unsigned number, a negative position is beyond every picture.
                let (column, row) = (column as u32, row as u32);
                *is_inside = (column < width) & (row < height);
                let found = u64::from(row) * stride + u64::from(column);
                *offset = if *is_inside { found } else { 0 };
            }
            for (plane, (out, fill)) in planes.iter().zip(out.iter_mut().zip(fill)) {
                let found = gather::<1>(plane, &offsets);
                let mut values = [0; BLOCK];
                for index in 0..BLOCK {
                    values[index] = if is_inside[index] { found[index][0] } else { fill };
                }
                out[first..first + count].copy_from_slice(&values[..count]);
            }
        }
    }
}

/// An affine map.
pub(super) fn affine(warp: &Warp, map: [f64; 6], cpu: Cpu) -> RowWriter<'_> {
    match AffineForm::of(warp, map) {
        AffineForm::Scale => scale(warp, map, cpu),
        AffineForm::Fixed => fixed(warp, map, cpu),
        AffineForm::Summed => summed(warp, map, cpu),
    }
}

/// How positions are accumulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AffineForm {
    /// Separately for each axis.
    Scale,
    /// In fixed point.
    Fixed,
    /// In float64.
    Summed,
}

impl AffineForm {
    /// The way for a map.
    pub(super) fn of(warp: &Warp, map: [f64; 6]) -> Self {
        let [_, a1, _, a3, ..] = map;
        if a1 == 0.0 && a3 == 0.0 {
            return Self::Scale;
        }
        let (width, height) = (f64::from(warp.size.0), f64::from(warp.size.1));
        let fits = |(x, y): (f64, f64)| {
            let [a0, a1, a2, a3, a4, a5] = map;
            (x * a0 + y * a1 + a2).abs() < FIXED_END && (x * a3 + y * a4 + a5).abs() < FIXED_END
        };
        let corners = [(0.0, 0.0), (width, height), (0.0, height), (width, 0.0)];
        if corners.into_iter().all(fits) { Self::Fixed } else { Self::Summed }
    }
}

/// Integer positions from a start, in steps.
pub(super) fn positions(shift: f64, step: f64, count: u32) -> impl Iterator<Item = i32> {
    let mut position = shift + step * 0.5;
    (0..count).map(move |_| {
        let whole = whole(position);
        position += step;
        whole
    })
}

/// Positions in 16.16 fixed point: that of the first pixel, and increments along a row and a
/// column.
#[derive(Debug, Clone, Copy)]
pub(super) struct FixedMap {
    pub(super) begin: [i32; 2],
    pub(super) across: [i32; 2],
    pub(super) down: [i32; 2],
}

impl FixedMap {
    pub(super) fn of([a0, a1, a2, a3, a4, a5]: [f64; 6]) -> Self {
        let fix = |value: f64| (value * f64::from(1 << FRACTION_BITS) + 0.5).floor() as i32;
        Self {
            begin: [fix(a2 + a0 * 0.5 + a1 * 0.5), fix(a5 + a3 * 0.5 + a4 * 0.5)],
            across: [fix(a0), fix(a3)],
            down: [fix(a1), fix(a4)],
        }
    }
}

/// A map with separate axes: the positions of the columns are the same in all rows.
fn scale(warp: &Warp, [a0, _, a2, _, a4, a5]: [f64; 6], cpu: Cpu) -> RowWriter<'_> {
    let count = warp.size.0.next_multiple_of(BLOCK as u32);
    let columns: Vec<i32> = positions(a2, a0, count).collect();
    let span = span(&columns[..warp.size.0 as usize]);
    let mut row = a5 + a4 * 0.5;
    Box::new(move |from, _, out| {
        let (y, columns) = (whole(row), &columns);
        match span {
            Some(first) => copy(from, out, warp.fill, (i64::from(first), y)),
            None => {
                let position = |x: usize| (columns[x], y);
                run(cpu, WriteRow { from, out, fill: warp.fill, position });
            }
        }
        row += a4;
    })
}

/// The first column, if all are consecutive. Columns before the picture are all -1.
fn span(columns: &[i32]) -> Option<i32> {
    let outside = columns.iter().take_while(|column| **column < 0).count();
    let first = columns.get(outside)? - outside as i32;
    let mut following = (first..).zip(columns).skip(outside);
    following.all(|(expected, column)| expected == *column).then_some(first)
}

/// Writes a row of the result whose columns are consecutive in the source.
fn copy(from: &Planes, out: [&mut [u8]; 3], fill: [u8; 4], (first, y): (i64, i32)) {
    let (width, height) = from.size();
    let inside = usize::try_from(y).ok().filter(|y| *y < height);
    for (plane, (out, fill)) in out.into_iter().zip(fill).enumerate() {
        let columns = out.len() as i64;
        // The range of the row inside the picture.
        let begin = (-first).clamp(0, columns);
        let end = (width as i64 - first).clamp(begin, columns);
        let Some(y) = inside.filter(|_| begin < end) else {
            out.fill(fill);
            continue;
        };
        out[..begin as usize].fill(fill);
        out[end as usize..].fill(fill);
        let row = from.row(plane, y);
        out[begin as usize..end as usize]
            .copy_from_slice(&row[(begin + first) as usize..(end + first) as usize]);
    }
}

/// The writer with 16.16 fixed point.
fn fixed(warp: &Warp, map: [f64; 6], cpu: Cpu) -> RowWriter<'_> {
    let FixedMap { mut begin, across, down } = FixedMap::of(map);
    Box::new(move |from, _, out| {
        // The sum of `count` steps, modulo 2^32.
        let sum = |begin: i32, step: i32, x: usize| {
            begin.wrapping_add(step.wrapping_mul(x as i32)) >> FRACTION_BITS
        };
        let position = |x| (sum(begin[0], across[0], x), sum(begin[1], across[1], x));
        run(cpu, WriteRow { from, out, fill: warp.fill, position });
        begin = [0, 1].map(|axis| begin[axis].wrapping_add(down[axis]));
    })
}

/// The writer with float64, for positions that do not fit into fixed point.
fn summed(warp: &Warp, [a0, a1, a2, a3, a4, a5]: [f64; 6], cpu: Cpu) -> RowWriter<'_> {
    let mut begin = (a2 + a1 * 0.5 + a0 * 0.5, a5 + a4 * 0.5 + a3 * 0.5);
    Box::new(move |from, _, out| {
        let (mut column, mut row) = begin;
        let position = |_| {
            let position = (whole(column), whole(row));
            (column, row) = (column + a0, row + a3);
            position
        };
        run(cpu, WriteRow { from, out, fill: warp.fill, position });
        begin = (begin.0 + a1, begin.1 + a4);
    })
}

/// A perspective. A position that is NaN is outside.
pub(super) fn perspective(warp: &Warp, cpu: Cpu) -> RowWriter<'_> {
    let outside = |position: f64| if position.is_nan() { -1 } else { whole(position) };
    Box::new(move |from, y, out| {
        let map = RowOfMap::new(warp.map, y);
        let position = |x| {
            let (column, row) = map.at(x);
            (outside(column), outside(row))
        };
        run(cpu, WriteRow { from, out, fill: warp.fill, position });
    })
}
