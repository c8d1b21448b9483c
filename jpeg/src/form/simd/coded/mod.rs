//! Bytes in prefix codes that vary from byte to byte.
//!
//! The codes of all bytes of a run are listed before it is read, so that the reading loop needs
//! neither classes nor widths: it has a table for each byte, and no branch.

#[cfg(target_arch = "x86_64")]
mod avx2;
pub(in super::super) mod portable;

use super::super::codes::{Context, PairCodes, Tables, WidthContexts};
use super::super::lanes::Lanes;
use super::Kernel;

/// Spare entries that lists of contexts, symbols and bands need after their ends.
pub(in super::super) const OVERRUN: usize = 32;

/// Reads a symbol for each context into the start of `out`; it and `contexts` have [`OVERRUN`]
/// more.
///
/// Past the end of `bytes` it reads the last eight repeatedly: the symbols are then meaningless,
/// and the final positions of the lanes show it.
pub(in super::super) fn read<const N: usize>(
    kernel: Kernel,
    lanes: &mut Lanes<N>,
    bytes: &[u8],
    tables: &Tables,
    contexts: &[Context],
    out: &mut [u8],
) {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => avx2::read(lanes, bytes, tables, contexts, out),
        _ => portable::read(lanes, bytes, tables, contexts, out),
    }
}

/// Writes the contexts of the widths of blocks by their classes, which are 0 to 4, and the number
/// of the pair of groups of each; returns how many there are. Both lists have [`OVERRUN`] more.
pub(in super::super) fn width_contexts(
    kernel: Kernel,
    classes: &[u8],
    of: &WidthContexts,
    contexts: &mut [Context],
    bands: &mut [u8],
) -> usize {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => avx2::width_contexts(classes, of, contexts, bands),
        _ => portable::width_contexts(classes, of, contexts, bands),
    }
}

/// Writes the contexts of all bytes of pairs of groups by their widths and bands. The list has room
/// for them and [`OVERRUN`] more.
pub(in super::super) fn group_contexts(
    kernel: Kernel,
    widths: &[u8],
    bands: &[u8],
    codes: &PairCodes,
    contexts: &mut [Context],
) {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => avx2::group_contexts(widths, bands, codes, contexts),
        _ => portable::group_contexts(widths, bands, codes, contexts),
    }
}

/// Lists the positions of [`super::super::codes::ESCAPE`] and returns their number. Later entries
/// of the list are meaningless.
pub(in super::super) fn find_escapes(
    kernel: Kernel,
    symbols: &[u8],
    places: &mut Vec<u32>,
) -> usize {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => avx2::find_escapes(symbols, places),
        _ => portable::find_escapes(symbols, places),
    }
}

/// Bytes of the groups of each byte of widths.
#[cfg(target_arch = "x86_64")]
static BYTES_OF: [u8; 256] = {
    let mut bytes = [0; 256];
    let mut index = 0;
    while index < 256 {
        let (low, high) = (index as u8 & 15, (index >> 4) as u8);
        bytes[index] = low + high + (low == 15) as u8 + (high == 15) as u8;
        index += 1;
    }
    bytes
};
