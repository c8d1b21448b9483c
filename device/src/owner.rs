//! The hosts that own the device: up to a limit, each while its connection lasts.

use crate::queue::Queue;
use crate::session::LoadedJob;
use meetpoint_diagnose::{Change, Command, Remedy, Setting};
use std::collections::HashMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Maximum number of spools that wait for their `Load`, besides one for each host.
const OFFERS_MAX: usize = 63;

/// Maximum number of these per process, besides one for each host, because a process may run
/// several.
const OFFERS_OF_PROCESS_MAX: usize = 7;

/// How long a spool waits for its `Load` before it is released: its host may be dead.
const OFFER_LIFETIME: Duration = Duration::from_secs(10);

/// A handle that can disconnect a connection.
#[derive(Debug)]
pub(crate) struct DisconnectHandle(OwnedFd);

impl DisconnectHandle {
    pub(crate) fn new(connection: OwnedFd) -> Self {
        Self(connection)
    }

    /// Ends the connection for both sides; without effect if it has ended.
    pub(crate) fn disconnect(&self) {
        let _ = rustix::net::shutdown(&self.0, rustix::net::Shutdown::Both);
    }
}

/// The peer of a connection. Its `Display` is for messages to other hosts, and does not identify
/// hosts on other machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PeerName {
    /// A process of this machine, by its id.
    Process(u32),
    /// A host of another machine, by certificate and address.
    Remote(String),
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(id) => write!(f, "the host with process id {id}"),
            Self::Remote(_) => f.write_str("another host"),
        }
    }
}

/// The other end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// Number of the connection, unique in this process.
    pub(crate) connection: u64,
    /// Who connected.
    pub(crate) name: PeerName,
    /// Under which name its use is counted.
    pub(crate) client: Arc<str>,
    pub(crate) disconnect: Arc<DisconnectHandle>,
}

/// Why a job is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AdmissionError {
    #[error("the device serves {0} and accepts one host at a time")]
    Taken(PeerName),
    #[error("the device serves {hosts} hosts{} and accepts no more", listed(processes))]
    Full {
        hosts: usize,
        /// Ids of those that are processes of this machine.
        processes: Vec<u32>,
    },
    #[error("no job is loaded on this connection: call Load first")]
    NothingLoaded,
    #[error("the job already has a Run stream")]
    Running,
    #[error("the worker of the previous job has not ended: it is waiting for its storage")]
    Ending,
    #[error("the device is shutting down and accepts no jobs")]
    Draining,
}

impl AdmissionError {
    /// The remedy at the host or the device.
    pub(crate) fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Taken(PeerName::Remote(_)) => Some(of_network("wait until that host has ended")),
            Self::Taken(PeerName::Process(_)) => Some(
                Remedy::advice("wait until that host has ended")
                    .or("end it")
                    .or_run(Command::ServeDevice { socket: None }),
            ),
            Self::Full { processes, .. } if processes.is_empty() => {
                Some(of_network("wait until one of them has ended"))
            }
            Self::Full { .. } => Some(
                Remedy::advice("wait until one of them has ended")
                    .or("end one")
                    .or_set(Setting::DeviceHosts, Change::Raise),
            ),
            Self::Draining => Some("connect to another device".into()),
            // A host of this release makes no such calls; a worker ends by itself.
            Self::NothingLoaded | Self::Running | Self::Ending => None,
        }
    }
}

/// The remedy for a host of another machine, which can neither end the other hosts nor start a
/// device on a socket.
fn of_network(wait: &'static str) -> Remedy {
    Remedy::advice(wait)
        .or_by("let the device serve more hosts", Setting::DeviceHosts, Change::Raise)
        .or("connect to another device")
}

/// The processes in brackets. They belong to the same user as the refused host, unlike hosts on
/// other machines.
fn listed(processes: &[u32]) -> String {
    let ids: Vec<String> = processes.iter().map(|id| format!("process id {id}")).collect();
    if ids.is_empty() { String::new() } else { format!(" ({})", ids.join(", ")) }
}

struct Offer {
    fd: Arc<OwnedFd>,
    /// Process that made it.
    process_id: u32,
    since: Instant,
}

/// Why an offered spool is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpoolOfferError {
    /// Another spool waits under its token.
    TokenTaken,
    /// The limit of waiting spools is reached.
    Full,
}

/// A host that the device serves.
struct Holder {
    peer: Peer,
    /// A job that is loaded but does not run yet.
    job: Option<LoadedJob>,
    /// The spool of the job, for a Load that names it again.
    spool: Option<(u64, Arc<OwnedFd>)>,
    /// The queue of the Run stream.
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
    /// In the order of arrival, up to the limit.
    holders: Vec<Holder>,
    offers: HashMap<u64, Offer>,
    connections: usize,
    idle_since: Instant,
    /// Connections of hosts that have or had a job.
    served: Vec<u64>,
    /// Whether there was a host with a job.
    had_host: bool,
    /// Whether all hosts with a job have disconnected at some time.
    hosts_gone: bool,
    /// Whether no more jobs are accepted.
    is_draining: bool,
}

impl State {
    fn holder(&mut self, connection: u64) -> Option<&mut Holder> {
        self.holders.iter_mut().find(|holder| holder.peer.connection == connection)
    }

    fn names(&self) -> Vec<PeerName> {
        self.holders.iter().map(|holder| holder.peer.name.clone()).collect()
    }
}

/// The owners of the device, the waiting spools, and the connections.
pub(crate) struct Owner {
    /// Maximum number of hosts at the same time.
    hosts_max: usize,
    state: Mutex<State>,
    /// Notified after each change that may end the process.
    changed: Notify,
}

impl Owner {
    pub(crate) fn new(hosts_max: usize) -> Self {
        let state = State {
            holders: Vec::new(),
            offers: HashMap::new(),
            connections: 0,
            idle_since: Instant::now(),
            served: Vec::new(),
            had_host: false,
            hosts_gone: false,
            is_draining: false,
        };
        Self { hosts_max, state: Mutex::new(state), changed: Notify::new() }
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
        state.served.retain(|served| *served != connection);
        state.hosts_gone |= state.had_host && state.served.is_empty();
        if let Some(holder) = state.holder(connection) {
            holder.gone = true;
            holder.job = None;
            // A worker that still runs holds the device until it has ended.
            match &holder.queue {
                Some(queue) => queue.close(),
                None => state.holders.retain(|holder| holder.peer.connection != connection),
            }
        }
        self.changed.notify_waiters();
    }

    /// Holds a spool, with its token, for the `Load` that will name it. If a process exceeds its
    /// limit, its oldest spool is released, so that it does not reduce the limit of other
    /// processes.
    pub(crate) fn offer(
        &self,
        process_id: u32,
        (token, fd): (u64, OwnedFd),
        now: Instant,
    ) -> Result<(), SpoolOfferError> {
        let mut state = self.lock();
        if state.offers.contains_key(&token) {
            return Err(SpoolOfferError::TokenTaken);
        }
        let own = state.offers.iter().filter(|(_, offer)| offer.process_id == process_id);
        let own: Vec<(Instant, u64)> = own.map(|(token, offer)| (offer.since, *token)).collect();
        if own.len() >= OFFERS_OF_PROCESS_MAX + self.hosts_max {
            let (_, oldest) = own.into_iter().min().expect("there are some");
            state.offers.remove(&oldest);
        }
        if state.offers.len() >= OFFERS_MAX + self.hosts_max {
            return Err(SpoolOfferError::Full);
        }
        state.offers.insert(token, Offer { fd: Arc::new(fd), process_id, since: now });
        Ok(())
    }

    /// Releases spools that no `Load` named in time.
    pub(crate) fn forget_old_offers(&self, now: Instant) {
        let age = |offer: &Offer| now.saturating_duration_since(offer.since);
        self.lock().offers.retain(|_, offer| age(offer) < OFFER_LIFETIME);
    }

    /// Assigns the device to a peer that may already own it.
    pub(crate) fn claim(&self, peer: &Peer) -> Result<(), AdmissionError> {
        let mut state = self.lock();
        if state.is_draining {
            return Err(AdmissionError::Draining);
        }
        if state.holder(peer.connection).is_some() {
            return Ok(());
        }
        if state.holders.len() < self.hosts_max {
            let (peer, gone) = (peer.clone(), false);
            state.holders.push(Holder { peer, job: None, spool: None, queue: None, gone });
            return Ok(());
        }
        Err(match &state.holders[..] {
            holders if holders.iter().any(Holder::is_ending) => AdmissionError::Ending,
            [only] => AdmissionError::Taken(only.peer.name.clone()),
            holders => {
                let process = |holder: &Holder| match &holder.peer.name {
                    PeerName::Process(id) => Some(*id),
                    PeerName::Remote(_) => None,
                };
                let processes = holders.iter().filter_map(process).collect();
                AdmissionError::Full { hosts: holders.len(), processes }
            }
        })
    }

    /// The spool with a token: a waiting one, or that of the peer's current job.
    pub(crate) fn spool(&self, peer: &Peer, token: u64) -> Option<Arc<OwnedFd>> {
        let mut state = self.lock();
        if let Some(offer) = state.offers.remove(&token) {
            return Some(offer.fd);
        }
        let holder = state.holder(peer.connection)?;
        let (_, fd) = holder.spool.as_ref().filter(|(present, _)| *present == token)?;
        Some(Arc::clone(fd))
    }

    /// Gives the peer its job, which replaces the previous one. A disconnected peer gets none.
    pub(crate) fn loaded(&self, peer: &Peer, job: LoadedJob, spool: Option<(u64, Arc<OwnedFd>)>) {
        let mut state = self.lock();
        if state.is_draining {
            return;
        }
        if let Some(holder) = state.holder(peer.connection).filter(|holder| !holder.gone) {
            if let Some(queue) = &holder.queue {
                queue.close();
            }
            holder.job = Some(job);
            holder.spool = spool;
            state.had_host = true;
            if !state.served.contains(&peer.connection) {
                state.served.push(peer.connection);
            }
        }
    }

    /// Releases a device that was claimed for a job that failed to load.
    pub(crate) fn release_unless_loaded(&self, peer: &Peer) {
        self.release(self.lock(), |holder| holder.peer.connection == peer.connection);
    }

    /// Removes the peer's job, to be run with a new queue.
    pub(crate) fn begin_run(&self, peer: &Peer) -> Result<(LoadedJob, Arc<Queue>), AdmissionError> {
        let mut state = self.lock();
        if state.is_draining {
            return Err(AdmissionError::Draining);
        }
        let holder = state.holder(peer.connection).ok_or(AdmissionError::NothingLoaded)?;
        match &holder.queue {
            Some(queue) if queue.is_closed() => return Err(AdmissionError::Ending),
            Some(_) => return Err(AdmissionError::Running),
            None => {}
        }
        let job = holder.job.take().ok_or(AdmissionError::NothingLoaded)?;
        let queue = Arc::new(Queue::new(job.batches, job.slots));
        holder.queue = Some(Arc::clone(&queue));
        Ok((job, queue))
    }

    /// Records that the worker of a Run stream has ended.
    pub(crate) fn end_run(&self, queue: &Arc<Queue>) {
        let mut state = self.lock();
        let own = |held: &Arc<Queue>| Arc::ptr_eq(held, queue);
        state.holders.retain_mut(|holder| {
            let ends = holder.queue.as_ref().is_some_and(own);
            if ends {
                holder.queue = None;
            }
            !ends || holder.job.is_some()
        });
        self.changed.notify_waiters();
    }

    /// Accepts no more jobs, and begins no more batches of those that run.
    pub(crate) fn drain(&self) {
        let mut state = self.lock();
        state.is_draining = true;
        state.offers.clear();
        for holder in &mut state.holders {
            holder.job = None;
            if let Some(queue) = &holder.queue {
                queue.drain();
            }
        }
        self.release(state, |_| true);
    }

    /// Ends all jobs and releases everything.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.offers.clear();
        for holder in &mut state.holders {
            holder.job = None;
            if let Some(queue) = &holder.queue {
                queue.close();
            }
        }
        self.release(state, |_| true);
    }

    /// The hosts that own the device, in the order of arrival.
    pub(crate) fn hosts(&self) -> Vec<PeerName> {
        self.lock().names()
    }

    /// Whether a worker runs.
    pub(crate) fn is_running(&self) -> bool {
        self.running() > 0
    }

    /// Jobs with a Run stream.
    pub(crate) fn running(&self) -> usize {
        self.lock().holders.iter().filter(|holder| holder.queue.is_some()).count()
    }

    /// Whether no more jobs are accepted.
    pub(crate) fn is_draining(&self) -> bool {
        self.lock().is_draining
    }

    /// Whether all hosts with a job have disconnected at some time.
    pub(crate) fn hosts_gone(&self) -> bool {
        self.lock().hosts_gone
    }

    /// How long there has been no connection; `None` while there is one.
    pub(crate) fn idle_for(&self) -> Option<Duration> {
        let state = self.lock();
        (state.connections == 0).then(|| state.idle_since.elapsed())
    }

    /// Whether a host ever had a job here.
    pub(crate) fn had_host(&self) -> bool {
        self.lock().had_host
    }

    /// Connections that are open.
    pub(crate) fn connections(&self) -> usize {
        self.lock().connections
    }

    /// Waits for a change, at most `timeout`.
    pub(crate) async fn change(&self, timeout: Duration) {
        // Notified or timed out: the caller checks again in either case.
        let _ = tokio::time::timeout(timeout, self.changed.notified()).await;
    }

    /// Releases holders that have neither a job nor a worker.
    fn release(&self, mut state: MutexGuard<'_, State>, wanted: impl Fn(&Holder) -> bool) {
        let idle = |holder: &Holder| holder.job.is_none() && holder.queue.is_none();
        state.holders.retain(|holder| !(idle(holder) && wanted(holder)));
        drop(state);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave the state inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn fd() -> OwnedFd {
        File::open("/dev/null").unwrap().into()
    }

    fn tokens(owner: &Owner) -> Vec<u64> {
        let mut tokens: Vec<u64> = owner.lock().offers.keys().copied().collect();
        tokens.sort_unstable();
        tokens
    }

    #[test]
    fn a_process_that_offers_many_spools_loses_its_oldest_and_others_are_held() {
        let (owner, begun) = (Owner::new(1), Instant::now());
        assert_eq!(owner.offer(7, (1000, fd()), begun), Ok(()));
        assert_eq!(owner.offer(7, (1000, fd()), begun), Err(SpoolOfferError::TokenTaken));
        for token in 0..20 {
            let now = begun + Duration::from_millis(token);
            assert_eq!(owner.offer(8, (token, fd()), now), Ok(()));
        }
        assert_eq!(tokens(&owner), (12..20).chain([1000]).collect::<Vec<_>>());
    }

    #[test]
    fn when_many_processes_offer_spools_the_next_is_refused_until_theirs_are_let_go() {
        let (owner, begun) = (Owner::new(1), Instant::now());
        for process in 0..64 {
            assert_eq!(owner.offer(process, (process.into(), fd()), begun), Ok(()));
        }
        assert_eq!(owner.offer(99, (99, fd()), begun), Err(SpoolOfferError::Full));
        owner.forget_old_offers(begun + OFFER_LIFETIME);
        assert_eq!(owner.offer(99, (99, fd()), begun + OFFER_LIFETIME), Ok(()));
        assert_eq!(tokens(&owner), [99]);
    }
}
