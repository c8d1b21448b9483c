//! Decodes PNG, WebP, BMP and GIF with the `image` crate, converted to RGB like Pillow.
//!
//! - Alpha is dropped. Only the first frame of an animation is decoded.
//! - 16 bits per channel: the upper byte is used, except that a grey PNG without an alpha channel
//!   is clipped at 255, since Pillow retains its 16 bits and clips in `convert("RGB")`. A
//!   transparent colour in `tRNS` is not an alpha channel.
//! - If the first frame of a GIF does not fill the picture, the rest is black; Pillow uses the
//!   background colour.
//! - A panic of a decoder is reported as a damaged file.
//! - These decoders cannot be interrupted everywhere, so large pictures run on the helper of the
//!   [`Interrupt`], where the caller can abandon them.

use super::input::Input;
use super::{ImageFormat, PIXELS_MAX, Picture};
use crate::{Error, Interrupt, contain_panic};
use image::codecs::{bmp, gif, png, webp};
use image::{ColorType, ImageDecoder, ImageResult, Limits};
use meetpoint_format::recipe::DecodeMode;
use std::sync::{Arc, Mutex, PoisonError};

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
    // The decoder's and the helper's copies of the file.
    Ok(pixels * (3 + samples + own) + 2 * encoded.len() as u64)
}

/// Decodes the whole picture, which has this number of pixels according to its header. Reads fail
/// once the interrupt is raised; a large picture runs on the interrupt's helper, if it has one.
pub(super) fn decode(
    (format, pixels): (ImageFormat, u64),
    (encoded, interrupt): (&[u8], &Interrupt),
    scratch: &mut Vec<u8>,
    out: &mut Picture,
) -> Result<(), Error> {
    let moved = if format == ImageFormat::Bmp { bmp_behind_palette(encoded) } else { None };
    let encoded = moved.as_deref().unwrap_or(encoded);
    let mut buffers = (std::mem::take(scratch), std::mem::take(out));
    let decode = move |(encoded, interrupt): (&[u8], &Interrupt),
                       (scratch, out): &mut (Vec<u8>, Picture)| {
        contained(format, || read(format, (encoded, interrupt), scratch, out))
    };
    let is_large = pixels > pixels_inline_max(format);
    let decoded = abandonable(is_large, (encoded, interrupt), &mut buffers, decode);
    (*scratch, *out) = buffers;
    decoded
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
    (format, pixels): (ImageFormat, u64),
    (encoded, interrupt): (&[u8], &Interrupt),
    mode: DecodeMode,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let moved = if format == ImageFormat::Bmp { bmp_behind_palette(encoded) } else { None };
    let encoded = moved.as_deref().unwrap_or(encoded);
    let decode = move |(encoded, interrupt): (&[u8], &Interrupt), scratch: &mut Vec<u8>| {
        contained(format, || {
            let (decoder, pixels) = begin(format, (encoded, interrupt))?;
            let colours = decoder.color_type();
            scratch.clear();
            scratch.resize(pixels as usize * usize::from(colours.bytes_per_pixel()), 0);
            decoder.read_image_boxed(scratch)?;
            Ok(colours)
        })
    };
    let is_large = pixels > pixels_inline_max(format);
    let colours = abandonable(is_large, (encoded, interrupt), scratch, decode)?;
    out.clear();
    let bytes = usize::from(colours.bytes_per_pixel());
    // If the interrupt is raised, the result is incomplete, and the caller returns an error.
    let blocks = scratch.chunks(PIXELS_PER_POLL * bytes).take_while(|_| !interrupt.is_raised());
    let word = |pair: &[u8]| u16::from_ne_bytes([pair[0], pair[1]]).to_le_bytes();
    match (mode, colours) {
        (DecodeMode::Rgba, _) => {
            let is_grey_png = is_grey_png(format, encoded);
            let mut rgb = vec![0; PIXELS_PER_POLL * 3];
            let alpha: &dyn Fn(&[u8]) -> u8 = match colours {
                ColorType::La8 | ColorType::Rgba8 => &|p| p[p.len() - 1],
                ColorType::La16 | ColorType::Rgba16 => &|p| word(&p[p.len() - 2..])[1],
                _ => &|_| 255,
            };
            for block in blocks {
                let rgb = &mut rgb[..block.len() / bytes * 3];
                contained(format, || to_rgb(colours, is_grey_png, (block, interrupt), rgb))?;
                for (rgb, pixel) in rgb.as_chunks::<3>().0.iter().zip(block.chunks_exact(bytes)) {
                    out.extend([rgb[0], rgb[1], rgb[2], alpha(pixel)]);
                }
            }
            Ok(())
        }
        (DecodeMode::Gray16, ColorType::L16 | ColorType::La16) => {
            blocks.for_each(|block| out.extend(block.chunks_exact(bytes).flat_map(word)));
            Ok(())
        }
        (DecodeMode::Rgb16, ColorType::Rgb16 | ColorType::Rgba16) => {
            let words = |p: &[u8]| [word(p), word(&p[2..]), word(&p[4..])];
            for block in blocks {
                out.extend(block.chunks_exact(bytes).flat_map(words).flatten());
            }
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

/// Maximum number of pixels that are decoded in the calling thread, in about 50 ms at most: the
/// decoders read far ahead (WebP reads the whole file) or work on the whole picture at the end.
fn pixels_inline_max(format: ImageFormat) -> u64 {
    match format {
        ImageFormat::WebP => 1 << 18,
        ImageFormat::Png | ImageFormat::Bmp | ImageFormat::Gif => 1 << 22,
        ImageFormat::Jpeg | ImageFormat::Coefficients | ImageFormat::Tiff | ImageFormat::Pnm => {
            unreachable!("{} has a decoder of its own", format.name())
        }
    }
}

/// Calls `decode` with a file and memory for its result: in the calling thread, or if the picture
/// is large, on the helper of the interrupt with a copy of the file. If that is interrupted,
/// `buffers` are left empty.
fn abandonable<B, T>(
    is_large: bool,
    (encoded, interrupt): (&[u8], &Interrupt),
    buffers: &mut B,
    decode: impl FnOnce((&[u8], &Interrupt), &mut B) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error>
where
    B: Default + Send + 'static,
    T: Send + 'static,
{
    let Some(helper) = interrupt.helper().filter(|_| is_large) else {
        return decode((encoded, interrupt), buffers);
    };
    let returned = Arc::new(Mutex::new(None));
    let (file, asked, mut owned) = (encoded.to_vec(), interrupt.clone(), std::mem::take(buffers));
    let result = Arc::clone(&returned);
    let work = move || {
        let decoded = decode((&file, &asked), &mut owned);
        drop(file);
        *result.lock().unwrap_or_else(PoisonError::into_inner) = Some((decoded, owned));
    };
    helper.run(Box::new(work), interrupt)?;
    let result = returned.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (decoded, owned) = result.expect("work that ended without a panic has a result");
    *buffers = owned;
    decoded
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
    to_rgb(colours, is_grey_png(format, encoded), (scratch, interrupt), &mut out.pixels)
}

/// Whether a file is a grey PNG without an alpha channel.
fn is_grey_png(format: ImageFormat, encoded: &[u8]) -> bool {
    format == ImageFormat::Png && encoded.get(PNG_COLOUR_TYPE) == Some(&0)
}

/// The byte in the header of a PNG that distinguishes grey (0) from colours and from grey with an
/// alpha channel.
const PNG_COLOUR_TYPE: usize = 25;

/// Pixels that are converted between two polls of the interrupt.
const PIXELS_PER_POLL: usize = 1 << 16;

/// Converts all pixels. A grey PNG has no alpha channel, but the decoder may have added one for
/// `tRNS`. Stops once the interrupt is raised, which the caller checks.
fn to_rgb(
    colours: ColorType,
    is_grey_png: bool,
    (from, interrupt): (&[u8], &Interrupt),
    rgb: &mut [u8],
) -> ImageResult<()> {
    let bytes = usize::from(colours.bytes_per_pixel());
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
    let blocks = from.chunks(PIXELS_PER_POLL * bytes);
    for (rgb, from) in rgb.chunks_mut(PIXELS_PER_POLL * 3).zip(blocks) {
        if interrupt.is_raised() {
            return Ok(());
        }
        for (to, from) in rgb.chunks_exact_mut(3).zip(from.chunks_exact(bytes)) {
            to.copy_from_slice(&convert(from));
        }
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
