//! Reads many samples in parallel; the results arrive in order, and the memory is bounded.

use crate::Error;
use crate::threads::start_thread;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Maximum bytes of samples read ahead of the writer; the last sample may exceed it.
const BYTES_AHEAD_MAX: u64 = 64 << 20;
/// Samples that each thread may be ahead.
const SAMPLES_AHEAD_PER_THREAD: usize = 8;

/// Yields jobs; called by one thread at a time.
pub(crate) type Next<'a, J> = dyn FnMut() -> Result<Option<J>, Error> + Send + 'a;

/// The state shared by the threads and the receiver.
struct Shared<R> {
    state: Mutex<State<R>>,
    /// Notified when there is a result, or there will be no more.
    arrived: Condvar,
    /// Notified when there is space ahead of the receiver, or it has ended.
    taken: Condvar,
}

struct State<R> {
    /// Results starting at `wanted`; `None` while they are computed.
    results: VecDeque<Option<(R, u64)>>,
    /// Index of the first of the results.
    wanted: u64,
    /// Bytes being read or waiting for the receiver.
    bytes_ahead: u64,
    /// Set when there are no more jobs, with the error if one ended them.
    end: Option<Result<(), Error>>,
    /// The receiver has ended, or a thread has panicked.
    is_over: bool,
}

impl<R> Shared<R> {
    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().expect("no thread panics while holding the state")
    }

    /// Waits for space ahead of the receiver; `false` if there are no more jobs.
    fn wait_for_room(&self, window: usize) -> bool {
        let mut state = self.lock();
        loop {
            if state.is_over || state.end.is_some() {
                return false;
            }
            if state.results.len() < window && state.bytes_ahead < BYTES_AHEAD_MAX {
                return true;
            }
            state = self.taken.wait(state).expect("no thread panics while holding the state");
        }
    }
}

/// Wakes the others when its thread panics, so that they do not wait forever.
struct WakeOnPanic<'a, R>(&'a Shared<R>);

impl<R> Drop for WakeOnPanic<'_, R> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().is_over = true;
            self.0.arrived.notify_all();
            self.0.taken.notify_all();
        }
    }
}

/// Stops the threads when the receiver returns or panics.
struct StopOnDrop<'a, R>(&'a Shared<R>);

impl<R> Drop for StopOnDrop<'_, R> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.taken.notify_all();
    }
}

/// Runs every job of `next` on `threads` threads and passes the results to `receive` in order.
///
/// `bytes_of` returns the memory of a job; `start` creates the state that a thread reuses for its
/// jobs.
pub(crate) fn in_order<J: Send, S, R: Send>(
    threads: usize,
    next: &mut Next<'_, J>,
    bytes_of: &(dyn Fn(&J) -> u64 + Sync),
    start: &(dyn Fn() -> S + Sync),
    work: &(dyn Fn(&mut S, J) -> R + Sync),
    receive: &mut dyn FnMut(R) -> Result<(), Error>,
) -> Result<(), Error> {
    let threads = threads.max(1);
    let window = threads * SAMPLES_AHEAD_PER_THREAD;
    let shared = Shared {
        state: Mutex::new(State {
            results: VecDeque::new(),
            wanted: 0,
            bytes_ahead: 0,
            end: None,
            is_over: false,
        }),
        arrived: Condvar::new(),
        taken: Condvar::new(),
    };
    let next = Mutex::new(next);
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&shared);
        for number in 1..=threads {
            start_thread(scope, (number, threads), || {
                let _wake_on_panic = WakeOnPanic(&shared);
                let mut kept = start();
                while let Some((number, bytes, job)) = take(&shared, &next, window, bytes_of) {
                    let result = work(&mut kept, job);
                    let mut state = shared.lock();
                    let place = usize::try_from(number - state.wanted)
                        .expect("the window is some hundred jobs");
                    state.results[place] = Some((result, bytes));
                    drop(state);
                    shared.arrived.notify_all();
                }
            })?;
        }
        receive_all(&shared, receive)
    })
}

fn receive_all<R>(
    shared: &Shared<R>,
    receive: &mut dyn FnMut(R) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut state = shared.lock();
    loop {
        if let Some(Some(_)) = state.results.front() {
            let first = state.results.pop_front().flatten();
            let (result, bytes) = first.expect("it was there, and no other thread takes it");
            state.wanted += 1;
            drop(state);
            receive(result)?;
            state = shared.lock();
            state.bytes_ahead -= bytes;
            shared.taken.notify_all();
        } else if state.is_over {
            // A thread has panicked; leaving the scope passes the panic on.
            return Ok(());
        } else if state.results.is_empty() && state.end.is_some() {
            return state.end.take().expect("it was there, and no other thread takes it");
        } else {
            state = shared.arrived.wait(state).expect("no thread panics while holding the state");
        }
    }
}

/// Waits for space and takes the next job with its index and bytes.
fn take<J, R>(
    shared: &Shared<R>,
    next: &Mutex<&mut Next<'_, J>>,
    window: usize,
    bytes_of: &(dyn Fn(&J) -> u64 + Sync),
) -> Option<(u64, u64, J)> {
    // Locked while waiting, so that jobs are handed out in the order of their indices. If another
    // thread panicked while holding the lock, there are no more jobs.
    let mut next = next.lock().ok()?;
    if !shared.wait_for_room(window) {
        return None;
    }
    let given = next();
    let mut state = shared.lock();
    match given {
        Ok(Some(job)) => {
            let number = state.wanted + state.results.len() as u64;
            let bytes = bytes_of(&job);
            state.results.push_back(None);
            state.bytes_ahead += bytes;
            Some((number, bytes, job))
        }
        Ok(None) => {
            state.end = Some(Ok(()));
            shared.arrived.notify_all();
            None
        }
        Err(error) => {
            state.end = Some(Err(error));
            shared.arrived.notify_all();
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(threads: usize, jobs: u64, fails_at: Option<u64>) -> (Vec<u64>, Result<(), Error>) {
        let mut given = 0;
        let mut next = || {
            if Some(given) == fails_at {
                return Err(Error::Interrupted);
            }
            given += 1;
            Ok((given <= jobs).then_some(given - 1))
        };
        let mut seen = Vec::new();
        let result = in_order(
            threads,
            &mut next,
            &|job| 1 + job % 7,
            &|| 0_u64,
            &|kept, job| {
                *kept += 1;
                // Uneven work, so that results arrive out of order.
                (0..(job * 7919) % 1000).fold(job, |sum, _| std::hint::black_box(sum))
            },
            &mut |result| {
                seen.push(result);
                Ok(())
            },
        );
        (seen, result)
    }

    #[test]
    fn results_come_in_order_whatever_the_number_of_threads() {
        for threads in [1, 2, 3, 8] {
            for jobs in [0, 1, 7, 500] {
                let (seen, result) = run(threads, jobs, None);
                assert!(result.is_ok());
                assert_eq!(seen, (0..jobs).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn an_error_comes_after_what_was_given_out_before() {
        for threads in [1, 3] {
            let (seen, result) = run(threads, 100, Some(41));
            assert!(matches!(result, Err(Error::Interrupted)));
            assert_eq!(seen, (0..41).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_failing_receiver_ends_the_work() {
        let mut next = || Ok(Some(()));
        let mut left = 20;
        let result = in_order(2, &mut next, &|()| 1, &|| (), &|(), ()| (), &mut |()| {
            left -= 1;
            if left == 0 { Err(Error::Interrupted) } else { Ok(()) }
        });
        assert!(matches!(result, Err(Error::Interrupted)));
    }
}
