//! Processes a range of samples on several threads and delivers the results in order.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Results per thread that may wait to be taken.
const AHEAD_PER_THREAD: u64 = 4;

/// The state of a range of samples that is being processed.
struct Progress<R> {
    /// The next sample that a thread takes.
    next: u64,
    /// The sample whose result is taken next.
    taken: u64,
    done: BTreeMap<u64, R>,
    /// Bytes of the waiting results.
    bytes: u64,
    is_over: bool,
}

struct Shared<R> {
    progress: Mutex<Progress<R>>,
    changed: Condvar,
}

impl<R> Shared<R> {
    fn lock(&self) -> MutexGuard<'_, Progress<R>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, progress: MutexGuard<'a, Progress<R>>) -> MutexGuard<'a, Progress<R>> {
        self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the work when it is dropped, even on a panic.
struct End<'a, R>(&'a Shared<R>);

impl<R> Drop for End<'_, R> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

/// Calls `work` for each sample on a given number of threads, each with a state from `begin`, and
/// `take` with the results in the order of the samples on the caller's thread. `bytes` returns the
/// bytes of a result: while waiting results exceed `bytes_max`, threads start no sample except the
/// one that is taken next. An error of `take` ends the work.
pub(super) fn in_order<S, R: Send, E>(
    samples: Range<u64>,
    (threads, bytes_max): (usize, u64),
    begin: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, u64) -> R + Sync,
    bytes: impl Fn(&R) -> u64 + Sync,
    mut take: impl FnMut(u64, R) -> Result<(), E>,
) -> Result<(), E> {
    let progress = Progress {
        next: samples.start,
        taken: samples.start,
        done: BTreeMap::new(),
        bytes: 0,
        is_over: false,
    };
    let shared = Shared { progress: Mutex::new(progress), changed: Condvar::new() };
    let ahead = AHEAD_PER_THREAD * threads as u64;
    let run = || {
        let _end = EndOnPanic(&shared);
        let mut state = begin();
        loop {
            let mut progress = shared.lock();
            let sample = loop {
                if progress.is_over || progress.next >= samples.end {
                    return;
                }
                let next = progress.next;
                let has_room = next - progress.taken < ahead && progress.bytes <= bytes_max;
                if next == progress.taken || has_room {
                    break next;
                }
                progress = shared.wait(progress);
            };
            progress.next += 1;
            drop(progress);
            let result = work(&mut state, sample);
            let mut progress = shared.lock();
            progress.bytes += bytes(&result);
            progress.done.insert(sample, result);
            drop(progress);
            shared.changed.notify_all();
        }
    };
    std::thread::scope(|scope| {
        let _end = End(&shared);
        for _ in 0..threads {
            scope.spawn(run);
        }
        for sample in samples.clone() {
            let mut progress = shared.lock();
            let result = loop {
                if let Some(result) = progress.done.remove(&sample) {
                    break result;
                }
                // A thread that panicked ends the work; the scope propagates the panic.
                if progress.is_over {
                    return Ok(());
                }
                progress = shared.wait(progress);
            };
            progress.bytes -= bytes(&result);
            progress.taken = sample + 1;
            drop(progress);
            shared.changed.notify_all();
            take(sample, result)?;
        }
        Ok(())
    })
}

/// Ends the work when its thread panics.
struct EndOnPanic<'a, R>(&'a Shared<R>);

impl<R> Drop for EndOnPanic<'_, R> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().is_over = true;
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::in_order;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn results_are_taken_in_order_whatever_the_threads_do() {
        for (threads, bytes_max) in [(1, 0), (3, 0), (3, 50), (8, u64::MAX)] {
            let mut taken = Vec::new();
            let work = |state: &mut u64, sample: u64| {
                *state += 1;
                sample * sample
            };
            let done = in_order(
                5..205,
                (threads, bytes_max),
                || 0,
                work,
                |_| 10,
                |sample, result| {
                    taken.push((sample, result));
                    Ok::<(), ()>(())
                },
            );
            assert_eq!(done, Ok(()));
            assert_eq!(taken, (5..205).map(|it| (it, it * it)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn results_that_wait_are_bounded() {
        let (begun, most) = (AtomicU64::new(0), AtomicU64::new(0));
        let work = |(): &mut (), _| begun.fetch_add(1, Ordering::SeqCst);
        let done = in_order(
            0..500,
            (2, u64::MAX),
            || (),
            work,
            |_| 1,
            |sample, _| {
                most.fetch_max(begun.load(Ordering::SeqCst) - sample, Ordering::SeqCst);
                Ok::<(), ()>(())
            },
        );
        assert_eq!(done, Ok(()));
        // The waiting results, and the one that was taken.
        assert!(most.load(Ordering::SeqCst) <= 2 * super::AHEAD_PER_THREAD + 1);
    }

    #[test]
    fn an_error_of_the_caller_ends_the_work() {
        let work = |(): &mut (), sample| sample;
        let done = in_order(
            0..u64::MAX,
            (2, 100),
            || (),
            work,
            |_| 1,
            |_, result| {
                if result == 7 { Err("seven") } else { Ok(()) }
            },
        );
        assert_eq!(done, Err("seven"));
    }
}
