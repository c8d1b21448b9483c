//! The end of SPDK's thread.
//!
//! The process must not run its last functions before the thread is gone: those of DPDK and OpenSSL
//! free what the thread uses. A thread runs on after its function has returned: it then runs the
//! destructors of its thread-local values, among them that of OpenSSL, which SPDK initialises.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest time that a thread that was abandoned takes to notice it.
const ABANDONED_MAX: Duration = Duration::from_secs(1);

/// Requests to the thread to end. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requests {
    stop: Arc<AtomicBool>,
    abandon: Arc<AtomicBool>,
}

impl Requests {
    /// Asks for the end: transfers are awaited, devices closed, SPDK ended.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Whether the end was asked for.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Whether the time for the end is over: the thread must return at once, and leave everything
    /// as it is.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandon.load(Ordering::Acquire)
    }
}

/// Owned by the function of the thread until it returns.
pub(crate) struct Running {
    has_ended: Arc<AtomicBool>,
    /// Dropped to report the end.
    _alive: SyncSender<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Release);
    }
}

/// A running thread, and its end.
pub(crate) struct Ending {
    ended: Receiver<()>,
    thread: JoinHandle<()>,
    requests: Requests,
}

impl Ending {
    /// Starts a thread. `has_ended` is set when its function returns.
    pub(crate) fn start(
        requests: Requests,
        has_ended: Arc<AtomicBool>,
        body: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Self> {
        let (alive, ended) = sync_channel(0);
        let running = Running { has_ended, _alive: alive };
        let run = move || {
            let _running = running;
            body();
        };
        let thread = std::thread::Builder::new().name("spdk".to_owned()).spawn(run)?;
        Ok(Self { ended, thread, requests })
    }

    /// Waits until the thread is gone, with its thread-local values. After `limit`, the thread is
    /// abandoned. Whether it is gone.
    pub(crate) fn wait(self, limit: Duration) -> bool {
        let has_returned =
            |limit| self.ended.recv_timeout(limit) == Err(RecvTimeoutError::Disconnected);
        if !has_returned(limit) {
            self.requests.abandon.store(true, Ordering::Release);
            if !has_returned(ABANDONED_MAX) {
                return false;
            }
        }
        // A panic was reported where it happened.
        let _ = self.thread.join();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// A thread-local value whose destructor takes a while, as far as the system's scheduler allows
    /// another thread to overtake it.
    struct SlowToDrop(Arc<AtomicBool>);

    impl Drop for SlowToDrop {
        fn drop(&mut self) {
            std::thread::sleep(Duration::from_millis(200));
            self.0.store(true, Ordering::Release);
        }
    }

    thread_local! {
        static VALUE: RefCell<Option<SlowToDrop>> = const { RefCell::new(None) };
    }

    #[test]
    fn the_end_is_awaited_until_thread_local_values_are_dropped() {
        let dropped = Arc::new(AtomicBool::new(false));
        let (value, has_ended) = (SlowToDrop(Arc::clone(&dropped)), Arc::default());
        let body = move || VALUE.with(|place| *place.borrow_mut() = Some(value));
        let ending = Ending::start(Requests::default(), Arc::clone(&has_ended), body).unwrap();
        assert!(ending.wait(Duration::from_secs(60)));
        assert!(has_ended.load(Ordering::Acquire) && dropped.load(Ordering::Acquire));
    }

    #[test]
    fn a_thread_that_takes_too_long_is_abandoned_and_awaited() {
        let requests = Requests::default();
        let own = requests.clone();
        let body = move || {
            while !own.is_abandoned() {
                std::thread::yield_now();
            }
        };
        let ending = Ending::start(requests, Arc::default(), body).unwrap();
        assert!(ending.wait(Duration::ZERO));
    }
}
