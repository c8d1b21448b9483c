//! The end of every rank except rank 0.

use super::address::{RendezvousAddress, problem};
use super::config::RendezvousConfig;
use super::link::{Broken, Outgoing, Receiving, silence_of};
use super::listener::connect;
use super::message::{Hello, Incoming, Message, VERSION};
use super::secret::{CODE_BYTES, Exchange, GREETING_BYTES, Greeting, REFUSED, Token, are_equal};
use super::stream::Stream;
use crate::StopHandle;
use crate::collective::rank_wait::RankWait;
use crate::collective::{CollectiveError, Turn};
use crate::stop::WAIT_SLICE;
use meetpoint_scheduler::{Agreement, Proposal};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pause before it tries to connect again.
const CONNECT_PAUSE: Duration = Duration::from_millis(20);

/// How much longer than rank 0 it waits, because rank 0 can name the missing ranks.
const GRACE: Duration = Duration::from_secs(5);

/// Handshake timeout of a connection, whose listener may be busy with others, or not be a rank.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(30);

/// Messages that wait for the next turn; rank 0 sends fewer.
const QUEUED_MAX: usize = 64;

/// The connection to rank 0.
#[derive(Debug)]
pub(super) struct Member {
    link: Arc<Link>,
    /// Keeps the connection alive between turns; `None` if that is not needed.
    keeper: Option<Keeper>,
}

#[derive(Debug)]
struct Link {
    outgoing: Outgoing,
    inbox: Mutex<Inbox>,
}

#[derive(Debug)]
struct Inbox {
    receiving: Receiving,
    /// Messages that arrived between turns.
    queued: VecDeque<Message>,
}

impl Member {
    /// Connects to rank 0 and waits until all ranks are connected.
    pub(super) fn join(
        config: RendezvousConfig,
        stop: &StopHandle,
    ) -> Result<Self, CollectiveError> {
        let mut instance = [0; 8];
        getrandom::fill(&mut instance).map_err(|error| problem(&config.place, error))?;
        let RendezvousConfig { place, token, rank, ranks, attempt, job, limit, silence, .. } =
            config;
        let instance = u64::from_le_bytes(instance);
        let hello = Message::Hello(Hello { rank, ranks, attempt, instance, job });
        let token = token.unwrap_or_default();
        let joining = Joining { place: &place, begun: Instant::now(), limit, stop };
        loop {
            let stream = joining.connect()?;
            let stream = stream.prepare(WAIT_SLICE).map_err(|error| problem(&place, error))?;
            let exchange = match joining.shake_hands(&stream, &token) {
                Ok(exchange) => exchange,
                Err(Refusal::Lost) => {
                    joining.pause()?;
                    continue;
                }
                Err(Refusal::Final(error)) => return Err(error),
            };
            let [incoming, outgoing] = exchange.keys();
            let watch = silence_of(&stream, silence);
            let receiving = Receiving::new(Incoming::new(incoming), watch);
            let outgoing = Outgoing::new(stream, outgoing);
            let mut inbox = Inbox { receiving, queued: VecDeque::new() };
            let welcome = outgoing.send(&hello).map_err(|_| Broken::Ended);
            match welcome.and_then(|()| joining.await_all(&outgoing, &mut inbox)) {
                Ok(Some(Message::Welcome)) => {
                    let every = inbox.receiving.every();
                    let link = Arc::new(Link { outgoing, inbox: Mutex::new(inbox) });
                    let start = |every| Keeper::start(Arc::clone(&link), rank, every);
                    let keeper = every.map(start).transpose();
                    let keeper = keeper.map_err(|error| problem(&place, error))?;
                    return Ok(Self { link, keeper });
                }
                Ok(Some(Message::Failed(error))) => return Err(error),
                Ok(Some(_)) => return Err(problem(&place, "the listener is not rank 0")),
                Ok(None) if stop.is_stopped() => return Err(CollectiveError::Interrupted),
                Ok(None) => return Err(joining.missing()),
                // The listener may have belonged to an earlier attempt that has ended.
                Err(_) => joining.pause()?,
            }
        }
    }

    pub(super) fn agree(
        &self,
        turn: &Turn<'_>,
        proposal: Proposal,
    ) -> Result<Agreement, CollectiveError> {
        let Turn { epoch, number, limit, stop, .. } = *turn;
        let left = |why: String| CollectiveError::Left { rank: 0, epoch, why };
        let mut inbox = self.link.lock();
        let message = Message::Turn { epoch, number, limit, proposal: proposal.to_words() };
        // If rank 0 has disconnected, its last message may still be readable.
        let _ = self.link.outgoing.send(&message);
        // Heartbeats of rank 0, which enforces the timeouts.
        let (mut wait, mut heartbeats) = (RankWait::new(&[0]), 0);
        loop {
            return match inbox.next(&self.link.outgoing) {
                // The answer to a turn that timed out.
                Ok(Some(Message::Answer { epoch: of, number: at, .. }))
                    if (of, at) != (epoch, number) =>
                {
                    continue;
                }
                Ok(Some(Message::Waits)) => {
                    heartbeats += 1;
                    continue;
                }
                Ok(Some(Message::Answer { answer, .. })) => {
                    answer.map(|words| Proposal::from_words(words).agreement())
                }
                Ok(Some(Message::Failed(CollectiveError::Left { rank, why, .. }))) => {
                    Err(CollectiveError::Left { rank, epoch, why })
                }
                Ok(None) if stop.is_stopped() => Err(CollectiveError::Interrupted),
                Ok(None) => {
                    wait.poll();
                    if wait.silent(0, heartbeats) < limit + GRACE {
                        continue;
                    }
                    let (ranks, waited) = (vec![0], limit);
                    Err(CollectiveError::Missing { ranks, epoch, number, waited })
                }
                Ok(Some(_)) => Err(left("it sent an unexpected message".to_owned())),
                Err(broken) => Err(left(broken.to_string())),
            };
        }
    }

    pub(super) fn at_work(&self) {
        // If rank 0 has disconnected, the next turn reports it.
        let _ = self.link.outgoing.send(&Message::AtWork);
    }

    pub(super) fn leave(&self, epoch: u32, why: &str) {
        // If rank 0 has disconnected, all ranks know.
        let _ = self.link.outgoing.send(&Message::Leave { epoch, why: why.to_owned() });
    }

    pub(super) fn give_up(&self, why: &str) {
        let _ = self.link.outgoing.send(&Message::Bye { why: why.to_owned() });
    }

    /// Closes the connection without a message, as the operating system does for a killed process.
    #[cfg(test)]
    pub(super) fn break_off(&self) {
        self.link.outgoing.stream().end();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.give_up("it closed its loader");
        self.keeper = None;
        self.link.outgoing.stream().end();
    }
}

impl Link {
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        // A panic while it is held leaves a consistent state.
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inbox {
    /// The next message of a turn; `None` at the read timeout.
    fn next(&mut self, outgoing: &Outgoing) -> Result<Option<Message>, Broken> {
        match self.queued.pop_front() {
            Some(message) => Ok(Some(message)),
            None => self.receiving.next(outgoing.stream()),
        }
    }

    /// Reads what has arrived, for the next turn.
    fn drain(&mut self, outgoing: &Outgoing) {
        // A broken connection is reported by the next turn.
        while self.queued.len() < QUEUED_MAX
            && let Ok(Some(message)) = self.receiving.next(outgoing.stream().now())
        {
            self.queued.push_back(message);
        }
    }
}

/// A thread that sends pings, and reads between turns, until it is dropped.
#[derive(Debug)]
struct Keeper {
    /// Ends the thread when dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    fn start(link: Arc<Link>, rank: u32, every: Duration) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let body = move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                // A broken connection is reported by the next turn.
                let _ = link.outgoing.send(&Message::Ping);
                match link.inbox.try_lock() {
                    Ok(mut inbox) => inbox.drain(&link.outgoing),
                    Err(TryLockError::Poisoned(inbox)) => inbox.into_inner().drain(&link.outgoing),
                    // A turn reads.
                    Err(TryLockError::WouldBlock) => {}
                }
            }
        };
        let thread = std::thread::Builder::new().name(format!("rank-{rank}-link")).spawn(body)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // Its own panic was reported where it happened.
            let _ = thread.join();
        }
    }
}

/// A rank that connects to rank 0.
struct Joining<'c> {
    place: &'c RendezvousAddress,
    begun: Instant,
    limit: Duration,
    stop: &'c StopHandle,
}

/// Why a connection was not accepted.
enum Refusal {
    /// It ended; another may succeed.
    Lost,
    /// Another fails too.
    Final(CollectiveError),
}

impl Joining<'_> {
    fn missing(&self) -> CollectiveError {
        let place = self.place.to_string();
        let (ranks, waited) = (vec![0], self.limit);
        CollectiveError::NotMet { ranks, place, waited, strangers: 0, outdated: Vec::new() }
    }

    /// Pauses before the next connection, unless the time is over.
    fn pause(&self) -> Result<(), CollectiveError> {
        if self.stop.is_stopped() {
            return Err(CollectiveError::Interrupted);
        }
        if self.begun.elapsed() >= self.limit {
            return Err(self.missing());
        }
        std::thread::sleep(CONNECT_PAUSE);
        Ok(())
    }

    fn connect(&self) -> Result<Stream, CollectiveError> {
        loop {
            match connect(self.place) {
                Ok(stream) => return Ok(stream),
                // Rank 0 may not have begun to listen.
                Err(error) if may_come(&error) => self.pause()?,
                Err(error) if self.begun.elapsed() >= self.limit || !self.is_remote() => {
                    return Err(problem(self.place, error));
                }
                // The name of a host that starts may not be known yet.
                Err(_) => self.pause()?,
            }
        }
    }

    fn is_remote(&self) -> bool {
        matches!(self.place, RendezvousAddress::Tcp(_))
    }

    /// Proves to have the secret, and checks that rank 0 has it.
    fn shake_hands<'t>(&self, stream: &Stream, token: &'t Token) -> Result<Exchange<'t>, Refusal> {
        let deadline = Instant::now() + HANDSHAKE_LIMIT;
        let not_rank_0 =
            || Refusal::Final(problem(self.place, "the listener is not rank 0 of this protocol"));
        let greeting: [u8; GREETING_BYTES] = self.read(stream, deadline)?;
        let rank_0 = Greeting::from_bytes(&greeting).ok_or_else(not_rank_0)?;
        let other =
            Greeting::new(VERSION).map_err(|error| Refusal::Final(problem(self.place, error)))?;
        let exchange = Exchange { token, rank_0, other };
        let mut to = stream;
        to.write_all(&exchange.answer()).map_err(|_| Refusal::Lost)?;
        if rank_0.version != VERSION {
            let (theirs, ours) = (VERSION, rank_0.version);
            return Err(Refusal::Final(CollectiveError::Version { theirs, ours }));
        }
        let proof: [u8; CODE_BYTES] = self.read(stream, deadline)?;
        if proof == REFUSED || !are_equal(&proof, &exchange.proof_of_rank_0()) {
            let place = self.place.to_string();
            return Err(Refusal::Final(CollectiveError::OtherToken { place }));
        }
        Ok(exchange)
    }

    /// Exactly these bytes.
    fn read<const N: usize>(&self, stream: &Stream, deadline: Instant) -> Result<[u8; N], Refusal> {
        let (mut bytes, mut filled) = ([0; N], 0);
        let mut from = stream;
        while filled < N {
            match from.read(&mut bytes[filled..]) {
                Ok(0) => return Err(Refusal::Lost),
                Ok(count) => filled += count,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::Interrupted => {}
                    _ => return Err(Refusal::Lost),
                },
            }
            if self.stop.is_stopped() {
                return Err(Refusal::Final(CollectiveError::Interrupted));
            }
            if filled < N && Instant::now() >= deadline {
                return Err(Refusal::Lost);
            }
        }
        Ok(bytes)
    }

    /// The first message of rank 0; `None` on a timeout or a stop.
    fn await_all(&self, outgoing: &Outgoing, inbox: &mut Inbox) -> Result<Option<Message>, Broken> {
        loop {
            inbox.receiving.ping(outgoing);
            let message = inbox.receiving.next(outgoing.stream())?;
            let is_over = self.begun.elapsed() >= self.limit + GRACE;
            if message.is_some() || self.stop.is_stopped() || is_over {
                return Ok(message);
            }
        }
    }
}

/// Whether rank 0 may still begin to listen at the address.
fn may_come(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::TimedOut
            | io::ErrorKind::Interrupted
            | io::ErrorKind::WouldBlock
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    )
}
