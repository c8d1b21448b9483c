//! Rank 0's end: it listens until all ranks are here, then keeps a thread for each of them.

use super::message::{Hello, Incoming, Message, VERSION, send};
use super::stream::Stream;
use super::{Collective, CollectiveError, Listener, Meeting, Turn};
use crate::StopHandle;
use crate::collective::Threads;
use crate::stop::WAIT_SLICE;
use meetpoint_scheduler::{Agreement, Proposal};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it looks who came.
const ACCEPT_PAUSE: Duration = Duration::from_millis(5);

/// How long somebody who came may take to say who he is.
const HELLO_LIMIT: Duration = Duration::from_secs(2);

/// How often a rank is told that others are waited for.
const WAITS_EVERY: Duration = Duration::from_secs(1);

/// The meeting, at rank 0.
#[derive(Debug)]
pub(super) struct Hub {
    threads: Arc<Threads>,
    /// Ends the threads below.
    stop: StopHandle,
    /// One for each other rank.
    serving: Vec<JoinHandle<()>>,
}

impl Hub {
    /// Waits until all ranks came.
    pub(super) fn gather(mut meeting: Meeting, stop: &StopHandle) -> Result<Self, CollectiveError> {
        let listener = match meeting.listener.take() {
            Some(listener) => listener,
            None => Listener::bind(&meeting.place)?,
        };
        let mut came: Vec<Option<Member>> = (1..meeting.ranks).map(|_| None).collect();
        let gathered = gather(&listener, &meeting, &mut came, stop);
        // Nobody else is let in, and its name is gone before anybody goes on.
        drop(listener);
        let members: Vec<Member> = came.into_iter().flatten().collect();
        if let Err(error) = gathered {
            for member in &members {
                // It finds out by itself where this does not reach it.
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
        // Decisions that all ranks came to are still handed out.
        self.threads.lose(0, "it closed its loader");
        self.stop.stop();
        for thread in self.serving.drain(..) {
            // A panic of its own was told where it happened.
            let _ = thread.join();
        }
    }
}

/// A rank that came.
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
    while came.iter().any(Option::is_none) {
        if stop.is_stopped() {
            return Err(CollectiveError::Interrupted);
        }
        let accepted = listener.accept().map_err(|error| meeting.place.problem(error))?;
        if let Some(stream) = accepted {
            // Whoever does not say what a rank says is a stranger.
            if let Some((hello, member)) = greet(stream, meeting) {
                admit(hello, member, meeting, came)?;
            }
            continue;
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
        // Whoever is gone by now is lost in the first turn.
        let _ = send(&member.stream, &Message::Welcome);
    }
    Ok(())
}

/// Hears who came.
fn greet(stream: Stream, meeting: &Meeting) -> Option<(Hello, Member)> {
    let stream = stream.prepare(WAIT_SLICE).ok()?;
    let mut incoming = Incoming::default();
    let begun = Instant::now();
    let hello = loop {
        match incoming.receive(&stream).ok()? {
            Some(Message::Hello(hello)) => break hello,
            Some(_) => return None,
            None if begun.elapsed() >= HELLO_LIMIT => return None,
            None => {}
        }
    };
    let is_known = hello.token.is(&meeting.token);
    let rank = hello.rank;
    is_known.then_some((hello, Member { rank, stream, incoming }))
}

/// Lets a rank in that has something to do here.
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
            "rank {rank} of {} came where ranks 1 to {} of {} were waited for, once each; give \
             every process a rank of its own and the same world size",
            hello.ranks,
            meeting.ranks - 1,
            meeting.ranks
        )),
    };
    let _ = send(&member.stream, &Message::Failed(error.clone()));
    Err(error)
}

/// Takes the turns of another rank until it, or this one, is gone.
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
            _ => break "it said what no rank says".to_owned(),
        }
    };
    threads.lose(member.rank, &why);
}

/// Takes a turn of another rank; tells it now and then that others are waited for.
fn agree(
    member: &Member,
    threads: &Threads,
    turn: &Turn<'_>,
    proposal: Proposal,
) -> Result<Agreement, CollectiveError> {
    let mut told = Instant::now();
    let mut meanwhile = || {
        if told.elapsed() >= WAITS_EVERY {
            told = Instant::now();
            // Where it is gone, that is seen when it is to be answered.
            let _ = send(&member.stream, &Message::Waits);
        }
    };
    threads.agree_while(turn, proposal, &mut meanwhile)
}

/// Tells a rank that has no turn under way why rank 0 goes: which rank was lost first.
fn say_why(member: &Member, threads: &Threads) {
    if let Some((rank, why)) = threads.lost() {
        // The rank knows which epoch it is in.
        let error = CollectiveError::Left { rank, epoch: 0, why };
        let _ = send(&member.stream, &Message::Failed(error));
    }
}
