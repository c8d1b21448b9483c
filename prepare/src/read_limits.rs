//! Limits of the reads of preparers and of readers of stored samples.

use std::time::Duration;

/// Maximum number of reads in flight, whatever the engine's depth.
pub const READS_MAX: usize = 64;

/// Maximum time without a completed read; then reading fails.
pub const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// As [`READ_TIMEOUT`], for a dataset in a store, whose requests have shorter deadlines.
pub(crate) const REMOTE_READ_TIMEOUT: Duration = Duration::from_secs(180);

/// Maximum bytes of samples that each preparer or reader reads ahead; less if little memory is
/// available. A single sample may be longer.
pub const BYTES_AHEAD_MAX: u64 = 64 << 20;

/// Time spent waiting for reads since a read last completed.
///
/// A wait counts for no longer than its time limit, so that a suspension of the machine, such as
/// that of a virtual machine during a snapshot, is not included.
#[derive(Debug)]
pub(crate) struct ReadPatience {
    /// Maximum time without a completed read.
    pub(crate) limit: Duration,
    waited: Duration,
}

impl ReadPatience {
    /// For the reads of one call; `is_remote` if the dataset is in a store.
    pub(crate) fn new(is_remote: bool) -> Self {
        let limit = if is_remote { REMOTE_READ_TIMEOUT } else { READ_TIMEOUT };
        Self { limit, waited: Duration::ZERO }
    }

    /// Call when a read completes.
    pub(crate) fn renew(&mut self) {
        self.waited = Duration::ZERO;
    }

    /// Adds a wait with the time limit `slice` in which no read completed. Returns whether the
    /// total exceeds the limit.
    pub(crate) fn is_exhausted_by(&mut self, took: Duration, slice: Duration) -> bool {
        self.waited += took.min(slice);
        self.waited > self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Duration = Duration::from_millis(20);

    #[test]
    fn a_suspended_machine_does_not_exhaust_patience_and_a_silent_drive_does() {
        let mut patience = ReadPatience::new(false);
        assert!(!patience.is_exhausted_by(Duration::from_secs(3600), SLICE));
        let slices = READ_TIMEOUT.as_millis() / SLICE.as_millis() - 1;
        assert!((0..slices).all(|_| !patience.is_exhausted_by(SLICE, SLICE)));
        assert!(patience.is_exhausted_by(SLICE, SLICE));
        patience.renew();
        assert!(!patience.is_exhausted_by(SLICE, SLICE));
    }
}
