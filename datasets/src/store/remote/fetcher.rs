//! Fetches objects into files when they are opened, and prefetches some that follow.
//!
//! A file that is evicted while it is open remains readable, and its space is freed when it is
//! closed. So the space on the drive is at most the limit of the cache plus the files that a source
//! has open at once.

use super::TransferMonitor;
use super::address::Address;
use super::cache::Folder;
use super::connect::Client;
use super::download::{DownloadRequest, download};
use super::listing::Object;
use super::object_cache::{Eviction, ObjectCache, Slot};
use crate::error::RemoteError;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Maximum number of objects after the opened one that are prefetched.
const AHEAD_OBJECTS: usize = 64;
/// Time limit for transfers to end once their results are no longer needed.
const ENDING: Duration = Duration::from_secs(2);

/// Fetches the objects of a listing.
#[derive(Debug)]
pub(super) struct Fetcher {
    shared: Arc<Shared>,
    /// `None` only while this is dropped.
    runtime: Option<Runtime>,
    /// Removed when this is dropped, after the runtime.
    _folder: Folder,
}

/// The state shared by transfers and waiting readers.
#[derive(Debug)]
struct Shared {
    client: Client,
    address: Address,
    objects: Vec<Object>,
    files: PathBuf,
    incoming: PathBuf,
    bytes_max: u64,
    held: Mutex<ObjectCache>,
    /// Notified when an object has arrived, or none will arrive.
    changed: Condvar,
    watch: TransferMonitor,
}

impl Fetcher {
    /// Fetches these objects into a folder that holds at most a given number of bytes at once.
    pub(super) fn new(
        (client, address): (Client, Address),
        objects: Vec<Object>,
        (folder, bytes_max): (Folder, u64),
        runtime: Runtime,
        watch: TransferMonitor,
    ) -> Self {
        let lengths = objects.iter().map(|object| object.bytes).collect();
        let shared = Arc::new(Shared {
            client,
            address,
            objects,
            files: folder.files(),
            incoming: folder.incoming(),
            bytes_max,
            held: Mutex::new(ObjectCache::new(lengths, bytes_max)),
            changed: Condvar::new(),
            watch,
        });
        Self { shared, runtime: Some(runtime), _folder: folder }
    }

    pub(super) fn client(&self) -> &Client {
        &self.shared.client
    }

    pub(super) fn address(&self) -> &Address {
        &self.shared.address
    }

    pub(super) fn objects(&self) -> &[Object] {
        &self.shared.objects
    }

    pub(super) fn watch(&self) -> &TransferMonitor {
        &self.shared.watch
    }

    /// Waits for a transfer until it is stopped.
    pub(super) fn wait_for<T>(
        &self,
        transfer: impl Future<Output = Result<T, RemoteError>>,
    ) -> Result<T, RemoteError> {
        let watched = self.shared.watch.unless_stopped(transfer);
        self.runtime().block_on(watched).and_then(|ended| ended)
    }

    /// The error that stopped all transfers, if there is one.
    pub(super) fn failure(&self) -> Option<RemoteError> {
        self.shared.lock().failure.clone()
    }

    /// Fails if the objects do not all fit into the cache.
    pub(super) fn reserve(&self, url: String, objects: &[usize]) -> Result<(), RemoteError> {
        let bytes = objects.iter().map(|object| self.shared.objects[*object].bytes).sum();
        if bytes <= self.shared.bytes_max {
            return Ok(());
        }
        let error = RemoteError::TooLarge { url, bytes, limit: self.shared.bytes_max };
        self.shared.lock().failure.get_or_insert_with(|| error.clone());
        Err(error)
    }

    /// Waits for an object and opens its file.
    pub(super) fn open(&self, object: usize) -> Result<File, RemoteError> {
        let shared = &self.shared;
        let mut held = shared.lock();
        let outcome = loop {
            if let Some(failure) = &held.failure {
                break Err(failure.clone());
            }
            match held.slot(object) {
                Slot::Cached(_) => break Ok(()),
                Slot::Fetching => {}
                Slot::Absent => match shared.make_room(&mut held, object, true) {
                    Err(error) => break Err(error),
                    Ok(false) => {}
                    Ok(true) => {
                        held.begin(object);
                        drop(held);
                        let fetched = self.runtime().block_on(shared.fetch(object));
                        held = shared.lock();
                        if let Err(error) = fetched {
                            break Err(error);
                        }
                        continue;
                    }
                },
            }
            let waited = shared.changed.wait(held);
            held = waited.unwrap_or_else(PoisonError::into_inner);
        };
        if let Err(error) = outcome {
            held.failure.get_or_insert_with(|| error.clone());
            drop(held);
            shared.changed.notify_all();
            return Err(error);
        }
        held.touch(object);
        // Opened under the lock, since the file may be evicted right after.
        let path = shared.file_of(object);
        let file = File::open(&path).map_err(|error| cache_error(&path, &error))?;
        self.fetch_ahead(&mut held, object);
        Ok(file)
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is taken when the fetcher is dropped")
    }

    /// Prefetches the objects that are likely to be opened next.
    fn fetch_ahead(&self, held: &mut ObjectCache, object: usize) {
        let last = self.shared.objects.len().min(object + 1 + AHEAD_OBJECTS);
        for next in object + 1..last {
            if held.is_full_ahead(next) {
                return;
            }
            if held.slot(next) != Slot::Absent {
                continue;
            }
            if !matches!(self.shared.make_room(held, next, false), Ok(true)) {
                return;
            }
            held.begin(next);
            let shared = Arc::clone(&self.shared);
            self.runtime().spawn(async move {
                if shared.fetch(next).await.is_err() {
                    // A reader that needs the object fetches it again, and gets the error.
                    shared.lock().is_alone = true;
                }
            });
        }
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(ENDING);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, ObjectCache> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file_of(&self, object: usize) -> PathBuf {
        self.files.join(object.to_string())
    }

    /// Fetches an object for which there is space.
    async fn fetch(&self, object: usize) -> Result<(), RemoteError> {
        let listed = &self.objects[object];
        let tag = self.lock().tags.get(&object).cloned();
        let url = self.address.url_of(&listed.key);
        let scheme = &self.address.scheme;
        let request = DownloadRequest { object: listed, tag: tag.as_deref(), url: &url, scheme };
        let incoming = self.incoming.join(object.to_string());
        let fetched = download(&self.client, &request, &incoming, &self.watch).await;
        let fetched = fetched.and_then(|tag| {
            let put = std::fs::rename(&incoming, self.file_of(object));
            put.map_err(|error| cache_error(&incoming, &error)).map(|()| tag)
        });
        let mut held = self.lock();
        held.end(object, fetched.is_ok());
        let outcome = match fetched {
            Ok(tag) => {
                if let (None, Some(tag)) = (&listed.tag, tag) {
                    held.tags.insert(object, tag);
                }
                Ok(())
            }
            Err(error) => {
                let _ = std::fs::remove_file(&incoming);
                Err(error)
            }
        };
        drop(held);
        self.changed.notify_all();
        outcome
    }

    /// Removes files until there is space for an object; `false` if other transfers must finish
    /// first.
    fn make_room(
        &self,
        held: &mut ObjectCache,
        object: usize,
        is_wanted: bool,
    ) -> Result<bool, RemoteError> {
        loop {
            match held.eviction_for(object, is_wanted) {
                Eviction::NotNeeded => return Ok(true),
                Eviction::Wait => return Ok(false),
                Eviction::After(other) => {
                    let path = self.file_of(other);
                    std::fs::remove_file(&path).map_err(|error| cache_error(&path, &error))?;
                    held.let_go(other);
                }
                Eviction::Impossible => {
                    let Object { key, bytes, .. } = &self.objects[object];
                    let url = self.address.url_of(key);
                    let limit = self.bytes_max;
                    return Err(RemoteError::TooLarge { url, bytes: *bytes, limit });
                }
            }
        }
    }
}

fn cache_error(path: &Path, error: &io::Error) -> RemoteError {
    RemoteError::Cache { path: path.to_path_buf(), problem: error.to_string() }
}
