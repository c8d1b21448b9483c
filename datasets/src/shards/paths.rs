//! Paths that every process finds, whatever folder it works in.

use crate::source::{self, SourceOptions};
use std::path::{Path, PathBuf};

/// A path that every process finds; a URL stays as it is.
pub(crate) fn absolute_source(from: &Path) -> PathBuf {
    if source::is_url(from) {
        return from.to_path_buf();
    }
    from.canonicalize().or_else(|_| std::path::absolute(from)).unwrap_or_else(|_| from.into())
}

/// Options whose paths every process finds.
pub(crate) fn absolute_options(mut options: SourceOptions) -> SourceOptions {
    for path in [&mut options.table, &mut options.root, &mut options.remote.cache] {
        *path = path.take().map(|path| match source::is_url(&path) {
            true => path,
            false => std::path::absolute(&path).unwrap_or(path),
        });
    }
    options
}
