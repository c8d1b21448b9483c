//! Reopens a lost link in the background, with pauses between the attempts.
//!
//! No epoch waits for an attempt. A link that opens while an epoch is running joins it.

use super::{DeviceLink, Established, LinkEvents, LinkSetup, Opened};
use crate::config::DeviceSource;
use crate::events::Attempt;
use crate::stop::WAIT_SLICE;
use crate::{Error, StopHandle};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pause after the first failed attempt. Each further failure doubles it. The beginning of an epoch
/// shortens any pause to this.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// Longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Attempts to reopen a lost link until the device answers. Dropping this ends the attempt in
/// progress.
#[derive(Debug)]
pub(crate) struct Reopening {
    stop: StopHandle,
    tries: Arc<Tries>,
    /// `None` once the link was taken.
    thread: Option<JoinHandle<()>>,
}

/// What the thread shares with the loader.
#[derive(Debug, Default)]
struct Tries {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The link, once it is open and until it is taken.
    opened: Option<Opened>,
    /// Whether the open link was reported as reopened.
    is_reported: bool,
    /// Number of failed attempts.
    failed: u64,
    /// Whether the thread pauses between two attempts.
    pauses: bool,
    /// Whether the pause is to end at once.
    is_wanted: bool,
    /// Whether the pause is the shortest one.
    is_short: bool,
    /// Whether the thread has ended.
    is_over: bool,
}

impl Reopening {
    /// Starts the thread, which first closes the lost link: a device may serve one host at a time.
    pub(crate) fn begin(
        mut setup: LinkSetup,
        lost: Option<DeviceLink>,
        events: Arc<dyn LinkEvents>,
    ) -> Result<Self, Error> {
        let stop = setup.stop.child();
        setup.stop = stop.clone();
        let tries = Arc::new(Tries::default());
        let own = Arc::clone(&tries);
        let body = move || {
            let _over = OverOnDrop(&own);
            drop(lost);
            run(&setup, &*events, &own);
        };
        let thread = std::thread::Builder::new().name("device-link".to_owned()).spawn(body);
        Ok(Self { stop, tries, thread: Some(thread.map_err(Error::Thread)?) })
    }

    /// The link if it is open; `self` must then be dropped.
    pub(crate) fn take_link(&mut self) -> Option<DeviceLink> {
        let Opened { session, info } = self.tries.lock().opened.take()?;
        Some(DeviceLink { session, info, thread: self.thread.take() })
    }

    /// Whether the thread has ended without a link.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.tries.lock();
        state.is_over && state.opened.is_none()
    }

    /// An epoch begins: shortens a pause to [`PAUSE_MIN`].
    pub(crate) fn shorten_pause(&self) {
        let mut state = self.tries.lock();
        state.is_short = state.pauses;
        drop(state);
        self.tries.changed.notify_all();
    }

    /// Skips the pause before the next attempt. Returns the number of failed attempts once one that
    /// begins from now on has failed too.
    pub(crate) fn hurry(&self) -> u64 {
        let mut state = self.tries.lock();
        state.is_wanted = true;
        // An attempt that is under way does not count: the device may have refused it already.
        let until = state.failed + if state.pauses { 1 } else { 2 };
        drop(state);
        self.tries.changed.notify_all();
        until
    }

    /// Waits until the link is open and was reported, or this number of attempts has failed.
    pub(crate) fn await_tries(&self, failed: u64, stop: &StopHandle) -> Result<(), Error> {
        let mut state = self.tries.lock();
        // The waits of the thread are bounded.
        while !state.is_reported && state.failed < failed && !state.is_over {
            stop.check()?;
            state = self.tries.wait(state, WAIT_SLICE);
        }
        stop.check()
    }

    /// Ends the attempt in progress, without waiting for its end.
    pub(crate) fn stop(&self) {
        self.stop.stop();
        self.tries.changed.notify_all();
        if let Some(Opened { session, .. }) = &self.tries.lock().opened {
            session.close();
        }
    }
}

impl Drop for Reopening {
    fn drop(&mut self) {
        // Without a thread, the link was taken.
        if let Some(thread) = self.thread.take() {
            self.stop();
            // Its waits end when it is stopped. A panic was reported where it happened.
            let _ = thread.join();
        }
    }
}

/// Records the end of the thread, also after a panic.
struct OverOnDrop<'t>(&'t Tries);

impl Drop for OverOnDrop<'_> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

impl Tries {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while it is held leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>, limit: Duration) -> MutexGuard<'s, State> {
        self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Records a failed attempt and pauses; [`Reopening::hurry`] ends the pause.
    fn pause(&self, pause: Duration, stop: &StopHandle) {
        let since = Instant::now();
        let mut state = self.lock();
        state.failed += 1;
        state.pauses = true;
        self.changed.notify_all();
        while !state.is_wanted && !stop.is_stopped() {
            let pause = if state.is_short { PAUSE_MIN } else { pause };
            let left = pause.saturating_sub(since.elapsed());
            if left.is_zero() {
                break;
            }
            state = self.wait(state, left.min(WAIT_SLICE));
        }
        (state.pauses, state.is_wanted, state.is_short) = (false, false, false);
    }
}

/// What an attempt does to reach a device of this source.
fn attempt_of(source: &DeviceSource) -> Attempt {
    match source {
        DeviceSource::Connect { .. } | DeviceSource::Remote(_) => Attempt::Connect,
        DeviceSource::Spawn(_) | DeviceSource::Lost { .. } => Attempt::Start,
    }
}

/// The thread: attempts to open the link until it is open or `setup` is stopped, then serves it.
fn run(setup: &LinkSetup, events: &dyn LinkEvents, tries: &Tries) {
    let attempt = attempt_of(&setup.source);
    let mut pause = PAUSE_MIN;
    let link = loop {
        match Established::open(setup) {
            Ok(link) => break link,
            Err(_) if setup.stop.is_stopped() => return,
            Err(error) => events.not_reopened(setup.device, attempt, error.into_loss()),
        }
        tries.pause(pause, &setup.stop);
        if setup.stop.is_stopped() {
            return;
        }
        pause = (2 * pause).min(PAUSE_MAX);
    };
    let mut state = tries.lock();
    if setup.stop.is_stopped() {
        return;
    }
    state.opened = Some(link.opened());
    drop(state);
    // Before the event, so that an epoch that begins now finds the link.
    tries.changed.notify_all();
    events.reopened(&link.session, attempt, link.info.threads);
    tries.lock().is_reported = true;
    tries.changed.notify_all();
    link.serve(setup, events);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reopening() -> Reopening {
        Reopening { stop: StopHandle::new(), tries: Arc::default(), thread: None }
    }

    #[test]
    fn a_hurried_device_is_tried_again_after_an_attempt_that_had_begun_before() {
        let reopening = reopening();
        assert_eq!(reopening.hurry(), 2);
        // The attempt that was under way fails. The next one follows without a pause.
        reopening.tries.pause(Duration::MAX, &reopening.stop);
        let state = reopening.tries.lock();
        assert_eq!((state.failed, state.pauses, state.is_wanted), (1, false, false));
    }

    #[test]
    fn a_hurried_device_that_pauses_is_tried_once() {
        let reopening = reopening();
        let tries = Arc::clone(&reopening.tries);
        let stop = reopening.stop.clone();
        let pausing = std::thread::spawn(move || tries.pause(Duration::MAX, &stop));
        let mut state = reopening.tries.lock();
        while !state.pauses {
            state = reopening.tries.wait(state, WAIT_SLICE);
        }
        drop(state);
        assert_eq!(reopening.hurry(), 2);
        pausing.join().unwrap();
        assert_eq!(reopening.tries.lock().failed, 1);
    }

    #[test]
    fn the_wait_for_an_open_link_ends_when_it_was_reported() {
        let reopening = reopening();
        let tries = Arc::clone(&reopening.tries);
        let reporting = std::thread::spawn(move || {
            tries.lock().is_reported = true;
            tries.changed.notify_all();
        });
        reopening.await_tries(u64::MAX, &reopening.stop).unwrap();
        reporting.join().unwrap();
    }
}
