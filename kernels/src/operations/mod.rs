//! The execution of each operation: one file each, or one for several similar operations, and one
//! line in the registry.
//!
//! An operation is executed in the `Phase` in its declaration in `meetpoint-format`:
//!
//! ```text
//! encoded bytes
//!    │  Decode     by the decoder, only the region that is needed
//!    │  Geometry   crop, resize, flip: one pass of rows, a [`Stage`]
//!    │  Pixels     in place on a whole picture, between two stages
//!    │  Picture    from a whole picture to another, between two stages
//!    │             ... further stages and pictures ...
//!    │  Elements   folded into a table of 256 values per channel, while rows are stored
//!    ▼
//! tensor
//!    │  Tensor     in place on the whole of it
//!    ▼
//! finished tensor
//!    │  Batch      in place on all samples of a batch, with their labels
//!    ▼
//! finished batch
//! ```
//!
//! Sound, signals and text are executed differently: operations of the `Phase` `Series` or `Text`
//! run one after another, each on all values of the sample, before those of `Elements`.
//!
//! An operation of the `Phase` `Choice` contains others: it decides for each sample (or for each
//! batch, if they operate on batches) which of them are executed.

mod aug_mix;
mod auto_augment;
mod blurs;
mod center_crop;
mod choice;
mod color_jitter;
mod convert_color;
mod crumpets_affine;
mod cut_mix;
mod decode_audio;
mod decode_signal;
mod elastic_transform;
mod embed;
mod five_crop;
mod fix_length;
mod gaussian_noise;
#[cfg(test)]
mod geometry_tests;
#[cfg(test)]
mod golden_tests;
mod html_to_text;
mod layout;
mod log;
mod mel_spectrogram;
mod mix_up;
mod normalize;
mod one_hot;
mod pack_sequences;
mod pad;
mod pad_sequence;
mod policy;
mod power_features;
mod random_affine;
mod random_change;
mod random_channel_permutation;
mod random_crop;
mod random_erasing;
mod random_gamma;
mod random_horizontal_flip;
mod random_iou_crop;
mod random_perspective;
mod random_photometric_distort;
mod random_resize;
mod random_resized_crop;
mod random_rotation;
mod random_sensor_noise;
mod random_shortest_size;
mod random_vertical_flip;
mod random_zoom_out;
mod resize;
mod scale_jitter;
mod select_channels;
mod spectrogram;
#[cfg(test)]
mod tests;
mod timm_mixup;
mod timm_rand_augment;
mod to_dtype;
mod tokenize;

use crate::colour::{Converter, RowChanges};
use crate::finished::FinishedTensor;
use crate::mixing::MixedBatch;
use crate::pixels::Pixels;
use crate::points::Points;
use crate::series::{SeriesDecoder, SeriesOperation};
use crate::stage::{Fit, Shift, Stage};
use crate::tensor::ElementTable;
use crate::text::TextOperation;
use crate::{Error, Misfit};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{Decode, DecodeText, Grayscale, Operation, Phase};
use std::fmt::Debug;

pub(crate) use choice::Choice;
use five_crop::OneCrop;
use gaussian_noise::Noise;

/// Why an operation cannot join a stage.
#[derive(Debug)]
pub(crate) enum StageRefusal {
    /// It does not fit the picture of the stage.
    Misfit(Misfit),
    /// Anything else.
    Error(Error),
}

impl From<Misfit> for StageRefusal {
    fn from(misfit: Misfit) -> Self {
        Self::Misfit(misfit)
    }
}

impl From<Error> for StageRefusal {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// An operation that changes size, region or orientation.
pub(crate) trait Geometry: Debug + Send + Sync {
    /// Adds itself to a stage, unless it needs the next one; a new stage accepts every operation.
    /// For each attempted stage, `draws` starts at its beginning. `points` are positions in the
    /// source of the stage.
    fn join(
        &self,
        stage: &mut Stage,
        draws: &mut Draws,
        points: &mut Points,
    ) -> Result<Fit, StageRefusal>;

    /// The key that determines the size of the result, for errors if the size does not fit a
    /// picture.
    fn size_key(&self) -> &'static str {
        "size"
    }

    /// The execution on a whole picture, for an operation that returns [`Fit::Whole`].
    fn whole(&self) -> Option<&dyn PictureOperation> {
        None
    }
}

/// An operation that replaces a whole picture by another one.
pub(crate) trait PictureOperation: Debug + Send + Sync {
    /// Columns and rows of the result for those of a picture; `None` if it does not change this
    /// sample.
    fn size(&self, size: (u32, u32), draws: &mut Draws) -> Option<(u32, u32)>;

    /// Like [`Geometry::size_key`].
    fn size_key(&self) -> &'static str {
        "size"
    }

    /// Replaces the picture by one of that size. `draws` is at its beginning again.
    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error>;

    /// Upper bound of the bytes allocated besides the picture of `size` (columns, rows) and its
    /// result. Buffers of a few rows are not counted.
    fn buffer_bytes(&self, _size: (u32, u32)) -> u64 {
        0
    }

    /// Whether it interpolates pixels of a picture of this size, for which Pillow premultiplies
    /// alpha.
    fn mixes_pixels(&self, _size: (u32, u32), _draws: &mut Draws) -> bool {
        false
    }

    /// The operation as a move of the picture by whole pixels, if it is one for this sample and
    /// this size. `draws` is at its beginning again.
    fn shift(&self, _size: (u32, u32), _draws: &mut Draws) -> Option<Shift> {
        None
    }

    /// Moves points of a picture of this size like [`Self::apply`] moves its pixels. `draws` is at
    /// its beginning again.
    fn move_points(
        &self,
        size: (u32, u32),
        draws: &mut Draws,
        points: &mut Points,
    ) -> Result<(), Error>;
}

/// An operation on a whole picture that does not change its size.
pub(crate) trait PixelOperation: Debug + Send + Sync {
    /// Whether it changes this sample. If not, the whole picture is not needed in memory.
    fn is_applied(&self, draws: &mut Draws) -> bool;

    /// Whether it may hold a second picture of the same size.
    fn needs_copy(&self) -> bool {
        false
    }

    /// Maximum number of pictures of the same size that it holds besides the first.
    fn copies(&self) -> u64 {
        u64::from(self.needs_copy())
    }

    /// Upper bound of the bytes allocated besides these pictures, for a picture of `size` (columns,
    /// rows). Buffers of a few rows are not counted.
    fn buffer_bytes(&self, _size: (u32, u32)) -> u64 {
        0
    }

    /// Upper bound of the bytes allocated besides the picture of `bytes` and `size`.
    fn extra_bytes(&self, bytes: u64, size: (u32, u32)) -> u64 {
        self.copies() * bytes + self.buffer_bytes(size)
    }

    /// Adds the operation as consecutive changes of single rows; `false` if it needs the whole
    /// picture. `draws` is at its beginning again.
    fn add_row_changes(&self, _draws: &mut Draws, _changes: &mut RowChanges) -> bool {
        false
    }

    /// Changes the picture. `draws` is at its beginning again, so it yields the same numbers as for
    /// [`Self::is_applied`].
    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error>;
}

/// An operation on single values of the tensor.
pub(crate) trait ElementOperation: Debug + Send + Sync {
    /// Changes the elements for the 256 values of a byte, or their storage.
    fn fold(&self, table: &mut ElementTable);
}

/// An operation on a whole tensor, after all other operations on samples.
pub(crate) trait TensorOperation: Debug + Send + Sync {
    /// Changes the tensor. `draws` is at its beginning.
    fn apply(&self, draws: &mut Draws, tensor: &mut FinishedTensor<'_>) -> Result<(), Error>;
}

/// An operation on a whole batch.
pub(crate) trait BatchOperation: Debug + Send + Sync {
    /// Mixes samples and labels, which are rows of float32. `draws` is at its beginning.
    fn apply(&self, draws: &mut Draws, batch: &mut MixedBatch<'_>) -> Result<(), Error>;
}

/// An executable operation at its position in a recipe.
#[derive(Debug)]
pub(crate) enum Step {
    Decode(Decode),
    DecodeSeries(Box<dyn SeriesDecoder>),
    DecodeText(DecodeText),
    Geometry(Box<dyn Geometry>),
    Pixels(Box<dyn PixelOperation>),
    Picture(Box<dyn PictureOperation>),
    Series(Box<dyn SeriesOperation>),
    Text(Box<dyn TextOperation>),
    Elements(Box<dyn ElementOperation>),
    Tensor(Box<dyn TensorOperation>),
    Batch(Box<dyn BatchOperation>),
    Choice {
        choice: Box<dyn Choice>,
        /// Numbers of the contained operations.
        content: Vec<u8>,
        /// Number of the operation after the contained ones.
        end: usize,
    },
}

impl Step {
    /// The declared phase of an operation with this step.
    fn phase(&self) -> Phase {
        match self {
            Self::Decode(_) | Self::DecodeSeries(_) | Self::DecodeText(_) => Phase::Decode,
            Self::Geometry(_) => Phase::Geometry,
            Self::Pixels(_) => Phase::Pixels,
            Self::Picture(_) => Phase::Picture,
            Self::Series(_) => Phase::Series,
            Self::Text(_) => Phase::Text,
            Self::Elements(_) => Phase::Elements,
            Self::Tensor(_) => Phase::Tensor,
            Self::Batch(_) => Phase::Batch,
            Self::Choice { .. } => Phase::Choice,
        }
    }
}

/// The names of operations by their numbers.
pub(crate) fn names(operations: &[Operation]) -> Vec<&'static str> {
    let with_content = |operation: &Operation| {
        let inner = operation.content().iter().flat_map(|it| names(std::slice::from_ref(it)));
        std::iter::once(operation.name()).chain(inner).collect::<Vec<_>>()
    };
    operations.iter().flat_map(with_content).collect()
}

/// Adds executable operations: each at its number, before those that it contains. An operation with
/// several resulting pictures computes the one with the index `picture`.
pub(crate) fn add_steps(operations: &[Operation], picture: u32, steps: &mut Vec<Step>) {
    for operation in operations {
        let number = steps.len();
        let step = of(operation, picture);
        debug_assert_eq!(step.phase(), operation.declaration().phase, "{}", operation.name());
        steps.push(step);
        let mut numbers = Vec::new();
        for inner in operation.content() {
            numbers.push(u8::try_from(steps.len()).expect("a recipe has at most 255 operations"));
            add_steps(std::slice::from_ref(inner), picture, steps);
        }
        let after = steps.len();
        if let Step::Choice { content, end, .. } = &mut steps[number] {
            (*content, *end) = (numbers, after);
        }
    }
}

/// For each operation by its number, whether its input is a picture of one channel (for a decoder,
/// its output); followed by whether the output of the last one is.
pub(crate) fn grey_before(operations: &[Operation]) -> Vec<bool> {
    let (mut grey, mut is_grey) = (Vec::new(), false);
    for operation in operations {
        if let Operation::Decode(decode) = operation {
            is_grey = decode.mode.channels() == 1;
        }
        grey.resize(grey.len() + numbers_of(std::slice::from_ref(operation)), is_grey);
        if let Operation::Grayscale(Grayscale { num_output_channels }) = operation {
            is_grey = *num_output_channels == 1;
        }
    }
    grey.push(is_grey);
    grey
}

/// Count of the numbers of these operations, including the contained ones.
pub fn numbers_of(operations: &[Operation]) -> usize {
    operations.iter().map(|operation| 1 + numbers_of(operation.content())).sum()
}

/// An operation that contains others, whose numbers are set later.
fn choice(choice: impl Choice + 'static) -> Step {
    Step::Choice { choice: Box::new(choice), content: Vec::new(), end: 0 }
}

/// The registry.
fn of(operation: &Operation, picture: u32) -> Step {
    match *operation {
        Operation::Decode(it) => Step::Decode(it),
        Operation::Resize(it) => Step::Geometry(Box::new(it)),
        Operation::RandomResize(it) => Step::Geometry(Box::new(it)),
        Operation::RandomShortestSize(it) => Step::Geometry(Box::new(it)),
        Operation::ScaleJitter(it) => Step::Geometry(Box::new(it)),
        Operation::CenterCrop(it) => Step::Geometry(Box::new(it)),
        Operation::RandomCrop(it) => Step::Geometry(Box::new(it)),
        Operation::RandomResizedCrop(it) => Step::Geometry(Box::new(it)),
        Operation::RandomIouCrop(ref it) => Step::Geometry(Box::new(it.clone())),
        Operation::FiveCrop(it) => Step::Geometry(Box::new(OneCrop::of_five(it, picture))),
        Operation::TenCrop(it) => Step::Geometry(Box::new(OneCrop::of_ten(it, picture))),
        Operation::Pad(it) => Step::Geometry(Box::new(it)),
        Operation::RandomZoomOut(it) => Step::Geometry(Box::new(it)),
        Operation::RandomHorizontalFlip(it) => Step::Geometry(Box::new(it)),
        Operation::RandomVerticalFlip(it) => Step::Geometry(Box::new(it)),
        Operation::RandomRotation(it) => Step::Picture(Box::new(it)),
        Operation::RandomAffine(it) => Step::Picture(Box::new(it)),
        Operation::CrumpetsAffine(it) => Step::Picture(Box::new(it)),
        Operation::RandomPerspective(it) => Step::Picture(Box::new(it)),
        Operation::ElasticTransform(it) => Step::Picture(Box::new(it)),
        Operation::Grayscale(it) => Step::Pixels(Box::new(it)),
        Operation::RandomGrayscale(it) => Step::Pixels(Box::new(it)),
        Operation::ConvertColor(it) => Step::Pixels(Box::new(Converter::new(it.space))),
        Operation::ColorJitter(it) => Step::Pixels(Box::new(it)),
        Operation::RandomPhotometricDistort(it) => Step::Pixels(Box::new(it)),
        Operation::RandomChannelPermutation(it) => Step::Pixels(Box::new(it)),
        Operation::RandomAdjustSharpness(it) => Step::Pixels(Box::new(it)),
        Operation::RandomAutocontrast(it) => Step::Pixels(Box::new(it)),
        Operation::RandomEqualize(it) => Step::Pixels(Box::new(it)),
        Operation::RandomInvert(it) => Step::Pixels(Box::new(it)),
        Operation::RandomPosterize(it) => Step::Pixels(Box::new(it)),
        Operation::RandomSolarize(it) => Step::Pixels(Box::new(it)),
        Operation::AdjustGamma(it) => Step::Pixels(Box::new(it)),
        Operation::SigmoidContrast(it) => Step::Pixels(Box::new(it)),
        Operation::RandomGamma(it) => Step::Pixels(Box::new(it)),
        Operation::RandomSigmoidContrast(it) => Step::Pixels(Box::new(it)),
        Operation::GaussianBlur(it) => Step::Pixels(Box::new(it)),
        Operation::PillowGaussianBlur(it) => Step::Pixels(Box::new(it)),
        Operation::GaussianNoise(it) => Step::Pixels(Box::new(Noise::new(it))),
        Operation::RandomSensorNoise(it) => Step::Pixels(Box::new(it)),
        Operation::AugMix(it) => Step::Pixels(Box::new(it)),
        Operation::AutoAugment(it) => Step::Pixels(Box::new(it)),
        Operation::RandAugment(it) => Step::Pixels(Box::new(it)),
        Operation::TimmRandAugment(it) => Step::Pixels(Box::new(it)),
        Operation::TrivialAugmentWide(it) => Step::Pixels(Box::new(it)),
        Operation::ThreeAugment(it) => Step::Pixels(Box::new(it)),
        Operation::RandomApply(ref it) => choice(it.clone()),
        Operation::RandomChoice(ref it) => choice(it.clone()),
        Operation::RandomOrder(ref it) => choice(it.clone()),
        Operation::DecodeAudio(it) => it.into(),
        Operation::Spectrogram(it) => Step::Series(Box::new(it)),
        Operation::MelSpectrogram(it) => Step::Series(Box::new(it)),
        Operation::Log(it) => Step::Series(Box::new(it)),
        Operation::DecodeSignal(it) => it.into(),
        Operation::PowerFeatures(it) => Step::Series(Box::new(it)),
        Operation::SelectChannels(ref it) => Step::Series(Box::new(it.clone())),
        Operation::FixLength(it) => Step::Series(Box::new(it)),
        Operation::RandomTimeCrop(it) => Step::Series(Box::new(it)),
        Operation::DecodeText(it) => Step::DecodeText(it),
        Operation::HtmlToText(it) => Step::Text(Box::new(it)),
        Operation::Tokenize(ref it) => it.into(),
        Operation::PadSequence(it) => Step::Text(Box::new(it)),
        Operation::Embed(ref it) => it.into(),
        Operation::ToDtype(it) => Step::Elements(Box::new(it)),
        Operation::Normalize(it) => Step::Elements(Box::new(it)),
        Operation::Layout(it) => Step::Elements(Box::new(it)),
        Operation::RandomErasing(it) => Step::Tensor(Box::new(it)),
        Operation::MixUp(it) => Step::Batch(Box::new(it)),
        Operation::CutMix(it) => Step::Batch(Box::new(it)),
        Operation::TimmMixup(it) => Step::Batch(Box::new(it)),
        Operation::OneHot(it) => Step::Batch(Box::new(it)),
        Operation::PackSequences(it) => Step::Batch(Box::new(it)),
    }
}
