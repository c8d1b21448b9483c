//! Why a meter does not work, or gave no value.

use crate::causes::SystemError;
use meetpoint_diagnose::shown;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::PathBuf;

/// Why a board has no reading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GpuError {
    /// The board does not have it.
    #[error("not supported by this board")]
    NotSupported,
    /// Permission denied.
    #[error("this user may not read it")]
    NoPermission,
    /// Any other error of the library.
    #[error("{detail}")]
    Failed {
        /// The library's message.
        detail: String,
    },
}

/// A meter that the machine lacks, that could not be read, or that gave no figure for an interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "cause", rename_all = "snake_case")]
#[non_exhaustive]
pub enum MeterError {
    /// The processor exposes no counters.
    #[error("there are no RAPL counters in /sys/class/powercap")]
    NoRapl,
    /// The kernel has no performance events of energy.
    #[error("the kernel has no performance events of energy (no device `power`)")]
    NoPerformanceEvents,
    /// No board has a sensor.
    #[error("no board sensor of power or energy in /sys/class/hwmon")]
    NoSensor,
    /// The machine has no battery.
    #[error("the machine has no battery")]
    NoBattery,
    /// The library of NVIDIA's driver is missing.
    #[error("{library} was not found: no NVIDIA driver is installed")]
    NoLibrary {
        /// Its file.
        library: String,
    },
    /// NVIDIA's driver is not loaded.
    #[error("the NVIDIA driver is not loaded")]
    DriverNotLoaded,
    /// The library for graphics boards finds none.
    #[error("{library} finds no board")]
    NoBoard {
        /// Name of the library.
        library: String,
    },
    /// The library for graphics boards returned an error.
    #[error("{library}: {detail}")]
    Library {
        /// Name of the library.
        library: String,
        /// Its message.
        detail: String,
    },
    /// A file that could not be read.
    #[error("failed to read {}: {error}", shown(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: SystemError,
    },
    /// A file with unexpected content.
    #[error("{} holds {held:?}, not {expected}", shown(path))]
    Garbage {
        /// The file.
        path: PathBuf,
        /// Its first characters.
        held: String,
        /// The expected content.
        expected: Cow<'static, str>,
    },
    /// The kernel did not open the counter.
    #[error("failed to open the energy counter {event}: {error}")]
    Open {
        /// Name of the event.
        event: String,
        /// The system's error.
        error: SystemError,
    },
    /// A counter that was opened but could not be read.
    #[error("failed to read the energy counter {event}: {error}")]
    Counter {
        /// Name of the event.
        event: String,
        /// The system's error.
        error: SystemError,
    },
    /// The library of a graphics processor returned an error.
    #[error("graphics processor {index}: {error}")]
    Gpu {
        /// Its number.
        index: u32,
        /// The error.
        error: GpuError,
    },
    /// A counter that should never wrap decreased.
    #[error("the counter fell from {before} to {now} microjoules")]
    WentBack {
        /// Microjoules before.
        before: u64,
        /// Microjoules after.
        now: u64,
    },
    /// A meter that did not advance, although every machine uses energy.
    #[error("it did not advance in {readings} readings, so it measures nothing on this machine")]
    NeverAdvanced {
        /// How often it was read.
        readings: u64,
    },
    /// A battery that shows the machine's power only while it discharges.
    #[error("the battery is {status:?}, and shows the power only while it is \"Discharging\"")]
    OnMains {
        /// The kernel's status.
        status: String,
    },
    /// An impossible power.
    #[error("the sensor shows {watts} W")]
    Impossible {
        /// The reading as text, because it may be infinite.
        watts: String,
    },
    /// A driver that hangs.
    #[error("the meters did not answer in time")]
    NoAnswer,
    /// A meter that was read in some parts of the interval only.
    #[error("the meter was not available in every part of the interval")]
    NotInEveryPart,
}

impl MeterError {
    /// The remedy; `permission` if the user may not read it.
    pub(super) fn remedy(&self, permission: &str) -> Option<String> {
        match self {
            Self::NoRapl => Some(
                "run on bare metal with an Intel or AMD processor and the kernel module \
                 intel_rapl_msr; virtual machines hide them"
                    .to_owned(),
            ),
            Self::NoPerformanceEvents => Some(
                "run on bare metal with an Intel or AMD processor and the kernel module rapl"
                    .to_owned(),
            ),
            Self::NoLibrary { .. } => Some(
                "with an NVIDIA board, install its driver; in a container, pass the board through"
                    .to_owned(),
            ),
            Self::DriverNotLoaded => Some("sudo modprobe nvidia".to_owned()),
            Self::Read { error, .. } | Self::Open { error, .. } | Self::Counter { error, .. } => {
                error.is_permission_denied().then(|| permission.to_owned())
            }
            Self::OnMains { .. } => Some("unplug the power supply".to_owned()),
            Self::NoSensor
            | Self::NoBattery
            | Self::NoBoard { .. }
            | Self::Library { .. }
            | Self::Garbage { .. }
            | Self::Gpu { .. }
            | Self::WentBack { .. }
            | Self::NeverAdvanced { .. }
            | Self::Impossible { .. }
            | Self::NoAnswer
            | Self::NotInEveryPart => None,
        }
    }
}
