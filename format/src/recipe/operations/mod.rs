//! The operations that a recipe can contain: one file each, and one line in the registry.
//!
//! A new operation is a file here that implements [`Data`], its lines in this file, and its
//! execution in the crate `meetpoint-kernels`. Everything else follows from its declaration.

mod adjust_gamma;
mod aug_mix;
mod auto_augment;
mod center_crop;
mod color_jitter;
mod convert_color;
mod crumpets_affine;
mod cut_mix;
mod decode;
mod decode_audio;
mod decode_signal;
mod decode_text;
mod elastic_transform;
mod embed;
mod fill;
mod five_crop;
mod fix_length;
mod gaussian_blur;
mod gaussian_noise;
mod grayscale;
mod html_to_text;
mod layout;
mod log;
mod mel_spectrogram;
mod mix_up;
mod mixing;
mod normalize;
mod one_hot;
mod pack_sequences;
mod pad;
mod pad_sequence;
mod padding;
mod pillow_gaussian_blur;
mod power_features;
mod rand_augment;
mod random_adjust_sharpness;
mod random_affine;
mod random_apply;
mod random_autocontrast;
mod random_channel_permutation;
mod random_choice;
mod random_crop;
mod random_equalize;
mod random_erasing;
mod random_gamma;
mod random_grayscale;
mod random_horizontal_flip;
mod random_invert;
mod random_iou_crop;
mod random_order;
mod random_perspective;
mod random_photometric_distort;
mod random_posterize;
mod random_resize;
mod random_resized_crop;
mod random_rotation;
mod random_sensor_noise;
mod random_shortest_size;
mod random_sigmoid_contrast;
mod random_solarize;
mod random_time_crop;
mod random_vertical_flip;
mod random_zoom_out;
mod resize;
mod scale_jitter;
mod select_channels;
mod sigmoid_contrast;
mod spectrogram;
mod stft;
mod ten_crop;
mod three_augment;
mod timm_mixup;
mod timm_rand_augment;
mod to_dtype;
mod tokenize;
mod trivial_augment_wide;
mod warp;

use super::Layout;
use super::declaration::{Declaration, Key, Phase, Presence};
use super::error::Fault;
use super::named_file::NamedFile;
use super::sample_type::SampleType;
use super::sizes::SizeRange;
use super::value::{Described, Value, Values};

pub use adjust_gamma::AdjustGamma;
pub use aug_mix::AugMix;
pub use auto_augment::AutoAugment;
pub use center_crop::CenterCrop;
pub use color_jitter::ColorJitter;
pub use convert_color::ConvertColor;
pub use crumpets_affine::CrumpetsAffine;
pub use cut_mix::CutMix;
pub use decode::Decode;
pub use decode_audio::DecodeAudio;
pub use decode_signal::DecodeSignal;
pub use decode_text::DecodeText;
pub use elastic_transform::ElasticTransform;
pub use embed::Embed;
pub use five_crop::FiveCrop;
pub use fix_length::FixLength;
pub use gaussian_blur::GaussianBlur;
pub use gaussian_noise::GaussianNoise;
pub use grayscale::Grayscale;
pub use html_to_text::HtmlToText;
pub use log::Log;
pub use mel_spectrogram::MelSpectrogram;
pub use mix_up::MixUp;
pub use normalize::Normalize;
pub use one_hot::OneHot;
pub use pack_sequences::PackSequences;
pub use pad::Pad;
pub use pad_sequence::PadSequence;
pub use pillow_gaussian_blur::PillowGaussianBlur;
pub use power_features::PowerFeatures;
pub use rand_augment::RandAugment;
pub use random_adjust_sharpness::RandomAdjustSharpness;
pub use random_affine::RandomAffine;
pub use random_apply::RandomApply;
pub use random_autocontrast::RandomAutocontrast;
pub use random_channel_permutation::RandomChannelPermutation;
pub use random_choice::RandomChoice;
pub use random_crop::RandomCrop;
pub use random_equalize::RandomEqualize;
pub use random_erasing::RandomErasing;
pub use random_gamma::RandomGamma;
pub use random_grayscale::RandomGrayscale;
pub use random_horizontal_flip::RandomHorizontalFlip;
pub use random_invert::RandomInvert;
pub use random_iou_crop::RandomIouCrop;
pub use random_order::RandomOrder;
pub use random_perspective::RandomPerspective;
pub use random_photometric_distort::RandomPhotometricDistort;
pub use random_posterize::RandomPosterize;
pub use random_resize::RandomResize;
pub use random_resized_crop::RandomResizedCrop;
pub use random_rotation::RandomRotation;
pub use random_sensor_noise::RandomSensorNoise;
pub use random_shortest_size::{RandomShortestSize, Sides};
pub use random_sigmoid_contrast::RandomSigmoidContrast;
pub use random_solarize::RandomSolarize;
pub use random_time_crop::RandomTimeCrop;
pub use random_vertical_flip::RandomVerticalFlip;
pub use random_zoom_out::RandomZoomOut;
pub use resize::Resize;
pub use scale_jitter::ScaleJitter;
pub use select_channels::SelectChannels;
pub use sigmoid_contrast::SigmoidContrast;
pub use spectrogram::Spectrogram;
pub use stft::Stft;
pub use ten_crop::TenCrop;
pub use three_augment::ThreeAugment;
pub use timm_mixup::TimmMixup;
pub use timm_rand_augment::TimmRandAugment;
pub use to_dtype::ToDtype;
pub use tokenize::Tokenize;
pub use trivial_augment_wide::TrivialAugmentWide;

/// An operation as data.
trait Data: Sized {
    const DECLARATION: &'static Declaration;

    /// The operation with these values of its declared keys.
    fn read(values: &Values) -> Self;

    /// The value of each declared key, in the order of the declaration.
    fn values(&self) -> Vec<Value>;

    /// Height and width of the result for those of the input; `None`: they depend on the picture.
    fn size(&self, input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        input
    }

    /// The sizes of the result for those of the input. Operations that neither have one size nor
    /// preserve that of the input must override this; the default is every size.
    fn sizes(&self, input: SizeRange) -> SizeRange {
        // No operation treats this size as a special case.
        let any = (7919, 6271);
        match self.size(None) {
            Some(size) => SizeRange::exact(size),
            None if self.size(Some(any)) == Some(any) => input,
            None => SizeRange::ANY,
        }
    }

    /// The operations that it contains.
    fn content(&self) -> &[Operation] {
        &[]
    }

    /// Whether the result depends on the operations after it.
    fn looks_ahead(&self) -> bool {
        false
    }

    /// The key and value that make parts of the picture appear more than once in the result.
    fn repeats_pixels(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Whether it depends on the boxes of a sample.
    fn needs_boxes(&self) -> bool {
        false
    }

    /// Whether it mixes the tensors of the samples of a batch, which must then have one shape.
    fn mixes_tensors(&self) -> bool {
        false
    }

    /// The file that it needs.
    fn file(&self) -> Option<&NamedFile> {
        None
    }

    /// As [`Self::file`], mutable, to replace it.
    fn file_mut(&mut self) -> Option<&mut NamedFile> {
        None
    }

    /// Number of pictures that it produces from one.
    fn pictures(&self) -> u32 {
        1
    }

    /// Checks what the declaration cannot express, and sets the properties that
    /// [`super::OutputType`] derives from a key: element type, channels and layout.
    fn follow(&self, _sample: &mut SampleType) -> Result<(), Fault> {
        Ok(())
    }
}

macro_rules! operations {
    ($($type:ident),+ $(,)?) => {
        /// One step of a recipe. Sizes are in pixels.
        ///
        /// Random operations draw from a separate stream, [`crate::random::Draws`] with the
        /// operation's number in the recipe, in the order that each type documents; another
        /// implementation that does the same gets the same picture. Operations are numbered from 0,
        /// each before those that it contains.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Operation {
            $(#[doc = concat!("See [`", stringify!($type), "`].")] $type($type)),+
        }

        /// The declarations of all operations, in the order of the documentation.
        pub const DECLARATIONS: &[&Declaration] = &[$($type::DECLARATION),+];

        impl Operation {
            /// The declaration of the operation, which does not depend on its values.
            pub fn declaration(&self) -> &'static Declaration {
                match self {
                    $(Self::$type(_) => $type::DECLARATION),+
                }
            }

            /// The value of each declared key, in the order of the declaration.
            pub fn values(&self) -> Vec<Value> {
                match self {
                    $(Self::$type(it) => it.values()),+
                }
            }

            /// Height and width of the result for those of the input. `None` as an input means that
            /// they are not known; as a result, that they depend on the picture.
            pub fn size(&self, input: Option<(u32, u32)>) -> Option<(u32, u32)> {
                match self {
                    $(Self::$type(it) => it.size(input)),+
                }
            }

            /// The sizes of the result for those of the input, which contain every size that the
            /// operation can give.
            pub fn sizes(&self, input: SizeRange) -> SizeRange {
                match self {
                    $(Self::$type(it) => it.sizes(input)),+
                }
            }

            /// The operations that it contains; none for most operations.
            pub fn content(&self) -> &[Operation] {
                match self {
                    $(Self::$type(it) => it.content()),+
                }
            }

            /// Whether the result depends on the geometric operations after it, so that a recipe
            /// that ends before them has a different result.
            pub fn looks_ahead(&self) -> bool {
                match self {
                    $(Self::$type(it) => it.looks_ahead()),+
                }
            }

            /// The key and value that make parts of the picture appear more than once in the
            /// result.
            pub(super) fn repeats_pixels(&self) -> Option<(&'static str, &'static str)> {
                match self {
                    $(Self::$type(it) => it.repeats_pixels()),+
                }
            }

            /// Whether it depends on the boxes of a sample.
            pub fn needs_boxes(&self) -> bool {
                match self {
                    $(Self::$type(it) => it.needs_boxes()),+
                }
            }

            /// Whether this operation itself mixes the tensors of the samples of a batch, which
            /// must then have one shape.
            fn mixes_tensors(&self) -> bool {
                match self {
                    $(Self::$type(it) => it.mixes_tensors()),+
                }
            }

            /// The file that it needs, where it needs one.
            pub fn file(&self) -> Option<&NamedFile> {
                match self {
                    $(Self::$type(it) => it.file()),+
                }
            }

            pub(super) fn file_mut(&mut self) -> Option<&mut NamedFile> {
                match self {
                    $(Self::$type(it) => it.file_mut()),+
                }
            }

            /// Number of pictures that it produces from one: more than 1 for a few, such as
            /// `five_crop`.
            pub fn pictures(&self) -> u32 {
                match self {
                    $(Self::$type(it) => it.pictures()),+
                }
            }

            pub(super) fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
                match self {
                    $(Self::$type(it) => it.follow(sample)),+
                }
            }

            /// The operation of this name with these values; `None` for an unknown name.
            pub(super) fn read(name: &str, values: &Values) -> Option<Self> {
                $(if name == $type::DECLARATION.name {
                    return Some(Self::$type($type::read(values)));
                })+
                None
            }
        }

        $(impl From<$type> for Operation {
            fn from(operation: $type) -> Self {
                Self::$type(operation)
            }
        })+
    };
}

// The registry, in the order of the documentation.
operations! {
    Decode,
    Resize,
    RandomResize,
    RandomShortestSize,
    ScaleJitter,
    CenterCrop,
    RandomCrop,
    RandomResizedCrop,
    RandomIouCrop,
    FiveCrop,
    TenCrop,
    Pad,
    RandomZoomOut,
    RandomHorizontalFlip,
    RandomVerticalFlip,
    RandomRotation,
    RandomAffine,
    CrumpetsAffine,
    RandomPerspective,
    ElasticTransform,
    Grayscale,
    RandomGrayscale,
    ConvertColor,
    ColorJitter,
    RandomPhotometricDistort,
    RandomChannelPermutation,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomEqualize,
    RandomInvert,
    RandomPosterize,
    RandomSolarize,
    AdjustGamma,
    SigmoidContrast,
    RandomGamma,
    RandomSigmoidContrast,
    GaussianBlur,
    PillowGaussianBlur,
    GaussianNoise,
    RandomSensorNoise,
    AutoAugment,
    RandAugment,
    TimmRandAugment,
    TrivialAugmentWide,
    ThreeAugment,
    AugMix,
    RandomApply,
    RandomChoice,
    RandomOrder,
    DecodeAudio,
    Spectrogram,
    MelSpectrogram,
    Log,
    DecodeSignal,
    PowerFeatures,
    SelectChannels,
    FixLength,
    RandomTimeCrop,
    DecodeText,
    HtmlToText,
    Tokenize,
    PadSequence,
    Embed,
    ToDtype,
    Normalize,
    Layout,
    RandomErasing,
    MixUp,
    CutMix,
    TimmMixup,
    OneHot,
    PackSequences,
}

impl Operation {
    /// The operation that a table describes, whose values have the declared types.
    pub(super) fn of(described: &Described) -> Self {
        let found = Self::read(described.name, &Values(described.keys.to_vec()));
        found.unwrap_or_else(|| panic!("`{}` is not declared", described.name))
    }

    /// Its name and keys in alphabetical order, without the defaults that the canonical form omits.
    pub(crate) fn describe(&self) -> Described {
        let declared = self.declaration().keys.iter().zip(self.values());
        let is_written = |(key, value): &(&Key, Value)| {
            let is_default = || key.presence == Presence::Default(value.clone());
            *value != Value::Absent && !(key.is_omitted_by_default && is_default())
        };
        let mut keys: Vec<_> =
            declared.filter(is_written).map(|(key, value)| (key.name, value)).collect();
        keys.sort_by_key(|(name, _)| *name);
        Described { name: self.name(), keys: keys.into() }
    }

    /// Whether the operations that it contains are executed in their order, one after another.
    pub(super) fn is_sequence(&self) -> bool {
        matches!(self, Self::RandomApply(_))
    }

    /// Whether it is executed on batches, or contains operations that are.
    pub fn is_on_batches(&self) -> bool {
        let of_content = || self.content().iter().any(Self::is_on_batches);
        self.declaration().phase == Phase::Batch || of_content()
    }

    /// The operation that mixes the tensors of the samples of a batch, which must then have one
    /// shape: this one, or one that it contains.
    pub fn mixer_of_tensors(&self) -> Option<&Self> {
        match self.mixes_tensors() {
            true => Some(self),
            false => self.content().iter().find_map(Self::mixer_of_tensors),
        }
    }

    /// The name in a recipe file.
    pub fn name(&self) -> &'static str {
        self.declaration().name
    }

    /// Whether it has random parameters.
    pub fn is_random(&self) -> bool {
        self.declaration().is_random()
    }
}
