//! Why a device refuses a job, with the remedy and the reason under which it is counted.

use crate::metrics::JobRefusal;
use crate::spool::{SLOTS_MAX, SpoolError};
use meetpoint_diagnose::{Change, Diagnose, Remedy, Setting};
use meetpoint_format::batching::BatchingError;
use meetpoint_format::column::{COLUMNS_MAX, CollateError};
use meetpoint_format::holders::HoldersError;
use meetpoint_format::recipe::RecipeHash;
use meetpoint_format::wire::{PROTOCOL_VERSION, SamplerMessageError};
use meetpoint_link::refusal;
use std::path::PathBuf;

/// Longest recipe, in bytes of TOML.
pub(crate) const RECIPE_BYTES_MAX: usize = 256 << 10;

/// Why a job is refused. The messages are sent to the host.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(
        "the host speaks version {host} of the device link, this device ({}) version {}",
        env!("CARGO_PKG_VERSION"), PROTOCOL_VERSION
    )]
    Version { host: u32 },
    #[error(
        "{dataset:?} is not within the folders that this device serves ({roots}), or is missing"
    )]
    OutsideRoots { dataset: PathBuf, roots: String },
    #[error(
        "the content of {dataset:?} stays in {content}, which is not within the folders that \
         this device serves ({roots})"
    )]
    ContentOutsideRoots { dataset: PathBuf, content: String, roots: String },
    #[error(
        "no dataset whose dataset.json has SHA-256 {sha256} is in {}; the device serves {names}",
        root_shown(root)
    )]
    NotServed { root: String, sha256: String, names: String },
    #[error("over a network, a dataset is named by root and checksum, not by a path")]
    Unnamed,
    #[error(
        "the content of the dataset stays in a folder that is not within those that the device \
         serves"
    )]
    NamedContentOutsideRoots,
    #[error("over a network, batches are sent: the spool must be of kind stream")]
    SharedSpool,
    #[error(transparent)]
    Dataset(#[from] meetpoint_prepare::Error),
    #[error(
        "the device serves another version of this dataset: its dataset.json has SHA-256 {own}, \
         the host's {host}"
    )]
    OtherDataset { own: String, host: String },
    #[error("the recipe does not parse on the device: {0}")]
    Recipe(#[from] meetpoint_format::recipe::RecipeError),
    #[error("the recipe has no SHA-256 of its file {path}")]
    NamelessFile { path: String },
    #[error("the recipe is {bytes} bytes long, more than {RECIPE_BYTES_MAX}")]
    RecipeTooLong { bytes: usize },
    #[error("the recipe's hash is {own} on the device and {host} on the host")]
    OtherRecipe { own: RecipeHash, host: String },
    #[error("{count} columns are requested, the limit is {COLUMNS_MAX}")]
    TooManyColumns { count: usize },
    #[error(transparent)]
    Collate(#[from] CollateError),
    #[error("batches of {batch_size} cannot be made of {samples} samples: {problem}")]
    Batches { batch_size: u32, samples: u64, problem: &'static str },
    #[error(transparent)]
    Batching(#[from] BatchingError),
    #[error(transparent)]
    Holders(#[from] HoldersError),
    #[error("the request names no sampler")]
    NoSampler,
    #[error(transparent)]
    Sampler(#[from] SamplerMessageError),
    #[error(
        "sampler {sampler} gives other samples on the device: its tables have SHA-256 {own} on the \
         device, {host} on the host"
    )]
    OtherSampler { sampler: String, own: String, host: String },
    #[error("device index {device} out of range 0..{devices}")]
    Device { device: u32, devices: u32 },
    #[error("no spool was passed under token {token:#x}: offer it before Load")]
    NoSpool { token: u64 },
    #[error("{slots} slots: a spool has from 1 to {SLOTS_MAX}")]
    Slots { slots: u32 },
    #[error("slots of {got} bytes: they must be whole blocks of 4096 and hold {needed}")]
    SlotBytes { got: u64, needed: u64 },
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error(transparent)]
    Storage(#[from] meetpoint_storage::Error),
    #[error(
        "with this job the device needs {needed} bytes of memory, more than its limit of {limit}"
    )]
    Memory { needed: u64, limit: u64, is_temporary: bool },
}

impl Refusal {
    /// The remedy at either end.
    fn remedy(&self) -> Option<Remedy> {
        let same_release = || Some("run the same release of Meetpoint at both ends".into());
        let root = |folder: String| Some(Remedy::set(Setting::DeviceRoot, Change::To(folder)));
        match self {
            Self::Version { .. } | Self::OtherRecipe { .. } | Self::OtherSampler { .. } => {
                same_release()
            }
            Self::OutsideRoots { dataset, .. } => root(dataset.display().to_string()),
            Self::ContentOutsideRoots { content, .. } => root(content.clone()),
            Self::NotServed { .. } => Some(
                Remedy::advice("copy the dataset to the device, byte for byte")
                    .or("name the root that it is in")
                    .or_set(Setting::DeviceRoot, Change::To("NAME=FOLDER".to_owned())),
            ),
            Self::NamedContentOutsideRoots => root("NAME=FOLDER of the content".to_owned()),
            Self::Dataset(source) => source.remedy(),
            Self::Recipe(source) => source.remedy(),
            Self::Storage(source) => source.remedy(),
            Self::OtherDataset { .. } => {
                Some(Remedy::advice("give both ends the same folder").or("copy it again"))
            }
            Self::Memory { .. } => Some(
                Remedy::set(Setting::BatchSize, Change::Lower)
                    .or_set(Setting::DeviceMemory, Change::Raise)
                    .or("use a sampler without long lists")
                    .or("raise the limit of the container"),
            ),
            Self::NamelessFile { .. }
            | Self::RecipeTooLong { .. }
            | Self::TooManyColumns { .. }
            | Self::Collate(_)
            | Self::Batches { .. }
            | Self::Batching(_)
            | Self::Holders(_)
            | Self::NoSampler
            | Self::Sampler(_)
            | Self::Device { .. }
            | Self::Unnamed
            | Self::SharedSpool
            | Self::NoSpool { .. }
            | Self::Slots { .. }
            | Self::SlotBytes { .. }
            | Self::Spool(_) => None,
        }
    }

    /// The reason under which it is counted.
    pub(crate) fn counted_as(&self) -> JobRefusal {
        match self {
            Self::Version { .. } => JobRefusal::Version,
            Self::Memory { .. } => JobRefusal::Memory,
            Self::OutsideRoots { .. }
            | Self::ContentOutsideRoots { .. }
            | Self::NotServed { .. }
            | Self::Unnamed
            | Self::NamedContentOutsideRoots
            | Self::Dataset(_)
            | Self::OtherDataset { .. } => JobRefusal::Dataset,
            Self::SharedSpool
            | Self::Recipe(_)
            | Self::NamelessFile { .. }
            | Self::RecipeTooLong { .. }
            | Self::OtherRecipe { .. }
            | Self::TooManyColumns { .. }
            | Self::Collate(_)
            | Self::Batches { .. }
            | Self::Batching(_)
            | Self::Holders(_)
            | Self::NoSampler
            | Self::Sampler(_)
            | Self::OtherSampler { .. }
            | Self::Device { .. }
            | Self::NoSpool { .. }
            | Self::Slots { .. }
            | Self::SlotBytes { .. }
            | Self::Spool(_)
            | Self::Storage(_) => JobRefusal::Other,
        }
    }

    /// The status that is sent to the host.
    pub(crate) fn status(&self) -> tonic::Status {
        let code = match self {
            Self::OutsideRoots { .. }
            | Self::ContentOutsideRoots { .. }
            | Self::NamedContentOutsideRoots => tonic::Code::PermissionDenied,
            Self::Memory { is_temporary: true, .. } => tonic::Code::ResourceExhausted,
            Self::Memory { is_temporary: false, .. } => tonic::Code::OutOfRange,
            Self::RecipeTooLong { .. }
            | Self::TooManyColumns { .. }
            | Self::Collate(_)
            | Self::Batches { .. }
            | Self::Batching(_)
            | Self::Holders(_)
            | Self::NoSampler
            | Self::Sampler(_)
            | Self::Device { .. }
            | Self::Unnamed
            | Self::SharedSpool
            | Self::Slots { .. }
            | Self::SlotBytes { .. } => tonic::Code::InvalidArgument,
            Self::Version { .. }
            | Self::NotServed { .. }
            | Self::Dataset(_)
            | Self::OtherDataset { .. }
            | Self::Recipe(_)
            | Self::NamelessFile { .. }
            | Self::OtherRecipe { .. }
            | Self::OtherSampler { .. }
            | Self::NoSpool { .. }
            | Self::Spool(_)
            | Self::Storage(_) => tonic::Code::FailedPrecondition,
        };
        refusal::status(code, self.to_string(), self.remedy().as_ref())
    }
}

/// The root that a host names.
fn root_shown(root: &str) -> String {
    match root {
        "" => "any root".to_owned(),
        name => format!("root {name:?}"),
    }
}
