//! The batches that are being prepared from a dataset in a store, so that later ones can be
//! prefetched.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The progress of all preparers of a dataset.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    progress: Mutex<Progress>,
    changed: Condvar,
    has_thread: AtomicBool,
    is_over: AtomicBool,
}

#[derive(Debug, Default)]
struct Progress {
    /// The current epoch, once a batch has begun.
    epoch: Option<u32>,
    /// The furthest batch of it that has begun.
    furthest: u32,
    /// Batches of it that have begun and not ended, with the number of their preparers.
    active: BTreeMap<u32, u32>,
}

impl Reading {
    /// Records the start of a batch.
    pub(crate) fn begin(&self, epoch: u32, batch: u32) {
        let mut progress = self.lock();
        if progress.epoch != Some(epoch) {
            *progress = Progress { epoch: Some(epoch), furthest: batch, ..Progress::default() };
        }
        progress.furthest = progress.furthest.max(batch);
        *progress.active.entry(batch).or_default() += 1;
        drop(progress);
        self.changed.notify_all();
    }

    /// Records the end of a batch, prepared or not.
    pub(crate) fn end(&self, epoch: u32, batch: u32) {
        let mut progress = self.lock();
        if progress.epoch == Some(epoch)
            && let Some(preparers) = progress.active.get_mut(&batch)
        {
            *preparers -= 1;
            if *preparers == 0 {
                progress.active.remove(&batch);
            }
        }
        drop(progress);
        self.changed.notify_all();
    }

    /// The epoch, and its first batch that is still being read; `None` before the first one.
    pub(crate) fn now(&self) -> Option<(u32, u32)> {
        let progress = self.lock();
        let first = progress.active.first_key_value().map(|(batch, _)| *batch);
        Some((progress.epoch?, first.unwrap_or(progress.furthest)))
    }

    /// Waits for progress, at most this long.
    pub(crate) fn wait(&self, timeout: Duration) {
        let progress = self.lock();
        if !self.is_over() {
            drop(self.changed.wait_timeout(progress, timeout));
        }
    }

    /// Whether the caller is to start the thread that prefetches: `true` once.
    pub(crate) fn starts_thread(&self) -> bool {
        !self.has_thread.swap(true, Ordering::Relaxed)
    }

    /// Ends the thread that prefetches.
    pub(crate) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Whether that thread is to end.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::Reading;

    #[test]
    fn what_is_read_begins_with_the_first_batch_that_has_not_ended() {
        let reading = Reading::default();
        assert_eq!(reading.now(), None);
        for batch in [3, 4, 5] {
            reading.begin(0, batch);
        }
        reading.end(0, 4);
        assert_eq!(reading.now(), Some((0, 3)));
        reading.end(0, 3);
        assert_eq!(reading.now(), Some((0, 5)));
        reading.end(0, 5);
        assert_eq!(reading.now(), Some((0, 5)));
        reading.begin(1, 0);
        reading.end(0, 5);
        assert_eq!(reading.now(), Some((1, 0)));
    }
}
