//! Makes paths absolute, so that every process finds them from any working directory.

use crate::source::{self, SourceOptions};
use std::path::{Path, PathBuf};

/// An absolute path; URLs are unchanged.
pub(crate) fn absolute_source(from: &Path) -> PathBuf {
    if source::is_url(from) {
        return from.to_path_buf();
    }
    from.canonicalize().or_else(|_| std::path::absolute(from)).unwrap_or_else(|_| from.into())
}

/// Options with absolute paths.
pub(crate) fn absolute_options(mut options: SourceOptions) -> SourceOptions {
    for path in [&mut options.table, &mut options.root, &mut options.remote.cache] {
        *path = path.take().map(|path| match source::is_url(&path) {
            true => path,
            false => std::path::absolute(&path).unwrap_or(path),
        });
    }
    options
}
