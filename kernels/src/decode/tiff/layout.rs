//! The tags of a TIFF: its size, its samples, and the positions of its strips or tiles.

use super::directory::{Directory, Values, tag};
use super::{damaged, unsupported};
use crate::Error;

/// The compression of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    /// Modified Huffman: rows start at byte boundaries.
    FaxRows,
    /// Group 3, one-dimensional.
    FaxGroup3,
    FaxGroup4,
    Lzw,
    Jpeg,
    Deflate,
    PackBits,
}

/// The format of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    Unsigned,
    Signed,
    Float,
}

impl Number {
    fn name(self) -> &'static str {
        match self {
            Self::Unsigned => "unsigned integers",
            Self::Signed => "signed integers",
            Self::Float => "floats",
        }
    }
}

/// The meaning of a pixel's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// One sample; 0 is white if inverted.
    Grey {
        inverted: bool,
    },
    Palette,
    Rgb,
    Cmyk,
    YCbCr,
}

impl Meaning {
    fn name(self) -> &'static str {
        match self {
            Self::Grey { .. } => "grey",
            Self::Palette => "a palette",
            Self::Rgb => "RGB",
            Self::Cmyk => "CMYK",
            Self::YCbCr => "YCbCr",
        }
    }

    /// Number of samples of a colour.
    pub(super) fn channels(self) -> usize {
        match self {
            Self::Grey { .. } | Self::Palette => 1,
            Self::Rgb | Self::YCbCr => 3,
            Self::Cmyk => 4,
        }
    }
}

/// The layout of a file's first picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout<'a> {
    /// The stored size, before orientation is applied.
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) compression: Compression,
    /// The predictor: 1 none, 2 horizontal differences, 3 floating-point differences.
    pub(super) predictor: u64,
    pub(super) big_endian: bool,
    pub(super) bits_reversed: bool,
    /// Bits of a sample.
    pub(super) bits: usize,
    /// Number of samples of a pixel in the file, and of those retained: the colour, and its alpha
    /// if the colour is premultiplied.
    pub(super) samples: usize,
    pub(super) kept: usize,
    /// Whether the colour is premultiplied by its alpha.
    pub(super) is_multiplied: bool,
    /// Whether the sample after the colour is its alpha.
    pub(super) has_alpha: bool,
    pub(super) number: Number,
    pub(super) meaning: Meaning,
    /// Whether each sample is in separate strips or tiles.
    pub(super) is_planar: bool,
    pub(super) is_tiled: bool,
    pub(super) chunk_width: u32,
    pub(super) chunk_height: u32,
    pub(super) jpeg_tables: &'a [u8],
}

/// A strip or tile: its index in the file, its sample, and its position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    pub(super) index: usize,
    pub(super) plane: usize,
    pub(super) x: u32,
    pub(super) y: u32,
    /// The part inside the picture.
    pub(super) columns: u32,
    pub(super) rows: u32,
    /// Number of stored rows; tiles are never truncated.
    pub(super) stored_rows: u32,
}

/// Stored columns and rows.
pub(super) fn stored_size(directory: &Directory<'_>) -> Result<(u32, u32), Error> {
    let side = |tag| -> Result<u32, Error> {
        let side = directory.first(tag)?.ok_or_else(|| damaged("it has no size"))?;
        u32::try_from(side).map_err(|_| damaged("its size is too large"))
    };
    Ok((side(tag::WIDTH)?, side(tag::HEIGHT)?))
}

impl<'a> Layout<'a> {
    /// Reads the tags. Unsupported features are errors.
    pub(super) fn of(directory: &Directory<'a>) -> Result<Self, Error> {
        let (width, height) = stored_size(directory)?;
        let or = |tag, default: u64| -> Result<u64, Error> {
            Ok(directory.first(tag)?.unwrap_or(default))
        };
        let compression = compression(directory)?;
        let meaning = meaning(directory, compression)?;
        let is_planar = or(tag::PLANAR_CONFIGURATION, 1)? == 2;
        let samples = usize::try_from(or(tag::SAMPLES_PER_PIXEL, 1)?).unwrap_or(usize::MAX);
        if !(meaning.channels()..=64).contains(&samples) {
            return Err(damaged(format_args!("a pixel has {samples} samples")));
        }
        let extra = directory.first(tag::EXTRA_SAMPLES)?;
        // Pillow treats an undescribed extra sample as alpha.
        let has_alpha = samples == meaning.channels() + 1
            && matches!(extra, None | Some(1 | 2 | 999))
            && matches!(meaning, Meaning::Rgb | Meaning::Grey { .. });
        let is_multiplied = samples > meaning.channels()
            && extra == Some(1)
            && matches!(meaning, Meaning::Rgb | Meaning::Grey { .. });
        let (chunk_width, chunk_height) = match directory.first(tag::TILE_WIDTH)? {
            Some(width) => (width, or(tag::TILE_LENGTH, 0)?),
            None => (u64::from(width), or(tag::ROWS_PER_STRIP, u64::MAX)?.min(u64::from(height))),
        };
        let side = |side: u64| match u32::try_from(side) {
            Ok(side @ 1..) => Ok(side),
            _ => Err(damaged("its strips or tiles have an invalid size")),
        };
        let layout = Self {
            width,
            height,
            compression,
            predictor: match compression {
                Compression::Lzw | Compression::Deflate => or(tag::PREDICTOR, 1)?,
                _ => 1,
            },
            big_endian: directory.file.big_endian,
            bits_reversed: or(tag::FILL_ORDER, 1)? == 2,
            bits: bits(directory, samples)?,
            samples,
            kept: meaning.channels() + usize::from(is_multiplied),
            is_multiplied,
            has_alpha,
            number: number(directory)?,
            meaning,
            is_planar: is_planar && samples > 1,
            is_tiled: directory.first(tag::TILE_WIDTH)?.is_some(),
            chunk_width: side(chunk_width)?,
            chunk_height: side(chunk_height)?,
            jpeg_tables: directory.values(tag::JPEG_TABLES)?.map_or(&[], Values::bytes),
        };
        layout.check(directory)?;
        Ok(layout)
    }

    /// The format of a pixel as text.
    pub(super) fn describe(&self) -> String {
        let (bits, samples) = (self.bits, self.samples);
        let (meaning, number) = (self.meaning.name(), self.number.name());
        format!("{meaning} of {samples} {number} of {bits} bits a pixel")
    }

    /// Refuses samples that are not supported.
    fn check(&self, directory: &Directory<'_>) -> Result<(), Error> {
        let is_grey = self.samples == 1 && matches!(self.meaning, Meaning::Grey { .. });
        let fits = match (self.bits, self.number) {
            (1 | 2 | 4, Number::Unsigned) => self.samples == 1 && self.meaning.channels() == 1,
            (8, Number::Unsigned | Number::Signed) => true,
            (16, Number::Unsigned) => !matches!(self.meaning, Meaning::Palette | Meaning::YCbCr),
            (12, Number::Unsigned) | (16, Number::Signed) | (32, _) => is_grey,
            _ => false,
        };
        if !fits {
            return Err(unsupported(self.describe()));
        }
        let is_fax = matches!(
            self.compression,
            Compression::FaxRows | Compression::FaxGroup3 | Compression::FaxGroup4
        );
        if is_fax && (self.bits, self.samples) != (1, 1) {
            return Err(damaged("fax compression of more than one bit a pixel"));
        }
        if self.compression == Compression::Jpeg {
            let is_known = self.bits == 8
                && self.meaning != Meaning::Cmyk
                && (self.is_planar || self.samples == self.meaning.channels());
            if !is_known {
                return Err(unsupported("JPEG compression of CMYK or of extra samples"));
            }
            if self.is_planar && self.meaning == Meaning::YCbCr {
                return Err(unsupported("JPEG compression of YCbCr in separate planes"));
            }
        } else if self.meaning == Meaning::YCbCr {
            let subsampling = directory.values(tag::YCBCR_SUBSAMPLING)?;
            let is_whole = subsampling.is_some_and(|factors| factors.iter().eq([1, 1]));
            if !is_whole || self.compression != Compression::None {
                return Err(unsupported("YCbCr that is subsampled or compressed without JPEG"));
            }
        }
        match (self.predictor, self.bits, self.number) {
            (1, ..) | (2, 8 | 16 | 32, _) | (3, 32, Number::Float) => Ok(()),
            (predictor, bits, _) => {
                Err(unsupported(format_args!("predictor {predictor} with {bits} bits")))
            }
        }
    }

    /// The transform of an Adobe segment: 0 for none, 1 for YCbCr.
    pub(super) fn jpeg_transform(&self) -> u8 {
        u8::from(self.meaning == Meaning::YCbCr)
    }

    /// Number of samples per pixel in one strip or tile.
    pub(super) fn interleaved(&self) -> usize {
        if self.is_planar { 1 } else { self.samples }
    }

    /// Bytes of a row of a strip or tile.
    pub(super) fn row_bytes(&self) -> usize {
        (self.chunk_width as usize * self.interleaved() * self.bits).div_ceil(8)
    }

    /// Bytes of a strip or tile.
    pub(super) fn chunk_bytes(&self) -> u64 {
        let rows = u64::from(self.chunk_height);
        let row = u64::from(self.chunk_width) * (self.interleaved() * self.bits) as u64;
        row.div_ceil(8).saturating_mul(rows)
    }

    fn across(&self) -> usize {
        self.width.div_ceil(self.chunk_width) as usize
    }

    fn down(&self) -> usize {
        self.height.div_ceil(self.chunk_height) as usize
    }

    fn planes(&self) -> usize {
        if self.is_planar { self.kept } else { 1 }
    }

    /// Number of decoded strips or tiles.
    pub(super) fn chunks(&self) -> usize {
        self.across().saturating_mul(self.down()).saturating_mul(self.planes())
    }

    /// The decoded strips or tiles, in the order of the file.
    pub(super) fn each_chunk(&self) -> impl Iterator<Item = Chunk> + use<> {
        let Self { width, height, chunk_width, chunk_height, is_tiled, .. } = *self;
        let (across, down) = (self.across(), self.down());
        (0..self.chunks()).map(move |index| {
            let x = (index % across) as u32 * chunk_width;
            let y = (index / across % down) as u32 * chunk_height;
            let rows = chunk_height.min(height - y);
            Chunk {
                index,
                plane: index / (across * down),
                x,
                y,
                columns: chunk_width.min(width - x),
                rows,
                stored_rows: if is_tiled { chunk_height } else { rows },
            }
        })
    }

    /// The positions of the strips or tiles.
    pub(super) fn offsets(&self, directory: &Directory<'a>) -> Result<Offsets<'a>, Error> {
        let (offsets, counts) = match self.is_tiled {
            true => (tag::TILE_OFFSETS, tag::TILE_BYTE_COUNTS),
            false => (tag::STRIP_OFFSETS, tag::STRIP_BYTE_COUNTS),
        };
        let counts = directory.values(counts)?;
        let offsets = directory.values(offsets)?.ok_or_else(|| damaged("it has no data"))?;
        if offsets.count() < self.chunks() {
            return Err(damaged(format_args!(
                "{} strips or tiles of {}",
                offsets.count(),
                self.chunks()
            )));
        }
        let bytes = directory.file.bytes;
        // Strips that share data would make the decoder decode the same bytes many times.
        let stored = |counts: Values<'_>| counts.iter().fold(0u64, u64::saturating_add);
        let all = (self.compression != Compression::None).then_some(counts).flatten();
        if all.map_or(0, stored) > 4 * bytes.len() as u64 {
            return Err(damaged("its strips or tiles overlap"));
        }
        // If several uncompressed strips each contain the whole picture, Pillow uses the last.
        let is_repeated =
            self.compression == Compression::None && !self.is_planar && self.chunks() == 1;
        let first = if is_repeated { offsets.count() - 1 } else { 0 };
        Ok(Offsets { bytes, offsets, counts, first })
    }
}

/// The positions of the strips or tiles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offsets<'a> {
    bytes: &'a [u8],
    offsets: Values<'a>,
    counts: Option<Values<'a>>,
    /// Index of the first decoded strip or tile.
    first: usize,
}

impl<'a> Offsets<'a> {
    /// The bytes of a strip or tile. The byte counts of uncompressed ones are ignored.
    pub(super) fn chunk(&self, index: usize, layout: &Layout<'_>) -> Result<&'a [u8], Error> {
        let index = self.first + index;
        let count = match layout.compression {
            Compression::None => None,
            _ => self.counts.and_then(|counts| counts.get(index)),
        };
        let from = self.offsets.get(index).and_then(|from| usize::try_from(from).ok());
        let rest = from.and_then(|from| self.bytes.get(from..)).unwrap_or_default();
        if rest.is_empty() {
            return Err(damaged(format_args!("strip or tile {index} is not inside the file")));
        }
        let count = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
        Ok(&rest[..count.min(rest.len())])
    }
}

fn compression(directory: &Directory<'_>) -> Result<Compression, Error> {
    let number = directory.first(tag::COMPRESSION)?.unwrap_or(1);
    let name = match number {
        1 => return Ok(Compression::None),
        2 => return Ok(Compression::FaxRows),
        3 if directory.first(tag::T4_OPTIONS)?.unwrap_or(0) & 1 == 0 => {
            return Ok(Compression::FaxGroup3);
        }
        4 => return Ok(Compression::FaxGroup4),
        5 => return Ok(Compression::Lzw),
        7 => return Ok(Compression::Jpeg),
        8 | 32_946 => return Ok(Compression::Deflate),
        32_773 => return Ok(Compression::PackBits),
        3 => "two-dimensional Group 3 fax",
        6 => "old-style JPEG",
        34_925 => "LZMA",
        50_000 => "Zstandard",
        50_001 => "WebP",
        _ => "this",
    };
    Err(unsupported(format_args!("{name} compression (number {number})")))
}

fn meaning(directory: &Directory<'_>, compression: Compression) -> Result<Meaning, Error> {
    let number = directory.first(tag::PHOTOMETRIC)?.unwrap_or(0);
    let samples = directory.first(tag::SAMPLES_PER_PIXEL)?.unwrap_or(1);
    Ok(match number {
        0 => Meaning::Grey { inverted: true },
        1 => Meaning::Grey { inverted: false },
        2 => Meaning::Rgb,
        3 => Meaning::Palette,
        5 => Meaning::Cmyk,
        // Only luma.
        6 if samples == 1 && compression != Compression::Jpeg => Meaning::Grey { inverted: false },
        6 => Meaning::YCbCr,
        8 => return Err(unsupported("CIE L*a*b*")),
        _ => return Err(unsupported(format_args!("photometric interpretation {number}"))),
    })
}

/// Bits per sample, which must be the same for all samples. Surplus values are ignored.
fn bits(directory: &Directory<'_>, samples: usize) -> Result<usize, Error> {
    let Some(values) = directory.values(tag::BITS_PER_SAMPLE)? else { return Ok(1) };
    let first = values.get(0).unwrap_or(1);
    if values.count() > 1 && values.count() < samples {
        return Err(damaged("it does not say how many bits each sample has"));
    }
    if values.iter().take(samples).any(|bits| bits != first) {
        return Err(unsupported("samples of different sizes"));
    }
    usize::try_from(first).map_err(|_| damaged("its samples have too many bits"))
}

fn number(directory: &Directory<'_>) -> Result<Number, Error> {
    let Some(values) = directory.values(tag::SAMPLE_FORMAT)? else { return Ok(Number::Unsigned) };
    let first = values.get(0).unwrap_or(1);
    if values.iter().any(|format| format != first) {
        return Err(unsupported("samples of different types"));
    }
    Ok(match first {
        1 => Number::Unsigned,
        2 => Number::Signed,
        3 => Number::Float,
        _ => return Err(unsupported(format_args!("sample format {first}"))),
    })
}
