//! The sequence of events: a checksum of all of them, and lines of text if they are printed.

use crate::real;

/// The kind of an event, which is part of the checksum.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// A thread was scheduled.
    Runs,
    /// Bytes were received.
    Received,
    /// Bytes were sent.
    Sent,
    /// Bytes of a file were read.
    Read,
    /// Bytes of a file were written.
    Written,
    /// A sentence was added.
    Noted,
}

/// The events so far.
#[derive(Debug)]
pub(crate) struct Trace {
    checksum: u64,
    events: u64,
    is_printed: bool,
}

impl Trace {
    pub(crate) fn new(is_printed: bool) -> Self {
        Self { checksum: 0xCBF2_9CE4_8422_2325, events: 0, is_printed }
    }

    /// Checksum of all events (FNV-1a on 64-bit words).
    pub(crate) fn checksum(&self) -> u64 {
        self.checksum
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn is_printed(&self) -> bool {
        self.is_printed
    }

    /// Adds an event of a thread, with two numbers that describe it.
    pub(crate) fn add(
        &mut self,
        event: Event,
        now_ns: u64,
        thread: usize,
        first: u64,
        second: u64,
    ) {
        self.events += 1;
        for word in [event as u64, now_ns, thread as u64, first, second] {
            self.checksum = (self.checksum ^ word).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }

    /// Adds a sentence.
    pub(crate) fn note(&mut self, now_ns: u64, thread: usize, name: &str, text: &str) {
        let words = text.as_bytes().chunks(8).map(|piece| {
            let mut bytes = [0; 8];
            bytes[..piece.len()].copy_from_slice(piece);
            u64::from_le_bytes(bytes)
        });
        let sum = words.fold(0_u64, |sum, word| sum.rotate_left(7) ^ word);
        self.add(Event::Noted, now_ns, thread, sum, text.len() as u64);
        self.print(now_ns, name, text);
    }

    /// Prints a line, if lines are printed.
    pub(crate) fn print(&self, now_ns: u64, name: &str, text: &str) {
        if self.is_printed {
            let (ms, us) = (now_ns / 1_000_000, now_ns / 1000 % 1000);
            real::print(&format!("{ms:>8}.{us:03} ms  {name:<24} {text}\n"));
        }
    }
}
