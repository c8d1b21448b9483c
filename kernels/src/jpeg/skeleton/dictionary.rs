//! What many files say in the same words, for the skeleton's bytes to point to: the segments that
//! libjpeg writes.
//!
//! It is part of the format of [`super::Skeleton::to_bytes`] and must never change.

use crate::jpeg::markers::NATURAL;
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
    // All in the order of a file, with a JFIF segment, once for colour and once for grey.
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

/// T.81 Tables K.3, K.5, K.4, K.6: counts and symbols of DC and AC, luma and chroma.
const STANDARD: [&[u8]; 4] = [&DC_LUMA, &AC_LUMA, &DC_CHROMA, &AC_CHROMA];

const DC_LUMA: [u8; 28] =
    [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

const AC_LUMA: [u8; 178] = [
    0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125, 1, 2, 3, 0, 4, 17, 5, 18, 33, 49, 65, 6, 19,
    81, 97, 7, 34, 113, 20, 50, 129, 145, 161, 8, 35, 66, 177, 193, 21, 82, 209, 240, 36, 51, 98,
    114, 130, 9, 10, 22, 23, 24, 25, 26, 37, 38, 39, 40, 41, 42, 52, 53, 54, 55, 56, 57, 58, 67,
    68, 69, 70, 71, 72, 73, 74, 83, 84, 85, 86, 87, 88, 89, 90, 99, 100, 101, 102, 103, 104, 105,
    106, 115, 116, 117, 118, 119, 120, 121, 122, 131, 132, 133, 134, 135, 136, 137, 138, 146, 147,
    148, 149, 150, 151, 152, 153, 154, 162, 163, 164, 165, 166, 167, 168, 169, 170, 178, 179, 180,
    181, 182, 183, 184, 185, 186, 194, 195, 196, 197, 198, 199, 200, 201, 202, 210, 211, 212, 213,
    214, 215, 216, 217, 218, 225, 226, 227, 228, 229, 230, 231, 232, 233, 234, 241, 242, 243, 244,
    245, 246, 247, 248, 249, 250,
];

const DC_CHROMA: [u8; 28] =
    [0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

const AC_CHROMA: [u8; 178] = [
    0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 119, 0, 1, 2, 3, 17, 4, 5, 33, 49, 6, 18, 65, 81,
    7, 97, 113, 19, 34, 50, 129, 8, 20, 66, 145, 161, 177, 193, 9, 35, 51, 82, 240, 21, 98, 114,
    209, 10, 22, 36, 52, 225, 37, 241, 23, 24, 25, 26, 38, 39, 40, 41, 42, 53, 54, 55, 56, 57, 58,
    67, 68, 69, 70, 71, 72, 73, 74, 83, 84, 85, 86, 87, 88, 89, 90, 99, 100, 101, 102, 103, 104,
    105, 106, 115, 116, 117, 118, 119, 120, 121, 122, 130, 131, 132, 133, 134, 135, 136, 137, 138,
    146, 147, 148, 149, 150, 151, 152, 153, 154, 162, 163, 164, 165, 166, 167, 168, 169, 170, 178,
    179, 180, 181, 182, 183, 184, 185, 186, 194, 195, 196, 197, 198, 199, 200, 201, 202, 210, 211,
    212, 213, 214, 215, 216, 217, 218, 226, 227, 228, 229, 230, 231, 232, 233, 234, 242, 243, 244,
    245, 246, 247, 248, 249, 250,
];
