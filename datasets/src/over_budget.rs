//! The error of a source that needs more memory than its limit.

use crate::message::Message;
use crate::words::Setting;
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
    /// What it needs, and what to do.
    pub fn message(&self) -> Message {
        match self {
            Self::Memory { wanted, limit } => {
                let (wanted, limit) = (show_bytes(*wanted), show_bytes(*limit));
                Message::from(format!(
                    "needs {wanted} of memory, the limit for a source is {limit}; raise it with "
                )) + Setting::SourceMemory
                    + " if the file is sound"
            }
            Self::Ratio { compressed, bytes: _ } => Message::from(format!(
                "{} decompress to more than {RATIO_MAX} times as much; if the file is sound, \
                 decompress it before",
                show_bytes(*compressed)
            )),
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
