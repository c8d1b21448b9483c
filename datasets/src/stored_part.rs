//! The file of a part that is being checked or repaired.

use meetpoint_format::dataset::PartBytes;
use meetpoint_storage::files::open_regular;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The file of a part, opened for each access, since the drive may be failing.
pub(crate) struct StoredPart {
    /// Its path.
    pub(crate) path: PathBuf,
}

impl StoredPart {
    /// Opens it for reading; an error if it is not a regular file.
    pub(crate) fn open(&self) -> std::io::Result<File> {
        open_regular(&self.path)
    }
}

impl PartBytes for StoredPart {
    fn part_bytes(&self, _part: usize) -> std::io::Result<u64> {
        Ok(self.open()?.metadata()?.len())
    }

    fn read_exact_at(&self, _part: usize, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        self.open()?.read_exact_at(into, offset)
    }
}
