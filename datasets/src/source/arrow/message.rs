//! Reads the messages of an Arrow IPC stream one by one, with the positions of their bodies.
//!
//! <https://arrow.apache.org/docs/format/Columnar.html#encapsulated-message-format>: the word
//! 0xFFFFFFFF, the length of the metadata as a little-endian 32-bit integer, the metadata (a
//! Flatbuffer), padding, the body. Before format version 0.15 the first word was absent. A file has
//! messages between `ARROW1` and a footer, which contains the schema and the offsets of the
//! messages.

use crate::Error;
use crate::source::OpenFile;
use crate::source::rows::malformed;
use crate::source::rows::table::read_at;
use arrow_ipc::{Block, Footer, root_as_footer, root_as_message};

/// Maximum metadata of a message; those of a schema with a million class names take about 20 MB.
const METADATA_BYTES_MAX: u64 = 256 << 20;
/// First bytes of a file.
const MAGIC: &[u8] = b"ARROW1";

/// A message without its body.
#[derive(Debug)]
pub(super) struct Message {
    /// Offset of the message in the file.
    pub(super) offset: u64,
    /// Prefix, metadata and padding.
    pub(super) head: Vec<u8>,
    /// Bytes of the prefix.
    pub(super) prefix_bytes: usize,
    /// Length of the body that follows.
    pub(super) body_bytes: u64,
}

impl Message {
    /// Offset of the body in the file.
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
    /// For a file, the offsets of the messages, dictionaries first, since any batch may need them.
    blocks: Option<std::vec::IntoIter<u64>>,
    footer: Vec<u8>,
}

impl Messages {
    /// Starts at the first message of a stream or file of `bytes` bytes.
    pub(super) fn open(file: &OpenFile, bytes: u64) -> Result<Self, Error> {
        let mut first = [0; 8];
        if bytes < 8 {
            let problem = format!("has {bytes} bytes, too few for an Arrow file");
            return Err(malformed(&file.path, None, problem));
        }
        read_at(file, &mut first, 0)?;
        if !first.starts_with(MAGIC) {
            return Ok(Self { next: 0, end: bytes, blocks: None, footer: Vec::new() });
        }
        let mut last = [0; 10];
        let cut = || {
            let problem = "begins as an Arrow file, but its last bytes are not those of one; it is \
                           truncated or was not closed";
            malformed(&file.path, Some(bytes.saturating_sub(10)), problem)
        };
        if bytes < 18 {
            return Err(cut());
        }
        read_at(file, &mut last, bytes - 10)?;
        let [a, b, c, d, magic @ ..] = last;
        let footer_bytes = u64::from(u32::from_le_bytes([a, b, c, d]));
        if magic != MAGIC || footer_bytes > bytes - 18 || footer_bytes > METADATA_BYTES_MAX {
            return Err(cut());
        }
        let end = bytes - 10 - footer_bytes;
        let mut footer = vec![0; footer_bytes as usize];
        read_at(file, &mut footer, end)?;
        let fault = |problem: String| malformed(&file.path, Some(end), problem);
        let parsed = root_as_footer(&footer)
            .map_err(|error| fault(format!("a footer that does not parse: {error}")))?;
        let dictionaries = parsed.dictionaries().into_iter().flatten();
        let batches = parsed.recordBatches().into_iter().flatten();
        let place = |block: &Block| u64::try_from(block.offset()).ok().filter(|at| *at < end);
        let blocks: Option<Vec<u64>> = dictionaries.chain(batches).map(place).collect();
        let blocks = blocks
            .ok_or_else(|| fault("a footer that names blocks outside of the file".to_owned()))?;
        Ok(Self { next: 0, end, blocks: Some(blocks.into_iter()), footer })
    }

    /// The footer of a file; it was checked when it was read.
    pub(super) fn footer(&self) -> Option<Footer<'_>> {
        let is_file = self.blocks.is_some();
        is_file.then(|| {
            root_as_footer(&self.footer).expect("the same bytes were checked when they were read")
        })
    }

    /// The next message; `None` at the end.
    pub(super) fn next(&mut self, file: &OpenFile) -> Result<Option<Message>, Error> {
        if let Some(blocks) = &mut self.blocks {
            let Some(block) = blocks.next() else { return Ok(None) };
            self.next = block;
        }
        let offset = self.next;
        let left = self.end - offset;
        if left == 0 {
            return Ok(None);
        }
        let fault = |problem: String| malformed(&file.path, Some(offset), problem);
        let mut prefix = [0; 8];
        if left < 4 {
            return Err(fault(format!("{left} bytes after the last message; it is truncated")));
        }
        read_at(file, &mut prefix[..4], offset)?;
        let mut prefix_bytes = 4;
        let mut word = [prefix[0], prefix[1], prefix[2], prefix[3]];
        if word == [0xff; 4] {
            if left < 8 {
                return Err(fault("the file is truncated within a message".to_owned()));
            }
            read_at(file, &mut prefix[4..], offset + 4)?;
            word = [prefix[4], prefix[5], prefix[6], prefix[7]];
            prefix_bytes = 8;
        }
        let metadata_bytes = u64::from(u32::from_le_bytes(word));
        if metadata_bytes == 0 {
            if self.blocks.is_some() {
                return Err(fault("the footer points to an invalid message".to_owned()));
            }
            self.next = self.end;
            return Ok(None);
        }
        if metadata_bytes > METADATA_BYTES_MAX || metadata_bytes > left - prefix_bytes {
            return Err(fault(format!(
                "a message claims {metadata_bytes} bytes of metadata where {} are left; the file \
                 is truncated or damaged",
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
                "a message claims more bytes than the {left} that are left; the file is truncated \
                 or damaged"
            )));
        };
        self.next = offset + head.len() as u64 + body_bytes;
        Ok(Some(Message { offset, head, prefix_bytes, body_bytes }))
    }
}
