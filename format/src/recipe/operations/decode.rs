//! `decode`: encoded bytes to a picture.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property, ValueKind,
};
use crate::recipe::error::Fault;
use crate::recipe::sizes::SizeRange;
use crate::recipe::value::{Value, Values};
use crate::recipe::{DecodeMode, OnError, SampleType};

/// Decodes a file to a picture. It must be the first operation, and may occur only there.
///
/// The default is exact and equals Pillow. `scaled` trades exactness for speed. All keys except
/// `mode` apply only to JPEGs, in any form in which a dataset stores them; they have no effect on
/// other formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decode {
    /// Whether a JPEG may be decoded at 1/2, 1/4 or 1/8 of its resolution: the smallest that still
    /// has at least the pixels that the first resize needs, which then works on a part of that
    /// picture.
    pub scaled: bool,
    /// Whether a JPEG is rotated according to its Exif orientation, as Pillow's
    /// `ImageOps.exif_transpose` does. A picture without an orientation, or with an unknown one, is
    /// unchanged.
    pub orient: bool,
    /// How a damaged JPEG is handled.
    pub on_error: OnError,
    /// Channels of the picture, of every format.
    pub mode: DecodeMode,
}

impl Decode {
    /// Exact, not turned; a damaged file is an error.
    pub const EXACT: Self =
        Self { scaled: false, orient: false, on_error: OnError::Fail, mode: DecodeMode::Rgb };
}

impl Data for Decode {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "decode",
        about: "decodes a file to a picture, exactly unless a key asks for speed",
        phase: Phase::Decode,
        targets: OnTargets::Leaves,
        takes: &[InputType::ENCODED],
        gives: OutputType {
            kind: ValueKind::Image,
            dtype: Property::Key("mode"),
            size: Property::Variable,
            channels: Property::Key("mode"),
        },
        needs: Needs::AsNext,
        random: &[],
        keys: &[
            Key::added(
                "scaled",
                KeyType::Switch,
                Value::Switch(false),
                "whether a JPEG may be decoded at 1/2, 1/4 or 1/8 of its resolution before it is \
                 resized",
            ),
            Key::added(
                "orient",
                KeyType::Switch,
                Value::Switch(false),
                "whether a JPEG is rotated and mirrored according to its Exif orientation",
            ),
            Key::added(
                "on_error",
                KeyType::Word { choices: OnError::NAMES },
                Value::Word(OnError::Fail.name()),
                "for a damaged JPEG: an error, or (lenient) the pixels that libjpeg recovers",
            ),
            Key::added(
                "mode",
                KeyType::Word { choices: DecodeMode::NAMES },
                Value::Word(DecodeMode::Rgb.name()),
                "the channels of the picture and their type",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            scaled: values.switch("scaled"),
            orient: values.switch("orient"),
            on_error: values.named("on_error", OnError::from_name),
            mode: values.named("mode", DecodeMode::from_name),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { scaled, orient, on_error, mode } = *self;
        vec![
            Value::Switch(scaled),
            Value::Switch(orient),
            Value::Word(on_error.name()),
            Value::Word(mode.name()),
        ]
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        if self.scaled && self.mode.is_wide() {
            let problem = format!("is true, but `mode` is \"{}\"", self.mode.name());
            return Err(Fault::of_value("scaled", problem, "false, or another `mode`"));
        }
        (sample.channels, sample.dtype) = (self.mode.channels(), self.mode.dtype());
        Ok(())
    }

    fn sizes(&self, input: SizeRange) -> SizeRange {
        if self.orient { input.or(input.turned()) } else { input }
    }

    fn size(&self, _input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        None
    }

    /// The first resize determines the resolution.
    fn looks_ahead(&self) -> bool {
        self.scaled
    }
}
