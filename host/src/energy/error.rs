//! Why a meter gave no value.

use std::path::PathBuf;

/// A meter that could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeterError {
    /// A file that could not be read.
    #[error("failed to read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A file with unexpected content.
    #[error("{} holds {held:?}, not {expected}", path.display())]
    Garbage {
        /// The file.
        path: PathBuf,
        /// Its first characters.
        held: String,
        /// The expected content.
        expected: &'static str,
    },
    /// The kernel did not open the counter.
    #[error("failed to open the energy counter {event}: {error}")]
    Open {
        /// Name of the event.
        event: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// A counter that was opened but could not be read.
    #[error("failed to read the energy counter {event}: {error}")]
    Counter {
        /// Name of the event.
        event: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// The library of a graphics processor returned an error.
    #[error("graphics processor {index}: {reason}")]
    Gpu {
        /// Its number.
        index: u32,
        /// The library's message.
        reason: String,
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
        /// The reading.
        watts: f64,
    },
}

impl MeterError {
    /// The remedy; `permission` if the user may not read it.
    pub(super) fn remedy(&self, permission: &str) -> Option<String> {
        match self {
            Self::Read { error, .. } | Self::Open { error, .. } | Self::Counter { error, .. } => {
                (error.kind() == std::io::ErrorKind::PermissionDenied)
                    .then(|| permission.to_owned())
            }
            Self::OnMains { .. } => Some("unplug the power supply".to_owned()),
            Self::Garbage { .. }
            | Self::Gpu { .. }
            | Self::WentBack { .. }
            | Self::NeverAdvanced { .. }
            | Self::Impossible { .. } => None,
        }
    }
}
