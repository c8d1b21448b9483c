//! Opens the files of a source, wherever they are: here, or fetched when they are wanted.

use super::RemoteError;
use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a regular file of a source for reading. One that stands for an object elsewhere is
/// fetched before; [`super::RemoteOptions`] bounds what is held of such.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    file_elsewhere(path).unwrap_or_else(|| meetpoint_storage::files::open_regular(path))
}

/// The file that stands for an object elsewhere, fetched; `None` for a path that is none such.
pub(crate) fn file_elsewhere(path: &Path) -> Option<io::Result<File>> {
    #[cfg(feature = "remote")]
    let found = super::remote::mirror_of(path).map(|mirror| mirror.open(path));
    #[cfg(not(feature = "remote"))]
    let found = None;
    let _ = path;
    found
}

/// Why an object elsewhere could not be fetched, where that is what an error is about.
pub(crate) fn not_fetched(error: &io::Error) -> Option<RemoteError> {
    error.get_ref()?.downcast_ref().cloned()
}

/// Sees to it that all files below a folder are here, and stay, for what opens them by itself.
pub(crate) fn hold_all(folder: &Path) -> io::Result<()> {
    #[cfg(feature = "remote")]
    if let Some(mirror) = super::remote::mirror_of(folder) {
        return mirror.hold_all(folder);
    }
    let _ = folder;
    Ok(())
}
