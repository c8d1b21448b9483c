//! The application cache: the results of the first operations of the recipe, in memory.
//!
//! Every epoch after the first resumes cached samples after these operations, with the same bits.
//! The order of an epoch is known in advance, so the sample whose next use is last is evicted
//! first. The memory is shared by the workers of a process, and by the ranks of a machine; it has a
//! fixed size from the beginning, and is freed with the last process that uses it, even if that is
//! killed.
//!
//! In reading order: this file (the interface for workers), [`CacheSettings`] and [`CacheError`],
//! `uses` (when a sample is needed next), `policy` (what is evicted), `region` (samples in shared
//! memory), `group` (how the processes of a machine find it).

mod error;
mod group;
mod policy;
mod region;
mod settings;
#[cfg(test)]
mod tests;
mod uses;

pub use error::CacheError;
pub use settings::{CacheSettings, CacheSlot};

use crate::job::Job;
use meetpoint_format::batching::{Batching, Rank};
use policy::Policy;
use region::{BLOCK_CONTENT_BYTES, Region, Segment};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use uses::NextUses;

/// Bytes of the index for each block: an entry of the policy, and its blocks.
const INDEX_BYTES: u64 = 96;
/// Bytes for each position of an epoch: when its sample is needed next.
const POSITION_BYTES: u64 = 8;

/// The statistics of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// The budget in bytes, over all ranks.
    pub budget_bytes: u64,
    /// Bytes of samples that this process holds in it.
    pub bytes: u64,
    /// Samples that this process holds in it.
    pub samples: u64,
    /// Samples that this process added since it was opened.
    pub added: u64,
    /// Samples that this process evicted since then.
    pub evicted: u64,
    /// Ranks that share it.
    pub ranks: u64,
    /// Of these, the ranks that have opened it; nothing is cached before all have.
    pub ranks_attached: u64,
}

/// A cache of prepared samples, shared by the preparers of a loader.
pub struct SampleCache {
    region: Region,
    own: Mutex<Own>,
    bytes: AtomicU64,
    samples: AtomicU64,
    added: AtomicU64,
    evicted: AtomicU64,
    budget_bytes: u64,
    operations: usize,
    /// Keeps the name of the memory until all ranks have opened it.
    _member: group::Member,
    batchings: Vec<Batching>,
}

/// The state of one process: which of its blocks contain which sample.
struct Own {
    policy: Policy,
    segment: Segment,
    uses: Option<NextUses>,
}

impl fmt::Debug for SampleCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SampleCache").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// A use of a sample in the epoch, over all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) epoch: u32,
    pub(crate) sample: u64,
    /// Position in the order of consumption of all ranks.
    pub(crate) position: u64,
}

impl SampleCache {
    /// Opens a cache for a job. `processes`: whether its ranks are processes that share the cache
    /// instead of threads of this one.
    ///
    /// `operations` of the recipe are executed before a sample is cached.
    pub(crate) fn open(
        job: &Job,
        operations: usize,
        settings: &CacheSettings,
        processes: bool,
    ) -> Result<Self, CacheError> {
        let Rank { rank, ranks } = job.batching.rank();
        let members = if processes { u64::from(ranks) } else { 1 };
        let samples = job.batching.samples();
        let batches = job.batching.batches().saturating_mul(u64::from(ranks));
        let positions = batches.saturating_mul(u64::from(job.batching.batch_size()));
        let shape = Shape::new(settings.bytes, samples, positions, members)?;
        let key = group::key(job, operations, settings.bytes);
        let (region, member, segment) = if processes && ranks > 1 {
            group::join(&key, u64::from(rank), shape)?
        } else {
            (Region::alone(shape)?, group::Member::alone(), 0)
        };
        let of_rank = |rank| job.batching.of_rank(Rank { rank, ranks });
        let batchings = (0..ranks).map(of_rank).collect::<Result<_, _>>();
        let own =
            Own { policy: Policy::new(shape.blocks), segment: region.segment(segment), uses: None };
        Ok(Self {
            region,
            own: Mutex::new(own),
            bytes: AtomicU64::new(0),
            samples: AtomicU64::new(0),
            added: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            budget_bytes: settings.bytes,
            operations,
            _member: member,
            batchings: batchings.expect("every rank is below the number of ranks"),
        })
    }

    /// Operations of the recipe that are executed before a sample is cached.
    pub fn operations(&self) -> usize {
        self.operations
    }

    /// Its statistics.
    pub fn stats(&self) -> CacheStats {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheStats {
            budget_bytes: self.budget_bytes,
            bytes: of(&self.bytes),
            samples: of(&self.samples),
            added: of(&self.added),
            evicted: of(&self.evicted),
            ranks: self.region.members(),
            ranks_attached: self.region.attached(),
        }
    }

    /// Copies a sample out; `false` if it is not cached.
    pub(crate) fn get(&self, of: Use, into: &mut Vec<u8>) -> bool {
        if !self.region.read(of.sample, into) {
            return false;
        }
        if !self.is_whole() {
            let mut own = self.own();
            let next = own.next_use(of, &self.batchings);
            own.policy.touch(of.sample, next);
        }
        true
    }

    /// Whether this process alone caches every sample: none will be added or evicted any more, so
    /// that it does not matter when they are needed next.
    fn is_whole(&self) -> bool {
        self.region.members() == 1 && self.samples.load(Ordering::Relaxed) == self.region.samples()
    }

    /// Whether a sample of a given number of bytes would be added now.
    pub(crate) fn admits(&self, of: Use, bytes: usize) -> bool {
        if !self.region.is_complete() || self.region.holds(of.sample) {
            return false;
        }
        let mut own = self.own();
        let next = own.next_use(of, &self.batchings);
        own.policy.victims(next, blocks(bytes)).is_some()
    }

    /// Adds a sample, if the samples to be evicted for it are needed later than it is.
    pub(crate) fn put(&self, of: Use, content: &[u8]) {
        if !self.region.is_complete() {
            return;
        }
        let mut own = self.own();
        let next = own.next_use(of, &self.batchings);
        let needed = blocks(content.len());
        let Some(victims) = own.policy.victims(next, needed) else { return };
        // Another process may be adding it.
        if !self.region.begin(of.sample) {
            return;
        }
        let Own { policy, segment, .. } = &mut *own;
        for victim in victims {
            policy.remove(victim);
            let bytes = self.region.remove(segment, victim);
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.samples.fetch_sub(1, Ordering::Relaxed);
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
        policy.add(of.sample, next, needed);
        self.region.write(segment, of.sample, content);
        self.bytes.fetch_add(content.len() as u64, Ordering::Relaxed);
        self.samples.fetch_add(1, Ordering::Relaxed);
        self.added.fetch_add(1, Ordering::Relaxed);
    }

    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Own {
    /// When the sample is needed next after this use.
    fn next_use(&mut self, of: Use, batchings: &[Batching]) -> u32 {
        if self.uses.as_ref().is_none_or(|uses| uses.epoch() != of.epoch) {
            let uses = NextUses::of(batchings, of.epoch);
            self.policy.rekey(|sample| uses.first_of(sample));
            self.uses = Some(uses);
        }
        let uses = self.uses.as_ref().expect("it was just made");
        if batchings.len() > 1 {
            // Samples that other ranks have used since are not needed before the next epoch.
            let behind = uses::SKEW_BATCHES * batchings.len() as u64;
            let behind = behind * u64::from(batchings[0].batch_size());
            self.policy
                .advance(of.position.saturating_sub(behind), |position| uses.after(position));
        }
        uses.after(of.position)
    }
}

/// Number of blocks of a sample of a given number of bytes.
fn blocks(bytes: usize) -> u32 {
    let blocks = (bytes + region::ENTRY_BYTES as usize).div_ceil(BLOCK_CONTENT_BYTES);
    u32::try_from(blocks).unwrap_or(u32::MAX)
}

/// The sizes of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Samples of the dataset.
    pub(crate) samples: u64,
    /// Processes that share it.
    pub(crate) members: u64,
    /// Number of blocks of each process.
    pub(crate) blocks: u32,
}

impl Shape {
    /// The largest number of blocks that fits into the budget.
    fn new(bytes: u64, samples: u64, positions: u64, members: u64) -> Result<Self, CacheError> {
        if samples > u64::from(u32::MAX) || positions > u64::from(u32::MAX) / 2 {
            return Err(CacheError::TooManySamples { samples, positions });
        }
        let fixed = fixed_bytes(samples, positions, members);
        let per_block = region::BLOCK_BYTES as u64 + INDEX_BYTES;
        let left = bytes.saturating_sub(fixed);
        let blocks = (left / per_block / members).min(u64::from(region::BLOCKS_MAX) / members);
        if blocks == 0 {
            let least = fixed + per_block * members;
            return Err(CacheError::TooSmall { bytes, least, samples });
        }
        Ok(Self { samples, members, blocks: u32::try_from(blocks).expect("at most BLOCKS_MAX") })
    }
}

/// Bytes that a cache needs without any sample.
fn fixed_bytes(samples: u64, positions: u64, members: u64) -> u64 {
    // Each process knows the order of the epoch.
    let orders = POSITION_BYTES * (samples + positions) * members;
    region::HEADER_BYTES as u64 + 8 * samples + orders
}

/// Expected hit rate of a cache that holds a share of the samples, if each epoch uses every sample
/// once, in any order.
///
/// A sample that is added in an epoch is used in the next one at the earliest. So the hits of an
/// epoch are samples that were cached when it began, and the policy evicts none of these before
/// their use.
pub fn hit_share(share: f64, samples: u64) -> f64 {
    let samples = samples.max(1) as f64;
    ((share * samples).floor() / samples).clamp(0.0, 1.0)
}

/// The budget in bytes with which a single process can cache `samples` samples with a total of
/// `content_bytes`.
pub fn bytes_for(content_bytes: f64, samples: u64) -> u64 {
    let mean = content_bytes / samples.max(1) as f64 + f64::from(region::ENTRY_BYTES);
    // On average, half of the last block of a sample is unused.
    let blocks = (mean / BLOCK_CONTENT_BYTES as f64).ceil() + 0.5;
    let per_block = region::BLOCK_BYTES as u64 + INDEX_BYTES;
    // Positions that a last batch leaves empty are covered by a small surcharge.
    let fixed = fixed_bytes(samples, samples + samples / 16 + 1024, 1);
    fixed + (blocks * per_block as f64 * samples as f64).ceil() as u64
}
