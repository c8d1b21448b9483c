//! The error of a source that needs more memory than its limit.

use crate::message::Message;
use meetpoint_diagnose::{Change, Remedy, Setting};
use meetpoint_format::units::show_bytes;
use std::{fmt, io};

/// Times that compressed bytes may grow when they are decompressed: some ten times the ratio of
/// photographs, texts and arrays.
pub(crate) const RATIO_MAX: u64 = 256;

/// More memory than a source may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverBudget {
    /// More than a source may hold at once.
    Memory {
        /// Bytes that it would hold.
        wanted: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Data that expand by more than any real data do.
    Ratio {
        /// Bytes in the file.
        compressed: u64,
        /// Bytes decompressed so far.
        bytes: u64,
    },
}

impl OverBudget {
    /// The message, with its remedy.
    pub fn message(&self) -> Message {
        match self {
            Self::Memory { wanted, limit } => {
                let (wanted, limit) = (show_bytes(*wanted), show_bytes(*limit));
                let purpose = "raise it, if the file is intact,";
                Message::from(format!(
                    "needs {wanted} of memory, the limit for a source is {limit}"
                ))
                .remedy(Remedy::by(purpose, Setting::SourceMemory, Change::Other))
            }
            Self::Ratio { compressed, bytes: _ } => Message::from(format!(
                "{} decompress to more than {RATIO_MAX} times their size",
                show_bytes(*compressed)
            ))
            .remedy("decompress it first, if the file is intact"),
        }
    }
}

impl fmt::Display for OverBudget {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message().fmt(to)
    }
}

impl std::error::Error for OverBudget {}

impl From<OverBudget> for io::Error {
    fn from(over: OverBudget) -> Self {
        Self::other(over)
    }
}
