//! The declaration of an operation: its keys, the types of its input and output, its random
//! parameters.
//!
//! Parsing, checking, hashing, the schema, the documentation's tables and the Python classes follow
//! from these declarations. Nothing here may name an operation.
//!
//! In reading order: this file (operations and targets), [`Key`], [`ValueKind`] and the types of
//! input and output.

mod key;
mod types;

pub use key::{Bounds, Key, KeyType, Presence, WholeSize};
pub(super) use key::{SIDE_MAX, numbers};
pub use types::{InputType, Needs, OutputType, Property, ValueKind};

use serde::Serialize;

/// Everything about an operation that does not depend on its values.
#[derive(Debug, PartialEq, Serialize)]
pub struct Declaration {
    /// Name in a recipe file.
    pub name: &'static str,
    /// Its description, in one line.
    pub about: &'static str,
    /// The phase of preparing a sample in which it is executed.
    pub phase: Phase,
    /// Its effect on the targets of a sample.
    pub targets: OnTargets,
    /// Accepted types of input.
    pub takes: &'static [InputType],
    /// Type of its output.
    pub gives: OutputType,
    /// How much of its input it needs.
    pub needs: Needs,
    /// Its random parameters, in the order in which they are drawn; empty if it is deterministic.
    pub random: &'static [RandomParameter],
    /// Its keys, in the order of the documentation.
    pub keys: &'static [Key],
}

impl Declaration {
    /// Whether it has random parameters.
    pub fn is_random(&self) -> bool {
        !self.random.is_empty()
    }
}

/// Everything about a type of target that does not depend on its values.
#[derive(Debug, PartialEq, Serialize)]
pub struct TargetDeclaration {
    /// Name in a recipe file.
    pub name: &'static str,
    /// What it holds, in one line.
    pub about: &'static str,
    /// Its keys, in the order of the documentation.
    pub keys: &'static [Key],
}

/// The effect of an operation on the targets of a sample: masks, boxes and points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTargets {
    /// It does not change them, because it does not move pixels.
    Leaves,
    /// It transforms them in the same way as the pixels.
    Moves,
    /// It moves pixels in ways that no target can follow.
    Refuses,
}

impl OnTargets {
    /// The name in the schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leaves => "leaves",
            Self::Moves => "moves",
            Self::Refuses => "refuses",
        }
    }
}

/// The phase of preparing a sample or a batch in which an operation is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// By the decoder, on the encoded bytes.
    Decode,
    /// While rows are decoded, resized and stored: crops, resizes and flips, in one pass.
    Geometry,
    /// On a whole picture in memory, all channels of a pixel together.
    Pixels,
    /// From a whole picture in memory to another, which may have another size.
    Picture,
    /// On sound, a spectrogram or a signal: one operation after another, each on the whole series.
    Series,
    /// On a text, its tokens or their embeddings: one operation after another, each on the whole
    /// text.
    Text,
    /// On the values of the tensor, each by itself.
    Elements,
    /// On the whole tensor, after all its elements.
    Tensor,
    /// Not executed by itself: it contains operations and decides for each sample which of them are
    /// executed, and in which order.
    Choice,
    /// On a whole batch, after its samples.
    Batch,
}

/// A random parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RandomParameter {
    /// Name.
    pub name: &'static str,
    /// Distribution, naming the keys that it depends on.
    pub distribution: &'static str,
}

/// A random parameter: whether an operation is applied, with the probability of the key `p`.
pub(super) const APPLIED: RandomParameter =
    RandomParameter { name: "applied", distribution: "true with probability `p`" };
/// The sign of the magnitude with which a policy applies an operation.
pub(super) const SIGN: RandomParameter = RandomParameter {
    name: "sign",
    distribution: "negative with probability 0.5, where the operation has a sign",
};
