//! The messages between ranks that are processes: JSON texts, each preceded by its length and
//! followed by a code that authenticates it.
//!
//! No message is longer than [`MESSAGE_MAX`]; a longer one is an error.

use super::attempt::Attempt;
use super::secret::{CODE_BYTES, MessageKey};
use crate::collective::CollectiveError;
use meetpoint_scheduler::Proposal;
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::time::Duration;

/// Must change whenever the messages change.
pub(super) const VERSION: u32 = 4;

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
    /// The connection works.
    Ping,
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

/// What a rank is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) rank: u32,
    pub(super) ranks: u32,
    /// Its attempt.
    pub(super) attempt: Attempt,
    /// Random number of this attempt to connect, to recognise a rank that connects again.
    pub(super) instance: u64,
    /// Its job.
    pub(super) job: String,
}

/// The bytes of a message.
pub(super) fn seal(key: &mut MessageKey, message: &Message) -> io::Result<Vec<u8>> {
    let text = serde_json::to_vec(message).map_err(io::Error::other)?;
    if text.len() > MESSAGE_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a message is too long"));
    }
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    let mut bytes = Vec::with_capacity(LENGTH_BYTES + text.len() + CODE_BYTES);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&text);
    bytes.extend_from_slice(&key.sign(&text));
    Ok(bytes)
}

/// Reads messages from a stream with a read timeout, without losing partial ones.
#[derive(Debug)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
    key: MessageKey,
}

impl Incoming {
    /// Reads messages that are authenticated with this key.
    pub(super) fn new(key: MessageKey) -> Self {
        Self { bytes: Vec::new(), key }
    }

    /// The next message; `None` if it is incomplete at the read timeout of `from`. The end of the
    /// stream is an error; `InvalidData` is a message that is not the sender's.
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
        let invalid = |problem: &str| Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        let Some((length, rest)) = self.bytes.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MESSAGE_MAX {
            return invalid("a message is too long");
        }
        let Some(sealed) = rest.get(..length + CODE_BYTES) else { return Ok(None) };
        let (text, code) = sealed.split_at(length);
        if !self.key.is_signed(text, code) {
            return invalid("a message is not authentic");
        }
        let Ok(message) = serde_json::from_slice(text) else {
            return invalid("a message is not valid");
        };
        self.bytes.drain(..LENGTH_BYTES + length + CODE_BYTES);
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

    fn sent() -> (Vec<Message>, Vec<Vec<u8>>) {
        let sent = vec![
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
        let mut key = MessageKey::of_test();
        let bytes = sent.iter().map(|message| seal(&mut key, message).unwrap()).collect();
        (sent, bytes)
    }

    #[test]
    fn messages_come_whole_however_they_are_cut() {
        let (sent, bytes) = sent();
        let bytes = bytes.concat();
        for size in [1, 3, 4096] {
            let mut from = SlowReader(bytes.chunks(size), false);
            let mut incoming = Incoming::new(MessageKey::of_test());
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

    #[test]
    fn repeated_reordered_and_changed_messages_are_refused() {
        let (_, bytes) = sent();
        let mut changed = bytes[0].clone();
        changed[LENGTH_BYTES + 2] ^= 1;
        for stream in [
            [&bytes[0][..], &bytes[0]].concat(),
            [&bytes[0][..], &bytes[2]].concat(),
            [&bytes[1][..]].concat(),
            changed,
        ] {
            let mut incoming = Incoming::new(MessageKey::of_test());
            let mut from = &stream[..];
            let error = loop {
                match incoming.receive(&mut from) {
                    Ok(_) => {}
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut incoming = Incoming::new(MessageKey::of_test());
            let mut from = bytes.as_slice();
            while let Ok(Some(_)) = incoming.receive(&mut from) {}
            prop_assert!(incoming.bytes.len() <= bytes.len());
        }
    }
}
