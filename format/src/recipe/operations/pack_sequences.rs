//! `pack_sequences`: packs the documents of a batch into as few rows as they need.

use super::Data;
use crate::recipe::Packing;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
};
use crate::recipe::value::{Value, Values};

/// Moves the documents of a batch, in the order of its samples, to its first rows. The batch keeps
/// its number of rows; the unused ones contain only padding, in segment 0.
///
/// The tokens of a document in a row form one segment, whose number counts the segments of the row
/// from 1; their positions count from 0. The result depends only on the samples of the batch, so it
/// is the same at both ends and after a resume. Labels, keys and indices remain those of the
/// samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PackSequences {
    /// How documents share rows.
    pub method: Packing,
}

impl Data for PackSequences {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "pack_sequences",
        about: "moves the documents of a batch together, several to a row",
        phase: Phase::Batch,
        targets: OnTargets::Refuses,
        takes: &[InputType::PACKABLE],
        gives: OutputType::BATCH,
        needs: Needs::All,
        random: &[],
        keys: &[Key::optional(
            "method",
            KeyType::Word { choices: Packing::NAMES },
            Value::Word(Packing::FirstFit.name()),
            "whether a document lies in the first row with room for it, or they follow one \
                 another, cut at the end of a row",
        )],
    };

    fn read(values: &Values) -> Self {
        Self { method: values.named("method", Packing::from_name) }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Word(self.method.name())]
    }

    fn mixes_tensors(&self) -> bool {
        true
    }
}
