//! `pad_sequence`: cuts or pads tokens to a fixed length.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Dtype, LENGTH_MAX, Layout, Planes, SampleType};

/// Longer sequences are cut at their end, shorter ones are padded there.
///
/// `end_token` is appended first; in a sequence that is too long, it replaces the last token that
/// remains. The other planes of the result mark the tokens that are not padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PadSequence {
    /// Tokens of every sequence.
    pub length: u32,
    /// The token of the padding.
    pub pad_token: u32,
    /// The last token of every document.
    pub end_token: Option<u32>,
    /// The planes of the result.
    pub planes: Planes,
}

/// Largest token: int32.
const TOKEN_MAX: u32 = i32::MAX as u32;

const TOKEN: KeyType = KeyType::WholeIn { least: 0, most: TOKEN_MAX };

impl Data for PadSequence {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "pad_sequence",
        about: "cuts the end of a sequence of tokens off, or pads it, to a length",
        phase: Phase::Text,
        targets: OnTargets::Refuses,
        takes: &[InputType::TOKENS],
        gives: OutputType {
            size: Property::Key("length"),
            channels: Property::Key("planes"),
            ..OutputType::SERIES
        },
        needs: Needs::All,
        random: &[],
        keys: &[
            Key::required(
                "length",
                KeyType::WholeIn { least: 1, most: LENGTH_MAX },
                Value::Whole(1024),
                "tokens of every sequence",
            ),
            Key::optional("pad_token", TOKEN, Value::Whole(0), "the token of the padding"),
            Key::absent("end_token", TOKEN, "the token that is appended to every sequence"),
            Key::optional(
                "planes",
                KeyType::Word { choices: Planes::NAMES },
                Value::Word(Planes::Ids.name()),
                "tokens alone; with a mask of what is no padding; or with segments and positions",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            length: values.whole("length"),
            pad_token: values.whole("pad_token"),
            end_token: values.optional_whole("end_token"),
            planes: values.named("planes", Planes::from_name),
        }
    }

    fn values(&self) -> Vec<Value> {
        vec![
            Value::Whole(self.length),
            Value::Whole(self.pad_token),
            self.end_token.map_or(Value::Absent, Value::Whole),
            Value::Word(self.planes.name()),
        ]
    }

    fn size(&self, _input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        Some((1, self.length))
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        let layout = match self.planes {
            Planes::Ids => Layout::Nt,
            Planes::IdsMask | Planes::IdsSegmentsPositions => Layout::Nct,
        };
        sample.set_text(Some(self.length), (self.planes.count(), Dtype::Int32, layout));
        Ok(())
    }
}
