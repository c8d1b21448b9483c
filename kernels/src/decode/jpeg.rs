//! JPEG by zune-jpeg: baseline and progressive, grey, YCbCr, RGB, CMYK and YCCK.
//!
//! The decoder takes AVX2 or NEON where the machine has it, and there is no way to ask it not to.
//! With AVX2 the bytes are those of its scalar code, which a test checks against a list made
//! without (tests/golden/jpegs.txt); on a machine with NEON the same test checks NEON.
//!
//! They are not those of libjpeg-turbo, which Pillow uses. Over 200 ImageNet photographs values
//! differ by 0.05 on average and by 7 at most, for three reasons: another rounding of the inverse
//! transform and of the colours (by up to 3), another rounding of chroma between its samples, and
//! chroma at the right and lower edge, which libjpeg extends with the last sample and zune-jpeg
//! takes from the padding. In pictures of noise a few pixels a side that last one has been seen to
//! reach 62. CMYK and YCCK become RGB by Pillow's formula.
//!
//! Bits that are lost or changed inside the data give other pixels, as in every JPEG decoder,
//! unless they break the syntax; the checksum of the dataset finds them.

use super::{ImageFormat, Picture, jpeg_structure};
use crate::Error;
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;

/// Longest side that the frame header can say.
const SIDE_MAX: usize = 65_535;

/// Most scans of a progressive file; encoders make about ten.
const SCANS_MAX: usize = 100;

/// Decodes a whole file.
pub(super) fn decode(
    encoded: &[u8],
    scratch: &mut Vec<u8>,
    out: &mut Picture,
) -> Result<(), Error> {
    jpeg_structure::check(encoded)?;
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(SIDE_MAX)
        .set_max_height(SIDE_MAX)
        .jpeg_set_max_scans(SCANS_MAX)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let damaged = |error: DecodeErrors| ImageFormat::Jpeg.damaged(&error);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(encoded), options);
    decoder.decode_headers().map_err(damaged)?;
    let colours =
        decoder.input_colorspace().expect("the headers are decoded, so the colour space is known");
    let info = decoder.info().expect("the headers are decoded");
    out.set_size(u32::from(info.width), u32::from(info.height));
    match colours {
        ColorSpace::Luma | ColorSpace::YCbCr | ColorSpace::RGB => {
            decoder.decode_into(&mut out.pixels).map_err(damaged)
        }
        ColorSpace::CMYK | ColorSpace::YCCK => {
            decoder.set_options(options.jpeg_set_out_colorspace(colours));
            scratch.resize(out.pixels.len() / 3 * 4, 0);
            decoder.decode_into(scratch).map_err(damaged)?;
            match colours {
                ColorSpace::YCCK => ink_to_rgb(scratch, complement_of_rgb, &mut out.pixels),
                _ => ink_to_rgb(scratch, |ink| ink, &mut out.pixels),
            }
            Ok(())
        }
        other => Err(ImageFormat::Jpeg.damaged(&format_args!("its colours are {other:?}"))),
    }
}

/// Inks as Adobe stores them, inverted: 255 is no ink. Pillow inverts what libjpeg gives and then
/// makes `nk - ink * nk / 255` of each ink, where `nk` is 255 less the black ink.
fn ink_to_rgb(inks: &[u8], stored: impl Fn([u8; 3]) -> [u8; 3], rgb: &mut [u8]) {
    for (ink, rgb) in inks.chunks_exact(4).zip(rgb.chunks_exact_mut(3)) {
        let white = u32::from(ink[3]);
        for (ink, channel) in stored([ink[0], ink[1], ink[2]]).into_iter().zip(rgb) {
            *channel = (white - divide_by_255(u32::from(255 - ink) * white)) as u8;
        }
    }
}

/// Pillow's rounded division, for values up to 255 * 255.
fn divide_by_255(value: u32) -> u32 {
    let biased = value + 128;
    ((biased >> 8) + biased) >> 8
}

/// The stored inks of YCC as libjpeg's `ycck_cmyk_convert` finds them: 255 less RGB.
fn complement_of_rgb([y, cb, cr]: [u8; 3]) -> [u8; 3] {
    const HALF: i32 = 1 << 15;
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    let red = y + ((91_881 * cr + HALF) >> 16);
    let green = y + ((-22_554 * cb - 46_802 * cr + HALF) >> 16);
    let blue = y + ((116_130 * cb + HALF) >> 16);
    [red, green, blue].map(|channel| (255 - channel).clamp(0, 255) as u8)
}
