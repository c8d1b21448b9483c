//! An authenticated connection, and how its two ends notice that it no longer works.
//!
//! On one machine the end of a process closes its connections. Over a network a host may disappear
//! without a trace, so both ends send [`Message::Ping`] at intervals, and a connection on which
//! nothing arrives for a time is broken. Only the clock of one's own machine is used.

use super::message::{Incoming, Message, seal};
use super::secret::MessageKey;
use super::stream::Stream;
use crate::collective::rank_wait::RankWait;
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest silence of a connection over a network.
pub const SILENCE_MAX: Duration = Duration::from_secs(20);

/// Longest interval between two pings, which is also the longest between two polls.
const PING_EVERY: Duration = Duration::from_millis(900);

/// Pings in the longest silence.
const PINGS_PER_SILENCE: u32 = 8;

/// The longest silence of a connection: the given one, or that of its transport.
pub(super) fn silence_of(stream: &Stream, given: Option<Duration>) -> Option<Duration> {
    given.or((!stream.is_local()).then_some(SILENCE_MAX))
}

/// Why a connection no longer works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// The other end closed it, or its system did.
    Ended,
    /// Nothing arrived for this time.
    Silent(Duration),
    /// A message was not the other end's, or not valid.
    Forged,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("its process ended, or closed its loader"),
            Self::Silent(limit) => write!(
                f,
                "nothing arrived from it for {limit:?}: its host or the network is down, or its \
                 process is stopped"
            ),
            Self::Forged => f.write_str("its connection carried a message that is not authentic"),
        }
    }
}

/// The sending half, usable by several threads.
#[derive(Debug)]
pub(super) struct Outgoing {
    stream: Stream,
    key: Mutex<MessageKey>,
}

impl Outgoing {
    pub(super) fn new(stream: Stream, key: MessageKey) -> Self {
        Self { stream, key: Mutex::new(key) }
    }

    /// Sends a message. A failed send breaks the connection.
    pub(super) fn send(&self, message: &Message) -> io::Result<()> {
        // The lock also keeps messages whole and in the order of their codes.
        let mut key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = seal(&mut key, message).and_then(|bytes| (&self.stream).write_all(&bytes));
        // Part of the message may have been sent.
        sent.inspect_err(|_| self.stream.end())
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }
}

/// The receiving half.
#[derive(Debug)]
pub(super) struct Receiving {
    incoming: Incoming,
    watch: Watch,
    broken: Option<Broken>,
}

impl Receiving {
    /// `limit`: longest silence; `None`: no limit.
    pub(super) fn new(incoming: Incoming, limit: Option<Duration>) -> Self {
        Self { incoming, watch: Watch::new(limit), broken: None }
    }

    /// The next message that is not a ping; `None` if none has arrived at the read timeout.
    pub(super) fn next(&mut self, mut from: impl Read) -> Result<Option<Message>, Broken> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        let next = loop {
            match self.incoming.receive(&mut from) {
                Ok(Some(message)) => {
                    self.watch.heard += 1;
                    if message != Message::Ping {
                        return Ok(Some(message));
                    }
                }
                Ok(None) => match self.watch.silence() {
                    Some(limit) => break Broken::Silent(limit),
                    None => return Ok(None),
                },
                Err(error) if error.kind() == io::ErrorKind::InvalidData => break Broken::Forged,
                Err(_) => break Broken::Ended,
            }
        };
        self.broken = Some(next);
        Err(next)
    }

    /// Number of messages so far.
    pub(super) fn heard(&self) -> u64 {
        self.watch.heard
    }

    /// Sends a ping if one is due.
    pub(super) fn ping(&mut self, to: &Outgoing) {
        if self.watch.is_ping_due() {
            // A connection that is broken is noticed by the next read.
            let _ = to.send(&Message::Ping);
        }
    }

    /// Interval between pings; `None` if none are needed.
    pub(super) fn every(&self) -> Option<Duration> {
        self.watch.limit.map(interval)
    }

    /// Whether the other end sends pings.
    pub(super) fn is_watched(&self) -> bool {
        self.watch.limit.is_some()
    }
}

/// Interval between pings if a silence of `limit` breaks the connection.
fn interval(limit: Duration) -> Duration {
    PING_EVERY.min(limit / PINGS_PER_SILENCE)
}

#[derive(Debug)]
struct Watch {
    limit: Option<Duration>,
    /// Messages so far.
    heard: u64,
    wait: RankWait,
    pinged: Instant,
}

impl Watch {
    fn new(limit: Option<Duration>) -> Self {
        Self { limit, heard: 0, wait: RankWait::new(&[0]), pinged: Instant::now() }
    }

    /// The limit, if nothing arrived for so long.
    fn silence(&mut self) -> Option<Duration> {
        let limit = self.limit?;
        self.wait.poll();
        (self.wait.silent(0, self.heard) >= limit).then_some(limit)
    }

    fn is_ping_due(&mut self) -> bool {
        let Some(limit) = self.limit else { return false };
        let is_due = self.pinged.elapsed() >= interval(limit);
        if is_due {
            self.pinged = Instant::now();
        }
        is_due
    }
}
