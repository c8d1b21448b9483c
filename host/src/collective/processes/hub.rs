//! Rank 0's end, once all ranks are connected: a thread for each of them takes its turns.

use super::address::problem;
use super::config::RendezvousConfig;
use super::gather::{Arrival, Gathering, listen};
use super::link::Broken;
use super::message::Message;
use crate::StopHandle;
use crate::collective::{Collective, CollectiveError, Threads, Turn};
use meetpoint_scheduler::{Agreement, Proposal};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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
            None => listen(&config, stop)?,
        };
        let gathered = Gathering::new(&config).run(listener, stop)?;
        let threads = Threads::new(config.ranks);
        let own = StopHandle::new();
        let mut hub = Self { threads, stop: own, serving: Vec::new() };
        for arrival in gathered {
            let (threads, stop) = (Arc::clone(&hub.threads), hub.stop.clone());
            let builder = std::thread::Builder::new().name(format!("rank-{}", arrival.rank));
            let started = builder.spawn(move || serve(arrival, &threads, &stop));
            hub.serving.push(started.map_err(|error| problem(&config.place, error))?);
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

/// Takes the turns of another rank until either rank disconnects.
fn serve(mut member: Arrival, threads: &Threads, stop: &StopHandle) {
    let why = loop {
        member.receiving.ping(&member.outgoing);
        let message = match member.receiving.next(member.outgoing.stream()) {
            Ok(Some(message)) => message,
            Ok(None) if stop.is_stopped() => {
                say_why(&member, threads);
                return;
            }
            Ok(None) => continue,
            Err(broken) => break broken.to_string(),
        };
        match message {
            Message::Turn { epoch, number, limit, proposal } => {
                let turn = Turn { rank: member.rank, epoch, number, limit, stop };
                let answer = agree(&mut member, threads, &turn, Proposal::from_words(proposal));
                let answer = answer.map(Agreement::to_words);
                let answer = Message::Answer { epoch, number, answer };
                if member.outgoing.send(&answer).is_err() {
                    break Broken::Ended.to_string();
                }
            }
            other => {
                if let Some(why) = note(member.rank, threads, other) {
                    break why;
                }
            }
        }
    };
    threads.lose(member.rank, &why);
}

/// Takes in a message that is not a turn; returns why the rank leaves permanently.
fn note(rank: u32, threads: &Threads, message: Message) -> Option<String> {
    match message {
        Message::AtWork => threads.at_work(rank),
        Message::Leave { epoch, why } => threads.leave(rank, epoch, &why),
        Message::Bye { why } => return Some(why),
        _ => return Some("it sent an unexpected message".to_owned()),
    }
    None
}

/// Takes a turn of another rank. Meanwhile it notifies the rank at intervals that others are
/// missing, and detects that the rank has disconnected, which ends the turn for all.
fn agree(
    member: &mut Arrival,
    threads: &Threads,
    turn: &Turn<'_>,
    proposal: Proposal,
) -> Result<Agreement, CollectiveError> {
    let mut reported = Instant::now();
    let mut meanwhile = || {
        if reported.elapsed() >= WAITS_EVERY {
            reported = Instant::now();
            // If it has disconnected, the next read detects it.
            let _ = member.outgoing.send(&Message::Waits);
        }
        member.receiving.ping(&member.outgoing);
        let why = match member.receiving.next(member.outgoing.stream().now()) {
            Ok(None) => None,
            Ok(Some(message)) => note(member.rank, threads, message),
            Err(broken) => Some(broken.to_string()),
        };
        if let Some(why) = why {
            threads.lose(member.rank, &why);
        }
    };
    threads.agree_while(turn, proposal, &mut meanwhile)
}

/// Tells a rank without a pending turn why rank 0 leaves: which rank was lost first.
fn say_why(member: &Arrival, threads: &Threads) {
    if let Some((rank, why)) = threads.lost() {
        // The rank knows its epoch.
        let error = CollectiveError::Left { rank, epoch: 0, why };
        let _ = member.outgoing.send(&Message::Failed(error));
    }
}
