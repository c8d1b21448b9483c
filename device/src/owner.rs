//! Whose the device is: one host at a time, for as long as its connection lasts.

use crate::queue::Queue;
use crate::session::Job;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Most spools that wait for their `Load`.
const OFFERS_MAX: usize = 8;

/// How long a spool waits for its `Load` before it is let go: its host may be dead.
const OFFER_LIFETIME: Duration = Duration::from_secs(30);

/// One end of a connection, by which it can be cut.
#[derive(Debug)]
pub(crate) struct Cut(OwnedFd);

impl Cut {
    pub(crate) fn new(connection: OwnedFd) -> Self {
        Self(connection)
    }

    /// Ends the connection for both sides. Whoever was cut off before stays so.
    pub(crate) fn cut(&self) {
        let _ = rustix::net::shutdown(&self.0, rustix::net::Shutdown::Both);
    }
}

/// Who is at the other end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// Number of the connection, unique in this process.
    pub(crate) connection: u64,
    /// Process that connected.
    pub(crate) process_id: u32,
    pub(crate) cut: Arc<Cut>,
}

/// Why a job cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denied {
    #[error(
        "the device works for the host with process id {0} and takes one at a time: wait until \
         that one has ended, end it, or start another device on a socket of its own"
    )]
    Taken(u32),
    #[error("no job is loaded on this connection: call Load first")]
    NothingLoaded,
    #[error("the job already has a Run stream")]
    Running,
    #[error("the worker of the job before has not ended: it waits for its storage")]
    Ending,
}

struct Offer {
    fd: Arc<OwnedFd>,
    since: Instant,
}

/// The host that the device works for.
struct Holder {
    peer: Peer,
    /// Loaded and not yet run.
    job: Option<Job>,
    /// The spool of the job, for a Load that names it again.
    spool: Option<(u64, Arc<OwnedFd>)>,
    /// Of the Run stream.
    queue: Option<Arc<Queue>>,
    /// Whether its connection has ended.
    gone: bool,
}

impl Holder {
    /// Whether it keeps the device only until its worker has ended.
    fn is_ending(&self) -> bool {
        let closed = self.queue.as_ref().is_some_and(|queue| queue.is_closed());
        self.gone || (self.job.is_none() && closed)
    }
}

struct State {
    holder: Option<Holder>,
    offers: HashMap<u64, Offer>,
    connections: usize,
    idle_since: Instant,
    /// The connection of the first host that had a job, and whether it has ended.
    first_host: Option<(u64, bool)>,
}

/// Who holds the device, which spools wait, and who is connected.
pub(crate) struct Owner {
    state: Mutex<State>,
    /// Told whenever something changed that the process may end for.
    changed: Notify,
}

impl Owner {
    pub(crate) fn new() -> Self {
        let state = State {
            holder: None,
            offers: HashMap::new(),
            connections: 0,
            idle_since: Instant::now(),
            first_host: None,
        };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// Counts a connection.
    pub(crate) fn connected(&self) {
        self.lock().connections += 1;
    }

    /// Drops everything that a connection owned.
    pub(crate) fn disconnected(&self, connection: u64) {
        let mut state = self.lock();
        state.connections -= 1;
        state.idle_since = Instant::now();
        if let Some((first, gone)) = &mut state.first_host {
            *gone |= *first == connection;
        }
        if let Some(holder) = state.holder.as_mut().filter(|h| h.peer.connection == connection) {
            holder.gone = true;
            holder.job = None;
            // A worker that still runs holds the device until it has ended.
            match &holder.queue {
                Some(queue) => queue.close(),
                None => state.holder = None,
            }
        }
        self.changed.notify_waiters();
    }

    /// Keeps a spool for the `Load` that will name it; `false` when that cannot be.
    pub(crate) fn offer(&self, token: u64, fd: OwnedFd) -> bool {
        let mut state = self.lock();
        if state.offers.len() >= OFFERS_MAX || state.offers.contains_key(&token) {
            return false;
        }
        state.offers.insert(token, Offer { fd: Arc::new(fd), since: Instant::now() });
        true
    }

    /// Lets spools go that nobody asked for.
    pub(crate) fn forget_old_offers(&self) {
        self.lock().offers.retain(|_, offer| offer.since.elapsed() < OFFER_LIFETIME);
    }

    /// Takes the device for a peer, or leaves it to it.
    pub(crate) fn claim(&self, peer: &Peer) -> Result<(), Denied> {
        let mut state = self.lock();
        match &state.holder {
            Some(holder) if holder.peer.connection == peer.connection => Ok(()),
            Some(holder) if holder.is_ending() => Err(Denied::Ending),
            Some(holder) => Err(Denied::Taken(holder.peer.process_id)),
            None => {
                state.holder = Some(Holder {
                    peer: peer.clone(),
                    job: None,
                    spool: None,
                    queue: None,
                    gone: false,
                });
                Ok(())
            }
        }
    }

    /// The spool under a token: one that waits, or the one of the peer's present job.
    pub(crate) fn spool(&self, peer: &Peer, token: u64) -> Option<Arc<OwnedFd>> {
        let mut state = self.lock();
        if let Some(offer) = state.offers.remove(&token) {
            return Some(offer.fd);
        }
        let holder = state.holder.as_ref().filter(|h| h.peer.connection == peer.connection)?;
        let (_, fd) = holder.spool.as_ref().filter(|(present, _)| *present == token)?;
        Some(Arc::clone(fd))
    }

    /// Gives the peer its job, which replaces the one before. A peer that has gone gets none.
    pub(crate) fn loaded(&self, peer: &Peer, job: Job, spool: (u64, Arc<OwnedFd>)) {
        let mut state = self.lock();
        let holder = state.holder.as_mut();
        if let Some(holder) = holder.filter(|h| h.peer.connection == peer.connection && !h.gone) {
            if let Some(queue) = &holder.queue {
                queue.close();
            }
            holder.job = Some(job);
            holder.spool = Some(spool);
            state.first_host.get_or_insert((peer.connection, false));
        }
    }

    /// Lets go of a device that was claimed for a job that was not loaded after all.
    pub(crate) fn release_unless_loaded(&self, peer: &Peer) {
        self.release(self.lock(), |holder| holder.peer.connection == peer.connection);
    }

    /// Takes the peer's job out, to be run from a queue of its own.
    pub(crate) fn begin_run(&self, peer: &Peer) -> Result<(Job, Arc<Queue>), Denied> {
        let mut state = self.lock();
        let holder = state.holder.as_mut().filter(|h| h.peer.connection == peer.connection);
        let holder = holder.ok_or(Denied::NothingLoaded)?;
        match &holder.queue {
            Some(queue) if queue.is_closed() => return Err(Denied::Ending),
            Some(_) => return Err(Denied::Running),
            None => {}
        }
        let job = holder.job.take().ok_or(Denied::NothingLoaded)?;
        let queue = Arc::new(Queue::new(job.batches, job.slots));
        holder.queue = Some(Arc::clone(&queue));
        Ok((job, queue))
    }

    /// Says that the worker of a Run stream has ended.
    pub(crate) fn end_run(&self, queue: &Arc<Queue>) {
        let mut state = self.lock();
        let holder = state.holder.as_mut();
        let own = |held: &Arc<Queue>| Arc::ptr_eq(held, queue);
        if let Some(holder) = holder.filter(|h| h.queue.as_ref().is_some_and(own)) {
            holder.queue = None;
            if holder.job.is_none() {
                state.holder = None;
            }
        }
        self.changed.notify_waiters();
    }

    /// Ends whatever runs and lets everything go.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.offers.clear();
        if let Some(holder) = &mut state.holder {
            holder.job = None;
            if let Some(queue) = &holder.queue {
                queue.close();
            }
        }
        self.release(state, |_| true);
    }

    /// Process id of the host that has the device.
    pub(crate) fn works_for(&self) -> Option<u32> {
        self.lock().holder.as_ref().map(|holder| holder.peer.process_id)
    }

    /// Whether a worker runs.
    pub(crate) fn is_running(&self) -> bool {
        self.lock().holder.as_ref().is_some_and(|holder| holder.queue.is_some())
    }

    /// Whether a host had a job here and has gone.
    pub(crate) fn first_host_gone(&self) -> bool {
        self.lock().first_host.is_some_and(|(_, gone)| gone)
    }

    /// How long nobody has been connected; `None` while somebody is.
    pub(crate) fn idle_for(&self) -> Option<Duration> {
        let state = self.lock();
        (state.connections == 0).then(|| state.idle_since.elapsed())
    }

    /// Whether a host ever had a job here.
    pub(crate) fn had_host(&self) -> bool {
        self.lock().first_host.is_some()
    }

    /// Connections that are open.
    pub(crate) fn connections(&self) -> usize {
        self.lock().connections
    }

    /// Waits for a change, at most `timeout`.
    pub(crate) async fn change(&self, timeout: Duration) {
        // Which of the two it was does not matter: whoever waits looks again.
        let _ = tokio::time::timeout(timeout, self.changed.notified()).await;
    }

    /// Lets the holder go when it has neither a job nor a worker.
    fn release(&self, mut state: MutexGuard<'_, State>, wanted: impl Fn(&Holder) -> bool) {
        let idle = |holder: &Holder| holder.job.is_none() && holder.queue.is_none();
        if state.holder.as_ref().is_some_and(|holder| idle(holder) && wanted(holder)) {
            state.holder = None;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No change of state can stop half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
