//! The meaning of the one pass, pixel by pixel.

use super::Chroma;
use crate::jpeg::colour::{PlanesMut, pixel};
use std::ops::Range;

/// Some columns of a row that begins at column `start`.
pub(super) fn to_rgb(
    luma: &[u8],
    chroma: &Chroma<'_>,
    start: usize,
    columns: Range<usize>,
    [red, green, blue]: &mut PlanesMut<'_>,
) {
    for column in columns {
        // In the rows of chroma, where all samples stand one further on.
        let sample = column / 2 - chroma.first + 1;
        let is_odd = !column.is_multiple_of(2);
        let other = if is_odd { sample + 1 } else { sample - 1 };
        let three_to_one = |row: &[u8]| 3 * u16::from(row[sample]) + u16::from(row[other]);
        let full = |index: usize| {
            let near = three_to_one(chroma.near[index]);
            match chroma.far {
                Some(far) => (3 * near + three_to_one(far[index]) + 8 - u16::from(is_odd)) >> 4,
                None => (near + 1 + u16::from(is_odd)) >> 2,
            }
        };
        let at = column - start;
        let [cb, cr] = [full(0) as u8, full(1) as u8];
        [red[at], green[at], blue[at]] = pixel(luma[at], cb, cr);
    }
}
