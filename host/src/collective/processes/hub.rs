//! Rank 0's end: it listens until all ranks are connected, then runs a thread for each of them.

use super::message::{Hello, Incoming, Message, VERSION, send};
use super::stream::Stream;
use super::{Collective, CollectiveError, Listener, RendezvousConfig, Turn};
use crate::StopHandle;
use crate::collective::Threads;
use crate::stop::WAIT_SLICE;
use meetpoint_scheduler::{Agreement, Proposal};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Polling interval for new connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(5);

/// Handshake timeout of a new connection.
const HELLO_LIMIT: Duration = Duration::from_secs(2);

/// Maximum connections without a completed handshake. One more closes the oldest; a real rank
/// connects again.
const HANDSHAKES_MAX: usize = 64;

/// How often a rank is notified that others are missing.
const WAITS_EVERY: Duration = Duration::from_secs(1);

/// The connections of all ranks, at rank 0.
#[derive(Debug)]
pub(super) struct Hub {
    threads: Arc<Threads>,
    /// Ends the threads below.
    stop: StopHandle,
    /// One for each other rank.
    serving: Vec<JoinHandle<()>>,
}

impl Hub {
    /// Waits until all ranks are connected.
    pub(super) fn gather(
        mut config: RendezvousConfig,
        stop: &StopHandle,
    ) -> Result<Self, CollectiveError> {
        let listener = match config.listener.take() {
            Some(listener) => listener,
            None => Listener::bind(&config.place)?,
        };
        let mut came: Vec<Option<Member>> = (1..config.ranks).map(|_| None).collect();
        let gathered = gather(&listener, &config, &mut came, stop);
        // No further connections; the socket's name is removed before any rank continues.
        drop(listener);
        let members: Vec<Member> = came.into_iter().flatten().collect();
        if let Err(error) = gathered {
            for member in &members {
                // If this message does not arrive, the rank detects the closed connection.
                let _ = send(&member.stream, &Message::Failed(error.clone()));
            }
            return Err(error);
        }
        let threads = Threads::new(config.ranks);
        let own = StopHandle::new();
        let mut hub = Self { threads, stop: own, serving: Vec::new() };
        for member in members {
            let (threads, stop) = (Arc::clone(&hub.threads), hub.stop.clone());
            let builder = std::thread::Builder::new().name(format!("rank-{}", member.rank));
            let started = builder.spawn(move || serve(member, &threads, &stop));
            hub.serving.push(started.map_err(|error| config.place.problem(error))?);
        }
        Ok(hub)
    }

    pub(super) fn agree(
        &self,
        turn: &Turn<'_>,
        proposal: Proposal,
    ) -> Result<Agreement, CollectiveError> {
        self.threads.agree(turn, proposal)
    }

    pub(super) fn at_work(&self, rank: u32) {
        self.threads.at_work(rank);
    }

    pub(super) fn leave(&self, rank: u32, epoch: u32, why: &str) {
        self.threads.leave(rank, epoch, why);
    }

    pub(super) fn give_up(&self, why: &str) {
        self.threads.lose(0, why);
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // Decisions of all ranks are still sent.
        self.threads.lose(0, "it closed its loader");
        self.stop.stop();
        for thread in self.serving.drain(..) {
            // Its own panic was reported where it happened.
            let _ = thread.join();
        }
    }
}

/// A connected rank.
#[derive(Debug)]
struct Member {
    rank: u32,
    stream: Stream,
    incoming: Incoming,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.stream.end();
    }
}

fn gather(
    listener: &Listener,
    config: &RendezvousConfig,
    came: &mut [Option<Member>],
    stop: &StopHandle,
) -> Result<(), CollectiveError> {
    let begun = Instant::now();
    let mut handshakes = VecDeque::new();
    while came.iter().any(Option::is_none) {
        if stop.is_stopped() {
            return Err(CollectiveError::Interrupted);
        }
        if handshakes.len() == HANDSHAKES_MAX {
            handshakes.pop_front();
        }
        while handshakes.len() < HANDSHAKES_MAX {
            let accepted = listener.accept().map_err(|error| config.place.problem(error))?;
            let Some(stream) = accepted else { break };
            handshakes.push_back(Handshake::new(stream, Instant::now()));
        }
        for handshake in std::mem::take(&mut handshakes) {
            match handshake.advance(config, Instant::now()) {
                HandshakeState::Complete(hello, member) => admit(hello, member, config, came)?,
                HandshakeState::Incomplete(handshake) => handshakes.push_back(handshake),
                HandshakeState::Invalid => {}
            }
        }
        if begun.elapsed() >= config.limit {
            let missing = (1..).zip(came.iter()).filter(|(_, came)| came.is_none());
            let ranks = missing.map(|(rank, _)| rank).collect();
            let (place, waited) = (config.place.to_string(), config.limit);
            return Err(CollectiveError::NotMet { ranks, place, waited });
        }
        std::thread::sleep(ACCEPT_PAUSE);
    }
    for member in came.iter().flatten() {
        // A rank that has disconnected by now is detected in the first turn.
        let _ = send(&member.stream, &Message::Welcome);
    }
    Ok(())
}

/// A connection without a completed handshake.
#[derive(Debug)]
struct Handshake {
    stream: Stream,
    incoming: Incoming,
    deadline: Instant,
}

/// The state of a handshake.
#[derive(Debug)]
enum HandshakeState {
    Complete(Hello, Member),
    /// Incomplete.
    Incomplete(Handshake),
    /// Invalid, or too late.
    Invalid,
}

impl Handshake {
    fn new(stream: Stream, now: Instant) -> Self {
        Self { stream, incoming: Incoming::default(), deadline: now + HELLO_LIMIT }
    }

    /// Reads the available bytes without waiting.
    fn advance(mut self, config: &RendezvousConfig, now: Instant) -> HandshakeState {
        match self.incoming.receive(&self.stream) {
            Ok(Some(Message::Hello(hello))) if hello.token.is(&config.token) => {
                let Ok(stream) = self.stream.prepare(WAIT_SLICE) else {
                    return HandshakeState::Invalid;
                };
                let member = Member { rank: hello.rank, stream, incoming: self.incoming };
                HandshakeState::Complete(hello, member)
            }
            // A partial message does not extend the timeout.
            Ok(None) if now < self.deadline => HandshakeState::Incomplete(self),
            _ => HandshakeState::Invalid,
        }
    }
}

/// Accepts a rank that belongs to this rendezvous.
fn admit(
    hello: Hello,
    member: Member,
    config: &RendezvousConfig,
    came: &mut [Option<Member>],
) -> Result<(), CollectiveError> {
    let rank = hello.rank;
    let place = (rank as usize).checked_sub(1).and_then(|at| came.get_mut(at));
    let place = place.filter(|place| place.is_none() && hello.ranks == config.ranks);
    let error = match place {
        _ if hello.version != VERSION => config.place.problem(format_args!(
            "rank {rank} speaks version {} of the messages, rank 0 version {VERSION}; run the same \
             version of Meetpoint everywhere",
            hello.version
        )),
        _ if hello.job != config.job => {
            CollectiveError::Differs { rank, theirs: hello.job, ours: config.job.clone() }
        }
        Some(place) => {
            *place = Some(member);
            return Ok(());
        }
        None => config.place.problem(format_args!(
            "unexpected rank {rank} of {}: expected ranks 1 to {} of {}, once each; give \
             every process a rank of its own and the same world size",
            hello.ranks,
            config.ranks - 1,
            config.ranks
        )),
    };
    let _ = send(&member.stream, &Message::Failed(error.clone()));
    Err(error)
}

/// Takes the turns of another rank until either rank disconnects.
fn serve(mut member: Member, threads: &Threads, stop: &StopHandle) {
    let why = loop {
        let message = match member.incoming.receive(&member.stream) {
            Ok(Some(message)) => message,
            Ok(None) if stop.is_stopped() => {
                say_why(&member, threads);
                return;
            }
            Ok(None) => continue,
            Err(_) => break "its process ended".to_owned(),
        };
        match message {
            Message::Turn { epoch, number, limit, proposal } => {
                let turn = Turn { rank: member.rank, epoch, number, limit, stop };
                let answer = agree(&member, threads, &turn, Proposal::from_words(proposal));
                let answer = answer.map(Agreement::to_words);
                let answer = Message::Answer { epoch, number, answer };
                if send(&member.stream, &answer).is_err() {
                    break "its process ended".to_owned();
                }
            }
            Message::AtWork => threads.at_work(member.rank),
            Message::Leave { epoch, why } => threads.leave(member.rank, epoch, &why),
            Message::Bye { why } => break why,
            _ => break "it sent an unexpected message".to_owned(),
        }
    };
    threads.lose(member.rank, &why);
}

/// Takes a turn of another rank; notifies it at intervals that others are missing.
fn agree(
    member: &Member,
    threads: &Threads,
    turn: &Turn<'_>,
    proposal: Proposal,
) -> Result<Agreement, CollectiveError> {
    let mut reported = Instant::now();
    let mut meanwhile = || {
        if reported.elapsed() >= WAITS_EVERY {
            reported = Instant::now();
            // If it has disconnected, sending the answer fails.
            let _ = send(&member.stream, &Message::Waits);
        }
    };
    threads.agree_while(turn, proposal, &mut meanwhile)
}

/// Tells a rank without a pending turn why rank 0 leaves: which rank was lost first.
fn say_why(member: &Member, threads: &Threads) {
    if let Some((rank, why)) = threads.lost() {
        // The rank knows its epoch.
        let error = CollectiveError::Left { rank, epoch: 0, why };
        let _ = send(&member.stream, &Message::Failed(error));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::processes::{RendezvousAddress, Token};
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    fn config() -> RendezvousConfig {
        RendezvousConfig {
            place: RendezvousAddress::Unix("ranks".into()),
            listener: None,
            token: Token::default(),
            rank: 0,
            ranks: 2,
            job: "job".to_owned(),
            limit: Duration::from_secs(60),
        }
    }

    fn handshake(now: Instant) -> (UnixStream, Handshake) {
        let (theirs, ours) = UnixStream::pair().unwrap();
        let ours = Stream::Unix(ours);
        ours.set_nonblocking().unwrap();
        (theirs, Handshake::new(ours, now))
    }

    fn hello() -> Hello {
        let token = Token::default();
        Hello { version: VERSION, rank: 1, ranks: 2, token, job: "job".to_owned() }
    }

    fn words_of(hello: &Hello) -> Vec<u8> {
        let mut words = Vec::new();
        send(&mut words, &Message::Hello(hello.clone())).unwrap();
        words
    }

    #[test]
    fn a_connection_that_sends_single_bytes_has_the_same_timeout_as_a_silent_one() {
        let begun = Instant::now();
        let (mut theirs, mut handshake) = handshake(begun);
        // The bytes of a valid handshake; others would be refused for their content.
        let words = words_of(&hello());
        let just_before = HELLO_LIMIT - Duration::from_nanos(1);
        for (word, after) in [Duration::ZERO, HELLO_LIMIT / 2, just_before].into_iter().enumerate()
        {
            theirs.write_all(&words[word..=word]).unwrap();
            handshake = match handshake.advance(&config(), begun + after) {
                HandshakeState::Incomplete(handshake) => handshake,
                other => panic!("{other:?}"),
            };
        }
        theirs.write_all(&words[3..4]).unwrap();
        assert!(matches!(
            handshake.advance(&config(), begun + HELLO_LIMIT),
            HandshakeState::Invalid
        ));
    }

    #[test]
    fn a_handshake_completes_with_its_last_byte() {
        let begun = Instant::now();
        let (mut theirs, handshake) = handshake(begun);
        let hello = hello();
        let words = words_of(&hello);
        let (first, last) = words.split_at(words.len() - 1);
        theirs.write_all(first).unwrap();
        let HandshakeState::Incomplete(handshake) = handshake.advance(&config(), begun) else {
            panic!()
        };
        theirs.write_all(last).unwrap();
        match handshake.advance(&config(), begun) {
            HandshakeState::Complete(heard, member) => assert_eq!((heard, member.rank), (hello, 1)),
            other => panic!("{other:?}"),
        }
    }
}
