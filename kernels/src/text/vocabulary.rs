//! Tokenizes text with the vocabulary of a `tokenizer.json`.

use super::tokenizer::{Cache, Tokenizer};
use super::{Document, DocumentKind, TOKENIZED_BYTES_MAX};
use crate::Error;
use crate::series::Pause;
use meetpoint_format::recipe::{FileContent, NamedFile, Tokenize};
use std::sync::{Arc, Mutex, PoisonError};

/// The tokenizer of a file, shared by all clones of its content; the error is the problem.
pub(super) fn tokenizer_of(content: &FileContent) -> Result<Arc<Tokenizer>, String> {
    content.parsed(|bytes| {
        let tokenizer = Tokenizer::parse(bytes)?;
        match i32::try_from(tokenizer.largest()) {
            Ok(_) => Ok(tokenizer),
            Err(_) => {
                let largest = tokenizer.largest();
                Err(format!("its largest token is {largest}, which int32 does not hold"))
            }
        }
    })
}

/// `tokenize`, with its vocabulary.
#[derive(Debug)]
pub(crate) struct Encoder {
    tokenizer: Result<Arc<Tokenizer>, Error>,
    special_tokens: bool,
    /// The cache of one preparer, so that threads do not wait for one another.
    cache: Mutex<Cache>,
}

impl Encoder {
    /// Creates the operation; if its file was not loaded or is invalid, every sample is an error.
    pub(crate) fn new(operation: &Tokenize) -> Self {
        let tokenizer = read(("tokenize", &operation.tokenizer), tokenizer_of);
        let special_tokens = operation.special_tokens;
        Self { tokenizer, special_tokens, cache: Mutex::default() }
    }
}

impl super::TextOperation for Encoder {
    fn apply(&self, document: &mut Document, pause: Pause<'_>) -> Result<(), Error> {
        let tokenizer = self.tokenizer.as_ref().map_err(Clone::clone)?;
        let bytes = document.text.len();
        if bytes > TOKENIZED_BYTES_MAX {
            return Err(Error::LongText { bytes, limit: TOKENIZED_BYTES_MAX as u64 });
        }
        pause()?;
        document.tokens.clear();
        // A panic cannot leave an incomplete entry.
        let cache = &mut self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let Document { text, tokens, .. } = document;
        let encoded = tokenizer.encode(text, self.special_tokens, cache, tokens);
        encoded.map_err(|reason| Error::NoTokens { reason })?;
        document.kind = DocumentKind::Tokens(1);
        pause()
    }
}

/// The parsed form of a file; an error if it was not loaded, or is invalid.
pub(super) fn read<T>(
    (operation, file): (&'static str, &NamedFile),
    parse: impl FnOnce(&FileContent) -> Result<Arc<T>, String>,
) -> Result<Arc<T>, Error> {
    let path = || file.path.clone();
    let content = file.content.as_ref();
    let content = content.ok_or_else(|| Error::FileNotRead { operation, path: path() })?;
    parse(content).map_err(|problem| {
        let (path, problem) = (path().into(), problem.into());
        Error::File { operation, path, problem }
    })
}
