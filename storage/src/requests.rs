//! Requests to devices that take commands: NVMe drives, and devices of SPDK.
//!
//! A request is sent in pieces, one at a time. This module sends nothing itself: engines pass a
//! function that sends a command, and report the results.

use crate::engine::clamp_depth;
use crate::open::{FileTable, Opened};
use crate::slots::Slots;
use crate::transfer::{Piece, Step, Work};
use crate::{Completion, Counters, Error, FileId, RefusedRequest, Request, RequestKind};
use std::collections::VecDeque;
use std::io;

/// A file whose requests become commands.
pub(crate) trait Commanded {
    /// What is sent for a piece.
    type Command;

    /// What to do for the next piece of a request.
    fn next(&self, kind: RequestKind, piece: Piece) -> Next<Self::Command>;

    /// Bytes of a piece that a successful command has moved, without those beyond the end.
    fn moved(&self, kind: RequestKind, piece: Piece) -> usize;

    /// End of the writable range, if writes are permitted. A write beyond it fails as a whole,
    /// before any of its pieces is written.
    fn write_end(&self) -> Option<u64>;
}

/// What to do next for a request.
#[derive(Debug)]
pub(crate) enum Next<C> {
    /// Send a command.
    Send(C),
    /// No command is needed; this is the result.
    Answer(io::Result<usize>),
}

/// Sends a command of a request; the number identifies it in its answer.
type SendCommand<'a, B> = dyn FnMut(u64, &Work<B>, <B as Commanded>::Command) + 'a;

/// The open files of an engine and its requests.
pub(crate) struct Requests<B> {
    depth: usize,
    pub(crate) files: FileTable<B>,
    /// Requests with a command in flight, by the number that identifies it.
    pub(crate) slots: Slots<Work<B>>,
    /// Completions that were not returned yet.
    ended: VecDeque<Completion>,
    books: Counters,
}

impl<B: Commanded> Requests<B> {
    /// No files, and at most `depth` requests in flight.
    pub(crate) fn new(depth: usize) -> Self {
        Self {
            depth: clamp_depth(depth),
            files: FileTable::default(),
            slots: Slots::default(),
            ended: VecDeque::new(),
            books: Counters::default(),
        }
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// An open file.
    pub(crate) fn file(&self, file: FileId) -> Result<&Opened<B>, Error> {
        self.files.get(file).map(|file| &**file)
    }

    /// Accepts a request and sends its first command, or returns it with the reason.
    pub(crate) fn submit(
        &mut self,
        request: Request,
        send: &mut SendCommand<'_, B>,
    ) -> Result<(), Box<RefusedRequest>> {
        let end = request.offset.saturating_add(request.bytes as u64);
        let work = Work::accept(request, &self.files, self.in_flight(), self.depth)?;
        if work.transfer.is_empty() {
            self.ended.push_back(work.finish(Ok(0), &mut self.books));
            return Ok(());
        }
        let write_end = work.file.body.write_end();
        let is_too_long =
            work.kind() == RequestKind::Write && write_end.is_some_and(|most| end > most);
        let slot = self.slots.insert(work);
        if is_too_long {
            let full = io::Error::from_raw_os_error(libc::ENOSPC);
            let is_over = self.step(slot, Err(full));
            assert!(is_over, "the failure of a full device is permanent");
        } else {
            self.advance(slot, send);
        }
        Ok(())
    }

    /// Records the result of a command, and sends the next one if the request is not complete.
    pub(crate) fn complete(
        &mut self,
        slot: u64,
        answer: io::Result<()>,
        send: &mut SendCommand<'_, B>,
    ) {
        let work = self.slots.get(slot);
        let moved = work.file.body.moved(work.kind(), work.transfer.next());
        if !self.step(slot, answer.map(|()| moved)) {
            self.advance(slot, send);
        }
    }

    /// Processes a request until a command is in flight or the request has ended.
    fn advance(&mut self, slot: u64, send: &mut SendCommand<'_, B>) {
        loop {
            let work = self.slots.get(slot);
            let answer = match work.file.body.next(work.kind(), work.transfer.next()) {
                Next::Send(command) => return send(slot, work, command),
                Next::Answer(answer) => answer,
            };
            if self.step(slot, answer) {
                return;
            }
        }
    }

    /// Records the result of a piece; returns whether the request has ended.
    fn step(&mut self, slot: u64, answer: io::Result<usize>) -> bool {
        match self.slots.get_mut(slot).step(answer) {
            Step::More => false,
            Step::Done(result) => {
                let completion = self.slots.remove(slot).finish(result, &mut self.books);
                self.ended.push_back(completion);
                true
            }
        }
    }

    /// Returns what has completed.
    pub(crate) fn take_ended(&mut self, out: &mut Vec<Completion>) {
        out.extend(self.ended.drain(..));
    }

    /// Whether a command is in flight.
    pub(crate) fn has_commands(&self) -> bool {
        self.slots.len() > 0
    }

    /// Requests that were not returned yet.
    pub(crate) fn in_flight(&self) -> usize {
        self.slots.len() + self.ended.len()
    }

    pub(crate) fn counters(&self) -> Counters {
        self.books
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AlignedBuffer;

    /// 1000 bytes that are sent in pieces of 512.
    struct Device {
        is_writable: bool,
    }

    impl Commanded for Device {
        type Command = (u64, usize);

        fn next(&self, kind: RequestKind, piece: Piece) -> Next<Self::Command> {
            match kind {
                RequestKind::Sync => Next::Answer(Ok(0)),
                RequestKind::Write if !self.is_writable => {
                    Next::Answer(Err(io::Error::from_raw_os_error(libc::EBADF)))
                }
                RequestKind::Read if piece.offset >= 1000 => Next::Answer(Ok(0)),
                RequestKind::Read | RequestKind::Write => Next::Send((piece.offset, piece.bytes)),
            }
        }

        fn moved(&self, _: RequestKind, piece: Piece) -> usize {
            (1000_usize.saturating_sub(piece.offset as usize)).min(piece.bytes)
        }

        fn write_end(&self) -> Option<u64> {
            self.is_writable.then_some(1000)
        }
    }

    fn requests(is_writable: bool) -> (Requests<Device>, FileId) {
        let mut requests = Requests::new(2);
        let file = requests.files.add(Opened {
            path: "device".into(),
            alignment: Some(512),
            piece_bytes_max: 512,
            body: Device { is_writable },
        });
        (requests, file)
    }

    fn request(file: FileId, kind: RequestKind, offset: u64, bytes: usize) -> Request {
        let buffer = AlignedBuffer::zeroed(8192);
        Request { token: offset, file, kind, offset, bytes, buffer }
    }

    /// Runs a request whose commands all succeed; returns them and its result.
    fn run(
        is_writable: bool,
        kind: RequestKind,
        offset: u64,
        bytes: usize,
    ) -> (Vec<(u64, usize)>, Result<usize, Error>) {
        let (mut requests, file) = requests(is_writable);
        let (mut sent, mut slots) = (Vec::new(), VecDeque::new());
        let request = request(file, kind, offset, bytes);
        let mut send = |slot: u64, _: &Work<Device>, command| {
            sent.push(command);
            slots.push_back(slot);
        };
        requests.submit(request, &mut send).unwrap();
        while requests.has_commands() {
            let mut next = None;
            let slot = slots.pop_front().expect("a command is in flight");
            requests.complete(slot, Ok(()), &mut |slot, _, command| next = Some((slot, command)));
            if let Some((slot, command)) = next {
                sent.push(command);
                slots.push_back(slot);
            }
        }
        let mut out = Vec::new();
        requests.take_ended(&mut out);
        assert_eq!((out.len(), requests.in_flight()), (1, 0));
        (sent, out.remove(0).result)
    }

    #[test]
    fn a_request_is_sent_piece_by_piece() {
        let (sent, result) = run(true, RequestKind::Read, 100, 900);
        assert_eq!((sent, result.unwrap()), (vec![(0, 512), (512, 512)], 900));
        let (sent, result) = run(true, RequestKind::Write, 0, 512);
        assert_eq!((sent, result.unwrap()), (vec![(0, 512)], 512));
        let (sent, result) = run(false, RequestKind::Sync, 0, 0);
        assert_eq!((sent, result.unwrap()), (vec![], 0));
        let (sent, result) = run(false, RequestKind::Read, 0, 0);
        assert_eq!((sent, result.unwrap()), (vec![], 0));
    }

    #[test]
    fn a_read_beyond_the_end_is_short_and_a_write_is_refused_before_it_begins() {
        let (_, result) = run(true, RequestKind::Read, 512, 1024);
        assert!(matches!(result, Err(Error::ShortRead { got: 488, .. })), "{result:?}");
        // Writes have whole blocks, so the last 488 bytes cannot be written.
        for bytes in [512, 1024] {
            let (sent, result) = run(true, RequestKind::Write, 512, bytes);
            let Err(Error::Io { source, .. }) = result else { panic!("it does not fit") };
            assert_eq!((sent, source.raw_os_error()), (vec![], Some(libc::ENOSPC)));
        }
        let (sent, result) = run(false, RequestKind::Write, 512, 1024);
        let Err(Error::Io { source, .. }) = result else { panic!("it is read-only") };
        assert_eq!((sent, source.raw_os_error()), (vec![], Some(libc::EBADF)));
    }

    #[test]
    fn a_command_that_fails_ends_its_request_alone() {
        let (mut requests, file) = requests(true);
        let mut slots = Vec::new();
        let mut send = |slot: u64, _: &Work<Device>, _| slots.push(slot);
        requests.submit(request(file, RequestKind::Read, 0, 512), &mut send).unwrap();
        requests.submit(request(file, RequestKind::Read, 512, 100), &mut send).unwrap();
        let refused = requests.submit(request(file, RequestKind::Read, 0, 1), &mut send);
        assert!(matches!(refused.unwrap_err().error, Error::QueueFull { depth: 2 }));
        let failed = || Err(io::Error::from_raw_os_error(libc::EIO));
        let [first, second] = slots[..] else { panic!("two are in flight") };
        requests.complete(first, failed(), &mut |_, _, _| unreachable!("it has ended"));
        requests.complete(second, Ok(()), &mut |_, _, _| unreachable!("it has ended"));
        let mut out = Vec::new();
        requests.take_ended(&mut out);
        assert!(matches!(out[0].result, Err(Error::Io { .. })) && out[1].result.is_ok());
        let counters = requests.counters();
        assert_eq!((counters.errors, counters.reads), (1, 1));
    }
}
