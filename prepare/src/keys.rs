//! The index of keys of an open dataset, if it has one.

use crate::Error;
use meetpoint_diagnose::{Command, Remedy};
use meetpoint_format::key_index::{KEY_INDEX_NAME, KeyIndex, KeyIndexError};
use meetpoint_storage::files::open_regular;
use meetpoint_storage::open_files_limit;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How a dataset finds the sample of a key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum KeyLookup {
    /// It has no index of keys, so all keys are scanned.
    Scan,
    /// It uses `keys.idx`.
    Index {
        /// Bytes of the file.
        bytes: u64,
    },
    /// It has an index of keys that is not usable: looking up a key is an error.
    Unusable {
        /// The reason.
        problem: String,
        /// The remedy.
        remedy: Remedy,
    },
}

/// The result of opening the index of keys.
#[derive(Debug)]
pub(crate) enum Keys {
    Absent,
    Open { file: File, bytes: u64, index: KeyIndex },
    Unusable { problem: String, remedy: Remedy },
}

impl Keys {
    /// Opens the index of the dataset in a folder, given its number of samples and its manifest.
    pub(crate) fn open(folder: &Path, manifest_sha256: [u8; 32], samples: u64) -> Self {
        let file = match open_regular(&folder.join(KEY_INDEX_NAME)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Self::Absent,
            Err(error) => {
                let (problem, remedy) = described(&KeyIndexError::Io(error));
                return Self::Unusable { problem, remedy };
            }
            Ok(file) => file,
        };
        let opened = file.metadata().map_err(KeyIndexError::Io).and_then(|metadata| {
            let bytes = metadata.len();
            let read = |offset: u64, into: &mut [u8]| file.read_exact_at(into, offset);
            Ok((bytes, KeyIndex::open(manifest_sha256, samples, bytes, &read)?))
        });
        match opened {
            Ok((bytes, index)) => Self::Open { file, bytes, index },
            Err(error) => {
                let (problem, remedy) = described(&error);
                Self::Unusable { problem, remedy }
            }
        }
    }

    /// The samples of the dataset in a folder that may have a key; `None` if there is no index.
    pub(crate) fn candidates(&self, key: &str, folder: &Path) -> Result<Option<Vec<u64>>, Error> {
        let unusable = |(problem, remedy)| {
            let path = folder.to_path_buf();
            Error::KeyIndex { path, problem, remedy }
        };
        match self {
            Self::Absent => Ok(None),
            Self::Unusable { problem, remedy } => Err(unusable((problem.clone(), remedy.clone()))),
            Self::Open { file, index, .. } => {
                let read = |offset: u64, into: &mut [u8]| file.read_exact_at(into, offset);
                let found = index.candidates(key, &read);
                found.map(Some).map_err(|error| unusable(described(&error)))
            }
        }
    }

    /// How keys are found.
    pub(crate) fn lookup(&self) -> KeyLookup {
        match self {
            Self::Absent => KeyLookup::Scan,
            Self::Open { bytes, .. } => KeyLookup::Index { bytes: *bytes },
            Self::Unusable { problem, remedy } => {
                KeyLookup::Unusable { problem: problem.clone(), remedy: remedy.clone() }
            }
        }
    }
}

/// What is wrong with an index of keys, and the remedy.
fn described(error: &KeyIndexError) -> (String, Remedy) {
    let limit = match error {
        KeyIndexError::Io(source) => open_files_limit(source).map(Remedy::from),
        _ => None,
    };
    let remedy = limit.unwrap_or_else(|| Remedy::run(Command::IndexKeys));
    (error.to_string(), remedy)
}
