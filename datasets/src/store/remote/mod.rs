//! Files that are objects in object stores and on web servers.
//!
//! The objects of a URL are listed once. An object is fetched into a cache folder when it is
//! opened, the next ones are prefetched, and objects that were read are evicted. The cache is
//! bounded by [`RemoteOptions::cache_bytes`].
//!
//! In reading order: [`RemoteOptions`], with the feature `remote`, `address` (parsed URLs),
//! `connect` (clients and credentials), `listing` (the objects), `download` (of one object),
//! `cache` (the folder), `object_cache` (the state of the cache), `fetcher` (transfers and
//! prefetch), `store` (all of it as a store), `ranged` (datasets of our own, read in ranges) and
//! [`RemoteStores`] (opens those).

#[cfg(feature = "remote")]
mod address;
#[cfg(feature = "remote")]
mod cache;
#[cfg(feature = "remote")]
mod connect;
mod deadlines;
#[cfg(feature = "remote")]
mod download;
#[cfg(feature = "remote")]
mod fetcher;
#[cfg(feature = "remote")]
mod listing;
#[cfg(feature = "remote")]
mod object_cache;
mod open;
#[cfg(feature = "remote")]
mod ranged;
#[cfg(feature = "remote")]
mod store;

pub use deadlines::Deadlines;
pub use open::RemoteStores;
#[cfg(feature = "remote")]
pub(crate) use store::RemoteStore;

#[cfg(feature = "remote")]
use crate::error::RemoteError;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Interval at which the stop flag is polled.
#[cfg(feature = "remote")]
const LOOK: std::time::Duration = std::time::Duration::from_millis(100);
/// Default limit of the cache in bytes.
pub const CACHE_BYTES: u64 = 16 << 30;

/// How a source elsewhere is reached and held.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RemoteOptions {
    /// Cache folder; the default is `meetpoint` in `$XDG_CACHE_HOME` or `~/.cache`.
    pub cache: Option<PathBuf>,
    /// Maximum bytes of objects in the cache at once.
    pub cache_bytes: u64,
    /// Send requests without credentials.
    pub anonymous: bool,
    /// Watches and stops it from elsewhere.
    #[serde(skip)]
    pub watch: TransferMonitor,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        let watch = TransferMonitor::default();
        Self { cache: None, cache_bytes: CACHE_BYTES, anonymous: false, watch }
    }
}

/// Progress and stop flag of a transfer, shared by clones. They do not identify a source, so any
/// two compare equal.
#[derive(Debug, Clone, Default)]
pub struct TransferMonitor {
    /// Set by another thread to stop.
    pub stop: Arc<AtomicBool>,
    /// Number of listed objects.
    pub listed: Arc<AtomicU64>,
    /// Number of fetched bytes.
    pub fetched_bytes: Arc<AtomicU64>,
}

#[cfg(feature = "remote")]
impl TransferMonitor {
    /// The result of a transfer, or [`RemoteError::Interrupted`] if it is stopped first.
    async fn unless_stopped<T>(&self, transfer: impl Future<Output = T>) -> Result<T, RemoteError> {
        let mut transfer = std::pin::pin!(transfer);
        loop {
            if self.stop.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(RemoteError::Interrupted);
            }
            if let Ok(came) = tokio::time::timeout(LOOK, &mut transfer).await {
                return Ok(came);
            }
        }
    }
}

impl PartialEq for TransferMonitor {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for TransferMonitor {}
