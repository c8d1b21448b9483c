//! Bytes in varying codes, in portable Rust: the reference for the vector code.

use super::super::super::codes::{Context, ESCAPE, PairCodes, Tables, WORD_BITS, WidthContexts};
use super::super::super::geometry::width;
use super::super::super::lanes::Lanes;

/// Bytes of a load.
pub(super) const WORD_BYTES: usize = 8;

/// Symbols of a lane between two loads: 6 words of 9 bits and 7 bits of a begun byte fit in 64.
pub(super) const BETWEEN_LOADS: usize = 6;

/// See [`super::read`].
#[inline(always)]
pub(super) fn read<const N: usize>(
    lanes: &mut Lanes<N>,
    bytes: &[u8],
    tables: &Tables,
    contexts: &[Context],
    out: &mut [u8],
) {
    let last = bytes.len() - WORD_BYTES;
    let step = N * BETWEEN_LOADS;
    for (contexts, out) in contexts.chunks(step).zip(out.chunks_mut(step)) {
        let mut bits = lanes.0.map(|place| {
            let at = (place >> 3).min(last);
            let loaded = bytes[at..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk));
            loaded >> (place & 7)
        });
        for (index, (context, out)) in contexts.iter().zip(out).enumerate() {
            let lane = index % N;
            let next = bits[lane] as usize & ((1 << WORD_BITS) - 1);
            let entry = tables[context.bytes() / 2 + next];
            bits[lane] >>= entry & 63;
            lanes.0[lane] += usize::from(entry & 63);
            *out = (entry >> 8) as u8;
        }
    }
}

/// See [`super::width_contexts`].
pub(in super::super::super) fn width_contexts(
    classes: &[u8],
    of: &WidthContexts,
    contexts: &mut [Context],
    bands: &mut [u8],
) -> usize {
    let mut at = 0;
    for class in classes {
        let count = usize::from(*class);
        let pair = &of.pairs[usize::from(*class & 7)];
        contexts[at..][..count].copy_from_slice(&pair.0[..count]);
        bands[at..][..count].copy_from_slice(&pair.1[..count]);
        at += count;
    }
    at
}

/// See [`super::group_contexts`].
pub(in super::super::super) fn group_contexts(
    widths: &[u8],
    bands: &[u8],
    codes: &PairCodes,
    contexts: &mut [Context],
) {
    let mut at = 0;
    for (widths, band) in widths.iter().zip(bands) {
        let codes = &codes[usize::from(*band) & 15];
        for alone in [widths & 15, widths & 0xf0] {
            let bytes = usize::from(width(alone & 15) + width(alone >> 4));
            let listed = contexts[at..][..bytes].iter_mut().zip(&codes[usize::from(alone)]);
            listed.for_each(|(to, code)| *to = Context::new(*code));
            at += bytes;
        }
    }
}

/// See [`super::find_escapes`].
pub(super) fn find_escapes(symbols: &[u8], places: &mut Vec<u32>) -> usize {
    let found = symbols.iter().enumerate().filter(|(_, symbol)| **symbol == ESCAPE);
    places.clear();
    places.extend(found.map(|(place, _)| place as u32));
    places.len()
}
