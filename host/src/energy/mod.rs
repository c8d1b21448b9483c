//! Meters of energy behind one trait, and what they measured over an interval.
//!
//! All values here are measured; modelled ones have separate types elsewhere. A meter that does not
//! work is skipped with a reason; one that fails during an interval has no value for it, never a
//! partial one.
//!
//! In reading order: this file (the contract), [`Coverage`], [`MeterError`], `powercap`, `perf`,
//! `hwmon`, `battery`, `gpu` (the sources), [`Meters`] (those found), [`Recorder`] (an interval),
//! [`Measurement`] (its result).

mod battery;
mod coverage;
mod error;
mod gpu;
mod hwmon;
mod integrate;
mod meters;
mod nvml;
mod perf;
mod perf_event;
mod powercap;
mod recorder;
mod sysfs;

#[cfg(test)]
mod tests;

pub use crate::causes::SystemError;
pub use coverage::Coverage;
pub use error::{GpuError, MeterError};
pub use gpu::Gpus;
pub use meters::{Machine, Meters, NoMeters, UnusableMeter};
pub use nvml::Nvml;
pub use perf_event::{Counters, Kernel};
pub use recorder::{Measured, Measurement, Recorder};

use serde::Serialize;

/// What a meter measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// A processor package: cores, caches, memory controller, on most also an integrated GPU.
    Package,
    /// The cores within a package.
    Cores,
    /// Other parts of a package, such as an integrated GPU.
    Uncore,
    /// Memory modules of a package.
    Dram,
    /// A graphics board with its memory.
    Gpu,
    /// The platform as the processor defines it (psys), packages included.
    Platform,
    /// The whole machine at its power inlet or battery.
    Machine,
    /// A supply rail of a board, named by the sensor.
    Rail,
}

impl Scope {
    /// Whether figures of this scope may be added up, because they do not overlap with each other.
    ///
    /// Cores and uncore are within the package; platform and machine contain it.
    pub fn adds_up(self) -> bool {
        matches!(self, Self::Package | Self::Dram | Self::Gpu)
    }
}

/// The description of a meter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeterInfo {
    /// Its name, such as `rapl:package-0`.
    pub name: String,
    /// What it measures.
    pub scope: Scope,
    /// The parts of the machine that it covers.
    pub covers: Coverage,
    /// Smallest step of the figure in joules; for a power sensor, over its interval.
    pub resolution_joules: Option<f64>,
    /// Time between two updates, in seconds; `None` if it is not known.
    pub resolution_seconds: Option<f64>,
    /// File or library that is read.
    pub source: String,
}

/// One value of a meter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reading {
    /// A counter of microjoules that only grows, and wraps to 0 after `range`.
    Energy {
        /// Microjoules since an arbitrary time.
        microjoules: u64,
        /// The value after which the counter wraps; `None` if it never does.
        range: Option<u64>,
    },
    /// The power at this time.
    Power {
        /// Watts.
        watts: f64,
    },
}

/// A meter that works.
pub trait Meter: Send {
    /// Reads it. Always the same kind of [`Reading`].
    fn read(&mut self) -> Result<Reading, MeterError>;

    /// Share of the time since the last reading during which the measured part was busy, 0 to 1;
    /// `None` if it is not known.
    fn utilisation(&mut self) -> Option<f64> {
        None
    }
}

/// Why a meter does not work here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unusable {
    /// What is wrong.
    pub reason: MeterError,
    /// The remedy; `None` if there is none.
    pub remedy: Option<String>,
}

/// A meter that was searched for.
pub struct ProbedMeter {
    /// What it is.
    pub about: MeterInfo,
    /// The meter, or why it does not work on this machine.
    pub meter: Result<Box<dyn Meter>, Unusable>,
    /// The equivalent meter that is read instead.
    pub same_as: Option<String>,
}

impl std::fmt::Debug for ProbedMeter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ProbedMeter")
            .field("about", &self.about)
            .field("unusable", &self.meter.as_ref().err())
            .field("same_as", &self.same_as)
            .finish()
    }
}

impl ProbedMeter {
    /// Reads a meter once; one that fails now is not used later.
    fn probed(about: MeterInfo, mut meter: Box<dyn Meter>, permission: &str) -> Self {
        match meter.read() {
            Ok(_) => Self { about, meter: Ok(meter), same_as: None },
            Err(error) => Self::failed(about, error, permission),
        }
    }

    /// A meter that could not be read or created; `permission` is the remedy for missing
    /// permission.
    fn failed(about: MeterInfo, error: MeterError, permission: &str) -> Self {
        let remedy = error.remedy(permission);
        Self { about, meter: Err(Unusable { reason: error, remedy }), same_as: None }
    }

    /// A kind of meter that this machine lacks.
    fn absent(about: MeterInfo, reason: MeterError) -> Self {
        Self { about, meter: Err(reason.into()), same_as: None }
    }
}

/// A meter that this machine lacks.
impl From<MeterError> for Unusable {
    fn from(reason: MeterError) -> Self {
        let remedy = reason.remedy("run as root");
        Self { reason, remedy }
    }
}
