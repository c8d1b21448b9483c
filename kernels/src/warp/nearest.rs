//! The nearest pixel, by the three ways of Pillow to sum up positions, whose roundings differ.

use super::{RowOfMap, RowWriter, Warp};
use crate::planes::Planes;

/// Fraction bits of a position in fixed point.
const FRACTION_BITS: u32 = 16;

/// Positions from here on do not fit into fixed point.
const FIXED_END: f64 = 32768.0;

/// A whole position, -1 for one before the picture: Pillow's `COORD`.
#[inline(always)]
fn whole(position: f64) -> i32 {
    if position < 0.0 { -1 } else { position as i32 }
}

/// Writes a row of the result, whose columns have these positions: column and row of the source.
#[inline(always)]
fn put(
    from: &Planes,
    out: [&mut [u8]; 3],
    [first, second, third, _]: [u8; 4],
    mut position: impl FnMut(usize) -> (i32, i32),
) {
    let (width, height) = from.size();
    let stride = from.stride();
    let planes = from.planes();
    let [red, green, blue] = out;
    let pixels = red.iter_mut().zip(green).zip(blue);
    for (x, ((red, green), blue)) in pixels.enumerate() {
        let (column, row) = position(x);
        // A negative position is beyond every picture as an unsigned one.
        let (column, row) = (column as u32 as usize, row as u32 as usize);
        [*red, *green, *blue] = if column < width && row < height {
            planes.map(|plane| plane[row * stride + column])
        } else {
            [first, second, third]
        };
    }
}

/// An affine map.
pub(super) fn affine(warp: &Warp, map: [f64; 6]) -> RowWriter<'_> {
    let [_, a1, _, a3, ..] = map;
    if a1 == 0.0 && a3 == 0.0 {
        return scale(warp, map);
    }
    let (width, height) = (f64::from(warp.size.0), f64::from(warp.size.1));
    let fits = |(x, y): (f64, f64)| {
        let [a0, a1, a2, a3, a4, a5] = map;
        (x * a0 + y * a1 + a2).abs() < FIXED_END && (x * a3 + y * a4 + a5).abs() < FIXED_END
    };
    if [(0.0, 0.0), (width, height), (0.0, height), (width, 0.0)].into_iter().all(fits) {
        fixed(warp, map)
    } else {
        summed(warp, map)
    }
}

/// A map of each axis by itself: the positions of the columns are the same in all rows.
fn scale(warp: &Warp, [a0, _, a2, _, a4, a5]: [f64; 6]) -> RowWriter<'_> {
    let mut position = a2 + a0 * 0.5;
    let columns: Vec<i32> = (0..warp.size.0)
        .map(|_| {
            let column = whole(position);
            position += a0;
            column
        })
        .collect();
    let mut row = a5 + a4 * 0.5;
    Box::new(move |from, _, out| {
        let y = whole(row);
        put(from, out, warp.fill, |x| (columns[x], y));
        row += a4;
    })
}

/// 16.16 fixed point.
fn fixed(warp: &Warp, [a0, a1, a2, a3, a4, a5]: [f64; 6]) -> RowWriter<'_> {
    let fix = |value: f64| (value * f64::from(1 << FRACTION_BITS) + 0.5).floor() as i32;
    let mut begin = (fix(a2 + a0 * 0.5 + a1 * 0.5), fix(a5 + a3 * 0.5 + a4 * 0.5));
    let (across, down) = ((fix(a0), fix(a3)), (fix(a1), fix(a4)));
    Box::new(move |from, _, out| {
        let (mut column, mut row) = begin;
        put(from, out, warp.fill, |_| {
            let position = (column >> FRACTION_BITS, row >> FRACTION_BITS);
            column = column.wrapping_add(across.0);
            row = row.wrapping_add(across.1);
            position
        });
        begin = (begin.0.wrapping_add(down.0), begin.1.wrapping_add(down.1));
    })
}

/// Float64, for positions that do not fit into fixed point.
fn summed(warp: &Warp, [a0, a1, a2, a3, a4, a5]: [f64; 6]) -> RowWriter<'_> {
    let mut begin = (a2 + a1 * 0.5 + a0 * 0.5, a5 + a4 * 0.5 + a3 * 0.5);
    Box::new(move |from, _, out| {
        let (mut column, mut row) = begin;
        put(from, out, warp.fill, |_| {
            let position = (whole(column), whole(row));
            (column, row) = (column + a0, row + a3);
            position
        });
        begin = (begin.0 + a1, begin.1 + a4);
    })
}

/// A perspective. A position that is NaN is outside.
pub(super) fn perspective(warp: &Warp) -> RowWriter<'_> {
    let outside = |position: f64| if position.is_nan() { -1 } else { whole(position) };
    Box::new(move |from, y, out| {
        let map = RowOfMap::new(warp.map, y);
        put(from, out, warp.fill, |x| {
            let (column, row) = map.at(x);
            (outside(column), outside(row))
        });
    })
}
