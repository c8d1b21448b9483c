//! Opens a dataset that may be in a store.

use crate::Error;
use crate::store::{RemoteOptions, RemoteStores};
use meetpoint_prepare::{Dataset, DatasetPaths};
use std::path::Path;
use std::sync::Arc;

/// Number of readers of a command that reads in one thread, with one that prefetches.
const READERS: u64 = 2;

/// Opens a dataset; a URL is read through a cache, as the options say.
pub fn open_dataset(path: &Path, options: &RemoteOptions) -> Result<Dataset, Error> {
    let stores = Arc::new(RemoteStores::new(options.clone()));
    let dataset = Dataset::open_paths(&DatasetPaths::from(path).opened_by(stores))?;
    dataset.check_remote(READERS, 1)?;
    Ok(dataset)
}
