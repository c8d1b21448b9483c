//! Rank 0 until all ranks are connected: who may take part.
//!
//! Connections that cannot prove the secret, and ranks of other attempts, are refused and change
//! nothing for the others. A rank of the own attempt that cannot be part of this job ends the wait
//! for all of them, as it shows a mistake.

use super::address::problem;
use super::attempt::Attempt;
use super::config::RendezvousConfig;
use super::link::{Outgoing, Receiving, silence_of};
use super::listener::{BindError, Listener};
use super::message::{Hello, Incoming, Message, VERSION};
use super::secret::{ANSWER_BYTES, Exchange, GREETING_BYTES, Greeting, REFUSED, Token, are_equal};
use super::stream::Stream;
use crate::StopHandle;
use crate::collective::CollectiveError;
use crate::stop::WAIT_SLICE;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// Polling interval for new connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(5);

/// Handshake timeout of a new connection.
pub(super) const HELLO_LIMIT: Duration = Duration::from_secs(5);

/// Maximum connections without a completed handshake. One more closes the oldest; a real rank
/// connects again.
const HANDSHAKES_MAX: usize = 64;

/// Longest wait for an address that another process listens on: rank 0 of an earlier attempt gives
/// it up when a rank of this one connects to it.
const BIND_LIMIT: Duration = Duration::from_secs(30);

/// Refused ranks of other attempts that an error names.
const OUTDATED_MAX: usize = 8;

/// A connected rank.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) rank: u32,
    pub(super) outgoing: Outgoing,
    pub(super) receiving: Receiving,
    instance: u64,
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.outgoing.stream().end();
    }
}

/// Listens, if another process does not listen there for long.
pub(super) fn listen(
    config: &RendezvousConfig,
    stop: &StopHandle,
) -> Result<Listener, CollectiveError> {
    let begun = Instant::now();
    loop {
        match Listener::try_bind(&config.place) {
            Ok(listener) => return Ok(listener),
            Err(BindError::InUse) if begun.elapsed() < BIND_LIMIT.min(config.limit) => {
                if stop.is_stopped() {
                    return Err(CollectiveError::Interrupted);
                }
                std::thread::sleep(ACCEPT_PAUSE);
            }
            Err(error) => return Err(error.at(&config.place)),
        }
    }
}

/// The ranks so far.
#[derive(Debug)]
pub(super) struct Gathering<'c> {
    config: &'c RendezvousConfig,
    token: Token,
    /// By rank, from 1.
    came: Vec<Option<Arrival>>,
    /// Ranks that another connection claims, each with the number of messages from that one. A
    /// message more shows that both live.
    contenders: Vec<(Arrival, u64)>,
    handshakes: VecDeque<Handshake>,
    /// Connections refused because of another secret.
    strangers: u32,
    /// Refused ranks of other attempts.
    outdated: Vec<(u32, Attempt)>,
}

impl<'c> Gathering<'c> {
    pub(super) fn new(config: &'c RendezvousConfig) -> Self {
        Self {
            config,
            token: config.token.unwrap_or_default(),
            came: (1..config.ranks).map(|_| None).collect(),
            contenders: Vec::new(),
            handshakes: VecDeque::new(),
            strangers: 0,
            outdated: Vec::new(),
        }
    }

    /// Waits until all ranks are connected. On an error, those that are connected learn of it.
    pub(super) fn run(
        mut self,
        listener: Listener,
        stop: &StopHandle,
    ) -> Result<Vec<Arrival>, CollectiveError> {
        let gathered = self.until_all_came(&listener, stop);
        // No further connections; the socket's name is removed before any rank continues.
        drop(listener);
        let message = match &gathered {
            Ok(()) => Message::Welcome,
            Err(error) => Message::Failed(error.clone()),
        };
        let arrivals: Vec<Arrival> = self.came.into_iter().flatten().collect();
        for arrival in &arrivals {
            // A rank that has disconnected by now is detected in the first turn.
            let _ = arrival.outgoing.send(&message);
        }
        gathered.map(|()| arrivals)
    }

    fn until_all_came(
        &mut self,
        listener: &Listener,
        stop: &StopHandle,
    ) -> Result<(), CollectiveError> {
        let begun = Instant::now();
        while self.came.iter().any(Option::is_none) {
            if stop.is_stopped() {
                return Err(CollectiveError::Interrupted);
            }
            self.accept(listener)?;
            for handshake in std::mem::take(&mut self.handshakes) {
                match handshake.advance(&self.token, self.config.silence, Instant::now()) {
                    State::Complete(hello, arrival) => self.admit(hello, arrival)?,
                    State::Incomplete(handshake) => self.handshakes.push_back(handshake),
                    State::Refused(Refused::OtherVersion { theirs }) => {
                        return Err(CollectiveError::Version { theirs, ours: VERSION });
                    }
                    State::Refused(Refused::Stranger) => {
                        self.strangers = self.strangers.saturating_add(1);
                    }
                    State::Refused(Refused::Invalid) => {}
                }
            }
            self.look_at_arrivals()?;
            if begun.elapsed() >= self.config.limit {
                return Err(self.not_met());
            }
            std::thread::sleep(ACCEPT_PAUSE);
        }
        Ok(())
    }

    fn accept(&mut self, listener: &Listener) -> Result<(), CollectiveError> {
        if self.handshakes.len() == HANDSHAKES_MAX {
            self.handshakes.pop_front();
        }
        while self.handshakes.len() < HANDSHAKES_MAX {
            let accepted = listener.accept();
            let accepted = accepted.map_err(|error| problem(&self.config.place, error))?;
            let Some(stream) = accepted else { break };
            self.handshakes.extend(Handshake::begin(stream, Instant::now()).ok());
        }
        Ok(())
    }

    /// Removes ranks that have disconnected, and settles which of two connections is a rank.
    fn look_at_arrivals(&mut self) -> Result<(), CollectiveError> {
        for place in &mut self.came {
            if place.as_mut().is_some_and(|arrival| !arrival.is_there()) {
                *place = None;
            }
        }
        for (mut contender, heard) in std::mem::take(&mut self.contenders) {
            if !contender.is_there() {
                continue;
            }
            let rank = contender.rank;
            match &mut self.came[rank as usize - 1] {
                place @ None => *place = Some(contender),
                Some(first) if first.receiving.heard() > heard => {
                    return Err(claimed(&contender));
                }
                Some(_) => self.contenders.push((contender, heard)),
            }
        }
        Ok(())
    }

    fn not_met(&self) -> CollectiveError {
        let missing = (1..).zip(&self.came).filter(|(_, came)| came.is_none());
        CollectiveError::NotMet {
            ranks: missing.map(|(rank, _)| rank).collect(),
            place: self.config.place.to_string(),
            waited: self.config.limit,
            strangers: self.strangers,
            outdated: self.outdated.clone(),
        }
    }

    /// Accepts a rank that belongs to this rendezvous.
    fn admit(&mut self, hello: Hello, arrival: Arrival) -> Result<(), CollectiveError> {
        let config = self.config;
        let rank = hello.rank;
        let refuse = |error: CollectiveError| {
            let _ = arrival.outgoing.send(&Message::Failed(error.clone()));
            error
        };
        match hello.attempt.order(&config.attempt) {
            Some(Ordering::Equal) => {}
            // The rank connects again, to the rank 0 of its own attempt.
            Some(Ordering::Greater) => {
                let (ours, theirs) = (config.attempt.clone(), hello.attempt);
                return Err(CollectiveError::Superseded { ours, theirs });
            }
            Some(Ordering::Less) | None => {
                if self.outdated.len() < OUTDATED_MAX {
                    self.outdated.push((rank, hello.attempt.clone()));
                }
                let (ours, theirs) = (config.attempt.clone(), hello.attempt);
                refuse(CollectiveError::OtherAttempt { rank, theirs, ours });
                return Ok(());
            }
        }
        if hello.job != config.job {
            let (theirs, ours) = (hello.job, config.job.clone());
            return Err(refuse(CollectiveError::Differs { rank, theirs, ours }));
        }
        let place = (rank as usize).checked_sub(1).and_then(|at| self.came.get_mut(at));
        let Some(place) = place.filter(|_| hello.ranks == config.ranks) else {
            let (ranks, theirs) = (config.ranks, hello.ranks);
            return Err(refuse(CollectiveError::OtherWorld { rank, theirs, ranks }));
        };
        let Some(first) = place.as_mut().filter(|first| first.instance != arrival.instance) else {
            *place = Some(arrival);
            return Ok(());
        };
        if !first.is_there() {
            *place = Some(arrival);
        } else if first.receiving.is_watched() {
            // The system may not have noticed that the first one has disappeared.
            let heard = first.receiving.heard();
            self.contenders.push((arrival, heard));
        } else {
            return Err(claimed(&arrival));
        }
        Ok(())
    }
}

/// Two processes are the same rank. The second one learns of it.
fn claimed(second: &Arrival) -> CollectiveError {
    let error = CollectiveError::Claimed { rank: second.rank };
    let _ = second.outgoing.send(&Message::Failed(error.clone()));
    error
}

impl Arrival {
    /// Whether it is still connected. It has nothing to say yet.
    fn is_there(&mut self) -> bool {
        self.receiving.ping(&self.outgoing);
        matches!(self.receiving.next(self.outgoing.stream().now()), Ok(None))
    }
}

/// A connection without a completed handshake.
#[derive(Debug)]
pub(super) struct Handshake {
    stream: Stream,
    deadline: Instant,
    greeting: Greeting,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The bytes of the answer so far.
    Answer(Vec<u8>),
    /// The secret is proved: which rank it is.
    Hello { incoming: Incoming, outgoing: super::secret::MessageKey },
}

/// The state of a handshake.
#[derive(Debug)]
pub(super) enum State {
    Complete(Hello, Arrival),
    /// Incomplete.
    Incomplete(Handshake),
    Refused(Refused),
}

/// Why a connection is not one of a rank.
#[derive(Debug, Clone, Copy)]
pub(super) enum Refused {
    /// A rank with the secret, of another version.
    OtherVersion { theirs: u32 },
    /// Another secret.
    Stranger,
    /// Invalid, or too late.
    Invalid,
}

impl Handshake {
    /// Sends the greeting.
    pub(super) fn begin(stream: Stream, now: Instant) -> io::Result<Self> {
        let stream = stream.prepare(WAIT_SLICE)?;
        let greeting = Greeting::new(VERSION)?;
        (&stream).write_all(&greeting.to_bytes())?;
        let stage = Stage::Answer(Vec::with_capacity(ANSWER_BYTES));
        Ok(Self { stream, deadline: now + HELLO_LIMIT, greeting, stage })
    }

    /// Reads the available bytes without waiting.
    pub(super) fn advance(
        mut self,
        token: &Token,
        silence: Option<Duration>,
        now: Instant,
    ) -> State {
        if let Stage::Answer(bytes) = &mut self.stage {
            match fill(&self.stream, bytes) {
                Ok(None) => return self.wait(now),
                Ok(Some(answer)) => match self.check(token, &answer) {
                    Ok(stage) => self.stage = stage,
                    Err(refused) => return State::Refused(refused),
                },
                Err(_) => return State::Refused(Refused::Invalid),
            }
        }
        let Stage::Hello { incoming, .. } = &mut self.stage else {
            return State::Refused(Refused::Invalid);
        };
        match incoming.receive(self.stream.now()) {
            Ok(Some(Message::Hello(hello))) => self.complete(hello, silence),
            Ok(None) => self.wait(now),
            _ => State::Refused(Refused::Invalid),
        }
    }

    /// A partial message does not extend the timeout.
    fn wait(self, now: Instant) -> State {
        match now < self.deadline {
            true => State::Incomplete(self),
            false => State::Refused(Refused::Invalid),
        }
    }

    /// Checks the proof of the other rank, and sends that of rank 0.
    fn check(&self, token: &Token, answer: &[u8; ANSWER_BYTES]) -> Result<Stage, Refused> {
        let (greeting, proof) = answer.split_at(GREETING_BYTES);
        let greeting = greeting.first_chunk().and_then(Greeting::from_bytes);
        let other = greeting.ok_or(Refused::Invalid)?;
        let exchange = Exchange { token, rank_0: self.greeting, other };
        if !are_equal(&exchange.proof_of_other(), proof) {
            // If it does not arrive, the other rank detects the closed connection.
            let _ = (&self.stream).write_all(&REFUSED);
            return Err(Refused::Stranger);
        }
        if other.version != VERSION {
            return Err(Refused::OtherVersion { theirs: other.version });
        }
        let sent = (&self.stream).write_all(&exchange.proof_of_rank_0());
        sent.map_err(|_| Refused::Invalid)?;
        let [outgoing, incoming] = exchange.keys();
        Ok(Stage::Hello { incoming: Incoming::new(incoming), outgoing })
    }

    fn complete(self, hello: Hello, silence: Option<Duration>) -> State {
        let Stage::Hello { incoming, outgoing } = self.stage else {
            return State::Refused(Refused::Invalid);
        };
        let limit = silence_of(&self.stream, silence);
        let receiving = Receiving::new(incoming, limit);
        let outgoing = Outgoing::new(self.stream, outgoing);
        let arrival = Arrival { rank: hello.rank, outgoing, receiving, instance: hello.instance };
        State::Complete(hello, arrival)
    }
}

/// Reads without waiting until the answer is complete, and no further.
fn fill(stream: &Stream, bytes: &mut Vec<u8>) -> io::Result<Option<[u8; ANSWER_BYTES]>> {
    let mut block = [0; ANSWER_BYTES];
    while bytes.len() < ANSWER_BYTES {
        match stream.now().read(&mut block[bytes.len()..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                let start = bytes.len();
                bytes.extend_from_slice(&block[start..start + count]);
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => return Ok(None),
                io::ErrorKind::Interrupted => {}
                _ => return Err(error),
            },
        }
    }
    Ok(bytes.first_chunk().copied())
}
