//! What a device reports to its user when it begins to serve.

use meetpoint_diagnose::{Diagnose, Remedy, shown};
use meetpoint_storage::EngineNote;
use std::fmt;
use std::path::PathBuf;

/// A notice of a device that has begun to serve. `Display` gives the sentence, without the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServeNotice {
    /// Its storage engine works without a feature.
    Storage(EngineNote),
    /// It serves a dataset by its extents.
    Extents {
        /// The file of the extents.
        file: PathBuf,
        /// The block device or image that it reads.
        block: PathBuf,
        /// The block device of the extents.
        device: String,
        /// Where that device begins in `block`, in bytes.
        begin: u64,
        /// The storage engine.
        engine: &'static str,
    },
    /// An emulated device shares the only core with the host.
    SharedCore {
        /// The core.
        core: usize,
    },
}

impl fmt::Display for ServeNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Storage(note) => note.fmt(f),
            Self::Extents { file, block, device, begin, engine } => {
                write!(f, "{}: reads its extents from {}", shown(file), shown(block))?;
                if *begin > 0 {
                    write!(f, ", where {device} begins at byte {begin}")?;
                }
                write!(f, " (engine {engine}), and nothing else of it")
            }
            Self::SharedCore { core } => write!(
                f,
                "the device shares core {core}, the only one, with the host: its measurements are \
                 not valid"
            ),
        }
    }
}

impl Diagnose for ServeNotice {
    fn cause(&self) -> &'static str {
        match self {
            Self::Storage(_) => "storage",
            Self::Extents { .. } => "extents",
            Self::SharedCore { .. } => "shared_core",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Storage(note) => note.remedy(),
            Self::Extents { .. } | Self::SharedCore { .. } => None,
        }
    }
}
