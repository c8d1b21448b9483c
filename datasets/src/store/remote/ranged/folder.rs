//! A dataset in a store: its manifest, and ranges of its parts through the cache.
//!
//! Blocks that readers wait for are requested before prefetched ones; both have a limit.

use super::super::address::Address;
use super::super::connect::connect_once;
use super::super::{Deadlines, RemoteOptions, TransferMonitor};
use super::blocks::{BLOCK_BYTES, Blocks};
use super::cache::BlockCache;
use super::ends::PartEnds;
use super::in_use::io_error;
use super::queue::{FetchQueue, Urgency};
use super::request::{Counts, Object, Requests};
use crate::error::RemoteError;
use meetpoint_format::dataset::{MANIFEST_BYTES_MAX, MANIFEST_NAME, Manifest};
use meetpoint_kernels::Interrupt;
use meetpoint_prepare::{NextUse, RemoteFolder, RemoteUse, Wanted};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};

/// Maximum bytes to prefetch ahead of the readers.
const WINDOW_BYTES_MAX: u64 = 256 << 20;
/// Share of the cache for what is prefetched.
const WINDOW_SHARE: u64 = 4;
/// Longest read of a reader that is longer than its sample: a record batch of small samples.
const WHOLE_READ_BYTES: u64 = 4 << 20;
/// Blocks that a reader needs for the table of a record batch, beside the content.
const TABLE_BLOCKS: u64 = 3;
/// Interval at which a wait for a transfer checks whether it must end.
const STOP_POLL: Duration = Duration::from_millis(50);
/// Time limit for transfers to end once their results are no longer needed.
const ENDING: Duration = Duration::from_secs(2);

/// A folder of a dataset in a store.
#[derive(Debug)]
pub(in crate::store) struct StoreFolder {
    shared: Arc<Shared>,
    /// `None` only while this is dropped.
    runtime: Option<Runtime>,
}

#[derive(Debug)]
struct Shared {
    address: Address,
    requests: Requests,
    cache_folder: Option<PathBuf>,
    cache_bytes: u64,
    opened: OnceLock<Opened>,
    queue: Mutex<FetchQueue>,
    /// Notified when something has arrived or failed.
    changed: Condvar,
    wanted: AtomicU64,
    read_bytes: AtomicU64,
    hit_bytes: AtomicU64,
    refetched_bytes: AtomicU64,
    is_over: AtomicBool,
    watch: TransferMonitor,
    interrupt: Mutex<Interrupt>,
}

/// What is known once the manifest was read.
#[derive(Debug)]
struct Opened {
    parts: Vec<Object>,
    cache: BlockCache,
    sample_bytes_max: u64,
    ends: PartEnds,
}

impl StoreFolder {
    /// The folder at a URL; sends no request.
    pub(in crate::store) fn new(
        url: &Path,
        options: &RemoteOptions,
        deadlines: Deadlines,
    ) -> Result<Self, RemoteError> {
        let text = url.display().to_string();
        let address = Address::parse(&text)?;
        if address.is_pattern {
            let problem = "a dataset is one folder, not several names".into();
            return Err(RemoteError::Address { url: text, problem });
        }
        let client = connect_once(&address, options)?;
        let failed = |error: io::Error| RemoteError::Cache {
            path: PathBuf::from("a runtime"),
            problem: error.to_string(),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("store")
            .enable_all()
            .build()
            .map_err(failed)?;
        let requests = Requests {
            client,
            scheme: address.scheme.clone(),
            counts: Counts::default(),
            fails_fast: AtomicBool::new(false),
            deadlines,
        };
        let shared = Shared {
            address,
            requests,
            cache_folder: options.cache.clone(),
            cache_bytes: options.cache_bytes,
            opened: OnceLock::new(),
            queue: Mutex::default(),
            changed: Condvar::new(),
            wanted: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            hit_bytes: AtomicU64::new(0),
            refetched_bytes: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            watch: options.watch.clone(),
            interrupt: Mutex::new(Interrupt::default()),
        };
        Ok(Self { shared: Arc::new(shared), runtime: Some(runtime) })
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is taken when the folder is dropped")
    }

    /// Waits for a transfer until this is stopped or interrupted.
    fn block_on<T>(
        &self,
        transfer: impl Future<Output = Result<T, RemoteError>>,
    ) -> Result<T, RemoteError> {
        self.runtime().block_on(async {
            let mut transfer = std::pin::pin!(transfer);
            while !self.shared.is_stopped() {
                if let Ok(ended) = tokio::time::timeout(STOP_POLL, &mut transfer).await {
                    return ended;
                }
            }
            Err(RemoteError::Interrupted)
        })
    }

    /// Starts as many waiting requests as the limits allow.
    fn pump(&self, queue: &mut FetchQueue) {
        while let Some(run) = queue.next() {
            self.shared.spawn(self.runtime().handle(), run);
        }
    }
}

impl Shared {
    fn opened(&self) -> &Opened {
        self.opened.get().expect("parts are opened before they are named")
    }

    fn lock(&self) -> MutexGuard<'_, FetchQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        let interrupt = || self.interrupt.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_over.load(Ordering::Relaxed)
            || self.watch.stop.load(Ordering::Relaxed)
            || interrupt().is_raised()
    }

    /// An object of the folder.
    fn object(&self, name: &str, bytes: Option<u64>) -> Result<Object, RemoteError> {
        let folder = self.address.keys[0].as_ref();
        let key = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        let key = object_store::path::Path::parse(&key).map_err(|_| RemoteError::Name {
            url: self.address.text.clone(),
            key,
            problem: "is not a name in a store",
        })?;
        let url = self.address.url_of(&key);
        Ok(Object { url, key, bytes, version: OnceLock::new() })
    }

    /// Begins to fetch a run.
    fn spawn(self: &Arc<Self>, runtime: &Handle, run: Range<u64>) {
        let shared = Arc::clone(self);
        runtime.spawn(async move { shared.fetch_runs(run).await });
    }

    /// Fetches a run, and then others as long as some wait.
    async fn fetch_runs(self: Arc<Self>, mut run: Range<u64>) {
        loop {
            let fetched = match self.is_stopped() {
                true => Err(RemoteError::Interrupted),
                false => self.fetch_run(&run).await,
            };
            let cache = &self.opened().cache;
            match &fetched {
                Ok(()) => cache.put(run.clone()),
                Err(_) => cache.give_up(run.clone()),
            }
            let mut next = self.ended(run, &fetched).into_iter();
            let Some(first) = next.next() else { return };
            // A long request makes way for several short ones.
            next.for_each(|other| self.spawn(&Handle::current(), other));
            run = first;
        }
    }

    /// Records the end of a run, and returns those to fetch next.
    fn ended(&self, run: Range<u64>, fetched: &Result<(), RemoteError>) -> Vec<Range<u64>> {
        let mut queue = self.lock();
        queue.end(run, fetched);
        let next = std::iter::from_fn(|| queue.next()).collect();
        drop(queue);
        self.changed.notify_all();
        next
    }

    async fn fetch_run(&self, run: &Range<u64>) -> Result<(), RemoteError> {
        let Opened { parts, cache, .. } = self.opened();
        let (part, range) = cache.blocks().place_of(run);
        let mut sink = |offset: u64, bytes: &[u8]| cache.write(part, offset, bytes);
        self.requests.range(&parts[part], range, &mut sink).await
    }
}

impl RemoteFolder for StoreFolder {
    fn manifest(&self) -> io::Result<Vec<u8>> {
        let shared = &self.shared;
        let read = async {
            let object = shared.object(MANIFEST_NAME, None)?;
            shared.requests.whole(&object, MANIFEST_BYTES_MAX).await
        };
        self.block_on(read).map_err(|error| io_error(&error))
    }

    fn open_parts(&self, manifest: &Manifest, manifest_sha256: [u8; 32]) -> io::Result<()> {
        let shared = &self.shared;
        let open = || -> Result<Opened, RemoteError> {
            let objects = manifest.parts.iter();
            let objects = objects.map(|part| shared.object(&part.file, Some(part.bytes)));
            let parts = objects.collect::<Result<Vec<_>, _>>()?;
            let blocks = Blocks::new(manifest.parts.iter().map(|part| part.bytes).collect());
            let (folder, bytes) = (shared.cache_folder.as_deref(), shared.cache_bytes);
            let cache = BlockCache::open(folder, (blocks, manifest_sha256), bytes)?;
            let (sample_bytes_max, ends) = (manifest.image_bytes_max, PartEnds::default());
            Ok(Opened { parts, cache, sample_bytes_max, ends })
        };
        let opened = open().map_err(|error| io_error(&error))?;
        let _ = shared.opened.set(opened);
        Ok(())
    }

    fn fetch_ends(&self, parts: &[usize]) -> io::Result<()> {
        let Opened { parts: objects, ends, .. } = self.shared.opened();
        let fetched = self.block_on(ends.fetch(parts, objects, &self.shared.requests));
        fetched.map_err(|error| io_error(&error))
    }

    fn ends_read(&self, parts: &[usize]) {
        self.shared.opened().ends.forget(parts);
    }

    fn part_bytes(&self, part: usize) -> io::Result<u64> {
        let bytes = self.shared.opened().cache.blocks().part_bytes(part);
        bytes.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn check_room(&self, readers: u64, processes: u64) -> io::Result<()> {
        let Opened { cache, sample_bytes_max, .. } = self.shared.opened();
        if !cache.evicts() {
            return Ok(());
        }
        let whole = WHOLE_READ_BYTES.min(cache.blocks().part_bytes_max());
        let read = (*sample_bytes_max).max(whole).div_ceil(BLOCK_BYTES) + 1 + TABLE_BLOCKS;
        let readers = readers.saturating_mul(processes);
        // Readers may have reserved half of the cache before each needs one range more.
        let needed = read.saturating_mul(BLOCK_BYTES).saturating_mul(readers).saturating_mul(2);
        if needed <= cache.limit_bytes() {
            return Ok(());
        }
        let (url, limit) = (self.shared.address.text.clone(), cache.limit_bytes());
        Err(io_error(&RemoteError::CacheTooSmall { url, needed, limit, readers }))
    }

    fn want(&self, part: usize, range: Range<u64>, forced: bool) -> Option<Wanted> {
        let Opened { cache, ends, .. } = self.shared.opened();
        let id = self.shared.wanted.fetch_add(1, Ordering::Relaxed);
        let wanted = Wanted { part, range: range.clone(), id };
        if !cache.blocks().contains(part, &range) || ends.contain(part, &range) {
            return Some(wanted);
        }
        let blocks = cache.blocks().of(part, &range);
        let missing = cache.pin(blocks.clone(), forced)?;
        self.shared.lock().forget_failures(blocks);
        let bytes = range.end - range.start;
        self.shared.read_bytes.fetch_add(bytes, Ordering::Relaxed);
        if missing == 0 {
            self.shared.hit_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Some(wanted)
    }

    fn release(&self, Wanted { part, range, .. }: &Wanted) {
        let cache = &self.shared.opened().cache;
        if cache.blocks().contains(*part, range) {
            cache.unpin(cache.blocks().of(*part, range));
        }
    }

    fn fetch(&self, wanted: &[&Wanted]) {
        let Opened { cache, ends, .. } = self.shared.opened();
        let mut queue = self.shared.lock();
        let mut claimed = Vec::new();
        for Wanted { part, range, .. } in wanted {
            if !cache.blocks().contains(*part, range) || ends.contain(*part, range) {
                continue;
            }
            let blocks = cache.blocks().of(*part, range);
            if queue.failure(blocks.clone()).is_some() {
                continue;
            }
            if let Err(error) = cache.claim(blocks.clone(), true, &mut claimed) {
                queue.fail(blocks.start, error);
            }
            queue.hurry(&blocks);
        }
        queue.push(claimed, cache.blocks(), Urgency::Demanded);
        self.pump(&mut queue);
    }

    fn outcome(&self, Wanted { part, range, .. }: &Wanted) -> Option<io::Result<()>> {
        let shared = &self.shared;
        let Opened { cache, ends, .. } = shared.opened();
        if !cache.blocks().contains(*part, range) {
            return Some(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        if ends.contain(*part, range) {
            return Some(Ok(()));
        }
        let blocks = cache.blocks().of(*part, range);
        if cache.has(blocks.clone()) {
            return Some(Ok(()));
        }
        if shared.is_stopped() {
            return Some(Err(io_error(&RemoteError::Interrupted)));
        }
        shared.lock().failure(blocks).map(|error| Err(io_error(error)))
    }

    fn read(&self, Wanted { part, range, .. }: &Wanted, into: &mut [u8]) -> io::Result<bool> {
        let Opened { cache, ends, .. } = self.shared.opened();
        if ends.read(*part, range, into) {
            return Ok(true);
        }
        let read = cache.read(*part, range, into);
        read.map_err(|error| io_error(&error))
    }

    fn arrivals(&self) -> u64 {
        self.shared.lock().ended()
    }

    fn wait(&self, seen: u64, timeout: Duration) {
        let queue = self.shared.lock();
        if queue.ended() == seen {
            drop(self.shared.changed.wait_timeout(queue, timeout));
        }
    }

    fn prefetch(&self, ranges: &[(usize, Range<u64>)]) -> usize {
        let shared = &self.shared;
        let cache = &shared.opened().cache;
        let (mut claimed, mut taken) = (Vec::new(), 0);
        for (part, range) in ranges {
            if cache.blocks().contains(*part, range) {
                let blocks = cache.blocks().of(*part, range);
                let count = blocks.end - blocks.start;
                // A reader that needs it gets the error.
                match cache.claim(blocks, false, &mut claimed) {
                    Ok(ready) if ready == count => {}
                    _ => break,
                }
            }
            taken += 1;
        }
        let mut queue = shared.lock();
        queue.push(claimed, cache.blocks(), Urgency::Ahead);
        self.pump(&mut queue);
        taken
    }

    fn window_bytes(&self) -> u64 {
        (self.shared.opened().cache.limit_bytes() / WINDOW_SHARE).min(WINDOW_BYTES_MAX)
    }

    fn discard(&self, part: usize, range: Range<u64>) {
        let Opened { cache, ends, .. } = self.shared.opened();
        ends.forget(&[part]);
        if cache.blocks().contains(part, &range) {
            let bytes = cache.discard(part, &range);
            self.shared.refetched_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn evicts(&self) -> bool {
        self.shared.opened().cache.evicts()
    }

    fn follow(&self, uses: Arc<dyn NextUse>) {
        self.shared.opened().cache.follow(uses);
    }

    fn usage(&self) -> RemoteUse {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { requests, retries, fetched_bytes } = &self.shared.requests.counts;
        RemoteUse {
            fetched_bytes: load(fetched_bytes),
            requests: load(requests),
            retries: load(retries),
            read_bytes: load(&self.shared.read_bytes),
            hit_bytes: load(&self.shared.hit_bytes),
            evicted_bytes: self.shared.opened.get().map_or(0, |it| it.cache.evicted_bytes()),
            refetched_bytes: load(&self.shared.refetched_bytes),
        }
    }

    fn set_interrupt(&self, interrupt: Interrupt) {
        *self.shared.interrupt.lock().unwrap_or_else(PoisonError::into_inner) = interrupt;
    }

    fn stop(&self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.shared.changed.notify_all();
    }
}

impl Drop for StoreFolder {
    fn drop(&mut self) {
        self.stop();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(ENDING);
        }
        // What was being fetched is not complete.
        let claimed = self.shared.lock().take_claimed();
        if let Some(opened) = self.shared.opened.get() {
            claimed.into_iter().for_each(|block| opened.cache.give_up(block..block + 1));
        }
    }
}
