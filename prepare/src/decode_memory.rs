//! Memory for decoding large pictures, which the threads of a process share.
//!
//! Everything that decodes has such a budget: a loader's comes from its memory budget, that of any
//! other command from the memory that the process may use ([`DecodeMemory::of_this_process`]). A
//! sample that needs little memory according to its headers is decoded at once. Any other waits
//! in turn until the memory that it needs is free, so samples that are decoded at the same time
//! never exceed the limit together. A single sample that needs more than the limit is an error.

use crate::read_limits::BYTES_AHEAD_MAX;
use meetpoint_diagnose::{Change, Remedy, Setting, shown};
use meetpoint_format::units::{show_bytes, show_bytes_at_least};
use meetpoint_kernels::{Error as KernelError, decode_bytes, probe};
use meetpoint_storage::MemoryLimit;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Samples that need at most this, or less in little memory, are not counted: each preparer may use
/// this amount at any time.
pub const UNCOUNTED_BYTES: u64 = 16 << 20;

/// How often a waiting caller is asked whether to continue.
const WAIT_SLICE: Duration = Duration::from_millis(20);

/// The memory of this process for decoding, as of its first use.
static OF_THIS_PROCESS: OnceLock<Arc<DecodeMemory>> = OnceLock::new();

/// Memory for decoding, shared by preparers.
#[derive(Debug)]
pub struct DecodeMemory {
    limit: u64,
    origin: LimitOrigin,
    /// Bytes that a preparer may use without reserving them.
    uncounted: u64,
    /// Bytes that a preparer may read ahead.
    read_ahead: u64,
    /// The memory of the process, if that limits the budget.
    process: Option<MemoryLimit>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    reserved: u64,
    next_ticket: u64,
    /// The waiting preparers, in order of arrival.
    waiting: VecDeque<u64>,
}

/// What determines the limit of a [`DecodeMemory`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitOrigin {
    /// The setting `memory_budget`, which this number of processes and loaders share equally.
    MemoryBudget {
        /// At least 1.
        shares: u32,
    },
    /// The share for decoding of the memory that this process may use.
    Process(Box<MemoryLimit>),
}

/// A sample that needs more memory to decode than its preparers may use together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("decoding it takes up to {}, but {origin} {}", show_bytes_at_least(*needed),
    show_bytes(*limit))]
pub struct TooLargeToDecode {
    /// Maximum bytes that decoding takes.
    pub needed: u64,
    /// Bytes that are allowed.
    pub limit: u64,
    /// What determines the limit.
    pub origin: LimitOrigin,
}

impl std::fmt::Display for LimitOrigin {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::MemoryBudget { shares: 1 } => to.write_str("the memory budget allows"),
            Self::MemoryBudget { shares } => {
                write!(to, "each of {shares} equal parts of the memory budget allows")
            }
            Self::Process(limit) => {
                let bytes = show_bytes(limit.bytes);
                match &limit.file {
                    None => write!(to, "of the {bytes} of memory of this machine,")?,
                    Some(file) => write!(to, "of the {bytes} that {} allows,", shown(file))?,
                }
                to.write_str(" decoding may use")
            }
        }
    }
}

impl TooLargeToDecode {
    /// How to decode the sample nevertheless.
    pub fn remedy(&self) -> Remedy {
        match &self.origin {
            LimitOrigin::MemoryBudget { shares } => {
                let least = self.needed.saturating_mul(u64::from(*shares));
                let least = Change::AtLeast(show_bytes_at_least(least));
                Remedy::set(Setting::MemoryBudget, least)
                    .or("pack the source again, which makes progressive JPEGs baseline")
            }
            LimitOrigin::Process(limit) => {
                let least = self.needed.saturating_mul(2);
                let least = show_bytes_at_least(least);
                match &limit.file {
                    Some(_) => format!("raise the container's memory limit to {least} or more"),
                    None => format!("use a machine with {least} of memory or more"),
                }
                .into()
            }
        }
    }
}

/// Upper bound of the memory in bytes for decoding a whole picture, including the result in RGB,
/// from its headers.
pub fn picture_bytes(encoded: &[u8]) -> Result<u64, KernelError> {
    let info = probe(encoded)?;
    let pixels = u64::from(info.width) * u64::from(info.height);
    Ok(decode_bytes(encoded, Default::default())?.saturating_add(3 * pixels))
}

/// Why no memory was reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoMemory {
    /// The sample needs more than the limit.
    Never {
        /// Maximum bytes at a time.
        limit: u64,
    },
    /// The caller gave up.
    GivenUp,
}

/// Memory that is reserved until this is dropped.
#[derive(Debug)]
pub struct Reserved {
    of: Arc<DecodeMemory>,
    bytes: u64,
}

impl DecodeMemory {
    /// A budget of `limit` bytes, shared by all clones, of the setting `memory_budget`.
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self::unshared(limit, LimitOrigin::MemoryBudget { shares: 1 }))
    }

    fn unshared(limit: u64, origin: LimitOrigin) -> Self {
        let (uncounted, read_ahead) = (UNCOUNTED_BYTES, BYTES_AHEAD_MAX);
        let (state, changed) = Default::default();
        Self { limit, origin, uncounted, read_ahead, process: None, state, changed }
    }

    /// One of `shares` equal parts of a memory budget for this number of threads, in a process
    /// with this limit: at most what a process uses for decoding.
    pub fn of_budget(
        budget_bytes: u64,
        shares: u32,
        process: &MemoryLimit,
        threads: usize,
    ) -> Arc<Self> {
        let part = budget_bytes / u64::from(shares.max(1));
        let memory = match part <= process.for_decoding() {
            true => Self::unshared(part, LimitOrigin::MemoryBudget { shares }),
            false => Self::unshared(
                process.for_decoding(),
                LimitOrigin::Process(Box::new(process.clone())),
            ),
        };
        Arc::new(memory.for_threads(process, threads))
    }

    /// The budget for decoding in a process with this limit, for this number of threads.
    pub fn of_limit(process: &MemoryLimit, threads: usize) -> Arc<Self> {
        let origin = LimitOrigin::Process(Box::new(process.clone()));
        Arc::new(Self::unshared(process.for_decoding(), origin).for_threads(process, threads))
    }

    /// The budget of everything in this process that has no other. Its size is determined when
    /// it is first asked for.
    pub fn of_this_process() -> Arc<Self> {
        let of_process = OF_THIS_PROCESS.get_or_init(|| {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            Self::of_limit(&MemoryLimit::of_this_process(), threads)
        });
        Arc::clone(of_process)
    }

    fn for_threads(self, process: &MemoryLimit, threads: usize) -> Self {
        let uncounted = UNCOUNTED_BYTES.min(process.for_small_decodes(threads));
        let read_ahead = BYTES_AHEAD_MAX.min(process.for_reading(threads));
        Self { uncounted, read_ahead, process: Some(process.clone()), ..self }
    }

    /// Reserves memory, in turn; waits while `goes_on` returns true. `None` if the amount is too
    /// small to be counted.
    pub fn reserve(
        self: &Arc<Self>,
        bytes: u64,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Reserved>, NoMemory> {
        if bytes <= self.uncounted {
            return Ok(None);
        }
        if bytes > self.limit {
            return Err(NoMemory::Never { limit: self.limit });
        }
        let mut state = self.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push_back(ticket);
        while state.waiting.front() != Some(&ticket) || state.reserved + bytes > self.limit {
            drop(state);
            let is_wanted = goes_on();
            state = self.lock();
            if !is_wanted {
                state.waiting.retain(|waiting| *waiting != ticket);
                self.changed.notify_all();
                return Err(NoMemory::GivenUp);
            }
            let waited = self.changed.wait_timeout(state, WAIT_SLICE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.waiting.pop_front();
        state.reserved += bytes;
        drop(state);
        // The next one may fit beside it.
        self.changed.notify_all();
        Ok(Some(Reserved { of: Arc::clone(self), bytes }))
    }

    /// Whether a sample that needs this much is ever decoded.
    pub fn admits(&self, bytes: u64) -> bool {
        bytes <= self.uncounted.max(self.limit)
    }

    /// The error of a sample that is never decoded because it needs this much.
    pub fn refusal(&self, needed: u64) -> TooLargeToDecode {
        TooLargeToDecode { needed, limit: self.limit, origin: self.origin.clone() }
    }

    /// Refuses stored bytes of this number before they are read, if they alone take more memory
    /// than the process may use for decoding.
    pub fn check_stored(&self, bytes: u64) -> Result<(), TooLargeToDecode> {
        match &self.process {
            Some(process) if bytes > process.for_decoding() => Err(TooLargeToDecode {
                needed: bytes,
                limit: process.for_decoding(),
                origin: LimitOrigin::Process(Box::new(process.clone())),
            }),
            _ => Ok(()),
        }
    }

    /// Bytes of samples that one thread may read ahead.
    pub fn read_ahead(&self) -> u64 {
        self.read_ahead
    }

    /// Maximum bytes at a time.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that are reserved now.
    pub fn reserved(&self) -> u64 {
        self.lock().reserved
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Sums and tickets are consistent after every statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.of.lock().reserved -= self.bytes;
        self.of.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: u64 = UNCOUNTED_BYTES + 1;

    #[test]
    fn small_samples_need_no_turn() {
        let memory = DecodeMemory::new(0);
        assert!(matches!(memory.reserve(UNCOUNTED_BYTES, &mut || false), Ok(None)));
    }

    #[test]
    fn a_sample_that_never_fits_is_refused_at_once() {
        let memory = DecodeMemory::new(LARGE);
        let refused = memory.reserve(LARGE + 1, &mut || unreachable!("there is no use in waiting"));
        assert_eq!(refused.unwrap_err(), NoMemory::Never { limit: LARGE });
    }

    fn process(bytes: u64) -> MemoryLimit {
        MemoryLimit { bytes, available_bytes: 0, file: Some("/sys/fs/cgroup/memory.max".into()) }
    }

    #[test]
    fn a_small_container_limits_what_is_decoded_whatever_the_memory_budget() {
        let limit = process(200 << 20);
        let memory = DecodeMemory::of_budget(190 << 20, 1, &limit, 2);
        assert_eq!(memory.limit(), 100 << 20);
        assert!(memory.admits(100 << 20) && !memory.admits((100 << 20) + 1));
        let refusal = memory.refusal(101 << 20);
        assert!(matches!(&refusal.origin, LimitOrigin::Process(of) if **of == limit));
        assert!(refusal.to_string().contains("/sys/fs/cgroup/memory.max"), "{refusal}");
        let memory = DecodeMemory::of_budget(50 << 20, 1, &limit, 2);
        assert_eq!(memory.limit(), 50 << 20);
        assert_eq!(memory.refusal(1).origin, LimitOrigin::MemoryBudget { shares: 1 });
        assert_eq!(DecodeMemory::of_limit(&limit, 2).limit(), 100 << 20);
        assert_eq!(memory.check_stored(100 << 20), Ok(()), "more than the budget may be read");
        assert!(memory.check_stored((100 << 20) + 1).is_err());
    }

    #[test]
    fn parts_of_a_budget_add_up_to_at_most_the_budget() {
        let limit = process(8 << 30);
        let memory = DecodeMemory::of_budget(64 << 20, 3, &limit, 2);
        assert!(memory.limit() * 3 <= 64 << 20);
        let text = memory.refusal(30 << 20).to_string();
        assert!(text.contains("3 equal parts"), "{text}");
    }

    #[test]
    fn in_little_memory_small_samples_are_counted_sooner() {
        let memory = DecodeMemory::of_limit(&process(64 << 20), 4);
        let one_mib = memory.reserve(1 << 20, &mut || false).unwrap();
        assert!(one_mib.is_none());
        let more = memory.reserve((1 << 20) + 1, &mut || false).unwrap();
        assert_eq!(memory.reserved(), (1 << 20) + 1);
        assert_eq!(memory.read_ahead(), 1 << 20);
        drop(more);
    }

    #[test]
    fn memory_is_free_again_when_it_is_dropped() {
        let memory = DecodeMemory::new(2 * LARGE);
        let one = memory.reserve(LARGE, &mut || false).unwrap();
        let two = memory.reserve(LARGE, &mut || false).unwrap();
        assert_eq!(memory.reserved(), 2 * LARGE);
        assert_eq!(memory.reserve(LARGE, &mut || false).unwrap_err(), NoMemory::GivenUp);
        drop(one);
        let again = memory.reserve(LARGE, &mut || false).unwrap();
        drop((two, again));
        assert_eq!(memory.reserved(), 0);
    }

    #[test]
    fn a_large_sample_gets_its_turn_before_small_ones_that_came_later() {
        let memory = DecodeMemory::new(3 * LARGE);
        let first = memory.reserve(LARGE, &mut || false).unwrap();
        std::thread::scope(|scope| {
            let (asked, is_waiting) = std::sync::mpsc::channel();
            let shared = Arc::clone(&memory);
            let large = scope.spawn(move || {
                shared.reserve(3 * LARGE, &mut || {
                    // The receiver is dropped once the wait was observed.
                    let _ = asked.send(());
                    true
                })
            });
            is_waiting.recv().unwrap();
            // There would be enough memory, but it is not this one's turn.
            assert_eq!(memory.reserve(LARGE, &mut || false).unwrap_err(), NoMemory::GivenUp);
            drop(first);
            assert!(matches!(large.join().unwrap(), Ok(Some(_))));
        });
    }
}
