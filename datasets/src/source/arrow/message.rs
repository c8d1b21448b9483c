//! Messages of an Arrow IPC stream one by one, with where their bodies lie.
//!
//! <https://arrow.apache.org/docs/format/Columnar.html#encapsulated-message-format>: the word
//! 0xFFFFFFFF, the length of the metadata as a little-endian 32-bit integer, the metadata (a
//! Flatbuffer), padding, the body. Before format version 0.15 the first word was absent. A file is a
//! stream between `ARROW1\0\0` and a footer.

use crate::Error;
use crate::source::OpenFile;
use crate::source::rows::malformed;
use crate::source::rows::table::read_at;
use arrow_ipc::root_as_message;

/// Longest metadata of a message: those of a schema with a million class names have some 20 MB.
const METADATA_BYTES_MAX: u64 = 256 << 20;
/// First bytes of a file.
const MAGIC: &[u8] = b"ARROW1";

/// A message without its body.
#[derive(Debug)]
pub(super) struct Message {
    /// Where it begins.
    pub(super) offset: u64,
    /// Prefix, metadata and padding.
    pub(super) head: Vec<u8>,
    /// Bytes of the prefix.
    pub(super) prefix_bytes: usize,
    /// Length of the body that follows.
    pub(super) body_bytes: u64,
}

impl Message {
    /// Where the body begins.
    pub(super) fn body_offset(&self) -> u64 {
        self.offset + self.head.len() as u64
    }

    /// The metadata, checked when the message was read.
    pub(super) fn metadata(&self) -> arrow_ipc::Message<'_> {
        root_as_message(&self.head[self.prefix_bytes..])
            .expect("the same bytes were checked when the message was read")
    }
}

/// The messages of a file or stream.
#[derive(Debug)]
pub(super) struct Messages {
    next: u64,
    end: u64,
}

impl Messages {
    /// Begins with the first message of a file of so many bytes.
    pub(super) fn open(file: &OpenFile, bytes: u64) -> Result<Self, Error> {
        let mut first = [0; 8];
        if bytes < 8 {
            let problem = format!("has {bytes} bytes, too few for an Arrow file");
            return Err(malformed(&file.path, None, problem));
        }
        read_at(file, &mut first, 0)?;
        if !first.starts_with(MAGIC) {
            return Ok(Self { next: 0, end: bytes });
        }
        let mut last = [0; 10];
        let cut = || {
            let problem = "begins as an Arrow file, but its last bytes are not those of one; it \
                           is cut off or was not closed";
            malformed(&file.path, Some(bytes.saturating_sub(10)), problem)
        };
        if bytes < 18 {
            return Err(cut());
        }
        read_at(file, &mut last, bytes - 10)?;
        let [a, b, c, d, magic @ ..] = last;
        let footer = u64::from(u32::from_le_bytes([a, b, c, d]));
        if magic != MAGIC || footer > bytes - 18 {
            return Err(cut());
        }
        Ok(Self { next: 8, end: bytes - 10 - footer })
    }

    /// The next message; `None` at the end.
    pub(super) fn next(&mut self, file: &OpenFile) -> Result<Option<Message>, Error> {
        let offset = self.next;
        let left = self.end - offset;
        if left == 0 {
            return Ok(None);
        }
        let fault = |problem: String| malformed(&file.path, Some(offset), problem);
        let mut prefix = [0; 8];
        if left < 4 {
            return Err(fault(format!("{left} bytes behind the last message; it is cut off")));
        }
        read_at(file, &mut prefix[..4], offset)?;
        let mut prefix_bytes = 4;
        let mut word = [prefix[0], prefix[1], prefix[2], prefix[3]];
        if word == [0xff; 4] {
            if left < 8 {
                return Err(fault("the file is cut off within a message".to_owned()));
            }
            read_at(file, &mut prefix[4..], offset + 4)?;
            word = [prefix[4], prefix[5], prefix[6], prefix[7]];
            prefix_bytes = 8;
        }
        let metadata_bytes = u64::from(u32::from_le_bytes(word));
        if metadata_bytes == 0 {
            self.next = self.end;
            return Ok(None);
        }
        if metadata_bytes > METADATA_BYTES_MAX || metadata_bytes > left - prefix_bytes {
            return Err(fault(format!(
                "a message claims {metadata_bytes} bytes of metadata where {} are left; the file \
                 is cut off or damaged",
                left - prefix_bytes
            )));
        }
        let prefix_bytes = prefix_bytes as usize;
        let mut head = vec![0; prefix_bytes + metadata_bytes as usize];
        read_at(file, &mut head, offset)?;
        let body_bytes = match root_as_message(&head[prefix_bytes..]) {
            Ok(message) => message.bodyLength(),
            Err(error) => return Err(fault(format!("metadata that do not parse: {error}"))),
        };
        let left = left - head.len() as u64;
        let body_bytes = u64::try_from(body_bytes).ok().filter(|bytes| *bytes <= left);
        let Some(body_bytes) = body_bytes else {
            return Err(fault(format!(
                "a message claims more bytes than the {left} that are left; the file is cut off \
                 or damaged"
            )));
        };
        self.next = offset + head.len() as u64 + body_bytes;
        Ok(Some(Message { offset, head, prefix_bytes, body_bytes }))
    }
}
