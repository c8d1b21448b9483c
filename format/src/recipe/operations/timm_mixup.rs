//! `timm_mixup`: the mixup of timm, which blends samples of a batch or pastes rectangles.

use super::{Data, mixing};
use crate::recipe::declaration::{
    APPLIED, Bounds, Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
    RandomParameter,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{CutBox, MixMode, MixPartner, SampleType, SoftLabels};

/// timm's `Mixup`, for each unit of [`MixMode`], with the partner [`MixPartner::Mirrored`]. The
/// random parameters, in this order:
///
/// 1. `uniform() < prob`: whether anything is mixed; if not, nothing more is drawn;
/// 2. `uniform() < switch_prob`: whether a rectangle is pasted, only if both kinds are active;
/// 3. lambda, from the beta distribution of the alpha of that kind; if it is 1, nothing is mixed
///    and nothing more drawn;
/// 4. for a rectangle, the column and the row of its centre; with `cutmix_minmax` its height, its
///    width, its top and its left instead.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimmMixup {
    /// Parameter of the distribution of lambda of blends; 0: samples are not blended.
    pub mixup_alpha: f64,
    /// Parameter of the distribution of lambda of rectangles; 0: none are pasted.
    pub cutmix_alpha: f64,
    /// Bounds of the sides of a rectangle as shares of those of the picture, instead of lambda.
    pub cutmix_minmax: Option<(f64, f64)>,
    /// Probability that a unit is mixed.
    pub prob: f64,
    /// Probability of a rectangle, if both types of mixing are active.
    pub switch_prob: f64,
    /// Which samples share random parameters.
    pub mode: MixMode,
    /// Whether labels are blended by the share of the rectangle that is inside the picture.
    pub correct_lam: bool,
    /// The conversion of labels.
    pub labels: SoftLabels,
    /// How the rectangle follows from lambda.
    pub cut_box: CutBox,
}

impl TimmMixup {
    /// The partner of a sample.
    pub const PARTNER: MixPartner = MixPartner::Mirrored;

    /// Parameter of the distribution of lambda of rectangles, which is 1 with `cutmix_minmax`; 0:
    /// none are pasted.
    pub fn alpha_of_rectangles(&self) -> f64 {
        if self.cutmix_minmax.is_some() { 1.0 } else { self.cutmix_alpha }
    }

    /// Smallest and (exclusive) largest length of a side of the rectangle with `cutmix_minmax`, for
    /// a side of the picture.
    pub fn bounds(side: u32, (least, most): (f64, f64)) -> (u32, u32) {
        let share = |share: f64| (f64::from(side) * share) as u32;
        (share(least), share(most))
    }
}

const fn alpha(name: &'static str, default: f64, about: &'static str) -> Key {
    let bounds = Bounds { least: 0.0, ..mixing::ALPHA };
    Key::optional(name, KeyType::Number(bounds), Value::Number(default), about)
}

const fn probability(name: &'static str, default: f64, about: &'static str) -> Key {
    Key::optional(name, KeyType::Number(Bounds::UNIT), Value::Number(default), about)
}

impl Data for TimmMixup {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "timm_mixup",
        about: "blends the samples of a batch, or pastes rectangles, as timm does",
        phase: Phase::Batch,
        targets: OnTargets::Refuses,
        takes: &[InputType::ANY_IMAGE, InputType::TENSOR, InputType::BATCH],
        gives: OutputType::BATCH,
        needs: Needs::All,
        random: &[
            RandomParameter { distribution: "true with probability `prob`", ..APPLIED },
            RandomParameter {
                name: "cut",
                distribution: "true with probability `switch_prob`, where both kinds are active",
            },
            RandomParameter {
                name: "lambda",
                distribution: "Beta(a, a), a being `mixup_alpha` or `cutmix_alpha`",
            },
            mixing::COLUMN,
            mixing::ROW,
            RandomParameter {
                name: "height",
                distribution: "uniform between the shares of `cutmix_minmax`, where that is set",
            },
            RandomParameter { name: "width", distribution: "as height" },
            RandomParameter { name: "top", distribution: "uniform over the rows where it fits" },
            RandomParameter {
                name: "left",
                distribution: "uniform over the columns where it fits",
            },
        ],
        keys: &[
            alpha(
                "mixup_alpha",
                1.0,
                "the parameter of the beta distribution of lambda for blends; 0: no blends",
            ),
            alpha(
                "cutmix_alpha",
                0.0,
                "the parameter of the beta distribution of lambda for rectangles; 0: no rectangles",
            ),
            Key::absent(
                "cutmix_minmax",
                KeyType::Interval { bounds: Bounds::UNIT, middle: None },
                "the sides of rectangles as shares of the picture's sides, instead of \
                    `cutmix_alpha`",
            ),
            probability("prob", 1.0, "the probability that a unit of `mode` is mixed"),
            probability("switch_prob", 0.5, "the probability of a rectangle instead of a blend"),
            mixing::mode(),
            Key::optional(
                "correct_lam",
                KeyType::Switch,
                Value::Switch(true),
                "whether labels follow from the part of the rectangle inside the picture",
            ),
            mixing::label_smoothing(0.1),
            mixing::num_classes(),
            mixing::cut_box(CutBox::Timm),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            mixup_alpha: values.number("mixup_alpha"),
            cutmix_alpha: values.number("cutmix_alpha"),
            cutmix_minmax: values.optional_pair("cutmix_minmax"),
            prob: values.number("prob"),
            switch_prob: values.number("switch_prob"),
            mode: values.named("mode", MixMode::from_name),
            correct_lam: values.switch("correct_lam"),
            labels: mixing::labels(values),
            cut_box: values.named("box", CutBox::from_name),
        }
    }

    fn values(&self) -> Vec<Value> {
        vec![
            Value::Number(self.mixup_alpha),
            Value::Number(self.cutmix_alpha),
            self.cutmix_minmax.into(),
            Value::Number(self.prob),
            Value::Number(self.switch_prob),
            Value::Word(self.mode.name()),
            Value::Switch(self.correct_lam),
            Value::Number(self.labels.smoothing),
            Value::Whole(self.labels.classes),
            Value::Word(self.cut_box.name()),
        ]
    }

    fn mixes_tensors(&self) -> bool {
        true
    }

    /// At least one type of mixing must be active, and some rectangle must be within the bounds.
    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        let Self { mixup_alpha, cutmix_alpha, cutmix_minmax, .. } = *self;
        for (key, alpha) in [("mixup_alpha", mixup_alpha), ("cutmix_alpha", cutmix_alpha)] {
            if alpha != 0.0 && !mixing::ALPHA.contains(alpha) {
                let problem = format!("is {alpha:?}");
                return Err(Fault::of_value(key, problem, "use 0, or a value from 0.01 to 1000"));
            }
        }
        if mixup_alpha == 0.0 && self.alpha_of_rectangles() == 0.0 {
            let problem = "is 0, and so is `cutmix_alpha`: nothing is mixed";
            let remedy = "set one of them above 0, or use one_hot instead";
            return Err(Fault::of_value("mixup_alpha", problem, remedy));
        }
        if let (Some(shares), Some((height, width))) = (cutmix_minmax, sample.size) {
            for side in [height, width] {
                let (least, most) = Self::bounds(side, shares);
                if least >= most {
                    let problem = format!("leaves no length between {least} and {most} of {side}");
                    let remedy = "use shares that are further apart";
                    return Err(Fault::of_value("cutmix_minmax", problem, remedy));
                }
            }
        }
        mixing::follow(self.labels, sample)
    }
}
