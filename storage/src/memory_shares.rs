//! How the memory that a process may use is divided, unless the user says otherwise.
//!
//! The shares depend on the limit alone and not on what happens to be free, so the same command in
//! the same container always has the same budgets, and accepts and refuses the same samples. In
//! any command, the shares take at most three quarters; the rest is for the program itself.

use crate::MemoryLimit;

/// Maximum bytes that a thread uses for decoding small samples.
const SMALL_DECODES_BYTES_MAX: u64 = 16 << 20;
/// Maximum bytes of retained small samples.
const SMALL_SAMPLES_BYTES_MAX: u64 = 256 << 20;
/// Maximum bytes of samples that are read ahead.
const READ_AHEAD_BYTES_MAX: u64 = 64 << 20;

impl MemoryLimit {
    /// For the batches of a loader: a quarter.
    pub fn for_batches(&self) -> u64 {
        self.bytes / 4
    }

    /// For decoding large samples, all threads together: half.
    pub fn for_decoding(&self) -> u64 {
        self.bytes / 2
    }

    /// For the spool in memory of a device: an eighth.
    pub fn for_spool(&self) -> u64 {
        self.bytes / 8
    }

    /// For the data that a source decompresses: an eighth.
    pub fn for_source(&self) -> u64 {
        self.bytes / 8
    }

    /// For small samples that all preparers of a dataset retain: a sixteenth, at most 256 MiB. At
    /// the host it is a part of [`Self::for_batches`].
    pub fn for_small_samples(&self) -> u64 {
        (self.bytes / 16).min(SMALL_SAMPLES_BYTES_MAX)
    }

    /// For decoding small samples in one of several threads: its part of a sixteenth, at most
    /// 16 MiB.
    pub fn for_small_decodes(&self, threads: usize) -> u64 {
        (self.bytes / 16 / count(threads)).min(SMALL_DECODES_BYTES_MAX)
    }

    /// For samples that one of several readers reads ahead: its part of a sixteenth, at most
    /// 64 MiB.
    pub fn for_reading(&self, readers: usize) -> u64 {
        (self.bytes / 16 / count(readers)).min(READ_AHEAD_BYTES_MAX)
    }
}

fn count(threads: usize) -> u64 {
    u64::try_from(threads).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(bytes: u64) -> MemoryLimit {
        MemoryLimit { bytes, available_bytes: 0, file: None }
    }

    #[test]
    fn the_shares_of_a_loader_and_of_packing_leave_a_part_of_any_limit() {
        for bytes in [0, 1, 1000, 200 << 20, 1 << 30, u64::MAX] {
            let limit = limit(bytes);
            for threads in [0, 1, 2, 64, 1024] {
                let per_thread = limit.for_small_decodes(threads) + limit.for_reading(threads);
                let threads = per_thread.saturating_mul(threads.max(1) as u64);
                // Decoding for batches never exceeds the memory for batches by default.
                let loader = 2 * limit.for_batches() + limit.for_spool() + threads;
                assert!(loader <= bytes / 4 * 3 + 3, "{loader} of {bytes}");
                let packing = limit.for_decoding() + limit.for_source() + threads;
                assert!(packing <= bytes / 4 * 3 + 3, "{packing} of {bytes}");
            }
        }
    }

    #[test]
    fn a_large_machine_does_not_raise_what_a_thread_uses() {
        let large = limit(1 << 40);
        assert_eq!(large.for_small_decodes(64), 16 << 20);
        assert_eq!(large.for_reading(64), 64 << 20);
        assert_eq!(large.for_small_samples(), 256 << 20);
        assert_eq!(limit(512 << 20).for_small_samples(), 32 << 20);
        let small = limit(200 << 20);
        assert_eq!(small.for_small_decodes(2), (200 << 20) / 32);
    }
}
