//! Opens datasets in stores, for readers that are given this as a value.

use super::{Deadlines, RemoteOptions};
use crate::error::RemoteError;
use meetpoint_prepare::{OpenRemote, RemoteFailure, RemoteFolder};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Opens datasets at URLs. Each has a cache of at most [`RemoteOptions::cache_bytes`] in
/// [`RemoteOptions::cache`], which processes of a host share.
#[derive(Debug, Clone, Default)]
pub struct RemoteStores {
    options: RemoteOptions,
    deadlines: Deadlines,
}

impl RemoteStores {
    /// Opens datasets with these options.
    pub fn new(options: RemoteOptions) -> Self {
        Self { options, deadlines: Deadlines::default() }
    }

    /// The same with other deadlines.
    pub fn with_deadlines(self, deadlines: Deadlines) -> Self {
        Self { deadlines, ..self }
    }
}

impl OpenRemote for RemoteStores {
    fn open(&self, url: &Path) -> io::Result<Arc<dyn RemoteFolder>> {
        self.folder(url).map_err(|error| RemoteFailure::of(&error).into())
    }
}

#[cfg(feature = "remote")]
impl RemoteStores {
    fn folder(&self, url: &Path) -> Result<Arc<dyn RemoteFolder>, RemoteError> {
        let Self { options, deadlines } = self;
        Ok(Arc::new(super::ranged::StoreFolder::new(url, options, *deadlines)?))
    }
}

#[cfg(not(feature = "remote"))]
impl RemoteStores {
    fn folder(&self, url: &Path) -> Result<Arc<dyn RemoteFolder>, RemoteError> {
        let _ = (&self.options, &self.deadlines);
        Err(RemoteError::NotBuilt { url: url.display().to_string() })
    }
}
