//! The interface of a folder in a store: its manifest, and ranges of its parts through a cache.

use super::RemoteUse;
use meetpoint_format::dataset::Manifest;
use meetpoint_kernels::Interrupt;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long one wait for the cache lasts before it is polled again.
const WAIT_SLICE: Duration = Duration::from_millis(20);

/// A range that a reader needs; its bytes stay in the cache until it is released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Index of the part in the manifest.
    pub part: usize,
    /// Bytes of the part.
    pub range: Range<u64>,
    /// Number of the request, unique in its folder.
    pub id: u64,
}

/// When bytes are needed next, which decides what is evicted from a cache.
pub trait NextUse: Debug + Send + Sync {
    /// An ordinal of the batch that needs a range of a part next; greater means later.
    fn next_use(&self, part: usize, range: Range<u64>) -> u64;
}

/// The files of a dataset in a store, read in ranges through a cache.
///
/// Every error contains a [`RemoteFailure`](super::RemoteFailure). Every wait is bounded by the
/// deadlines of requests, and ends early after [`Self::stop`] or an interrupt.
pub trait RemoteFolder: Debug + Send + Sync {
    /// The content of `dataset.json`, as it is in the store now.
    fn manifest(&self) -> io::Result<Vec<u8>>;

    /// Prepares to read the parts; called once, before any other function that names a part.
    fn open_parts(&self, manifest: &Manifest, manifest_sha256: [u8; 32]) -> io::Result<()>;

    /// Fetches the ends of these parts together, and waits for them. They stay in memory, outside
    /// of the cache, until [`Self::ends_read`].
    fn fetch_ends(&self, parts: &[usize]) -> io::Result<()>;

    /// Called once the footers of these parts are read.
    fn ends_read(&self, parts: &[usize]);

    /// Length of a part.
    fn part_bytes(&self, part: usize) -> io::Result<u64>;

    /// Fails if the cache cannot hold what `readers` readers in `processes` processes need at once.
    fn check_room(&self, readers: u64, processes: u64) -> io::Result<()>;

    /// Reserves a range for a reader. `None` if readers have reserved their share of the cache
    /// already, unless the range is `forced`: a reader forces one range at a time.
    fn want(&self, part: usize, range: Range<u64>, forced: bool) -> Option<Wanted>;

    /// Ends the reservation of a range.
    fn release(&self, wanted: &Wanted);

    /// Starts to fetch the bytes of reserved ranges that are not in the cache.
    fn fetch(&self, wanted: &[&Wanted]);

    /// Whether a range is in the cache: `None` while it is not, or why it cannot be fetched.
    fn outcome(&self, wanted: &Wanted) -> Option<io::Result<()>>;

    /// Reads a range from the cache; `false` if some of it was evicted meanwhile.
    fn read(&self, wanted: &Wanted, into: &mut [u8]) -> io::Result<bool>;

    /// Number of requests that have ended so far.
    fn arrivals(&self) -> u64;

    /// Waits until more requests have ended than `seen`, at most this long.
    fn wait(&self, seen: u64, timeout: Duration);

    /// Starts to fetch ranges that will be needed, in this order; returns how many of them are in
    /// the cache or on their way. The rest has no space yet.
    fn prefetch(&self, ranges: &[(usize, Range<u64>)]) -> usize;

    /// Bytes to prefetch ahead of the readers.
    fn window_bytes(&self) -> u64;

    /// Removes a range from the cache because its checksum does not match.
    fn discard(&self, part: usize, range: Range<u64>);

    /// Whether the cache is smaller than the dataset, so that the next use of bytes matters.
    fn evicts(&self) -> bool;

    /// Evicts by this order from now on.
    fn follow(&self, uses: Arc<dyn NextUse>);

    /// The counts so far.
    fn usage(&self) -> RemoteUse;

    /// Ends all waits once it is raised.
    fn set_interrupt(&self, interrupt: Interrupt);

    /// Ends all waits.
    fn stop(&self);
}

/// Opens folders in stores by their URLs.
pub trait OpenRemote: Debug + Send + Sync {
    /// Opens a folder, without a request.
    fn open(&self, url: &Path) -> io::Result<Arc<dyn RemoteFolder>>;
}

/// Reads a range and waits for it.
pub(crate) fn read_blocking(
    folder: &dyn RemoteFolder,
    part: usize,
    offset: u64,
    into: &mut [u8],
) -> io::Result<()> {
    let range = offset..offset + into.len() as u64;
    let wanted = folder.want(part, range, true).expect("a forced range is reserved");
    let read = loop {
        let seen = folder.arrivals();
        folder.fetch(&[&wanted]);
        match folder.outcome(&wanted) {
            Some(Err(error)) => break Err(error),
            Some(Ok(())) => match folder.read(&wanted, into) {
                Ok(false) => {}
                read => break read.map(|_| ()),
            },
            None => folder.wait(seen, WAIT_SLICE),
        }
    };
    folder.release(&wanted);
    read
}
