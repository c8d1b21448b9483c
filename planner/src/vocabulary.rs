//! The closed sets that strategies consist of: forms of stored samples, codecs, caches, GPUs.

pub use meetpoint_format::dataset::Codec;
pub use meetpoint_prepare::gpu::GpuIndex;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where epochs after the first read stored samples from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// On the drive: nothing is cached.
    Cold,
    /// In the page cache of the operating system.
    Page,
    /// In this process's memory, decompressed.
    Application,
}

impl Cache {
    /// Every cache.
    pub const ALL: &'static [Self] = &[Self::Cold, Self::Page, Self::Application];

    /// The name in options and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Page => "page",
            Self::Application => "application",
        }
    }
}

/// The stored form of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Each sample in a separate file, unchanged: nothing is prepared offline.
    Files,
    /// All samples in one file, unchanged.
    Packed,
    /// One file; JPEGs in the larger coefficient form, which decodes fastest.
    CoefficientsFast,
    /// One file; JPEGs in the smaller coefficient form.
    CoefficientsCompact,
    /// One file; the results of the first operations of the recipe.
    Prepared,
    /// One file; the picture that the first operations produce, re-encoded as JPEG. Loses detail.
    Jpeg,
}

impl Form {
    /// Every form.
    pub const ALL: &'static [Self] = &[
        Self::Files,
        Self::Packed,
        Self::CoefficientsFast,
        Self::CoefficientsCompact,
        Self::Prepared,
        Self::Jpeg,
    ];

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Packed => "packed",
            Self::CoefficientsFast => "coefficients-fast",
            Self::CoefficientsCompact => "coefficients-compact",
            Self::Prepared => "prepared",
            Self::Jpeg => "jpeg",
        }
    }

    /// Whether a GPU can prepare samples that are stored with this codec: files and coefficient
    /// forms, on which no operation has been executed, without a codec.
    pub fn suits_gpu(self, codec: Codec) -> bool {
        match self {
            Self::Files | Self::Packed | Self::CoefficientsFast | Self::CoefficientsCompact => {
                codec == Codec::None
            }
            Self::Prepared | Self::Jpeg => false,
        }
    }

    /// Whether samples prepared from it are bit-identical to those prepared from the files.
    pub fn is_exact(self) -> bool {
        match self {
            Self::Files
            | Self::Packed
            | Self::CoefficientsFast
            | Self::CoefficientsCompact
            | Self::Prepared => true,
            Self::Jpeg => false,
        }
    }
}

/// A materialisation point: what is stored, after how many operations of the recipe.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Point {
    /// The stored form.
    pub form: Form,
    /// Operations that are executed offline, counted from the first.
    pub operations: usize,
    /// Name of the last of these operations; empty if there is none.
    pub operation: String,
}

impl Point {
    /// A point at which no operation has been executed.
    pub fn encoded(form: Form) -> Self {
        Self { form, operations: 0, operation: String::new() }
    }

    /// Whether nothing is done offline.
    pub fn is_nothing_offline(&self) -> bool {
        self.form == Form::Files
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { form, operations, operation } = self;
        match form {
            Form::Files | Form::Packed | Form::CoefficientsFast | Form::CoefficientsCompact => {
                f.write_str(form.name())
            }
            Form::Prepared => write!(f, "{operations}-{operation}"),
            Form::Jpeg => write!(f, "{operations}-{operation}-jpeg"),
        }
    }
}

/// The name of a GPU in results, such as `cuda:0`; empty or null for the CPU alone.
pub(crate) mod gpu_name {
    use super::GpuIndex;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        gpu: &Option<GpuIndex>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        gpu.map(|gpu| gpu.to_string()).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<GpuIndex>, D::Error> {
        let name = Option::<String>::deserialize(from)?;
        name.map(|name| name.parse().map_err(D::Error::custom)).transpose()
    }
}
