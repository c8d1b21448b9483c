//! Why a meter gave no value.

use meetpoint_diagnose::shown;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::PathBuf;

/// An error of the operating system, as a value that reports contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct SystemError {
    /// The error number; `None` for errors that the system did not return.
    pub errno: Option<i32>,
    /// The system's message.
    pub message: String,
}

impl From<std::io::Error> for SystemError {
    fn from(error: std::io::Error) -> Self {
        Self { errno: error.raw_os_error(), message: error.to_string() }
    }
}

impl SystemError {
    fn is_permission_denied(&self) -> bool {
        let kind = self.errno.map(|errno| std::io::Error::from_raw_os_error(errno).kind());
        kind == Some(std::io::ErrorKind::PermissionDenied)
    }
}

/// A meter that could not be read, or gave no figure for an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "cause", rename_all = "snake_case")]
#[non_exhaustive]
pub enum MeterError {
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
            Self::Read { error, .. } | Self::Open { error, .. } | Self::Counter { error, .. } => {
                error.is_permission_denied().then(|| permission.to_owned())
            }
            Self::OnMains { .. } => Some("unplug the power supply".to_owned()),
            Self::Garbage { .. }
            | Self::Gpu { .. }
            | Self::WentBack { .. }
            | Self::NeverAdvanced { .. }
            | Self::Impossible { .. }
            | Self::NoAnswer
            | Self::NotInEveryPart => None,
        }
    }
}
