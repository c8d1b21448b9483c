//! Undoes the predictor that LZW and Deflate data often use.

use super::layout::Layout;

/// Converts the differences of a row to samples, in the byte order of the file.
pub(super) fn undo(layout: &Layout<'_>, row: &mut [u8]) {
    let samples = layout.interleaved();
    match (layout.predictor, layout.bits) {
        (2, 8) => {
            for at in samples..row.len() {
                row[at] = row[at].wrapping_add(row[at - samples]);
            }
        }
        (2, 16) => add(row, samples, |a: [u8; 2], b| match layout.big_endian {
            true => u16::from_be_bytes(a).wrapping_add(u16::from_be_bytes(b)).to_be_bytes(),
            false => u16::from_le_bytes(a).wrapping_add(u16::from_le_bytes(b)).to_le_bytes(),
        }),
        (2, _) => add(row, samples, |a: [u8; 4], b| match layout.big_endian {
            true => u32::from_be_bytes(a).wrapping_add(u32::from_be_bytes(b)).to_be_bytes(),
            false => u32::from_le_bytes(a).wrapping_add(u32::from_le_bytes(b)).to_le_bytes(),
        }),
        (3, _) => floats(row, samples, layout.big_endian),
        _ => (),
    }
}

/// Adds to each value that of the previous pixel.
fn add<const N: usize>(row: &mut [u8], samples: usize, sum: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
    let values = row.as_chunks_mut::<N>().0;
    for at in samples..values.len() {
        values[at] = sum(values[at], values[at - samples]);
    }
}

/// Undoes byte differences in four groups: the highest bytes of all values, then the next ones.
/// Adobe Photoshop TIFF Technical Note 3.
fn floats(row: &mut [u8], samples: usize, big_endian: bool) {
    for at in samples..row.len() {
        row[at] = row[at].wrapping_add(row[at - samples]);
    }
    let grouped = row.to_vec();
    let count = row.len() / 4;
    for (index, value) in row.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let bytes = [0, 1, 2, 3].map(|group| grouped[group * count + index]);
        *value = bytes;
        if !big_endian {
            value.reverse();
        }
    }
}
