//! The nearest pixel, with Pillow's three ways to accumulate positions, whose roundings differ.
#![expect(unsafe_code, reason = "loads of pixels at computed positions")]

use super::{RowOfMap, RowWriter, Warp};
use crate::Cpu;
use crate::planes::Planes;
use crate::vector::{BLOCK, Kernel, gather, run};
use std::ops::Range;

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
        run(cpu, WriteFixedRow { from, out, fill: warp.fill, begin, across });
        begin = [0, 1].map(|axis| begin[axis].wrapping_add(down[axis]));
    })
}

/// Writes a row of the result whose positions are in fixed point: column and row of the first
/// pixel, and the steps to the next.
///
/// Both are linear along the row, so that the pixels inside the picture are one range of columns,
/// which is computed once.
struct WriteFixedRow<'a> {
    from: &'a Planes,
    out: [&'a mut [u8]; 3],
    fill: [u8; 4],
    begin: [i32; 2],
    across: [i32; 2],
}

/// The columns `x` of `0..count` whose position, `begin + step * x` in fixed point, is one of
/// `length`.
fn inside(begin: i32, step: i32, length: usize, count: usize) -> Range<usize> {
    let (begin, step) = (i64::from(begin), i64::from(step));
    let end = (length as i64) << FRACTION_BITS;
    let divided_up = |number: i64, by: i64| -(-number).div_euclid(by);
    // The first column with a position of at least 0, and the first of at least `end`; the same
    // from the other side for a position that falls.
    let (first, last) = match step {
        0 if (0..end).contains(&begin) => return 0..count,
        0 => return 0..0,
        1.. => (divided_up(-begin, step), divided_up(end - begin, step)),
        _ => (divided_up(begin - end + 1, -step), divided_up(begin + 1, -step)),
    };
    let first = first.clamp(0, count as i64);
    first as usize..last.clamp(first, count as i64) as usize
}

impl WriteFixedRow<'_> {
    /// The pixels inside the picture, if no position exceeds fixed point.
    fn columns(&self) -> Option<Range<usize>> {
        let ((width, height), count) = (self.from.size(), self.out[0].len());
        let last = i64::try_from(count).ok()?;
        for (begin, step) in self.begin.into_iter().zip(self.across) {
            i32::try_from(i64::from(begin) + i64::from(step) * last).ok()?;
        }
        let columns = inside(self.begin[0], self.across[0], width, count);
        let rows = inside(self.begin[1], self.across[1], height, count);
        let first = columns.start.max(rows.start);
        Some(first..columns.end.min(rows.end).max(first))
    }
}

impl Kernel for WriteFixedRow<'_> {
    type Output = ();

    #[inline(always)]
    fn compute(self) {
        // The sum of `count` steps, modulo 2^32.
        let sum = |begin: i32, step: i32, x: usize| begin.wrapping_add(step.wrapping_mul(x as i32));
        let (begin, across, fill) = (self.begin, self.across, self.fill);
        let Some(columns) = self.columns() else {
            let whole = |axis: usize, x| sum(begin[axis], across[axis], x) >> FRACTION_BITS;
            let position = |x| (whole(0, x), whole(1, x));
            let Self { from, out, .. } = self;
            return WriteRow { from, out, fill, position }.compute();
        };
        let Self { from, mut out, .. } = self;
        for (out, fill) in out.iter_mut().zip(fill) {
            out[..columns.start].fill(fill);
            out[columns.end..].fill(fill);
        }
        if columns.is_empty() {
            return;
        }
        let ((width, height), stride) = (from.size(), from.stride());
        let at = |x: usize| {
            let [column, row] =
                [0, 1].map(|axis| sum(begin[axis], across[axis], x) >> FRACTION_BITS);
            (column as usize, row as usize)
        };
        for (column, row) in [at(columns.start), at(columns.end - 1)] {
            assert!(column < width && row < height, "the range of columns is in the picture");
        }
        let planes = from.planes();
        assert!(planes.iter().all(|plane| plane.len() >= height * stride), "planes have all rows");
        let [red, green, blue] = planes.map(|plane| plane.as_ptr());
        let [reds, greens, blues] = out.map(|out| &mut out[columns.clone()]);
        let [mut column, mut row] =
            [0, 1].map(|axis| sum(begin[axis], across[axis], columns.start));
        for ((out_red, out_green), out_blue) in reds.iter_mut().zip(greens).zip(blues) {
            let offset =
                (row >> FRACTION_BITS) as usize * stride + (column >> FRACTION_BITS) as usize;
            // SAFETY: columns and rows change in equal steps without wrapping, so that each lies
            // between those of the first and the last pixel, which are in the picture, as asserted;
            // hence the offset is below `height * stride`, the least length of a plane.
            unsafe {
                (*out_red, *out_green, *out_blue) =
                    (*red.add(offset), *green.add(offset), *blue.add(offset));
            }
            (column, row) = (column.wrapping_add(across[0]), row.wrapping_add(across[1]));
        }
    }
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

#[cfg(test)]
mod tests {
    use super::{FRACTION_BITS, inside};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_columns_inside_are_those_whose_position_is_inside(
            begin in any::<i16>(), step in -70_000..70_000i32, fraction in 0..1 << FRACTION_BITS,
            length in 0..300usize, count in 0..300usize,
        ) {
            let begin = (i32::from(begin) % 400 << FRACTION_BITS) + fraction;
            let expected: Vec<usize> = (0..count)
                .filter(|x| {
                    let position = i64::from(begin) + i64::from(step) * *x as i64;
                    (0..length as i64).contains(&(position >> FRACTION_BITS))
                })
                .collect();
            let found: Vec<usize> = inside(begin, step, length, count).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
