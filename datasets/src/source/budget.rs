//! Limits the memory of a source for decompressed data and lists of values, with one budget per
//! source.

use super::SourceOptions;
use crate::over_budget::{OverBudget, RATIO_MAX};
use meetpoint_storage::MemoryLimit;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Maximum default limit in bytes of the memory that a source holds at once.
pub const MEMORY_BYTES: u64 = 1 << 30;

/// Default limit in bytes of the memory that a source holds at once, in a process with this limit:
/// 1 GiB, or an eighth of what the process may use if that is less.
pub fn memory_bytes_default(process: &MemoryLimit) -> u64 {
    process.for_source().min(MEMORY_BYTES)
}

/// Decompressed bytes that are always allowed; beyond them [`RATIO_MAX`] applies.
const RATIO_FREE_BYTES: u64 = 64 << 20;
/// Bytes reserved before the first bytes are read.
const FIRST_BYTES: u64 = 64 << 10;

/// The memory of one source; clones share it.
#[derive(Debug, Clone)]
pub(super) struct MemoryBudget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limit: u64,
    ratio_free_bytes: u64,
    held: AtomicU64,
    /// The last refusal, for errors that pass through code that retains only their text.
    refused: Mutex<Option<OverBudget>>,
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::of(&SourceOptions::default())
    }
}

impl MemoryBudget {
    /// The budget that the user's options set.
    pub(super) fn of(options: &SourceOptions) -> Self {
        let default = || memory_bytes_default(&MemoryLimit::of_this_process());
        Self::new(options.memory_bytes_max.unwrap_or_else(default), RATIO_FREE_BYTES)
    }

    fn new(limit: u64, ratio_free_bytes: u64) -> Self {
        let (held, refused) = (AtomicU64::new(0), Mutex::new(None));
        Self { shared: Arc::new(Shared { limit, ratio_free_bytes, held, refused }) }
    }

    /// Maximum number of bytes held at once.
    pub(super) fn limit(&self) -> u64 {
        self.shared.limit
    }

    /// Reserves memory until the result is dropped.
    pub(super) fn hold(&self, bytes: u64) -> Result<Reservation, OverBudget> {
        let mut held = Reservation { budget: Some(self.clone()), bytes: 0 };
        held.grow(bytes)?;
        Ok(held)
    }

    /// Fails if this many bytes, which a header states, cannot be held beside those held now, or
    /// if their ratio to the `compressed` bytes of the whole file is higher than that of real data.
    pub(super) fn check_stated(&self, bytes: u64, compressed: u64) -> Result<(), OverBudget> {
        drop(self.hold(bytes)?);
        self.check_ratio(bytes, compressed)
    }

    /// Takes the refusal since the last call, if there is one.
    pub(super) fn take_refusal(&self) -> Option<OverBudget> {
        self.shared.refused.lock().expect("no thread panics while holding the lock").take()
    }

    /// Appends the remaining bytes, at most `most`, which are decompressed from `compressed` bytes
    /// of the file. The error contains a refusal: see [`over_budget`].
    pub(super) fn read_to_end(
        &self,
        from: &mut dyn Read,
        bytes: Vec<u8>,
        most: u64,
        compressed: u64,
    ) -> io::Result<ReservedBytes> {
        let mut held = self.hold(bytes.capacity() as u64)?;
        let mut bytes = bytes;
        let begin = bytes.len() as u64;
        loop {
            let got = bytes.len() as u64 - begin;
            self.check_ratio(got, compressed)?;
            if bytes.len() == bytes.capacity() {
                let room = (bytes.len() as u64).max(FIRST_BYTES).min(most - got);
                held.grow(room)?;
                bytes.reserve_exact(usize::try_from(room).unwrap_or(usize::MAX));
            }
            let room = ((bytes.capacity() - bytes.len()) as u64).min(most - got);
            if (&mut *from).take(room).read_to_end(&mut bytes)? == 0 || room == 0 {
                return Ok(ReservedBytes { bytes, _held: held });
            }
        }
    }

    /// Fails if the compression ratio is higher than that of real data.
    pub(super) fn check_ratio(&self, bytes: u64, compressed: u64) -> Result<(), OverBudget> {
        let may_be = bytes <= self.shared.ratio_free_bytes || bytes / RATIO_MAX <= compressed;
        if may_be { Ok(()) } else { Err(self.refuse(OverBudget::Ratio { compressed, bytes })) }
    }

    fn refuse(&self, over: OverBudget) -> OverBudget {
        *self.shared.refused.lock().expect("no thread panics while holding the lock") = Some(over);
        over
    }
}

/// The refusal of the budget in an error, if it contains one.
pub(super) fn over_budget(error: &io::Error) -> Option<OverBudget> {
    error.get_ref()?.downcast_ref().copied()
}

/// Reserved memory, released when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Reservation {
    budget: Option<MemoryBudget>,
    bytes: u64,
}

impl Reservation {
    /// Reserves more memory.
    pub(super) fn grow(&mut self, bytes: u64) -> Result<(), OverBudget> {
        let Some(budget) = &self.budget else { return Ok(()) };
        let (held, limit) = (&budget.shared.held, budget.shared.limit);
        let sum = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= limit);
        match held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum) {
            Ok(_) => {
                self.bytes += bytes;
                Ok(())
            }
            Err(held) => {
                let wanted = held.saturating_add(bytes);
                Err(budget.refuse(OverBudget::Memory { wanted, limit }))
            }
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.shared.held.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// Bytes with the memory reserved for them.
#[derive(Debug)]
pub(super) struct ReservedBytes {
    pub(super) bytes: Vec<u8>,
    _held: Reservation,
}

impl ReservedBytes {
    /// Bytes for which memory was reserved.
    pub(super) fn new(bytes: Vec<u8>, held: Reservation) -> Self {
        Self { bytes, _held: held }
    }

    /// Reserves more memory along with them.
    pub(super) fn grow(&mut self, bytes: u64) -> Result<(), OverBudget> {
        self._held.grow(bytes)
    }

    /// The bytes, whose memory the caller must account for.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes and their memory.
    pub(super) fn split(self) -> (Vec<u8>, Reservation) {
        (self.bytes, self._held)
    }
}

impl AsRef<[u8]> for ReservedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Endless zeros, like a decompression bomb, with a count of the bytes read.
    struct Zeros(u64);

    impl Read for Zeros {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            to.fill(0);
            self.0 += to.len() as u64;
            Ok(to.len())
        }
    }

    #[test]
    fn the_default_is_a_share_of_what_the_process_may_use() {
        let limit = |bytes| MemoryLimit { bytes, available_bytes: 0, file: None };
        assert_eq!(memory_bytes_default(&limit(200 << 20)), 25 << 20);
        assert_eq!(memory_bytes_default(&limit(8 << 30)), 1 << 30);
        assert_eq!(memory_bytes_default(&limit(1 << 40)), 1 << 30);
    }

    #[test]
    fn endless_decompression_stops_at_the_limit() {
        let budget = MemoryBudget::new(1 << 20, u64::MAX);
        let mut zeros = Zeros(0);
        let read = budget.read_to_end(&mut zeros, Vec::new(), u64::MAX, 10);
        let over = over_budget(&read.unwrap_err());
        assert!(matches!(over, Some(OverBudget::Memory { limit: 0x10_0000, .. })), "{over:?}");
        assert_eq!(budget.take_refusal(), over);
        assert!(zeros.0 <= 1 << 20, "{} bytes", zeros.0);
        assert_eq!(budget.shared.held.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn an_implausible_compression_ratio_stops_before_the_limit() {
        let budget = MemoryBudget::new(1 << 30, 100_000);
        let mut zeros = Zeros(0);
        let read = budget.read_to_end(&mut zeros, Vec::new(), u64::MAX, 1000);
        let over = over_budget(&read.unwrap_err());
        assert!(matches!(over, Some(OverBudget::Ratio { compressed: 1000, .. })), "{over:?}");
        assert!(zeros.0 <= 4 * RATIO_MAX * 1000, "{} bytes", zeros.0);
    }

    #[test]
    fn bytes_are_read_whole_and_their_memory_is_released() {
        let budget = MemoryBudget::new(300_000, 0);
        for length in [0, 1, 65_536, 65_537, 200_000] {
            let text = vec![7; length];
            let read = budget.read_to_end(&mut &text[..], vec![1, 2], u64::MAX, 200_000).unwrap();
            assert_eq!((&read.bytes[..2], &read.bytes[2..]), (&[1, 2][..], &text[..]));
            let held = budget.shared.held.load(Ordering::Relaxed);
            assert!(held >= length as u64, "{held} for {length}");
        }
        let first = budget.read_to_end(&mut Zeros(0), Vec::new(), 10, 1).unwrap();
        assert_eq!(first.bytes.len(), 10);
        assert!(budget.hold(300_000).is_err());
        drop(first);
        let all = budget.hold(300_000).unwrap();
        assert!(matches!(budget.hold(1), Err(OverBudget::Memory { wanted: 300_001, .. })));
        drop(all);
        assert_eq!(budget.shared.held.load(Ordering::Relaxed), 0);
    }
}
