//! The coefficient form: a JPEG's quantised coefficients, laid out so that SIMD unpacks them.
//!
//! It stores a JPEG's coefficients without the Huffman coding, which is most of the work of
//! decoding. There are two trade-offs: [`Form::Fast`] is larger than the file and the quickest to
//! unpack, [`Form::Compact`] is mostly smaller than the file and still several times quicker. Rows
//! of MCUs are independent: a region unpacks only the rows that it touches. The layout is in
//! `docs/coefficient-form.md`. In reading order: [`Frame`] (what a decoder must know before the
//! coefficients), [`pack`], [`FormReader`], `unpack` (a row's bytes), `simd`, [`CodeBank`]
//! (the codes, for decoders on other processors).

mod bank;
mod codes;
mod cursor;
mod frame;
mod geometry;
mod lanes;
mod pack;
mod reader;
mod simd;
#[cfg(test)]
mod tests;
mod unpack;

pub use crate::form_error::FormError;
pub use bank::CodeBank;
pub use codes::KindCodes;
pub use frame::{COMPONENTS_MAX, Colour, FormComponent, Frame};
pub use pack::pack;
pub(crate) use pack::pack_until;
pub use reader::{FormReader, RowComponent, RowScratch, unpack_all};
pub(crate) use reader::{size, unpack_all_until};

/// First bytes of a coefficient form.
pub const MAGIC: [u8; 8] = *b"\x89MPC\r\n\x1a\n";

/// Version of both layouts, which follows [`MAGIC`].
const VERSION: u8 = 2;

/// How coefficients are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Form {
    /// Groups of eight coefficients with as many bits as the largest of them needs.
    Fast = 0,
    /// The bytes of [`Form::Fast`] in prefix codes out of a fixed bank.
    Compact = 1,
}
