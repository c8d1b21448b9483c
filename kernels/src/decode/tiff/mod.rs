//! TIFF: the first picture of a file, brought to RGB and turned upright as Pillow does.
//!
//! In reading order: `directory` (tags), `layout` (what the tags say), `unpack` (compression),
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
use layout::{Compression, Layout};
use meetpoint_jpeg::{Decoder as JpegDecoder, OutputColour};

/// Bytes of decompressed data that a picture may need in all, as a multiple of its pixels and a
/// base: the padding of tiles counts, so a small picture cannot ask for huge tiles.
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

/// Columns and rows of the picture as it is decoded, by the header.
pub(super) fn size(encoded: &[u8]) -> Result<(u32, u32), Error> {
    let directory = Directory::open(encoded)?;
    let size = layout::stored_size(&directory)?;
    Ok(colour::Turn::of(&directory)?.size(size))
}

/// Most bytes that decoding takes: the pixels as RGB and as samples, a strip or tile, and the file.
pub(super) fn decode_bytes(encoded: &[u8]) -> Result<u64, Error> {
    let layout = Layout::of(&Directory::open(encoded)?)?;
    let pixels = u64::from(layout.width) * u64::from(layout.height);
    // A JPEG of a strip is joined, and may keep 16 bits for each of its samples.
    let of_jpeg = if layout.compression == Compression::Jpeg { 4 } else { 0 };
    let samples = pixels * (3 + layout.kept as u64);
    Ok(samples + layout.chunk_bytes() * (1 + of_jpeg) + 2 * encoded.len() as u64)
}

/// Scratch memory of a decoder.
#[derive(Debug, Default)]
pub(super) struct TiffDecoder {
    /// A strip or tile, decompressed.
    chunk: Vec<u8>,
    /// The picture before its colours are converted: a byte a sample.
    samples: Vec<u8>,
    /// A JPEG put together of tables and a strip.
    jpeg: Vec<u8>,
}

impl TiffDecoder {
    /// Decodes the whole picture to RGB, of which grey is wanted where that is the colour.
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
        let data = u128::from(layout.chunk_bytes()) * layout.chunks() as u128;
        let pixels = u64::from(layout.width) * u64::from(layout.height);
        if data > u128::from(pixels * DATA_BYTES_PER_PIXEL + DATA_BYTES_BASE) {
            return Err(damaged("its tiles are too large for its size"));
        }
        let offsets = layout.offsets(&directory)?;
        self.samples.clear();
        self.samples.resize(pixels as usize * layout.kept, 0);
        for chunk in layout.each_chunk() {
            interrupt.check()?;
            let stored = offsets.chunk(chunk.index, &layout)?;
            if layout.compression == Compression::Jpeg {
                let tables = layout.jpeg_tables;
                strip_jpeg::join(tables, stored, layout.jpeg_transform(), &mut self.jpeg)?;
                strip_jpeg::decode(jpeg, &self.jpeg, &layout, &chunk, &mut self.samples)?;
                continue;
            }
            let rows = chunk.stored_rows as usize;
            self.chunk.clear();
            self.chunk.resize(layout.row_bytes() * rows, 0);
            unpack::unpack(&layout, (stored, interrupt), rows, &mut self.chunk)?;
            for y in 0..chunk.rows as usize {
                interrupt.check()?;
                let row = &mut self.chunk[y * layout.row_bytes()..][..layout.row_bytes()];
                predictor::undo(&layout, row);
                samples::narrow(&layout, &chunk, y, row, &mut self.samples);
            }
        }
        conversion.convert(&layout, (&self.samples, interrupt), colour, out)
    }
}

fn breaks_off() -> Error {
    damaged("the data of a strip or tile break off")
}
