//! Types of the input and output of operations.

use serde::{Serialize, Serializer};

/// Type of a value that operations take and return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
    /// The bytes of a file.
    Encoded,
    /// A picture of any size.
    Image,
    /// Sound: float32 for each channel and step in time, at a known sample rate.
    Audio,
    /// Float32 for each channel, frequency and step in time.
    Spectrogram,
    /// Measurements: float32 for each channel and step in time.
    Signal,
    /// Characters: the bytes of their UTF-8.
    Text,
    /// Token ids of a text, int32, in 1 to 3 planes.
    Tokens,
    /// A vector of floats for each token.
    Embedding,
    /// As an output: the same type as the input.
    Same,
    /// Elements of a type and order of axes.
    Tensor,
    /// The tensors of all samples of a batch, with their labels as rows of float32.
    Batch,
}

impl ValueKind {
    /// The name in the schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::Encoded => "encoded",
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Spectrogram => "spectrogram",
            Self::Signal => "signal",
            Self::Text => "text",
            Self::Tokens => "tokens",
            Self::Embedding => "embedding",
            Self::Same => "same",
            Self::Tensor => "tensor",
            Self::Batch => "batch",
        }
    }
}

/// A type of input. Height and width are variable in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct InputType {
    /// Kind of value.
    pub kind: ValueKind,
    /// Element types.
    pub dtypes: &'static [&'static str],
    /// Numbers of channels; empty: any number.
    pub channels: &'static [u32],
}

impl InputType {
    /// The bytes of a file.
    pub const ENCODED: Self = Self { kind: ValueKind::Encoded, dtypes: &[], channels: &[] };
    /// A picture of 8 bits, RGB or grey.
    pub const IMAGE: Self = Self { kind: ValueKind::Image, dtypes: &["uint8"], channels: &[1, 3] };
    /// A picture of any mode.
    pub const ANY_IMAGE: Self = Self {
        kind: ValueKind::Image,
        dtypes: &["uint8", "uint16", "float32"],
        channels: &[1, 3, 4],
    };
    /// A picture of 8 bits with alpha.
    pub const RGBA: Self = Self { channels: &[4], ..Self::IMAGE };
    /// A picture of 16 bits or of floats.
    pub const ELEMENTS: Self = Self { dtypes: &["uint16", "float32"], ..Self::IMAGE };
    /// A picture of floats.
    pub const FLOAT_IMAGE: Self = Self { dtypes: &["float32"], ..Self::IMAGE };
    /// A tensor of any element type.
    pub const TENSOR: Self = Self {
        kind: ValueKind::Tensor,
        dtypes: &["uint8", "uint16", "float16", "float32"],
        channels: &[1, 3, 4],
    };
    /// A tensor of a float type.
    pub const FLOATS: Self = Self { dtypes: &["float16", "float32"], ..Self::TENSOR };
    /// Sound.
    pub const AUDIO: Self = Self { kind: ValueKind::Audio, dtypes: &["float32"], channels: &[] };
    /// A spectrogram.
    pub const SPECTROGRAM: Self = Self { kind: ValueKind::Spectrogram, ..Self::AUDIO };
    /// A signal.
    pub const SIGNAL: Self = Self { kind: ValueKind::Signal, ..Self::AUDIO };
    /// Sound, a spectrogram or a signal.
    pub const SERIES: &'static [Self] = &[Self::AUDIO, Self::SPECTROGRAM, Self::SIGNAL];
    /// Text.
    pub const TEXT: Self = Self { kind: ValueKind::Text, dtypes: &["uint8"], channels: &[1] };
    /// Tokens in one plane.
    pub const TOKENS: Self = Self { kind: ValueKind::Tokens, dtypes: &["int32"], channels: &[1] };
    /// Tokens with segments and positions.
    pub const PACKABLE: Self = Self { channels: &[3], ..Self::TOKENS };
    /// Text, tokens or their embeddings.
    pub const TEXTS: &'static [ValueKind] =
        &[ValueKind::Text, ValueKind::Tokens, ValueKind::Embedding];
    /// Sound with 1 to 4 channels.
    pub const FEW_AUDIO: Self = Self { channels: &[1, 2, 3, 4], ..Self::AUDIO };
    /// A spectrogram with 1 to 4 channels.
    pub const FEW_SPECTROGRAM: Self = Self { channels: &[1, 2, 3, 4], ..Self::SPECTROGRAM };
    /// A signal with 1 to 4 channels.
    pub const FEW_SIGNAL: Self = Self { channels: &[1, 2, 3, 4], ..Self::SIGNAL };
    /// A batch of any element type.
    pub const BATCH: Self = Self { kind: ValueKind::Batch, ..Self::TENSOR };
}

/// Type of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OutputType {
    /// Kind of value.
    pub kind: ValueKind,
    /// Element type.
    pub dtype: Property,
    /// Height and width in pixels.
    pub size: Property,
    /// Channels.
    pub channels: Property,
}

impl OutputType {
    /// A picture with size and channels of the input.
    pub const IMAGE: Self = Self {
        kind: ValueKind::Image,
        dtype: Property::Same,
        size: Property::Same,
        channels: Property::Same,
    };
    /// A tensor with type, size and channels of the input.
    pub const TENSOR: Self = Self { kind: ValueKind::Tensor, ..Self::IMAGE };
    /// Sound, a spectrogram or a signal, whichever the input is.
    pub const SERIES: Self = Self { kind: ValueKind::Same, ..Self::IMAGE };
    /// A batch whose tensors have type, size and channels of the input.
    pub const BATCH: Self = Self { kind: ValueKind::Batch, ..Self::IMAGE };
}

/// How a property of the output is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Property {
    /// Equal to that of the input.
    Same,
    /// By the file.
    Variable,
    /// By the value of a key.
    Key(&'static str),
    /// Always this value.
    Is(&'static str),
}

impl std::fmt::Display for Property {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Same => f.write_str("same"),
            Self::Variable => f.write_str("variable"),
            Self::Key(key) => write!(f, "key {key}"),
            Self::Is(value) => f.write_str(value),
        }
    }
}

impl Serialize for Property {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How much of its input an operation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Needs {
    /// All of it.
    All,
    /// A region, so that the rest need not be decoded.
    Region,
    /// As much as the operation after it.
    AsNext,
}
