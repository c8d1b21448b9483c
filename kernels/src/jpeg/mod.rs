//! JPEG: an exact decoder of whole pictures and of regions.

#[cfg(test)]
mod backend_tests;
mod bits;
pub(crate) mod colour;
mod colours;
mod decoder;
mod entry_points;
mod exif;
pub mod form;
pub(crate) mod frame;
mod geometry;
mod huffman;
pub(crate) mod idct;
mod lenient;
#[cfg(test)]
mod limit_tests;
pub(crate) mod markers;
mod memory;
mod merged;
mod options;
mod pixels;
#[cfg(test)]
mod random;
mod rewrite;
mod rows;
mod sequential;
mod skeleton;
mod source;
mod standard;
mod steps;
mod stored;
mod summary;
#[cfg(test)]
mod tests;
mod unsupported;
pub(crate) mod upsample;
mod whole;
mod window;

pub(crate) use decoder::JpegDecoder;
pub use form::{Form, FormError};
pub(crate) use memory::{decode_bytes, form_decode_bytes};
pub use options::{DecodeOptions, DecodeScale};
pub use rewrite::{HuffmanTables, Process, Restarts, Rewrite, rewrite, rewrite_until};
pub use skeleton::{Skeleton, assemble, dismantle};
pub use stored::{form_of, from_form, from_form_until, is_progressive, to_form, to_form_until};
pub(crate) use stored::{form_orientation, orientation};
pub use summary::JpegSummary;
pub use whole::read_coefficients;

pub use entry_points::{Spacing, entry_points, entry_points_until};

use crate::Error;
use crate::decode::{ImageFormat, PIXELS_MAX};
use markers::Frame;

/// 64 quantised DCT coefficients of a block, natural order (row by row: index 8 * v + u).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Block(pub [i16; 64]);

impl Block {
    /// A block of zeros.
    pub const ZERO: Self = Self([0; 64]);
}

/// All blocks of one component, row by row, padded to whole MCUs of the frame.
///
/// Padding blocks hold what the file codes for them, zeros where it codes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CoefficientPlane {
    /// Blocks in a row.
    pub blocks_wide: u32,
    /// Rows of blocks.
    pub blocks_high: u32,
    /// The blocks.
    pub blocks: Vec<Block>,
}

/// All coefficients of a picture, one plane a component in the order of the frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coefficients {
    /// The planes.
    pub planes: Vec<CoefficientPlane>,
}

/// A quantisation table in natural order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantTable(pub [u16; 64]);

/// An error in a JPEG, with the offset of the byte where it shows.
pub(crate) fn damaged(at: usize, reason: impl std::fmt::Display) -> Error {
    ImageFormat::Jpeg.damaged(&format_args!("{reason} (byte {at})"))
}

/// Refuses a frame of too many pixels before memory is taken for it.
pub(crate) fn check_pixels(frame: &Frame) -> Result<(), Error> {
    let (width, height) = (frame.width, frame.height);
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        return Err(Error::TooLarge { width, height, limit: PIXELS_MAX });
    }
    Ok(())
}

/// Columns and rows of a file, by its frame header.
pub(crate) fn size(file: &[u8]) -> Result<(u32, u32), Error> {
    let mut header = markers::Header::default();
    header.parse_frame_only(file)?;
    Ok((header.frame.width, header.frame.height))
}
