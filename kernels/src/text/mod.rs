//! Text and tokens, prepared by a sequence of operations.
//!
//! In reading order: [`Document`] (a text, or its tokens), [`TextOperation`] (what operations
//! implement), `decode` (characters), `html` (the text of an HTML document), `vocabulary`
//! (tokens) with `tokenizer` and `words`, `table` (vectors of tokens), `files` (checks of the files
//! of a recipe). `sample` applies recipes of such operations.

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

/// Maximum bytes of a text that can be tokenized.
pub(crate) const TOKENIZED_BYTES_MAX: usize = 1 << 22;

/// Upper bound of the memory per byte of text during tokenization: positions of each character in
/// two texts, and data of each token.
const TOKENIZED_BYTES_EACH: u64 = 128;

/// The form of a sample between two operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum DocumentKind {
    /// A text.
    #[default]
    Text,
    /// Tokens, in this number of planes.
    Tokens(usize),
}

/// A text or its tokens, with reused memory.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) kind: DocumentKind,
    /// The text, if the document is text.
    pub(crate) text: String,
    /// The concatenated planes of tokens, if it is not text.
    pub(crate) tokens: Vec<i32>,
    /// Memory for another text.
    pub(crate) spare: String,
}

impl Document {
    /// Length of the text in bytes, or number of tokens per plane.
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

/// An operation on text or tokens.
pub(crate) trait TextOperation: Debug + Send + Sync {
    /// Changes the document.
    fn apply(&self, document: &mut Document, pause: Pause<'_>) -> Result<(), Error>;

    /// Writes the elements of the tensor, if it is the last operation. `apply` has accepted the
    /// document.
    fn write(&self, document: &Document, out: &mut [u8]) -> Result<(), Error> {
        document.write(out);
        Ok(())
    }
}

/// Upper bound of the memory in bytes for a file of this length, whatever operations follow.
pub(crate) fn memory_bytes(encoded: usize, is_tokenized: bool) -> Result<u64, Error> {
    if encoded as u64 > PIXELS_MAX {
        return Err(Error::LongText { bytes: encoded, limit: PIXELS_MAX });
    }
    // An invalid byte becomes a character of three bytes, in two buffers: before and after HTML.
    let texts = 6 * encoded as u64;
    let tokenized = TOKENIZED_BYTES_EACH * encoded.min(TOKENIZED_BYTES_MAX) as u64;
    Ok(texts + if is_tokenized { tokenized } else { 0 })
}
