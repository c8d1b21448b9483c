//! `mix_up`: blends the samples of a batch with one another.

use super::{Data, mixing};
use crate::recipe::declaration::{
    Declaration, InputType, Needs, OnTargets, OutputType, Phase, RandomParameter,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{MixMode, MixPartner, SampleType, SoftLabels};

/// `torchvision.transforms.v2.MixUp`: lambda is drawn from the beta distribution of `alpha` and
/// `alpha`, once for each unit of [`MixMode`]; a sample and its label become lambda times
/// themselves plus (1 - lambda) times those of the [`MixPartner`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MixUp {
    /// Parameter of the distribution of lambda.
    pub alpha: f64,
    /// The conversion of labels.
    pub labels: SoftLabels,
    /// Which samples share a lambda.
    pub mode: MixMode,
    /// The partner of a sample.
    pub partner: MixPartner,
}

impl Data for MixUp {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "mix_up",
        about: "blends the samples and labels of a batch with one another",
        phase: Phase::Batch,
        targets: OnTargets::Refuses,
        takes: &[
            InputType::ANY_IMAGE,
            InputType::TENSOR,
            InputType::AUDIO,
            InputType::SPECTROGRAM,
            InputType::BATCH,
        ],
        gives: OutputType::BATCH,
        needs: Needs::All,
        random: &[RandomParameter {
            name: "lambda",
            distribution: "Beta(`alpha`, `alpha`), for each unit of `mode`",
        }],
        keys: &[
            mixing::alpha(),
            mixing::num_classes(),
            mixing::mode(),
            mixing::partner(),
            mixing::label_smoothing(0.0),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            alpha: values.number("alpha"),
            labels: mixing::labels(values),
            mode: values.named("mode", MixMode::from_name),
            partner: values.named("partner", MixPartner::from_name),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { alpha, labels: SoftLabels { classes, smoothing }, mode, partner } = *self;
        vec![
            Value::Number(alpha),
            Value::Whole(classes),
            Value::Word(mode.name()),
            Value::Word(partner.name()),
            Value::Number(smoothing),
        ]
    }

    fn mixes_tensors(&self) -> bool {
        true
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        mixing::check_pairs(self.mode, self.partner)?;
        mixing::follow(self.labels, sample)
    }
}
