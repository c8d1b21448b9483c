//! Keys that operations on batches share: the conversion of labels, and how samples are mixed.

use crate::recipe::declaration::{Bounds, Key, KeyType, RandomParameter};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{CutBox, MixMode, MixPartner, SampleType, SoftLabels};

/// Maximum number of classes: one for each int32 label.
const CLASSES_MAX: u32 = i32::MAX as u32;

/// Range of the parameter of a beta distribution.
pub(super) const ALPHA: Bounds =
    Bounds { least: 0.01, is_least_excluded: false, most: Some(1000.0) };

/// The random parameters of a rectangle.
pub(super) const COLUMN: RandomParameter =
    RandomParameter { name: "column", distribution: "of the centre, uniform over the columns" };
pub(super) const ROW: RandomParameter =
    RandomParameter { name: "row", distribution: "of the centre, uniform over the rows" };

/// The parameter of the distribution of lambda.
pub(super) const fn alpha() -> Key {
    let about = "the parameter of the beta distribution of lambda";
    Key::optional("alpha", KeyType::Number(ALPHA), Value::Number(1.0), about)
}

/// Classes.
pub(super) const fn num_classes() -> Key {
    let kind = KeyType::WholeIn { least: 1, most: CLASSES_MAX };
    Key::required("num_classes", kind, Value::Whole(10), "the number of classes of labels")
}

/// Smoothing of labels.
pub(super) const fn label_smoothing(default: f64) -> Key {
    let about = "the share of the label that is divided evenly among all classes";
    Key::optional("label_smoothing", KeyType::Number(Bounds::UNIT), Value::Number(default), about)
}

/// Which samples share random parameters.
pub(super) const fn mode() -> Key {
    let (kind, default) = (KeyType::Word { choices: MixMode::NAMES }, MixMode::Batch.name());
    let about = "which samples share random parameters: all, none, or pairs";
    Key::optional("mode", kind, Value::Word(default), about)
}

/// The partner of a sample.
pub(super) const fn partner() -> Key {
    let (kind, default) =
        (KeyType::Word { choices: MixPartner::NAMES }, MixPartner::Previous.name());
    let about = "which sample each is mixed with: the previous one, as in torchvision, or the \
        mirrored one, as in timm";
    Key::optional("partner", kind, Value::Word(default), about)
}

/// How a rectangle follows from lambda.
pub(super) const fn cut_box(default: CutBox) -> Key {
    let kind = KeyType::Word { choices: CutBox::NAMES };
    let about =
        "whose definition of the rectangle is used; torchvision's is that of timm before 1.0.31";
    Key::optional("box", kind, Value::Word(default.name()), about)
}

/// The conversion of labels.
pub(super) fn labels(values: &Values) -> SoftLabels {
    SoftLabels { classes: values.whole("num_classes"), smoothing: values.number("label_smoothing") }
}

/// Sets the conversion of labels, which all operations on batches must agree on.
pub(super) fn follow(labels: SoftLabels, sample: &mut SampleType) -> Result<(), Fault> {
    let SoftLabels { classes, smoothing } = labels;
    let before = sample.labels.replace(labels).unwrap_or(labels);
    let (key, problem) = if before.classes != classes {
        ("num_classes", format!("is {classes}, but {} before", before.classes))
    } else if before.smoothing != smoothing {
        ("label_smoothing", format!("is {smoothing:?}, but {:?} before", before.smoothing))
    } else {
        return Ok(());
    };
    Err(Fault::of_value(key, problem, "use the same value in all operations on batches"))
}

/// Refuses pairs of samples that are not each other's partners.
pub(super) fn check_pairs(mode: MixMode, partner: MixPartner) -> Result<(), Fault> {
    match (mode, partner) {
        (MixMode::Pair, MixPartner::Previous) => {
            let problem = "is \"pair\", but the partner of the sample before is another";
            Err(Fault::of_value("mode", problem, "set partner = \"mirrored\""))
        }
        (MixMode::Batch | MixMode::Elem, _) | (_, MixPartner::Mirrored) => Ok(()),
    }
}
