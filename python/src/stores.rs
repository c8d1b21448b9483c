//! Datasets in stores, from the package.

use meetpoint_datasets::store::{RemoteOptions, RemoteStores, TransferMonitor};
use meetpoint_prepare::DatasetPaths;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The options of the store of a dataset at a URL.
pub(crate) fn options(
    (cache, cache_bytes, anonymous): (Option<PathBuf>, Option<u64>, bool),
    stop: Option<&Arc<AtomicBool>>,
) -> RemoteOptions {
    let defaults = RemoteOptions::default();
    let watch = match stop {
        Some(stop) => TransferMonitor { stop: Arc::clone(stop), ..TransferMonitor::default() },
        None => TransferMonitor::default(),
    };
    let cache_bytes = cache_bytes.unwrap_or(defaults.cache_bytes);
    RemoteOptions { cache, cache_bytes, anonymous, watch }
}

/// Folders, of which those at URLs are opened with these options.
pub(crate) fn paths(folders: Vec<PathBuf>, options: RemoteOptions) -> DatasetPaths {
    DatasetPaths::from(folders).opened_by(Arc::new(RemoteStores::new(options)))
}
