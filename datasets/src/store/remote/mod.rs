//! Files that are objects in object stores and on web servers.
//!
//! What a URL names is listed once; an object is fetched into a cache folder when it is opened,
//! some that follow it ahead of that, and those that were read make room for others. What is held
//! is bounded by [`RemoteOptions::cache_bytes`].
//!
//! In reading order: [`RemoteOptions`], [`RemoteError`], with the
//! feature `remote`, `address` (what a URL names), `connect` (how the server is reached), `listing`
//! (which objects there are), `download` (one of them), `cache` (the folder), `held` (which of them
//! are in it), `fetcher` (who waits for which) and `store` (all of it as a store).

#[cfg(feature = "remote")]
mod address;
#[cfg(feature = "remote")]
mod cache;
#[cfg(feature = "remote")]
mod connect;
#[cfg(feature = "remote")]
mod download;
mod error;
#[cfg(feature = "remote")]
mod fetcher;
#[cfg(feature = "remote")]
mod held;
#[cfg(feature = "remote")]
mod listing;
#[cfg(feature = "remote")]
mod store;

pub use error::RemoteError;
#[cfg(feature = "remote")]
pub(crate) use store::RemoteStore;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Time between two looks at whether somebody wants it to stop.
#[cfg(feature = "remote")]
const LOOK: std::time::Duration = std::time::Duration::from_millis(100);
/// Bytes of objects that are held by default.
pub const CACHE_BYTES: u64 = 16 << 30;

/// How a source elsewhere is reached and held.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RemoteOptions {
    /// Folder for what is fetched; `None` takes `meetpoint` in `$XDG_CACHE_HOME` or `~/.cache`.
    pub cache: Option<PathBuf>,
    /// Bytes of objects that lie there at once.
    pub cache_bytes: u64,
    /// Ask without credentials.
    pub anonymous: bool,
    /// Watches and stops it from elsewhere.
    #[serde(skip)]
    pub watch: Watch,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        let watch = Watch::default();
        Self { cache: None, cache_bytes: CACHE_BYTES, anonymous: false, watch }
    }
}

/// What is known of the transfer elsewhere; says nothing about which source it is, so that any two
/// are equal.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// Set by another thread to stop.
    pub stop: Arc<AtomicBool>,
    /// Objects that were listed.
    pub listed: Arc<AtomicU64>,
    /// Bytes that were fetched.
    pub fetched_bytes: Arc<AtomicU64>,
}

#[cfg(feature = "remote")]
impl Watch {
    /// The result of a transfer, unless it is stopped before.
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

impl PartialEq for Watch {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Watch {}
