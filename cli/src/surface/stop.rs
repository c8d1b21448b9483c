//! Turns SIGINT, SIGTERM and SIGHUP into a flag, and wakes the waiting thread.

use super::failure::Interrupted;
use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

type Waker = Box<dyn Fn() + Send>;

/// Whether the user asked the program to end.
#[derive(Clone)]
pub(crate) struct Stop {
    flag: Arc<AtomicBool>,
    wakers: Arc<Mutex<Vec<Waker>>>,
}

impl Stop {
    /// Installs the signal handlers. Called once, by commands that clean up; a signal ends the
    /// others.
    pub(crate) fn install() -> anyhow::Result<Self> {
        let stop = Self { flag: Arc::default(), wakers: Arc::default() };
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
            .context("failed to install signal handlers")?;
        let seen = stop.clone();
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || signals.forever().for_each(|_| seen.ask()))
            .context("failed to start the thread that waits for signals")?;
        Ok(stop)
    }

    /// Requests a stop, as a signal does.
    fn ask(&self) {
        self.flag.store(true, Ordering::SeqCst);
        let wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        wakers.iter().for_each(|wake| wake());
    }

    /// Calls `wake` when a signal arrives, or immediately if one has arrived.
    pub(crate) fn on_signal(&self, wake: impl Fn() + Send + 'static) {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_asked() {
            wake();
        }
        wakers.push(Box::new(wake));
    }

    /// Whether a signal has arrived.
    pub(crate) fn is_asked(&self) -> bool {
        self.flag.load(Ordering::SeqCst)
    }

    /// The flag itself, for loops in other crates.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// An error once a signal has arrived.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.is_asked() { Err(Interrupted.into()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::Stop;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn counting(stop: &Stop) -> Arc<AtomicU32> {
        let calls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&calls);
        stop.on_signal(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        calls
    }

    #[test]
    fn a_signal_wakes_current_and_later_waiters() {
        let stop = Stop { flag: Arc::default(), wakers: Arc::default() };
        let early = counting(&stop);
        assert!(stop.check().is_ok());
        stop.ask();
        let late = counting(&stop);
        assert_eq!((early.load(Ordering::SeqCst), late.load(Ordering::SeqCst)), (1, 1));
        assert!(stop.check().is_err());
    }
}
