//! A failure of a store as a value: it travels inside an [`std::io::Error`] through code that knows
//! only files.

use meetpoint_diagnose::{Diagnose, Remedy, Surface};
use std::fmt;
use std::io;

/// What went wrong between this process and a store, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFailure {
    cause: &'static str,
    /// In the words of the command line and of Python.
    messages: [String; 2],
    remedy: Option<Remedy>,
    is_interruption: bool,
}

impl RemoteFailure {
    /// The facts of an error.
    pub fn of(error: &dyn Diagnose) -> Self {
        let messages = [Surface::CommandLine, Surface::Python].map(|it| error.message(it));
        let (cause, remedy) = (error.cause(), error.remedy());
        Self { cause, messages, remedy, is_interruption: false }
    }

    /// As [`Self::of`], for a wait that was interrupted.
    pub fn interruption(error: &dyn Diagnose) -> Self {
        Self { is_interruption: true, ..Self::of(error) }
    }

    /// Whether a wait was interrupted, so that nothing has failed.
    pub fn is_interruption(&self) -> bool {
        self.is_interruption
    }

    /// The failure inside an error, if it contains one.
    pub fn inside(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl Diagnose for RemoteFailure {
    fn cause(&self) -> &'static str {
        self.cause
    }

    fn remedy(&self) -> Option<Remedy> {
        self.remedy.clone()
    }

    fn message(&self, surface: Surface) -> String {
        match surface {
            Surface::CommandLine => self.messages[0].clone(),
            Surface::Python => self.messages[1].clone(),
        }
    }
}

/// As on the command line.
impl fmt::Display for RemoteFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.messages[0])
    }
}

impl std::error::Error for RemoteFailure {}

impl From<RemoteFailure> for io::Error {
    fn from(failure: RemoteFailure) -> Self {
        Self::other(failure)
    }
}
