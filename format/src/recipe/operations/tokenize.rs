//! `tokenize`: converts a text to token ids.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property, ValueKind,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Dtype, Layout, NamedFile, SampleType};

/// `tokenizers.Tokenizer.from_file(tokenizer).encode(text, add_special_tokens=special_tokens).ids`
/// of Hugging Face, for byte-pair encoding and every other model of a `tokenizer.json`.
///
/// Truncation and padding settings of the file are ignored; see [`super::PadSequence`].
#[derive(Debug, Clone, PartialEq)]
pub struct Tokenize {
    /// The `tokenizer.json`.
    pub tokenizer: NamedFile,
    /// Whether to add the special tokens of its post-processor, such as an end token.
    pub special_tokens: bool,
}

/// The key `sha256` of an operation with a file.
pub(super) const SHA256: Key = Key::absent(
    "sha256",
    KeyType::Sha256,
    "the SHA-256 of the file, which is refused if it has another",
);

impl Data for Tokenize {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "tokenize",
        about: "splits a text into tokens by a `tokenizer.json`, such as byte-pair encoding",
        phase: Phase::Text,
        targets: OnTargets::Refuses,
        takes: &[InputType::TEXT],
        gives: OutputType {
            kind: ValueKind::Tokens,
            dtype: Property::Is("int32"),
            size: Property::Variable,
            channels: Property::Is("1"),
        },
        needs: Needs::All,
        random: &[],
        keys: &[
            Key::required(
                "tokenizer",
                KeyType::File,
                Value::File(std::borrow::Cow::Borrowed("tokenizer.json")),
                "the `tokenizer.json` of the `tokenizers` library",
            ),
            SHA256,
            Key::optional(
                "special_tokens",
                KeyType::Switch,
                Value::Switch(false),
                "whether the special tokens of its post-processor are added",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        let sha256 = values.optional_digest("sha256").map(str::to_owned);
        Self {
            tokenizer: NamedFile { sha256, ..NamedFile::new(values.file("tokenizer")) },
            special_tokens: values.switch("special_tokens"),
        }
    }

    fn values(&self) -> Vec<Value> {
        let [path, digest] = self.tokenizer.values();
        vec![path, digest, Value::Switch(self.special_tokens)]
    }

    fn size(&self, _input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        None
    }

    fn file(&self) -> Option<&NamedFile> {
        Some(&self.tokenizer)
    }

    fn file_mut(&mut self) -> Option<&mut NamedFile> {
        Some(&mut self.tokenizer)
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        sample.set_text(None, (1, Dtype::Int32, Layout::Nt));
        Ok(())
    }
}
