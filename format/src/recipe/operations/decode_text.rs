//! `decode_text`: encoded characters to a text.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property, ValueKind,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{DecodingErrors, Dtype, Encoding, Layout, SampleType};

/// Python's `bytes.decode(encoding, errors)`. Always first, and nowhere else.
///
/// A byte order mark at the beginning is removed. Between operations, and as a result, a text is
/// its UTF-8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DecodeText {
    /// The character encoding of every file.
    pub encoding: Encoding,
    /// How bytes that are not valid characters are handled.
    pub errors: DecodingErrors,
}

impl Data for DecodeText {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "decode_text",
        about: "decodes characters",
        phase: Phase::Decode,
        targets: OnTargets::Refuses,
        takes: &[InputType::ENCODED],
        gives: OutputType {
            kind: ValueKind::Text,
            dtype: Property::Is("uint8"),
            size: Property::Variable,
            channels: Property::Is("1"),
        },
        needs: Needs::All,
        random: &[],
        keys: &[
            Key::optional(
                "encoding",
                KeyType::Word { choices: Encoding::NAMES },
                Value::Word(Encoding::Utf8.name()),
                "the character encoding",
            ),
            Key::optional(
                "errors",
                KeyType::Word { choices: DecodingErrors::NAMES },
                Value::Word(DecodingErrors::Strict.name()),
                "what happens with bytes that are not characters: an error, or U+FFFD",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            encoding: values.named("encoding", Encoding::from_name),
            errors: values.named("errors", DecodingErrors::from_name),
        }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Word(self.encoding.name()), Value::Word(self.errors.name())]
    }

    fn size(&self, _input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        None
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        sample.set_text(None, (1, Dtype::Uint8, Layout::Nt));
        Ok(())
    }
}
