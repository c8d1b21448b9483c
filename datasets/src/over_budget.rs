//! The error of a source that needs more memory than its limit.

use crate::message::Message;
use meetpoint_diagnose::{Change, Remedy, Setting};
use meetpoint_format::units::show_bytes;
use std::{fmt, io};

/// Maximum ratio of decompressed to compressed bytes: about ten times that of photographs, texts
/// and arrays.
pub(crate) const RATIO_MAX: u64 = 256;

/// Why a source exceeds its memory limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverBudget {
    /// The source would hold more memory at once than its limit.
    Memory {
        /// Bytes that the source would hold.
        wanted: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Data with a compression ratio that no real data have.
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
