//! The common interface of all decoders: encoded bytes and a region in, pixels out, in RGB or grey,
//! whole or as a stream of stripes.
//!
//! The pixels are those of Pillow's `Image.open(..).convert("RGB")`, or `convert("L")`; the grey of
//! a JPEG is libjpeg's, Pillow's `draft("L", None)`. Decoding is stricter than Pillow: a truncated
//! picture is an error and never a grey area, unless the options request libjpeg's handling of a
//! damaged JPEG.

#[cfg(test)]
mod hostile;
mod input;
mod other;
mod pnm;
mod separate;
#[cfg(test)]
mod tests;
mod tiff;
mod wide;

#[cfg(test)]
pub(crate) use tests::golden_files;

use crate::colour::luma::luma;
use crate::planes::{Planes, Stripe};
use crate::{Cpu, Error, Interrupt};
use meetpoint_format::recipe::{DecodeMode, OnError};
use meetpoint_jpeg as jpeg;
use meetpoint_jpeg::{DecodeOptions, OnDamage, OutputColour};
use separate::separate;
use tiff::TiffDecoder;

pub use meetpoint_jpeg::{Encoded, Picture, Region};

/// Maximum number of pixels of a picture: 2^28. Pillow's default for an error is about 1.8 * 10^8.
pub const PIXELS_MAX: u64 = jpeg::PIXELS_MAX;

/// Maximum number of pixels per byte of a file: deflate compresses at most 1032 bytes to one, and a
/// byte holds up to 8 pixels. Other formats compress less, except for a few that encode an empty
/// area of any size in almost no bytes; the free allowance covers these.
const PIXELS_PER_BYTE_MAX: u64 = 8 * 1032;
const PIXELS_FREE: u64 = 1 << 24;

/// First bytes of a TIFF and of a BigTIFF, in both byte orders.
pub const TIFF_MAGIC: [&[u8]; 4] = [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"];

/// Container of an encoded picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ImageFormat {
    Jpeg,
    /// A JPEG in its coefficient form, which occurs only in datasets.
    Coefficients,
    Png,
    WebP,
    Bmp,
    Gif,
    Tiff,
    /// PGM and PPM in binary: raw pixels after a short header.
    Pnm,
}

impl ImageFormat {
    /// The format identified by the first bytes.
    pub fn of(encoded: &[u8]) -> Option<Self> {
        let begins = |magic: &[u8]| encoded.starts_with(magic);
        if begins(b"\xff\xd8\xff") {
            Some(Self::Jpeg)
        } else if begins(&jpeg::form::MAGIC) {
            Some(Self::Coefficients)
        } else if begins(b"\x89PNG\r\n\x1a\n") {
            Some(Self::Png)
        } else if begins(b"RIFF") && encoded.get(8..12) == Some(b"WEBP") {
            Some(Self::WebP)
        } else if begins(b"BM") {
            Some(Self::Bmp)
        } else if begins(b"GIF87a") || begins(b"GIF89a") {
            Some(Self::Gif)
        } else if TIFF_MAGIC.iter().any(|magic| begins(magic)) {
            Some(Self::Tiff)
        } else if pnm::begins(encoded) {
            Some(Self::Pnm)
        } else {
            None
        }
    }

    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "JPEG",
            Self::Coefficients => "coefficient form of a JPEG",
            Self::Png => "PNG",
            Self::WebP => "WebP",
            Self::Bmp => "BMP",
            Self::Gif => "GIF",
            Self::Tiff => "TIFF",
            Self::Pnm => "PNM",
        }
    }

    /// Whether its decoder can stream stripes of any region.
    pub(crate) fn has_stripes(self) -> bool {
        matches!(self, Self::Jpeg | Self::Coefficients)
    }

    /// An error of this format's decoder.
    pub(crate) fn damaged(self, reason: &impl ToString) -> Error {
        Error::Decode { format: self.name(), reason: reason.to_string() }
    }
}

/// The properties in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageInfo {
    /// Container.
    pub format: ImageFormat,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// Reads the header only.
pub fn probe(encoded: &[u8]) -> Result<ImageInfo, Error> {
    let format = ImageFormat::of(encoded).ok_or(Error::UnknownFormat)?;
    let (width, height) = match format {
        ImageFormat::Jpeg | ImageFormat::Coefficients => jpeg::size(encoded)?,
        ImageFormat::Tiff => tiff::size(encoded)?,
        ImageFormat::Png | ImageFormat::WebP | ImageFormat::Bmp | ImageFormat::Gif => {
            other::size(format, encoded)?
        }
        ImageFormat::Pnm => pnm::size(encoded)?,
    };
    Ok(ImageInfo { format, width, height })
}

/// Upper bound of the memory in bytes for decoding a picture besides its result, from its headers.
pub fn decode_bytes(encoded: &[u8], on_error: OnError) -> Result<u64, Error> {
    match ImageFormat::of(encoded).ok_or(Error::UnknownFormat)? {
        ImageFormat::Jpeg | ImageFormat::Coefficients => {
            Ok(jpeg::decode_bytes(encoded, on_damage(on_error))?)
        }
        ImageFormat::Tiff => tiff::decode_bytes(encoded),
        ImageFormat::Pnm => pnm::decode_bytes(encoded),
        format => other::decode_bytes(format, encoded),
    }
}

/// Decodes a region (the whole picture for `None`) to RGB into `out`, whose memory is reused.
///
/// Grey and palette pictures become RGB; alpha is dropped as Pillow's `convert("RGB")` does;
/// CMYK and YCCK JPEGs are converted as Pillow does. As in Pillow, the orientation of a TIFF is
/// applied and that of other formats is not.
/// After an error the content of `out` is unspecified.
pub fn decode_into(encoded: &[u8], region: Option<Region>, out: &mut Picture) -> Result<(), Error> {
    Decoder::new(Cpu::detect()).decode_into(encoded.into(), region, out)
}

/// A decoder with its scratch memory, for many pictures one after another.
#[derive(Debug)]
pub struct Decoder {
    cpu: Cpu,
    interrupt: Interrupt,
    jpeg: jpeg::Decoder,
    /// Whether the last picture was decoded by `jpeg`.
    is_jpeg: bool,
    tiff: TiffDecoder,
    /// Samples in the picture's colour space, if that is not RGB.
    scratch: Vec<u8>,
    /// The whole picture, if a decoder cannot return less, and a stripe of it.
    picture: Picture,
    stripe: Planes,
}

/// Rows of a stripe that is cut from a whole picture.
const STRIPE_ROWS: usize = 16;

impl Decoder {
    /// Creates a decoder. Panics if this machine lacks `cpu`.
    pub fn new(cpu: Cpu) -> Self {
        Self {
            cpu,
            interrupt: Interrupt::default(),
            jpeg: jpeg::Decoder::with_cpu(cpu),
            is_jpeg: false,
            tiff: TiffDecoder::default(),
            scratch: Vec::new(),
            picture: Picture::default(),
            stripe: Planes::default(),
        }
    }

    /// Stops decoding with [`Error::Interrupted`] when `interrupt` is raised.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.jpeg.set_interrupt(interrupt.clone());
        self.interrupt = interrupt;
    }

    /// Frees the memory for whole pictures, which is otherwise reused.
    pub fn free_pictures(&mut self) {
        self.picture = Picture::default();
        self.scratch = Vec::new();
        self.tiff = TiffDecoder::default();
    }

    /// Like the function [`decode_into`].
    pub fn decode_into(
        &mut self,
        encoded: Encoded<'_>,
        region: Option<Region>,
        out: &mut Picture,
    ) -> Result<(), Error> {
        self.decode_into_with(encoded, region, &DecodeOptions::default(), out)
    }

    /// Like [`Self::decode_into`], with options that decode a JPEG less exactly or less strictly.
    /// The region is in the picture at the options' scale.
    pub fn decode_into_with(
        &mut self,
        encoded: Encoded<'_>,
        region: Option<Region>,
        options: &DecodeOptions,
        out: &mut Picture,
    ) -> Result<(), Error> {
        let format = ImageFormat::of(encoded.bytes);
        self.is_jpeg = format.is_some_and(ImageFormat::has_stripes);
        if self.is_jpeg {
            return Ok(self.jpeg.decode_into(encoded, region, options, out)?);
        }
        let info = probe(encoded.bytes)?;
        check_size(info, region)?;
        check_bytes(info, encoded.bytes)?;
        let file = (encoded.bytes, &self.interrupt);
        let decoded = match info.format {
            ImageFormat::Tiff => self.tiff.decode(file, &mut self.jpeg, options.colour, out),
            ImageFormat::Pnm => pnm::decode(encoded.bytes, out, &self.interrupt),
            format => {
                let pixels = u64::from(info.width) * u64::from(info.height);
                other::decode((format, pixels), file, &mut self.scratch, out)
            }
        };
        // The decoder's error comes from the interrupted read, not from the picture.
        self.interrupt.check()?;
        decoded?;
        if (out.width, out.height) != (info.width, info.height) {
            return Err(info.format.damaged(&format_args!(
                "the header says {}x{}, the data {}x{}",
                info.width, info.height, out.width, out.height
            )));
        }
        if let Some(region) = region {
            keep(out, region);
        }
        Ok(())
    }

    /// Decodes a region, which must be inside the picture and not empty, in stripes of its width
    /// from top to bottom. After an error, discard the stripes that were passed on.
    pub fn decode_stripes(
        &mut self,
        encoded: Encoded<'_>,
        region: Region,
        sink: &mut dyn FnMut(Stripe<'_>),
    ) -> Result<(), Error> {
        self.decode_stripes_with(encoded, region, &DecodeOptions::default(), sink)
    }

    /// Like [`Self::decode_stripes`], with options that decode a JPEG less exactly. The region is
    /// in the picture at the options' scale.
    pub fn decode_stripes_with(
        &mut self,
        encoded: Encoded<'_>,
        region: Region,
        options: &DecodeOptions,
        sink: &mut dyn FnMut(Stripe<'_>),
    ) -> Result<(), Error> {
        self.open(encoded, options.on_damage)?;
        self.decode_opened(encoded, region, options, sink)
    }

    /// Whether the last picture was a damaged JPEG, filled in as the options allowed.
    pub fn is_filled_in(&self) -> bool {
        self.is_jpeg && self.jpeg.is_filled_in()
    }

    /// Reads the header of a picture, which [`Decoder::decode_opened`] then decodes; refuses a size
    /// that is too large or empty.
    pub(crate) fn open(
        &mut self,
        encoded: Encoded<'_>,
        on_damage: OnDamage,
    ) -> Result<ImageInfo, Error> {
        let format = ImageFormat::of(encoded.bytes);
        self.is_jpeg = format.is_some_and(ImageFormat::has_stripes);
        let info = match format {
            Some(format) if self.is_jpeg => {
                let (width, height) = self.jpeg.open(encoded, on_damage)?;
                ImageInfo { format, width, height }
            }
            _ => probe(encoded.bytes)?,
        };
        check_size(info, None)?;
        Ok(info)
    }

    /// Exif orientation of the picture that was opened last, like [`orientation`].
    pub(crate) fn opened_orientation(&self, encoded: &[u8]) -> Result<u8, Error> {
        match self.is_jpeg {
            true => Ok(self.jpeg.opened_orientation(encoded)?),
            false => orientation(encoded),
        }
    }

    /// Like [`Decoder::decode_stripes_with`], for the picture that was opened last.
    pub(crate) fn decode_opened(
        &mut self,
        encoded: Encoded<'_>,
        region: Region,
        options: &DecodeOptions,
        sink: &mut dyn FnMut(Stripe<'_>),
    ) -> Result<(), Error> {
        if self.is_jpeg {
            return Ok(self.jpeg.decode_opened(encoded, region, options, sink)?);
        }
        let mut picture = std::mem::take(&mut self.picture);
        let decoded = check_size(probe(encoded.bytes)?, Some(region))
            .and_then(|()| self.decode_into_with(encoded, None, options, &mut picture));
        self.picture = picture;
        decoded?;
        let width = region.width as usize;
        self.stripe.set_size(width, STRIPE_ROWS);
        let row_bytes = self.picture.width as usize * 3;
        let first = region.y as usize * row_bytes + region.x as usize * 3;
        let height = region.height as usize;
        for y in (0..height).step_by(STRIPE_ROWS) {
            self.interrupt.check()?;
            let rows = STRIPE_ROWS.min(height - y);
            for row in 0..rows {
                let pixels = &self.picture.pixels[first + (y + row) * row_bytes..][..width * 3];
                let pixels = pixels.as_chunks::<3>().0;
                if options.colour == OutputColour::Grey {
                    let out = self.stripe.row_mut(0, row).iter_mut();
                    for (out, [red, green, blue]) in out.zip(pixels) {
                        *out = luma(*red, *green, *blue);
                    }
                    continue;
                }
                separate(self.cpu, pixels, self.stripe.pixels_mut(row));
            }
            let mut stripe = self.stripe.stripe((0, 0), width, rows);
            if options.colour == OutputColour::Grey {
                stripe.planes = [stripe.planes[0]; 3];
            }
            sink(stripe);
        }
        Ok(())
    }
}

/// How the JPEG decoder handles a damaged file, from a recipe's key.
pub(crate) fn on_damage(on_error: OnError) -> OnDamage {
    match on_error {
        OnError::Fail => OnDamage::Fail,
        OnError::Lenient => OnDamage::FillIn,
    }
}

/// The output colours of a decoder, from a recipe's key.
pub(crate) fn output_colour(mode: DecodeMode) -> OutputColour {
    match mode {
        DecodeMode::Gray => OutputColour::Grey,
        DecodeMode::Rgb
        | DecodeMode::Rgba
        | DecodeMode::Gray16
        | DecodeMode::Rgb16
        | DecodeMode::Float => OutputColour::Rgb,
    }
}

/// Crops a picture to a region, which must be inside.
pub(crate) fn keep(picture: &mut Picture, region: Region) {
    let stride = picture.width as usize * 3;
    let row = region.width as usize * 3;
    for y in 0..region.height as usize {
        let from = (region.y as usize + y) * stride + region.x as usize * 3;
        picture.pixels.copy_within(from..from + row, y * row);
    }
    picture.set_size(region.width, region.height);
}

/// Exif orientation that decoding leaves to the caller, 1..=8; 1 (upright) if the picture has none.
/// Only a JPEG, in either form, has one: a TIFF is decoded upright.
pub fn orientation(encoded: &[u8]) -> Result<u8, Error> {
    match ImageFormat::of(encoded) {
        Some(ImageFormat::Jpeg | ImageFormat::Coefficients) => Ok(jpeg::orientation(encoded)?),
        _ => Ok(1),
    }
}

/// Refuses a size that the file is too short for, before memory is allocated.
fn check_bytes(info: ImageInfo, encoded: &[u8]) -> Result<(), Error> {
    let ImageInfo { format, width, height } = info;
    let pixels = u64::from(width) * u64::from(height);
    let bytes = encoded.len();
    if pixels > PIXELS_FREE + bytes as u64 * PIXELS_PER_BYTE_MAX {
        return Err(format.damaged(&format_args!(
            "its data cannot fill its size: {width}x{height} in {bytes} bytes"
        )));
    }
    Ok(())
}

/// Refuses a picture or region that is too large, empty or outside, before memory is allocated.
pub(crate) fn check_size(info: ImageInfo, region: Option<Region>) -> Result<(), Error> {
    let ImageInfo { format, width, height } = info;
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        return Err(Error::TooLarge { width, height, limit: PIXELS_MAX });
    }
    if width == 0 || height == 0 {
        return Err(format.damaged(&"it has no pixels"));
    }
    match region {
        Some(region) if !region.is_inside(width, height) => {
            Err(Error::Region { region, width, height })
        }
        _ => Ok(()),
    }
}
