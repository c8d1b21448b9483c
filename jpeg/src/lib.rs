//! A JPEG codec: the pixels of libjpeg-turbo's default decoder bit for bit, whole or of a region.
//!
//! It reads baseline, extended and progressive JPEGs of 8 bits a sample with one, three or four
//! components, on every instruction set to the same bytes. It opens no file and starts no thread.
//!
//! # Decode a file
//!
//! ```
//! # fn main() -> Result<(), meetpoint_jpeg::Error> {
//! # let file = include_bytes!("../tests/golden/jpeg/420-33x47.jpg");
//! let picture = meetpoint_jpeg::decode(file)?;
//! assert_eq!((picture.width, picture.height), (33, 47));
//! assert_eq!(picture.pixels.len(), 33 * 47 * 3);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Decoder`] retains its memory from one picture to the next; after the first few it allocates
//! nothing.
//!
//! # Decode a region
//!
//! Only the blocks that a region needs are transformed, and its pixels are those of the whole
//! picture.
//!
//! ```
//! use meetpoint_jpeg::{DecodeOptions, Decoder, Picture, Region};
//! # fn main() -> Result<(), meetpoint_jpeg::Error> {
//! # let file = include_bytes!("../tests/golden/jpeg/420-33x47.jpg").as_slice();
//! let (mut decoder, mut crop) = (Decoder::new(), Picture::default());
//! let region = Region { x: 8, y: 20, width: 16, height: 16 };
//! decoder.decode_into(file.into(), Some(region), &DecodeOptions::default(), &mut crop)?;
//! assert_eq!(crop.pixels.len(), 16 * 16 * 3);
//! # Ok(())
//! # }
//! ```
//!
//! # Begin in the middle
//!
//! Decoding of Huffman codes can only start at the beginning, so a region at the bottom of a file
//! requires decoding everything above it. [Entry points](mod@entry_points), found once and stored
//! beside the file in some hundred bytes, let the decoder begin at the rows that it needs.
//!
//! ```
//! use meetpoint_jpeg::{DecodeOptions, Decoder, Encoded, Picture, Region, Spacing};
//! # fn main() -> Result<(), meetpoint_jpeg::Error> {
//! # let file = include_bytes!("../tests/golden/jpeg/420-33x47.jpg").as_slice();
//! let points = meetpoint_jpeg::entry_points(file, Spacing::McuRow)?.unwrap_or_default();
//! let encoded = Encoded { entry_points: &points, ..file.into() };
//! let region = Region { x: 0, y: 40, width: 33, height: 7 };
//! let mut bottom = Picture::default();
//! Decoder::new().decode_into(encoded, Some(region), &DecodeOptions::default(), &mut bottom)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Store coefficients instead of Huffman codes
//!
//! The [coefficient form](form) of a file decodes several times faster than the file, and the file
//! can be restored from it byte for byte.
//!
//! ```
//! use meetpoint_jpeg::{Form, from_form, to_form};
//! # fn main() -> Result<(), meetpoint_jpeg::Error> {
//! # let file = include_bytes!("../tests/golden/jpeg/420-33x47.jpg").as_slice();
//! let stored = to_form(file, Form::Compact)?;
//! assert_eq!(meetpoint_jpeg::decode(&stored)?, meetpoint_jpeg::decode(file)?);
//! assert_eq!(from_form(&stored)?, file);
//! # Ok(())
//! # }
//! ```
//!
//! # Limits
//!
//! A picture has at most [`PIXELS_MAX`] pixels, and a file a bounded number of scans and segments;
//! more is refused before memory is allocated. [`size`] and [`decode_bytes`] read the headers
//! alone, for callers with limits of their own. A damaged file is an [`Error`], never a panic; with
//! [`OnDamage::FillIn`] its missing samples are filled in as libjpeg does. Long computations poll
//! an [`Interrupt`].
//!
//! Refused: arithmetic coding, 12 bits a sample, lossless and hierarchical JPEGs.
//!
//! The parts, in reading order: [`Decoder`], [`DecodeOptions`], [`mod@entry_points`], [`form`],
//! [`rewrite()`] (other tables, restart markers or scans, the same coefficients), [`Skeleton`]
//! (the parts of a file other than coefficients), [`Planner`] (what decoders on other processors
//! need), [`Cpu`].

#[cfg(test)]
mod backend_tests;
mod bits;
mod checksum;
mod coefficient_reader;
mod coefficients;
mod colour;
mod colours;
mod cpu;
mod decode_plan;
mod decoder;
pub mod entry_points;
mod error;
mod exif;
mod find_entry_points;
pub mod form;
mod form_codec;
mod form_error;
mod frame;
mod geometry;
#[cfg(test)]
mod golden;
mod huffman;
mod huffman_spec;
mod idct;
mod interrupt;
#[cfg(test)]
mod interrupt_tests;
mod lenient;
#[cfg(test)]
mod limit_tests;
mod limits;
mod markers;
mod memory;
mod merged;
mod options;
mod picture;
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
mod stripe;
mod summary;
#[cfg(test)]
mod tests;
mod unsupported;
mod upsample;
mod window;

pub use coefficient_reader::read_coefficients;
pub use coefficients::{Block, CoefficientPlane, Coefficients, QuantTable};
pub use cpu::{Cpu, Evidence, Unavailable};
pub use decode_plan::{
    DecodePlan, PlanColours, PlanError, PlannedComponent, PlannedForm, Planner, Segment,
    SegmentEnd, Unit, UpsamplingKind,
};
pub use decoder::{Decoder, decode};
pub use error::Error;
pub use find_entry_points::{Spacing, entry_points, entry_points_until};
pub use form::{Form, FormError};
pub use form_codec::{
    form_of, from_form, from_form_until, has_restart_markers, is_progressive, orientation, size,
    to_form, to_form_until,
};
pub use huffman_spec::HuffmanSpec;
pub use interrupt::{Helper, Interrupt};
pub use limits::PIXELS_MAX;
pub use memory::{conversion_bytes, decode_bytes};
pub use options::{DecodeOptions, DecodeScale, OnDamage, OutputColour};
pub use picture::{Encoded, Picture, Region};
pub use rewrite::{HuffmanTables, Process, Restarts, Rewrite, rewrite, rewrite_until};
pub use skeleton::{Skeleton, assemble, dismantle};
pub use stripe::{ROW_SLACK, Stripe};
pub use summary::{JpegSummary, precision};

use error::damaged;
use limits::check_pixels;
