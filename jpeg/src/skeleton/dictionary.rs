//! Bytes that many files share, as a dictionary for the skeleton's copies: the segments that
//! libjpeg writes.
//!
//! It is part of the format of [`super::Skeleton::to_bytes`] and must never change.

use crate::markers::NATURAL;
use crate::standard::STANDARD;
use std::sync::OnceLock;

/// The bytes.
pub(super) fn dictionary() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(make)
}

/// Whether the dictionary holds a Huffman table, counts and symbols.
pub(super) fn holds_table(bytes: &[u8]) -> bool {
    STANDARD.iter().any(|table| **table == *bytes)
}

fn make() -> Vec<u8> {
    let mut bytes = Vec::new();
    for quality in 1..=100 {
        for (index, table) in [&LUMA, &CHROMA].into_iter().enumerate() {
            bytes.extend([0xff, 0xdb, 0, 67, index as u8]);
            bytes.extend(NATURAL.map(|natural| scaled(table[usize::from(natural)], quality)));
        }
    }
    // All segments in the order of a file, with a JFIF segment, once for colour and once for grey.
    let tables = |bytes: &mut Vec<u8>, count: usize, empty: bool| {
        for (table, kind) in STANDARD.into_iter().zip([0, 0x10, 1, 0x11]).take(count) {
            let body = if empty { &[0; 16] } else { table };
            bytes.extend([0xff, 0xc4, 0, (3 + body.len()) as u8, kind]);
            bytes.extend_from_slice(body);
        }
    };
    for empty in [true, false] {
        bytes.extend_from_slice(b"\xff\xc0\x00\x0b\x08\x01\x01\x11\x00");
        tables(&mut bytes, 2, empty);
        bytes.extend_from_slice(b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\xff\xd9");
        bytes.extend_from_slice(
            b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x01\x00\x48\x00\x48\x00\x00",
        );
        bytes.extend_from_slice(
            b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00",
        );
        bytes.extend_from_slice(b"\xff\xc0\x00\x11\x08");
        bytes.extend_from_slice(b"\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01");
        tables(&mut bytes, 4, empty);
        bytes.extend_from_slice(b"\x03\x01\x11\x00\x02\x11\x01\x03\x11\x01");
        tables(&mut bytes, 4, empty);
        bytes
            .extend_from_slice(b"\xff\xda\x00\x0c\x03\x01\x00\x02\x11\x03\x11\x00\x3f\x00\xff\xd9");
    }
    bytes
}

/// A value of a quantisation table at one of libjpeg's qualities, as `jpeg_set_quality` with 8 bits
/// gives it.
fn scaled(value: u8, quality: u32) -> u8 {
    let percent = if quality < 50 { 5000 / quality } else { 200 - 2 * quality };
    ((u32::from(value) * percent + 50) / 100).clamp(1, 255) as u8
}

/// T.81 Table K.1, natural order.
const LUMA: [u8; 64] = [
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56,
    14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113,
    92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
];

/// T.81 Table K.2, natural order.
const CHROMA: [u8; 64] = [
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99,
    47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
];
