//! TIFF: decodes the first picture of a file to RGB, oriented upright like in Pillow.
//!
//! In reading order: `directory` (tags), `layout` (sizes, samples, strips), `unpack` (compression),
//! `fax` (bilevel compression), `strip_jpeg` (JPEG compression), `predictor`, `samples` (samples of
//! any size to bytes), `colour` (bytes to RGB).

mod colour;
mod directory;
mod fax;
mod layout;
mod predictor;
mod samples;
mod strip_jpeg;
#[cfg(test)]
mod tests;
mod unpack;

use super::{ImageFormat, Picture};
use crate::{Error, Interrupt};
use directory::Directory;
use layout::{Chunk, Compression, Layout};
use meetpoint_format::recipe::DecodeMode;
use meetpoint_jpeg::{Decoder as JpegDecoder, OutputColour};

/// Stores a row of a strip or tile, given its index there, at its position among the samples.
type StoreRow = dyn Fn(&Layout<'_>, &Chunk, usize, &[u8], &mut [u8]);

/// Limit of a picture's decompressed data, in bytes per pixel plus a base. The padding of tiles
/// counts, so a small picture cannot claim huge tiles.
const DATA_BYTES_PER_PIXEL: u64 = 32;
const DATA_BYTES_BASE: u64 = 64 << 20;

fn damaged(reason: impl std::fmt::Display) -> Error {
    ImageFormat::Tiff.damaged(&reason)
}

fn unsupported(what: impl std::fmt::Display) -> Error {
    damaged(format_args!(
        "{what} is not supported; convert the file, with \"magick FILE -compress zip FILE.tif\" \
         for example"
    ))
}

/// Columns and rows of the decoded picture, from the header.
pub(super) fn size(encoded: &[u8]) -> Result<(u32, u32), Error> {
    let directory = Directory::open(encoded)?;
    let size = layout::stored_size(&directory)?;
    Ok(colour::Orientation::of(&directory)?.size(size))
}

/// Upper bound of the bytes for decoding: the pixels as RGB and as samples, a strip or tile, and
/// the file.
pub(super) fn decode_bytes(encoded: &[u8]) -> Result<u64, Error> {
    let layout = Layout::of(&Directory::open(encoded)?)?;
    let pixels = u64::from(layout.width) * u64::from(layout.height);
    // The JPEG of a strip is assembled in memory, and may need 16 bits per sample.
    let of_jpeg = if layout.compression == Compression::Jpeg { 4 } else { 0 };
    // Modes of 16 bits or floats retain the bytes of the samples, and those with alpha one more.
    let kept = (layout.kept as u64 + 1) * layout.bits.div_ceil(8) as u64;
    let samples = pixels * (3 + kept);
    Ok(samples + layout.chunk_bytes() * (1 + of_jpeg) + 2 * encoded.len() as u64)
}

/// Scratch memory of a decoder.
#[derive(Debug, Default)]
pub(super) struct TiffDecoder {
    /// A strip or tile, decompressed.
    chunk: Vec<u8>,
    /// The picture before colour conversion: one byte per sample.
    samples: Vec<u8>,
    /// A JPEG assembled from tables and a strip.
    jpeg: Vec<u8>,
}

impl TiffDecoder {
    /// Decodes the whole picture to RGB; if `colour` is grey, all three channels are the grey
    /// value.
    pub(super) fn decode(
        &mut self,
        (encoded, interrupt): (&[u8], &Interrupt),
        jpeg: &mut JpegDecoder,
        colour: OutputColour,
        out: &mut Picture,
    ) -> Result<(), Error> {
        let directory = Directory::open(encoded)?;
        let layout = Layout::of(&directory)?;
        let conversion = colour::Conversion::of(&directory, &layout)?;
        self.read((encoded, interrupt), (&directory, &layout), jpeg, 1, &samples::narrow)?;
        conversion.convert(&layout, (&self.samples, interrupt), colour, out)
    }

    /// Decodes the whole picture to the bytes of its pixels, in a mode that is not RGB or grey of
    /// bytes. `picture` is scratch memory.
    pub(super) fn decode_wide(
        &mut self,
        (encoded, interrupt): (&[u8], &Interrupt),
        mode: DecodeMode,
        jpeg: &mut JpegDecoder,
        picture: &mut Picture,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let directory = Directory::open(encoded)?;
        let mut layout = Layout::of(&directory)?;
        let file = (encoded, interrupt);
        if mode == DecodeMode::Rgba {
            layout.kept = layout.meaning.channels() + usize::from(layout.has_alpha);
            let conversion = colour::Conversion::of(&directory, &layout)?;
            self.read(file, (&directory, &layout), jpeg, 1, &samples::narrow)?;
            let samples = (&self.samples[..], interrupt);
            conversion.convert(&layout, samples, OutputColour::Rgb, picture)?;
            out.clear();
            let pixels = picture.pixels.as_chunks::<3>().0;
            out.extend(pixels.iter().flat_map(|[red, green, blue]| [*red, *green, *blue, 0]));
            conversion.alpha(&layout, samples, picture)?;
            let alphas = picture.pixels.as_chunks::<3>().0;
            for (pixel, [alpha, ..]) in out.as_chunks_mut::<4>().0.iter_mut().zip(alphas) {
                pixel[3] = *alpha;
            }
            return Ok(());
        }
        if !samples::are_of(&layout, mode) {
            return Err(ImageFormat::Tiff.not_of_mode(&layout.describe(), mode));
        }
        layout.kept = layout.meaning.channels();
        let conversion = colour::Conversion::of(&directory, &layout)?;
        let bytes = mode.dtype().bytes();
        self.read(file, (&directory, &layout), jpeg, bytes, &samples::keep)?;
        conversion.place(&layout, (&self.samples, interrupt), mode.pixel_bytes(), out)
    }

    /// Reads the retained samples, with a given number of bytes each.
    fn read(
        &mut self,
        (_, interrupt): (&[u8], &Interrupt),
        (directory, layout): (&Directory<'_>, &Layout<'_>),
        jpeg: &mut JpegDecoder,
        sample_bytes: usize,
        store: &StoreRow,
    ) -> Result<(), Error> {
        let data = u128::from(layout.chunk_bytes()) * layout.chunks() as u128;
        let pixels = u64::from(layout.width) * u64::from(layout.height);
        if data > u128::from(pixels * DATA_BYTES_PER_PIXEL + DATA_BYTES_BASE) {
            return Err(damaged("its tiles are too large for its size"));
        }
        let offsets = layout.offsets(directory)?;
        self.samples.clear();
        self.samples.resize(pixels as usize * layout.kept * sample_bytes, 0);
        for chunk in layout.each_chunk() {
            interrupt.check()?;
            let stored = offsets.chunk(chunk.index, layout)?;
            if layout.compression == Compression::Jpeg {
                let tables = layout.jpeg_tables;
                strip_jpeg::join(tables, stored, layout.jpeg_transform(), &mut self.jpeg)?;
                strip_jpeg::decode(jpeg, &self.jpeg, layout, &chunk, &mut self.samples)?;
                continue;
            }
            let rows = chunk.stored_rows as usize;
            self.chunk.clear();
            self.chunk.resize(layout.row_bytes() * rows, 0);
            unpack::unpack(layout, (stored, interrupt), rows, &mut self.chunk)?;
            for y in 0..chunk.rows as usize {
                interrupt.check()?;
                let row = &mut self.chunk[y * layout.row_bytes()..][..layout.row_bytes()];
                predictor::undo(layout, row);
                store(layout, &chunk, y, row, &mut self.samples);
            }
        }
        Ok(())
    }
}

fn breaks_off() -> Error {
    damaged("the data of a strip or tile break off")
}
