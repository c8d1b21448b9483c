//! The messages between ranks that are processes: JSON texts, each preceded by its length.
//!
//! No message is longer than [`MESSAGE_MAX`]; a longer one is an error.

use crate::collective::CollectiveError;
use meetpoint_scheduler::Proposal;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::time::Duration;

/// Must change whenever the messages change.
pub(super) const VERSION: u32 = 2;

/// Maximum bytes of a message.
const MESSAGE_MAX: usize = 64 << 10;

/// Bytes of its length, little-endian.
const LENGTH_BYTES: usize = 4;

/// A message from one rank to rank 0, or back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Message {
    /// A rank connects.
    Hello(Hello),
    /// All ranks are connected.
    Welcome,
    /// A rank's proposal for a decision.
    Turn { epoch: u32, number: u64, limit: Duration, proposal: [u64; Proposal::WORDS] },
    /// A heartbeat before its turn.
    AtWork,
    /// Rank 0 waits for other ranks in the receiver's turn.
    Waits,
    /// The agreement of all ranks in a turn.
    Answer { epoch: u32, number: u64, answer: Result<[u64; Proposal::WORDS], CollectiveError> },
    /// The ranks could not connect, or rank 0 leaves because one of them left.
    Failed(CollectiveError),
    /// The rank leaves this epoch.
    Leave { epoch: u32, why: String },
    /// The rank leaves permanently.
    Bye { why: String },
}

/// A handshake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) version: u32,
    pub(super) rank: u32,
    pub(super) ranks: u32,
    pub(super) token: super::Token,
    /// Its job.
    pub(super) job: String,
}

/// Writes a message.
pub(super) fn send(mut to: impl Write, message: &Message) -> io::Result<()> {
    let text = serde_json::to_vec(message).map_err(io::Error::other)?;
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    let mut bytes = Vec::with_capacity(LENGTH_BYTES + text.len());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&text);
    to.write_all(&bytes)
}

/// Reads messages from a stream with a read timeout, without losing partial ones.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
}

impl Incoming {
    /// The next message; `None` if it is incomplete at the read timeout of `from`. The end of the
    /// stream is an error.
    pub(super) fn receive(&mut self, mut from: impl Read) -> io::Result<Option<Message>> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            let mut block = [0; 4096];
            match from.read(&mut block) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.bytes.extend_from_slice(&block[..count]),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => return Ok(None),
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
    }

    fn take(&mut self) -> io::Result<Option<Message>> {
        let Some((length, rest)) = self.bytes.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MESSAGE_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long"));
        }
        let Some(text) = rest.get(..length) else { return Ok(None) };
        let message = serde_json::from_slice(text)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.bytes.drain(..LENGTH_BYTES + length);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a few bytes at a time, with a timeout between.
    struct SlowReader<'b>(std::slice::Chunks<'b, u8>, bool);

    impl Read for SlowReader<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let Some(bytes) = self.0.next() else { return Ok(0) };
            to[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        }
    }

    #[test]
    fn messages_come_whole_however_they_are_cut() {
        let sent = [
            Message::Welcome,
            Message::Turn {
                epoch: 3,
                number: u64::MAX,
                limit: Duration::from_millis(7),
                proposal: [u64::MAX; Proposal::WORDS],
            },
            Message::Failed(CollectiveError::NoTurn { rank: 2, ranks: 2 }),
            Message::Leave { epoch: 1, why: "wörter".to_owned() },
        ];
        let mut bytes = Vec::new();
        sent.iter().for_each(|message| send(&mut bytes, message).unwrap());
        for size in [1, 3, 4096] {
            let mut from = SlowReader(bytes.chunks(size), false);
            let mut incoming = Incoming::default();
            let mut received = Vec::new();
            let error = loop {
                match incoming.receive(&mut from) {
                    Ok(message) => received.extend(message),
                    Err(error) => break error,
                }
            };
            assert_eq!(received, sent);
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut incoming = Incoming::default();
            let mut from = bytes.as_slice();
            while let Ok(Some(_)) = incoming.receive(&mut from) {}
            prop_assert!(incoming.bytes.len() <= bytes.len());
        }
    }
}
