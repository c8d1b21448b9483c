//! `repeated`: repeated augmentation, every sample of a shuffled epoch several times in succession.

use super::Data;
use super::columns::SampleColumns;
use super::declaration::{Declaration, OptionSpec, OptionType, Value};
use super::error::{LengthLimit, SamplerError};
use super::rule::Rule;
use super::values::Values;

/// The default length is a multiple of this, as in torchvision's and timm's samplers.
const ROUNDED_TO: u64 = 256;

/// Repeated augmentation (Hoffer et al., "Augment your batch", 2020): the beginning of a shuffled
/// epoch in which every sample occurs `repeats` times in succession. In each step, all ranks
/// together have the same samples as with torchvision's `RASampler` or timm's `RepeatAugSampler`
/// and the same permutation; within the step, whole batches are assigned to ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated {
    /// Number of times in succession.
    pub repeats: u64,
    /// Positions of an epoch. `None`: the number of samples, rounded down to a multiple of 256 if
    /// it is at least 256.
    pub length: Option<u64>,
}

impl Data for Repeated {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "repeated",
        summary: "repeated augmentation: a shuffled epoch, each sample several times in succession",
        options: &[
            OptionSpec {
                name: "repeats",
                takes: OptionType::Whole { least: 1, most: 1 << 16 },
                default: Some("3"),
                summary: "times that a sample occurs in succession",
            },
            OptionSpec {
                name: "length",
                takes: OptionType::Whole { least: 1, most: 1 << 48 },
                default: Some("number of samples, rounded down to a multiple of 256"),
                summary: "positions of an epoch",
            },
        ],
    };

    fn read(values: &Values) -> Result<Self, SamplerError> {
        let repeats = values.whole("repeats").unwrap_or(3);
        Ok(Self { repeats, length: values.whole("length") })
    }

    fn options(&self) -> Vec<(&'static str, Value)> {
        let mut options = vec![("repeats", Value::Whole(self.repeats))];
        options.extend(self.length.map(|length| ("length", Value::Whole(length))));
        options
    }

    fn is_same_in_every_epoch(&self) -> bool {
        false
    }

    fn rule<C: SampleColumns>(&self, columns: &C) -> Result<Rule, C::Error> {
        let samples = columns.samples();
        let rounded = samples - samples % ROUNDED_TO;
        let length = self.length.unwrap_or(if rounded > 0 { rounded } else { samples });
        let most = samples.saturating_mul(self.repeats);
        if length > most {
            let limit = LengthLimit::Repeats;
            return Err(SamplerError::Length { length, most, limit }.into());
        }
        Ok(Rule::Repeated { repeats: self.repeats, length })
    }

    fn memory_bytes(&self, _: u64) -> u64 {
        0
    }
}
