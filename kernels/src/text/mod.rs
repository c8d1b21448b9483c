//! Texts and their tokens, prepared by one operation after another.
//!
//! In reading order: [`Document`] (a text, or its tokens), [`TextOperation`] (what operations
//! implement), `decode` (characters), `html` (the text of an HTML document), `vocabulary`
//! (tokens) with `tokenizer` and `words`, `table` (vectors of tokens), `files` (checks of the files
//! of a recipe). `sample` applies a recipe of them.

mod decode;
mod files;
#[cfg(test)]
#[cfg(feature = "text")]
mod golden_tests;
mod html;
mod safetensors;
mod table;
#[cfg(test)]
#[cfg(feature = "text")]
mod tests;
#[cfg_attr(not(feature = "text"), path = "no_tokenizer.rs")]
mod tokenizer;
mod vocabulary;
#[cfg(feature = "text")]
mod words;

use crate::Error;
use crate::series::Pause;
use meetpoint_format::recipe::PIXELS_MAX;
use std::fmt::Debug;

pub(crate) use decode::decode;
pub use files::{FileMisfit, check_files};
pub(crate) use html::HtmlReader;
pub(crate) use table::Embedder;
pub(crate) use vocabulary::Encoder;

/// Most bytes of a text that is split into tokens at once.
pub(crate) const TOKENIZED_BYTES_MAX: usize = 1 << 22;

/// Bytes of memory for each byte of a text, at most, while it is split into tokens: positions of
/// each character in two texts, and what is known of each token.
const TOKENIZED_BYTES_EACH: u64 = 128;

/// What a sample is between two operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum DocumentKind {
    /// A text.
    #[default]
    Text,
    /// Tokens, in this number of planes.
    Tokens(usize),
}

/// A text, or the tokens that it became, with memory that is reused.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) kind: DocumentKind,
    /// The text, where it is one.
    pub(crate) text: String,
    /// The planes of the tokens one after another, where it is not a text.
    pub(crate) tokens: Vec<i32>,
    /// Memory for another text.
    pub(crate) spare: String,
}

impl Document {
    /// Characters of the text in bytes, or tokens of a plane.
    pub(crate) fn length(&self) -> usize {
        match self.kind {
            DocumentKind::Text => self.text.len(),
            DocumentKind::Tokens(planes) => self.tokens.len() / planes,
        }
    }

    /// Writes the text, or the tokens, as the elements of a tensor.
    pub(crate) fn write(&self, out: &mut [u8]) {
        match self.kind {
            DocumentKind::Text => out.copy_from_slice(self.text.as_bytes()),
            DocumentKind::Tokens(_) => {
                for (bytes, token) in out.as_chunks_mut::<4>().0.iter_mut().zip(&self.tokens) {
                    *bytes = token.to_le_bytes();
                }
            }
        }
    }
}

/// An operation on such values.
pub(crate) trait TextOperation: Debug + Send + Sync {
    /// Changes the document.
    fn apply(&self, document: &mut Document, pause: Pause<'_>) -> Result<(), Error>;

    /// Writes the elements of the tensor, where it is the last operation. `apply` has accepted the
    /// document.
    fn write(&self, document: &Document, out: &mut [u8]) -> Result<(), Error> {
        document.write(out);
        Ok(())
    }
}

/// Most bytes of memory that a file of a length takes, whichever operations follow.
pub(crate) fn memory_bytes(encoded: usize, is_tokenized: bool) -> Result<u64, Error> {
    if encoded as u64 > PIXELS_MAX {
        return Err(Error::LongText { bytes: encoded, limit: PIXELS_MAX });
    }
    // A byte that is not a character becomes a character of three, twice: before and after HTML.
    let texts = 6 * encoded as u64;
    let tokenized = TOKENIZED_BYTES_EACH * encoded.min(TOKENIZED_BYTES_MAX) as u64;
    Ok(texts + if is_tokenized { tokenized } else { 0 })
}
