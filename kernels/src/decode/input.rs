//! An interruptible reader of an encoded picture for decoders of other crates.

use crate::Interrupt;
use std::io::{self, BufRead, Read, Seek, SeekFrom};

/// Maximum number of bytes per read, so that the interrupt is checked often.
const CHUNK_BYTES: usize = 8 << 10;

/// Reads an encoded picture. Once the interrupt is raised, every read is an error.
pub(super) struct Input<'a> {
    bytes: io::Cursor<&'a [u8]>,
    interrupt: &'a Interrupt,
}

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8], interrupt: &'a Interrupt) -> Self {
        Self { bytes: io::Cursor::new(bytes), interrupt }
    }
}

impl BufRead for Input<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.interrupt.is_raised() {
            // Not `ErrorKind::Interrupted`, since a read with that error is retried.
            return Err(io::Error::other("interrupted"));
        }
        let left = self.bytes.fill_buf()?;
        Ok(&left[..left.len().min(CHUNK_BYTES)])
    }

    fn consume(&mut self, bytes: usize) {
        self.bytes.consume(bytes);
    }
}

impl Read for Input<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl Seek for Input<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(to)
    }
}
