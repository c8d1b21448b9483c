//! The reference for the single pass, pixel by pixel.

use crate::colour::{PlanesMut, pixel};

/// Of Cb and Cr one row, or the near and the far one, which begin with the left neighbour of the
/// first sample and end with the right one of the last; luma is two columns a sample.
pub(super) fn to_rgb<const ROWS: usize>(
    luma: &[u8],
    chroma: [[&[u8]; ROWS]; 2],
    [red, green, blue]: &mut PlanesMut<'_>,
) {
    for (column, luma) in luma.iter().enumerate() {
        let [cb, cr] = chroma.map(|rows| full(rows, column));
        [red[column], green[column], blue[column]] = pixel(*luma, cb, cr);
    }
}

/// Chroma in a column at full resolution.
fn full<const ROWS: usize>(rows: [&[u8]; ROWS], column: usize) -> u8 {
    let sample = column / 2 + 1;
    let is_odd = column % 2;
    // To the left of even columns, to the right of odd ones.
    let other = sample - 1 + 2 * is_odd;
    let [near, far] =
        [rows[0], rows[ROWS - 1]].map(|row| 3 * u16::from(row[sample]) + u16::from(row[other]));
    let full = match ROWS {
        1 => (near + 1 + is_odd as u16) >> 2,
        _ => (3 * near + far + 8 - is_odd as u16) >> 4,
    };
    full as u8
}
