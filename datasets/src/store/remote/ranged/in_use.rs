//! The error of a dataset in use, as a reader of it receives it.

use crate::error::RemoteError;
use meetpoint_diagnose::{Change, Diagnose, Remedy, Setting, Surface};
use meetpoint_prepare::RemoteFailure;
use std::fmt;
use std::io;

/// An error of a dataset in use, whose cache has an option of another name than that of a source.
struct InUse<'e>(&'e RemoteError);

impl fmt::Display for InUse<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.0, to)
    }
}

impl Diagnose for InUse<'_> {
    fn cause(&self) -> &'static str {
        self.0.cause()
    }

    fn message(&self, surface: Surface) -> String {
        Diagnose::message(self.0, surface)
    }

    fn remedy(&self) -> Option<Remedy> {
        match self.0 {
            RemoteError::Cache { .. } | RemoteError::NotPrivate { .. } => Some(
                Remedy::by("choose another folder", Setting::CacheDir, Change::Other)
                    .or_set(Setting::CacheSize, Change::Lower),
            ),
            RemoteError::NoCache => {
                Some(Remedy::by("choose a folder", Setting::CacheDir, Change::Other))
            }
            other => other.remedy(),
        }
    }
}

/// The error for a reader.
pub(super) fn io_error(error: &RemoteError) -> io::Error {
    match error {
        RemoteError::Interrupted => RemoteFailure::interruption(error).into(),
        _ => RemoteFailure::of(&InUse(error)).into(),
    }
}
