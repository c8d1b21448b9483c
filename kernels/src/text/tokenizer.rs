//! Executes a `tokenizer.json` with the library `tokenizers`. For byte-level BPE, like that of
//! GPT-2, text is split here, and the library encodes each word only once.

use super::words::Words;
use crate::contain_panic;
use std::collections::HashMap;
use tokenizers::{Model, ModelWrapper, PostProcessorWrapper, PreTokenizerWrapper};

/// Maximum number of words whose tokens are cached; the full cache is cleared.
const CACHED_WORDS_MAX: usize = 1 << 16;
/// Maximum bytes of a cached word.
const CACHED_BYTES_MAX: usize = 64;
/// Maximum number of added tokens, since a text is searched for each of them.
const ADDED_MAX: usize = 32;

/// A loaded tokenizer.
#[derive(Debug)]
pub(super) struct Tokenizer {
    inner: tokenizers::Tokenizer,
    largest: u32,
    /// Set for byte-level BPE.
    byte_level: Option<ByteLevel>,
}

/// The parameters of byte-level BPE.
#[derive(Debug)]
struct ByteLevel {
    add_prefix_space: bool,
    /// Strings that are always separate tokens.
    added: Vec<String>,
    /// Whether special tokens are added to a text.
    has_special_tokens: bool,
    /// The character that represents each byte.
    characters: [char; 256],
}

/// Tokens of encoded words.
#[derive(Debug, Default)]
pub(super) struct Cache {
    words: HashMap<Box<str>, Box<[i32]>>,
    /// A word whose bytes are represented by characters.
    word: String,
    /// A text with a prepended space.
    text: String,
}

impl Tokenizer {
    /// The tokenizer of a file, without truncation and padding.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        // Its parser panics on some malformed files.
        let read = contain_panic(|| tokenizers::Tokenizer::from_bytes(bytes));
        let read = read.map_err(|panic| format!("its parser fails: {}", panic.message))?;
        let mut inner = read.map_err(|error| error.to_string())?;
        inner.with_truncation(None).map_err(|error| error.to_string())?;
        inner.with_padding(None);
        if let ModelWrapper::BPE(model) = inner.get_model()
            && model.dropout.is_some_and(|share| share > 0.0)
        {
            return Err("its model has `dropout`, which draws without a seed".to_owned());
        }
        let largest = inner.get_vocab(true).into_values().max();
        let largest = largest.ok_or("its vocabulary is empty")?;
        let byte_level = ByteLevel::of(&inner);
        Ok(Self { inner, largest, byte_level })
    }

    /// The largest token.
    pub(super) fn largest(&self) -> u32 {
        self.largest
    }

    /// Appends the tokens of a text as int32; the error is why it cannot be encoded.
    pub(super) fn encode(
        &self,
        text: &str,
        special_tokens: bool,
        cache: &mut Cache,
        to: &mut Vec<i32>,
    ) -> Result<(), String> {
        if let Some(byte_level) = &self.byte_level
            && byte_level.is_plain(text, special_tokens)
        {
            return self.encode_words(text, byte_level, cache, to);
        }
        let encoded = self.inner.encode_fast(text, special_tokens);
        let encoded = encoded.map_err(|error| error.to_string())?;
        to.extend(encoded.get_ids().iter().map(|token| token.cast_signed()));
        Ok(())
    }

    /// Like [`Self::encode`], word by word, for a text without added tokens.
    fn encode_words(
        &self,
        text: &str,
        ByteLevel { add_prefix_space, characters, .. }: &ByteLevel,
        Cache { words, word, text: spaced }: &mut Cache,
        to: &mut Vec<i32>,
    ) -> Result<(), String> {
        let text = match *add_prefix_space && !text.is_empty() && !text.starts_with(' ') {
            true => {
                spaced.clear();
                spaced.extend([" ", text]);
                spaced
            }
            false => text,
        };
        for piece in Words::of(text) {
            if let Some(tokens) = words.get(piece) {
                to.extend_from_slice(tokens);
                continue;
            }
            word.clear();
            word.extend(piece.bytes().map(|byte| characters[usize::from(byte)]));
            let encoded = self.inner.get_model().tokenize(word);
            let encoded = encoded.map_err(|error| error.to_string())?;
            let start = to.len();
            to.extend(encoded.iter().map(|token| token.id.cast_signed()));
            if piece.len() <= CACHED_BYTES_MAX {
                if words.len() >= CACHED_WORDS_MAX {
                    words.clear();
                }
                words.insert(piece.into(), to[start..].into());
            }
        }
        Ok(())
    }
}

impl ByteLevel {
    /// The parameters of a tokenizer; `None` if it is not plain byte-level BPE.
    fn of(tokenizer: &tokenizers::Tokenizer) -> Option<Self> {
        let ModelWrapper::BPE(_) = tokenizer.get_model() else { return None };
        let Some(PreTokenizerWrapper::ByteLevel(split)) = tokenizer.get_pre_tokenizer() else {
            return None;
        };
        if tokenizer.get_normalizer().is_some() || !split.use_regex {
            return None;
        }
        let added = tokenizer.get_added_tokens_decoder().into_values().map(|token| token.content);
        let added: Vec<String> = added.collect();
        if added.len() > ADDED_MAX || added.iter().any(String::is_empty) {
            return None;
        }
        let has_special_tokens = match tokenizer.get_post_processor() {
            None | Some(PostProcessorWrapper::ByteLevel(_)) => false,
            Some(_) => true,
        };
        let add_prefix_space = split.add_prefix_space;
        Some(Self { add_prefix_space, added, has_special_tokens, characters: characters() })
    }

    /// Whether a text can be encoded word by word, without special or added tokens.
    fn is_plain(&self, text: &str, special_tokens: bool) -> bool {
        let has_added = || self.added.iter().any(|token| text.contains(&**token));
        !(special_tokens && self.has_special_tokens || has_added())
    }
}

/// The character for each byte: printable ones of Latin-1 themselves, the others in their order
/// from U+0100 on (`bytes_to_unicode` of GPT-2's encoder.py).
fn characters() -> [char; 256] {
    let mut next = 0x100..;
    std::array::from_fn(|byte| match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => char::from(byte as u8),
        _ => next.next().and_then(char::from_u32).expect("67 characters"),
    })
}
