//! `cut_mix`: replaces rectangles of the samples of a batch by those of other samples.

use super::{Data, mixing};
use crate::recipe::declaration::{
    Declaration, InputType, Needs, OnTargets, OutputType, Phase, RandomParameter,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{CutBox, MixMode, MixPartner, SampleType, SoftLabels};

/// `torchvision.transforms.v2.CutMix`: lambda is drawn from the beta distribution of `alpha` and
/// `alpha`, then the centre of a rectangle, once for each unit of [`MixMode`]. The rectangle is
/// replaced by that of the [`MixPartner`], and labels are blended by its share of the picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CutMix {
    /// Parameter of the distribution of lambda.
    pub alpha: f64,
    /// The conversion of labels.
    pub labels: SoftLabels,
    /// Which samples share a rectangle.
    pub mode: MixMode,
    /// The partner of a sample.
    pub partner: MixPartner,
    /// How the rectangle follows from lambda.
    pub cut_box: CutBox,
}

impl Data for CutMix {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "cut_mix",
        about: "replaces a rectangle of each sample of a batch by that of another",
        phase: Phase::Batch,
        targets: OnTargets::Refuses,
        takes: &[InputType::ANY_IMAGE, InputType::TENSOR, InputType::BATCH],
        gives: OutputType::BATCH,
        needs: Needs::All,
        random: &[
            RandomParameter {
                name: "lambda",
                distribution: "Beta(`alpha`, `alpha`), for each unit of `mode`",
            },
            mixing::COLUMN,
            mixing::ROW,
        ],
        keys: &[
            mixing::alpha(),
            mixing::num_classes(),
            mixing::mode(),
            mixing::partner(),
            mixing::cut_box(CutBox::Torchvision),
            mixing::label_smoothing(0.0),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            alpha: values.number("alpha"),
            labels: mixing::labels(values),
            mode: values.named("mode", MixMode::from_name),
            partner: values.named("partner", MixPartner::from_name),
            cut_box: values.named("box", CutBox::from_name),
        }
    }

    fn values(&self) -> Vec<Value> {
        let Self { alpha, labels: SoftLabels { classes, smoothing }, mode, partner, cut_box } =
            *self;
        vec![
            Value::Number(alpha),
            Value::Whole(classes),
            Value::Word(mode.name()),
            Value::Word(partner.name()),
            Value::Word(cut_box.name()),
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
