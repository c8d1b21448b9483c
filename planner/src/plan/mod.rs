//! One plan for both decisions: what is prepared once, offline, and which end executes the rest.
//!
//! The measurements of a profile give the time of a batch for each stored form and number of
//! threads. The real scheduler runs in virtual time with these times, for each strategy, and the
//! plan that finishes its epochs first, or with the least energy, is chosen within the limits of
//! storage and memory. Its results are facts; [`explain`] turns them into sentences.
//!
//! In reading order: this file (the request), [`Pins`] (values that the user fixed),
//! [`alternatives`], [`gpu`], [`model`] (predictions for each alternative), [`mod@choose`] (the
//! choice, the runner-up, and changes that would lead to another choice), [`explain`] (sentences),
//! [`mod@write`] (the file), [`PlanError`].

pub mod alternatives;
pub mod choose;
mod error;
pub mod explain;
pub mod gpu;
pub mod model;
mod pins;
pub mod write;

pub use alternatives::{Alternative, CacheChoice};
pub use choose::{Change, PlanChoice, RankedAlternative, Refused, RefusedBecause, choose};
pub use error::PlanError;
pub use explain::sentences;
pub use gpu::GpuEnergy;
pub use model::{EpochPrediction, Prediction};
pub use pins::{GpuPin, Pins};
pub use write::{Origin, write};

use crate::vocabulary::{Form, GpuIndex};
use meetpoint_format::dataset;
use meetpoint_prepare::Dataset;
use meetpoint_sim::power::PowerModel;

/// The quantity to minimise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Aim {
    /// The seconds until the last epoch ends, including the offline part.
    Time,
    /// The joules until then, by a power model.
    Energy,
}

impl Aim {
    /// Every aim.
    pub const ALL: &'static [Self] = &[Self::Time, Self::Energy];

    /// The name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Energy => "energy",
        }
    }
}

/// A device that may prepare batches.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct DeviceModel {
    /// Speed of its thread that prepares, as a share of a core of this machine.
    pub cpu_ratio: f64,
    /// Bytes per second that it reads; `None`: reading takes no additional time.
    pub read_bytes_per_second: Option<u64>,
    /// Bytes per second that it writes to its spool.
    pub write_bytes_per_second: Option<u64>,
    /// Latency of each read and write, in nanoseconds.
    pub latency_ns: u64,
    /// Whether it is emulated on the cores of this machine.
    pub shares_cores: bool,
    /// Slots of its spool.
    pub spool_slots: u32,
}

/// Refuses batches that are larger than the dataset, before anything is measured.
///
/// ```
/// use meetpoint_planner::plan::{PlanError, check_batch_size};
///
/// assert_eq!(check_batch_size(32, 32), Ok(()));
/// let refused = PlanError::BatchTooLarge { batch_size: 33, samples: 32 };
/// assert_eq!(check_batch_size(33, 32), Err(refused));
/// ```
///
/// # Errors
///
/// [`PlanError::BatchTooLarge`] where `batch_size` exceeds `samples`.
pub fn check_batch_size(batch_size: u32, samples: u64) -> Result<(), PlanError> {
    match u64::from(batch_size) > samples {
        true => Err(PlanError::BatchTooLarge { batch_size, samples }),
        false => Ok(()),
    }
}

/// The request for a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Epochs to finish, at least 1.
    pub epochs: u32,
    /// The quantity to minimise.
    pub aim: Aim,
    /// Maximum bytes that may be stored besides the dataset; `None`: no limit.
    pub storage_limit: Option<u64>,
    /// Maximum bytes of memory for batches prepared ahead and for the application cache; `None`: no
    /// limit.
    pub memory_limit: Option<u64>,
    /// Confidence at which the choice is called certain, between 0 and 1.
    pub confidence: f64,
    /// Whether forms that lose detail may be chosen.
    pub allows_loss: bool,
    /// Samples in a batch.
    pub batch_size: u32,
    /// Bytes of a batch.
    pub batch_bytes: u64,
    /// Whether each epoch is shuffled.
    pub shuffle: bool,
    /// A step of the accelerator, in nanoseconds.
    pub step_ns: u64,
    /// The GPU of the steps; `None`: the one that prepares samples, which slows the steps.
    pub step_gpu: Option<GpuIndex>,
    /// The device; `None`: none.
    pub device: Option<DeviceModel>,
    /// Cores that this process may use.
    pub cores: u32,
    /// The form of the dataset.
    pub stored_as: Form,
    /// Values that the user fixed.
    pub pins: Pins,
    /// Power in watts, for modelled energy.
    pub power: PowerModel,
}

/// The form of a dataset; `None` if its samples are prepared already.
pub fn form_of(dataset: &Dataset) -> Option<Form> {
    let manifest = dataset.manifest();
    if manifest.prepared().is_some() {
        return None;
    }
    if manifest.is_in_place() {
        return Some(Form::Files);
    }
    let form = manifest.stored.as_ref().map_or(dataset::Form::Jpeg, |stored| stored.form);
    Some(match form {
        dataset::Form::Jpeg => Form::Packed,
        dataset::Form::Fast => Form::CoefficientsFast,
        dataset::Form::Compact => Form::CoefficientsCompact,
    })
}
