//! The reference implementation of the conversion of rows.

use super::{Bits, VALUES};
use crate::planes::Row;

/// Interleaves three planes to pixels, and changes the bits of their values.
pub(super) fn interleave(row: Row<'_>, mirrored: bool, bits: Bits, out: &mut [u8]) {
    let [red, green, blue] = row.planes.map(|plane| &plane[..row.width]);
    let pixels = red.iter().zip(green).zip(blue);
    let pixels = pixels.map(|((red, green), blue)| [*red, *green, *blue].map(|it| bits.of(it)));
    let out = out.as_chunks_mut::<3>().0;
    if mirrored {
        out.iter_mut().rev().zip(pixels).for_each(|(out, pixel)| *out = pixel);
    } else {
        out.iter_mut().zip(pixels).for_each(|(out, pixel)| *out = pixel);
    }
}

/// Reverses bytes.
pub(super) fn reverse(from: &[u8], out: &mut [u8]) {
    out.iter_mut().rev().zip(from).for_each(|(out, byte)| *out = *byte);
}

/// Converts bytes whose channels alternate by three to elements.
pub(super) fn look_up<const N: usize>(
    from: &[u8],
    tables: &[[[u8; N]; VALUES]; 3],
    channels: [usize; 3],
    out: &mut [u8],
) {
    let tables = channels.map(|channel| &tables[channel]);
    let out = out.as_chunks_mut::<N>().0;
    for (out, from) in out.chunks_mut(3).zip(from.chunks(3)) {
        for ((out, byte), table) in out.iter_mut().zip(from).zip(tables) {
            *out = table[usize::from(*byte)];
        }
    }
}
