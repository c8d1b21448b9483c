//! Errors of the command line itself, each with its cause, remedy and exit code.

use meetpoint_diagnose::{Diagnose, Remedy};

/// Exit code of a command that failed.
pub(crate) const FAILED: u8 = 1;
/// Exit code of wrong usage.
pub(crate) const WRONG_USAGE: u8 = 2;

/// An error of the command line itself.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Fault {
    cause: &'static str,
    message: String,
    remedy: Remedy,
    exit_code: u8,
}

impl Fault {
    /// A failure: exit code 1.
    pub(crate) fn new(
        cause: &'static str,
        message: impl Into<String>,
        remedy: impl Into<Remedy>,
    ) -> Self {
        Self { cause, message: message.into(), remedy: remedy.into(), exit_code: FAILED }
    }

    /// The exit code of a command that fails with it.
    pub(crate) fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// The error of a library, with a remedy.
    pub(crate) fn of<E: Diagnose>(error: &E) -> Self {
        let help = || "list what is permitted with `--help`".into();
        Self::new(error.cause(), error.to_string(), error.remedy().unwrap_or_else(help))
    }

    /// An error of a library that an argument causes.
    pub(crate) fn usage_of<E: Diagnose>(error: &E) -> Self {
        Self { exit_code: WRONG_USAGE, ..Self::of(error) }
    }

    /// Wrong usage that is detected after parsing: exit code 2.
    pub(crate) fn usage(message: impl Into<String>, remedy: impl Into<Remedy>) -> Self {
        Self { exit_code: WRONG_USAGE, ..Self::new("usage", message, remedy) }
    }
}

impl Diagnose for Fault {
    fn cause(&self) -> &'static str {
        self.cause
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(self.remedy.clone())
    }
}
