//! Inks: CMYK and YCCK to red, green and blue by Pillow's formula.

use super::{PlanesMut, portable};

/// The meaning of the first three components of a picture with black ink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Cyan, magenta and yellow as Adobe stores them, inverted: 255 is no ink.
    Cmyk,
    /// Luma and chroma, of the colours that those inks are the complement of.
    Ycck,
}

/// A pixel of four components. Pillow inverts what libjpeg gives and then makes
/// `nk - ink * nk / 255` of each ink, where `nk` is 255 less the black ink.
pub(crate) fn ink_to_rgb(ink: Ink, [first, second, third, black]: [u8; 4]) -> [u8; 3] {
    let stored = match ink {
        Ink::Cmyk => [first, second, third],
        // The stored inks as libjpeg's `ycck_cmyk_convert` finds them: 255 less RGB.
        Ink::Ycck => portable::pixel(first, second, third).map(|channel| 255 - channel),
    };
    let white = u32::from(black);
    stored.map(|ink| (white - divide_by_255(u32::from(255 - ink) * white)) as u8)
}

/// Rows of four components to rows of three planes, all of one length.
pub(crate) fn ink_to_rgb_planes(ink: Ink, inks: [&[u8]; 4], rgb: PlanesMut<'_>) {
    let [first, second, third, black] = inks;
    let columns = first.len();
    let one_length =
        inks.iter().all(|row| row.len() == columns) && rgb.iter().all(|row| row.len() == columns);
    assert!(one_length, "seven rows of one length");
    let [red, green, blue] = rgb;
    for column in 0..columns {
        let inks = [first[column], second[column], third[column], black[column]];
        [red[column], green[column], blue[column]] = ink_to_rgb(ink, inks);
    }
}

/// Pillow's rounded division, for values up to 255 * 255.
fn divide_by_255(value: u32) -> u32 {
    let biased = value + 128;
    ((biased >> 8) + biased) >> 8
}
