//! Rank 0's end: it listens until all ranks are connected, then runs a thread for each of them.

use super::message::{Hello, Incoming, Message, VERSION, send};
use super::stream::Stream;
use super::{Collective, CollectiveError, Listener, Meeting, Turn};
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
const GREETINGS_MAX: usize = 64;

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
    pub(super) fn gather(mut meeting: Meeting, stop: &StopHandle) -> Result<Self, CollectiveError> {
        let listener = match meeting.listener.take() {
            Some(listener) => listener,
            None => Listener::bind(&meeting.place)?,
        };
        let mut came: Vec<Option<Member>> = (1..meeting.ranks).map(|_| None).collect();
        let gathered = gather(&listener, &meeting, &mut came, stop);
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
        let threads = Threads::new(meeting.ranks);
        let own = StopHandle::new();
        let mut hub = Self { threads, stop: own, serving: Vec::new() };
        for member in members {
            let (threads, stop) = (Arc::clone(&hub.threads), hub.stop.clone());
            let builder = std::thread::Builder::new().name(format!("rank-{}", member.rank));
            let started = builder.spawn(move || serve(member, &threads, &stop));
            hub.serving.push(started.map_err(|error| meeting.place.problem(error))?);
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
    meeting: &Meeting,
    came: &mut [Option<Member>],
    stop: &StopHandle,
) -> Result<(), CollectiveError> {
    let begun = Instant::now();
    let mut greetings = VecDeque::new();
    while came.iter().any(Option::is_none) {
        if stop.is_stopped() {
            return Err(CollectiveError::Interrupted);
        }
        if greetings.len() == GREETINGS_MAX {
            greetings.pop_front();
        }
        while greetings.len() < GREETINGS_MAX {
            let accepted = listener.accept().map_err(|error| meeting.place.problem(error))?;
            let Some(stream) = accepted else { break };
            greetings.push_back(Greeting::new(stream, Instant::now()));
        }
        for greeting in std::mem::take(&mut greetings) {
            match greeting.hear(meeting, Instant::now()) {
                Heard::Rank(hello, member) => admit(hello, member, meeting, came)?,
                Heard::Nothing(greeting) => greetings.push_back(greeting),
                Heard::Stranger => {}
            }
        }
        if begun.elapsed() >= meeting.limit {
            let missing = (1..).zip(came.iter()).filter(|(_, came)| came.is_none());
            let ranks = missing.map(|(rank, _)| rank).collect();
            let (place, waited) = (meeting.place.to_string(), meeting.limit);
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
struct Greeting {
    stream: Stream,
    incoming: Incoming,
    deadline: Instant,
}

/// The state of a handshake.
#[derive(Debug)]
enum Heard {
    Rank(Hello, Member),
    /// Incomplete.
    Nothing(Greeting),
    /// Invalid, or too late.
    Stranger,
}

impl Greeting {
    fn new(stream: Stream, now: Instant) -> Self {
        Self { stream, incoming: Incoming::default(), deadline: now + HELLO_LIMIT }
    }

    /// Reads the available bytes without waiting.
    fn hear(mut self, meeting: &Meeting, now: Instant) -> Heard {
        match self.incoming.receive(&self.stream) {
            Ok(Some(Message::Hello(hello))) if hello.token.is(&meeting.token) => {
                let Ok(stream) = self.stream.prepare(WAIT_SLICE) else { return Heard::Stranger };
                let member = Member { rank: hello.rank, stream, incoming: self.incoming };
                Heard::Rank(hello, member)
            }
            // A partial message does not extend the timeout.
            Ok(None) if now < self.deadline => Heard::Nothing(self),
            _ => Heard::Stranger,
        }
    }
}

/// Accepts a rank that belongs to this meeting.
fn admit(
    hello: Hello,
    member: Member,
    meeting: &Meeting,
    came: &mut [Option<Member>],
) -> Result<(), CollectiveError> {
    let rank = hello.rank;
    let place = (rank as usize).checked_sub(1).and_then(|at| came.get_mut(at));
    let place = place.filter(|place| place.is_none() && hello.ranks == meeting.ranks);
    let error = match place {
        _ if hello.version != VERSION => meeting.place.problem(format_args!(
            "rank {rank} speaks version {} of the messages, rank 0 version {VERSION}; run the same \
             version of Meetpoint everywhere",
            hello.version
        )),
        _ if hello.job != meeting.job => {
            CollectiveError::Differs { rank, theirs: hello.job, ours: meeting.job.clone() }
        }
        Some(place) => {
            *place = Some(member);
            return Ok(());
        }
        None => meeting.place.problem(format_args!(
            "unexpected rank {rank} of {}: expected ranks 1 to {} of {}, once each; give \
             every process a rank of its own and the same world size",
            hello.ranks,
            meeting.ranks - 1,
            meeting.ranks
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

    fn meeting() -> Meeting {
        Meeting {
            place: RendezvousAddress::Unix("ranks".into()),
            listener: None,
            token: Token::default(),
            rank: 0,
            ranks: 2,
            job: "job".to_owned(),
            limit: Duration::from_secs(60),
        }
    }

    fn greeting(now: Instant) -> (UnixStream, Greeting) {
        let (theirs, ours) = UnixStream::pair().unwrap();
        let ours = Stream::Unix(ours);
        ours.set_nonblocking().unwrap();
        (theirs, Greeting::new(ours, now))
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
        let (mut theirs, mut greeting) = greeting(begun);
        // The bytes of a valid handshake; others would be refused for their content.
        let words = words_of(&hello());
        let just_before = HELLO_LIMIT - Duration::from_nanos(1);
        for (word, after) in [Duration::ZERO, HELLO_LIMIT / 2, just_before].into_iter().enumerate()
        {
            theirs.write_all(&words[word..=word]).unwrap();
            greeting = match greeting.hear(&meeting(), begun + after) {
                Heard::Nothing(greeting) => greeting,
                other => panic!("{other:?}"),
            };
        }
        theirs.write_all(&words[3..4]).unwrap();
        assert!(matches!(greeting.hear(&meeting(), begun + HELLO_LIMIT), Heard::Stranger));
    }

    #[test]
    fn a_handshake_completes_with_its_last_byte() {
        let begun = Instant::now();
        let (mut theirs, greeting) = greeting(begun);
        let hello = hello();
        let words = words_of(&hello);
        let (first, last) = words.split_at(words.len() - 1);
        theirs.write_all(first).unwrap();
        let Heard::Nothing(greeting) = greeting.hear(&meeting(), begun) else { panic!() };
        theirs.write_all(last).unwrap();
        match greeting.hear(&meeting(), begun) {
            Heard::Rank(heard, member) => assert_eq!((heard, member.rank), (hello, 1)),
            other => panic!("{other:?}"),
        }
    }
}
