//! The end of every rank except rank 0.

use super::listener::connect;
use super::message::{Hello, Incoming, Message, VERSION, send};
use super::stream::Stream;
use super::{CollectiveError, RendezvousConfig, Turn};
use crate::StopHandle;
use crate::collective::rank_wait::RankWait;
use crate::stop::WAIT_SLICE;
use meetpoint_scheduler::{Agreement, Proposal};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Pause before it tries to connect again.
const CONNECT_PAUSE: Duration = Duration::from_millis(20);

/// How much longer than rank 0 it waits, because rank 0 can name the missing ranks.
const GRACE: Duration = Duration::from_secs(5);

/// The connection to rank 0.
#[derive(Debug)]
pub(super) struct Member {
    stream: Stream,
    incoming: Mutex<Incoming>,
}

impl Member {
    /// Connects to rank 0 and waits until all ranks are connected.
    pub(super) fn join(
        config: RendezvousConfig,
        stop: &StopHandle,
    ) -> Result<Self, CollectiveError> {
        let RendezvousConfig { place, token, rank, ranks, job, limit, .. } = config;
        let begun = Instant::now();
        let missing = || {
            let place = place.to_string();
            CollectiveError::NotMet { ranks: vec![0], place, waited: limit }
        };
        let hello = Message::Hello(Hello { version: VERSION, rank, ranks, token, job });
        loop {
            let stream = loop {
                if stop.is_stopped() {
                    return Err(CollectiveError::Interrupted);
                }
                match connect(&place) {
                    Ok(stream) => break stream,
                    // Rank 0 may not have begun to listen.
                    Err(error) if may_come(&error) && begun.elapsed() < limit => {
                        std::thread::sleep(CONNECT_PAUSE);
                    }
                    Err(error) if may_come(&error) => return Err(missing()),
                    Err(error) => return Err(place.problem(error)),
                }
            };
            let stream = stream.prepare(WAIT_SLICE).map_err(|error| place.problem(error))?;
            let mut incoming = Incoming::default();
            let greeted = send(&stream, &hello);
            let welcome =
                greeted.and_then(|()| receive(&stream, &mut incoming, begun, limit + GRACE, stop));
            match welcome {
                Ok(Some(Message::Welcome)) => {
                    return Ok(Self { stream, incoming: Mutex::new(incoming) });
                }
                Ok(Some(Message::Failed(error))) => return Err(error),
                Ok(Some(_)) => return Err(place.problem("the listener is not rank 0")),
                Ok(None) if stop.is_stopped() => return Err(CollectiveError::Interrupted),
                Ok(None) => return Err(missing()),
                // The listener may belong to an earlier run that is about to end.
                Err(_) if begun.elapsed() < limit => std::thread::sleep(CONNECT_PAUSE),
                Err(error) => {
                    return Err(place.problem(format_args!(
                        "rank 0 refuses this rank ({error}): the ranks need the same token"
                    )));
                }
            }
        }
    }

    pub(super) fn agree(
        &self,
        turn: &Turn<'_>,
        proposal: Proposal,
    ) -> Result<Agreement, CollectiveError> {
        let Turn { epoch, number, limit, stop, .. } = *turn;
        let gone = || {
            let why = "its process ended, or closed its loader".to_owned();
            CollectiveError::Left { rank: 0, epoch, why }
        };
        let mut incoming = self.lock();
        let message = Message::Turn { epoch, number, limit, proposal: proposal.to_words() };
        // If rank 0 has disconnected, its last message may still be readable.
        let _ = send(&self.stream, &message);
        // Heartbeats of rank 0, which enforces the timeouts.
        let (mut wait, mut heartbeats) = (RankWait::new(&[0]), 0);
        loop {
            return match incoming.receive(&self.stream) {
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
                Ok(Some(_)) | Err(_) => Err(gone()),
            };
        }
    }

    pub(super) fn at_work(&self) {
        // If rank 0 has disconnected, the next turn reports it.
        let _ = send(&self.stream, &Message::AtWork);
    }

    pub(super) fn leave(&self, epoch: u32, why: &str) {
        // If rank 0 has disconnected, all ranks know.
        let _ = send(&self.stream, &Message::Leave { epoch, why: why.to_owned() });
    }

    pub(super) fn give_up(&self, why: &str) {
        let _ = send(&self.stream, &Message::Bye { why: why.to_owned() });
    }

    /// Closes the connection without a message, as the operating system does for a killed process.
    #[cfg(test)]
    pub(super) fn break_off(&self) {
        self.stream.end();
    }

    fn lock(&self) -> MutexGuard<'_, Incoming> {
        // A panic while it is held leaves a consistent state.
        self.incoming.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.give_up("it closed its loader");
        self.stream.end();
    }
}

/// The next message; `None` on a timeout or a stop.
fn receive(
    stream: &Stream,
    incoming: &mut Incoming,
    begun: Instant,
    limit: Duration,
    stop: &StopHandle,
) -> io::Result<Option<Message>> {
    loop {
        let message = incoming.receive(stream)?;
        if message.is_some() || stop.is_stopped() || begun.elapsed() >= limit {
            return Ok(message);
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
