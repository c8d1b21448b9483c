//! Pillow's filter SMOOTH: a weighted mean of 3 x 3 values.

/// Smooths a row between the row above and the row below it, all equally long. At the border of the
/// picture, where a row has no neighbour and all three are the same, and in the first and the last
/// column, the values stay.
///
/// The sum of the values, that in the middle counted five times, is divided by 13 and rounded to
/// the nearest whole number, which a fraction of 13 never ties.
pub(super) fn smooth([above, row, below]: [&[u8]; 3], out: &mut [u8]) {
    out.copy_from_slice(row);
    if std::ptr::eq(above, row) || std::ptr::eq(below, row) || row.len() < 3 {
        return;
    }
    let windows = above.windows(3).zip(row.windows(3)).zip(below.windows(3));
    for (out, ((above, row), below)) in out[1..].iter_mut().zip(windows) {
        let sum: u32 = [above, row, below].into_iter().flatten().map(|it| u32::from(*it)).sum();
        // At most 13 * 255 + 6, divided by 13.
        *out = ((2 * (sum + 4 * u32::from(row[1])) + 13) / 26) as u8;
    }
}
