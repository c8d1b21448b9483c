//! When to retry a GPU that ran out of memory, and with how much less memory.

use super::memory::GpuMemory;

/// Consecutive failures after which the GPU is no longer used.
const FAILURES_MAX: u32 = 8;

/// Maximum batches that skip the GPU before it is tried again.
const PAUSE_MAX: u32 = 64;

/// Exponential backoff after failures for lack of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Retry {
    failures: u32,
    /// Batches that skip the GPU after the next failure.
    next_pause: u32,
    /// Batches that still skip the GPU.
    pause: u32,
}

impl Retry {
    pub(super) fn new() -> Self {
        Self { failures: 0, next_pause: 1, pause: 0 }
    }

    /// Call at the start of each batch. Returns whether to try the GPU.
    pub(super) fn begins(&mut self) -> bool {
        let tries = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        tries
    }

    /// Call after the GPU has prepared a batch.
    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
        self.next_pause = (self.next_pause / 2).max(1);
    }

    /// Call after a batch failed for lack of memory. Returns the memory for the next attempt, or
    /// `None` if there is no next attempt: too many consecutive failures, or no memory left.
    pub(super) fn failed(&mut self, memory: GpuMemory) -> Option<GpuMemory> {
        self.failures += 1;
        self.pause = self.next_pause;
        self.next_pause = (2 * self.next_pause).min(PAUSE_MAX);
        let less = memory.halved();
        (self.failures < FAILURES_MAX && less.device_bytes > 0).then_some(less)
    }
}

#[cfg(test)]
mod tests {
    use super::{FAILURES_MAX, PAUSE_MAX, Retry};
    use crate::gpu::GpuMemory;

    #[test]
    fn retries_become_rarer_and_smaller_and_end() {
        let (mut retry, mut memory) = (Retry::new(), GpuMemory::of(1 << 30));
        let mut passed = Vec::new();
        for failure in 1..=FAILURES_MAX {
            assert!(retry.begins());
            let Some(less) = retry.failed(memory) else {
                assert_eq!(failure, FAILURES_MAX);
                break;
            };
            assert_eq!(less.device_bytes, memory.device_bytes / 2);
            memory = less;
            passed.push(std::iter::repeat_with(|| retry.begins()).take_while(|it| !it).count());
            // `begins` returned true for the next attempt, which the loop makes again.
            retry.pause = 0;
        }
        assert_eq!(passed, [1, 2, 4, 8, 16, 32, 64]);
    }

    #[test]
    fn success_forgets_failures_but_not_at_once_how_long_to_wait() {
        let mut retry = Retry::new();
        let memory = GpuMemory::default();
        for _ in 0..FAILURES_MAX - 1 {
            retry.failed(memory).unwrap();
        }
        assert_eq!(retry.next_pause, PAUSE_MAX);
        retry.succeeded();
        assert_eq!((retry.failures, retry.next_pause), (0, PAUSE_MAX / 2));
        assert!(retry.failed(memory).is_some());
    }
}
