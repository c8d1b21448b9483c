//! Decodes PNG, WebP, BMP and GIF with the `image` crate, converted to RGB like Pillow.
//!
//! - Alpha is dropped. Only the first frame of an animation is decoded.
//! - 16 bits per channel: the upper byte is used, except that a grey PNG without an alpha channel
//!   is clipped at 255, since Pillow retains its 16 bits and clips in `convert("RGB")`. A
//!   transparent colour in `tRNS` is not an alpha channel.
//! - If the first frame of a GIF does not fill the picture, the rest is black; Pillow uses the
//!   background colour.
//! - A panic of a decoder is reported as a damaged file.

use super::input::Input;
use super::{ImageFormat, PIXELS_MAX, Picture};
use crate::{Error, Interrupt, contain_panic};
use image::codecs::{bmp, gif, png, webp};
use image::{ColorType, ImageDecoder, ImageResult, Limits};
use meetpoint_format::recipe::DecodeMode;

/// Maximum side; no format here needs more, and areas are limited separately.
const SIDE_MAX: u32 = 1 << 20;

/// Memory limit of a decoder besides its result: bytes per pixel, and a base for its tables.
const SCRATCH_BYTES_PER_PIXEL: u64 = 16;
const SCRATCH_BYTES_BASE: u64 = 64 << 20;

/// Reads the size from the header.
pub(super) fn size(format: ImageFormat, encoded: &[u8]) -> Result<(u32, u32), Error> {
    let never = Interrupt::default();
    contained(format, || {
        open(format, Input::new(encoded, &never)).map(|decoder| decoder.dimensions())
    })
}

/// Upper bound of the bytes for decoding: the pixels as RGB, those of the file if their type
/// differs, and the scratch memory of the format's decoder.
pub(super) fn decode_bytes(format: ImageFormat, encoded: &[u8]) -> Result<u64, Error> {
    let never = Interrupt::default();
    let ((width, height), colours) = contained(format, || {
        let decoder = open(format, Input::new(encoded, &never))?;
        Ok((decoder.dimensions(), decoder.color_type()))
    })?;
    let of_file = u64::from(colours.bytes_per_pixel());
    let samples = if colours == ColorType::Rgb8 { 0 } else { of_file };
    let own = match format {
        ImageFormat::Jpeg | ImageFormat::Coefficients | ImageFormat::Tiff | ImageFormat::Pnm => {
            unreachable!("{} has a decoder of its own", format.name())
        }
        ImageFormat::Png | ImageFormat::Bmp => 0,
        // Indices of a frame, and the frame as RGBA.
        ImageFormat::Gif => 5,
        // Planes of luma, chroma and alpha; RGBA.
        ImageFormat::WebP => 7,
    };
    let pixels = u64::from(width) * u64::from(height);
    Ok(pixels * (3 + samples + own) + encoded.len() as u64)
}

/// Decodes the whole picture. Reads fail once the interrupt is raised. WebP is read completely
/// before decoding, which then cannot be interrupted.
pub(super) fn decode(
    format: ImageFormat,
    (encoded, interrupt): (&[u8], &Interrupt),
    scratch: &mut Vec<u8>,
    out: &mut Picture,
) -> Result<(), Error> {
    let moved = if format == ImageFormat::Bmp { bmp_behind_palette(encoded) } else { None };
    let encoded = moved.as_deref().unwrap_or(encoded);
    contained(format, || read(format, (encoded, interrupt), scratch, out))
}

/// Calls a decoder of another crate; a panic is reported as damage, like an error.
pub(super) fn contained<T>(
    format: ImageFormat,
    decode: impl FnOnce() -> ImageResult<T>,
) -> Result<T, Error> {
    match contain_panic(decode) {
        Ok(decoded) => decoded.map_err(|error| format.damaged(&error)),
        Err(panic) => {
            let message = panic.message;
            Err(format.damaged(&format_args!("its decoder stopped with \"{message}\"")))
        }
    }
}

/// For a BMP with a palette whose pixel offset points to the palette, returns a copy with an offset
/// after the palette, as Pillow reads it. Like Pillow, it accepts missing padding of the last row.
fn bmp_behind_palette(encoded: &[u8]) -> Option<Vec<u8>> {
    const FILE_HEADER: u32 = 14;
    let word = |at: usize| Some(u32::from_le_bytes(*encoded.get(at..)?.first_chunk()?));
    let short = |at: usize| Some(u16::from_le_bytes(*encoded.get(at..)?.first_chunk()?));
    let header = word(14)?;
    let (width, bits, colours, colour_bytes) = match header {
        12 => (u32::from(short(18)?), short(24)?, 0, 3),
        _ => (word(18)?, short(28)?, word(46)?, 4),
    };
    let palette = FILE_HEADER.checked_add(header)?;
    if bits > 8 || word(10)? != palette {
        return None;
    }
    let colours = if colours == 0 { 1 << bits } else { colours };
    let pixels = colours.checked_mul(colour_bytes)?.checked_add(palette)?;
    let mut moved = encoded.to_vec();
    moved[10..14].copy_from_slice(&pixels.to_le_bytes());
    let row_bytes = (u64::from(width) * u64::from(bits)).div_ceil(8);
    moved.extend([0; 3].iter().take((row_bytes.next_multiple_of(4) - row_bytes) as usize));
    Some(moved)
}

fn open(format: ImageFormat, reader: Input<'_>) -> ImageResult<Box<dyn ImageDecoder + '_>> {
    Ok(match format {
        ImageFormat::Jpeg | ImageFormat::Coefficients | ImageFormat::Tiff | ImageFormat::Pnm => {
            unreachable!("{} has a decoder of its own", format.name())
        }
        ImageFormat::Png => Box::new(png::PngDecoder::with_limits(reader, limits(PIXELS_MAX))?),
        ImageFormat::WebP => Box::new(webp::WebPDecoder::new(reader)?),
        ImageFormat::Bmp => Box::new(bmp::BmpDecoder::new(reader)?),
        ImageFormat::Gif => Box::new(gif::GifDecoder::new(reader)?),
    })
}

fn limits(pixels: u64) -> Limits {
    let mut limits = Limits::default();
    limits.max_image_width = Some(SIDE_MAX);
    limits.max_image_height = Some(SIDE_MAX);
    limits.max_alloc = Some(pixels * SCRATCH_BYTES_PER_PIXEL + SCRATCH_BYTES_BASE);
    limits
}

/// Decodes the whole picture to the bytes of its pixels, in a mode that is not RGB or grey of
/// bytes.
pub(super) fn decode_wide(
    format: ImageFormat,
    (encoded, interrupt): (&[u8], &Interrupt),
    mode: DecodeMode,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let moved = if format == ImageFormat::Bmp { bmp_behind_palette(encoded) } else { None };
    let encoded = moved.as_deref().unwrap_or(encoded);
    let colours = contained(format, || {
        let (decoder, pixels) = begin(format, (encoded, interrupt))?;
        let colours = decoder.color_type();
        scratch.clear();
        scratch.resize(pixels as usize * usize::from(colours.bytes_per_pixel()), 0);
        decoder.read_image_boxed(scratch)?;
        Ok(colours)
    })?;
    out.clear();
    let pixels = scratch.chunks_exact(usize::from(colours.bytes_per_pixel()));
    let word = |pair: &[u8]| u16::from_ne_bytes([pair[0], pair[1]]).to_le_bytes();
    match (mode, colours) {
        (DecodeMode::Rgba, _) => {
            let is_grey_png = is_grey_png(format, encoded);
            let bytes = usize::from(colours.bytes_per_pixel());
            let mut rgb = vec![0; scratch.len() / bytes * 3];
            contained(format, || to_rgb(colours, is_grey_png, scratch, &mut rgb))?;
            let alpha: &dyn Fn(&[u8]) -> u8 = match colours {
                ColorType::La8 | ColorType::Rgba8 => &|p| p[p.len() - 1],
                ColorType::La16 | ColorType::Rgba16 => &|p| word(&p[p.len() - 2..])[1],
                _ => &|_| 255,
            };
            for (rgb, pixel) in rgb.as_chunks::<3>().0.iter().zip(pixels) {
                out.extend([rgb[0], rgb[1], rgb[2], alpha(pixel)]);
            }
            Ok(())
        }
        (DecodeMode::Gray16, ColorType::L16 | ColorType::La16) => {
            out.extend(pixels.flat_map(word));
            Ok(())
        }
        (DecodeMode::Rgb16, ColorType::Rgb16 | ColorType::Rgba16) => {
            out.extend(pixels.flat_map(|p| [word(p), word(&p[2..]), word(&p[4..])]).flatten());
            Ok(())
        }
        (_, colours) => {
            let channels = colours.channel_count();
            let bits = colours.bits_per_pixel() / u16::from(channels);
            let plural = if channels == 1 { "" } else { "s" };
            Err(format
                .not_of_mode(&format_args!("{channels} channel{plural} of {bits} bits"), mode))
        }
    }
}

/// Opens a file with memory limits for its size; returns its decoder and its number of pixels.
fn begin<'a>(
    format: ImageFormat,
    (encoded, interrupt): (&'a [u8], &'a Interrupt),
) -> ImageResult<(Box<dyn ImageDecoder + 'a>, u64)> {
    let mut decoder = open(format, Input::new(encoded, interrupt))?;
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    decoder.set_limits(limits(pixels))?;
    Ok((decoder, pixels))
}

fn read(
    format: ImageFormat,
    (encoded, interrupt): (&[u8], &Interrupt),
    scratch: &mut Vec<u8>,
    out: &mut Picture,
) -> ImageResult<()> {
    let (decoder, _) = begin(format, (encoded, interrupt))?;
    let (width, height) = decoder.dimensions();
    let colours = decoder.color_type();
    out.set_size(width, height);
    if colours == ColorType::Rgb8 {
        return decoder.read_image_boxed(&mut out.pixels);
    }
    let bytes = usize::from(colours.bytes_per_pixel());
    scratch.clear();
    scratch.resize(out.pixels.len() / 3 * bytes, 0);
    decoder.read_image_boxed(scratch)?;
    to_rgb(colours, is_grey_png(format, encoded), scratch, &mut out.pixels)
}

/// Whether a file is a grey PNG without an alpha channel.
fn is_grey_png(format: ImageFormat, encoded: &[u8]) -> bool {
    format == ImageFormat::Png && encoded.get(PNG_COLOUR_TYPE) == Some(&0)
}

/// The byte in the header of a PNG that distinguishes grey (0) from colours and from grey with an
/// alpha channel.
const PNG_COLOUR_TYPE: usize = 25;

/// Converts all pixels. A grey PNG has no alpha channel, but the decoder may have added one for
/// `tRNS`.
fn to_rgb(colours: ColorType, is_grey_png: bool, from: &[u8], rgb: &mut [u8]) -> ImageResult<()> {
    let pixels = from.chunks_exact(usize::from(colours.bytes_per_pixel()));
    let grey = |value: u8| [value; 3];
    let upper = |pair: &[u8]| (u16::from_ne_bytes([pair[0], pair[1]]) >> 8) as u8;
    let clipped = |pair: &[u8]| u16::from_ne_bytes([pair[0], pair[1]]).min(255) as u8;
    let convert: &dyn Fn(&[u8]) -> [u8; 3] = match colours {
        ColorType::L8 | ColorType::La8 => &|p| grey(p[0]),
        ColorType::Rgb8 | ColorType::Rgba8 => &|p| [p[0], p[1], p[2]],
        ColorType::L16 => &|p| grey(clipped(p)),
        ColorType::La16 if is_grey_png => &|p| grey(clipped(p)),
        ColorType::La16 => &|p| grey(upper(p)),
        ColorType::Rgb16 | ColorType::Rgba16 => &|p| [upper(p), upper(&p[2..]), upper(&p[4..])],
        _ => return Err(unsupported(colours)),
    };
    for (to, from) in rgb.chunks_exact_mut(3).zip(pixels) {
        to.copy_from_slice(&convert(from));
    }
    Ok(())
}

fn unsupported(colours: ColorType) -> image::ImageError {
    use image::error::{ImageFormatHint, UnsupportedError, UnsupportedErrorKind};
    image::ImageError::Unsupported(UnsupportedError::from_format_and_kind(
        ImageFormatHint::Unknown,
        UnsupportedErrorKind::Color(colours.into()),
    ))
}
