//! `one_hot`: labels as rows of float32.

use super::{Data, mixing};
use crate::recipe::declaration::{Declaration, InputType, Needs, OnTargets, OutputType, Phase};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{SampleType, SoftLabels};

/// `torch.nn.functional.one_hot` with the label smoothing of `torch.nn.CrossEntropyLoss`: the label
/// of a sample becomes a row of float32, see [`SoftLabels`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OneHot {
    /// The conversion of labels.
    pub labels: SoftLabels,
}

impl Data for OneHot {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "one_hot",
        about: "makes each label a row with an element for each class",
        phase: Phase::Batch,
        targets: OnTargets::Leaves,
        takes: &[
            InputType::ANY_IMAGE,
            InputType::TENSOR,
            InputType::AUDIO,
            InputType::SPECTROGRAM,
            InputType::SIGNAL,
            InputType::BATCH,
        ],
        gives: OutputType::BATCH,
        needs: Needs::All,
        random: &[],
        keys: &[mixing::num_classes(), mixing::label_smoothing(0.0)],
    };

    fn read(values: &Values) -> Self {
        Self { labels: mixing::labels(values) }
    }

    fn values(&self) -> Vec<Value> {
        let SoftLabels { classes, smoothing } = self.labels;
        vec![Value::Whole(classes), Value::Number(smoothing)]
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        mixing::follow(self.labels, sample)
    }
}
