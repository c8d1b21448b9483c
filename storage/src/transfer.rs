//! The progress of one request, piece by piece: what to transfer next, and when it is complete.
//!
//! It transfers nothing itself; engines report the results of the kernel.

use crate::open::{FileTable, Opened};
use crate::{AlignedBuffer, Completion, Counters, Error, RefusedRequest, Request, RequestKind};
use std::io;
use std::sync::Arc;

/// Attempts without progress before an interrupted transfer is an error.
pub(crate) const RETRIES_MAX: u32 = 16;

/// The next piece to transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// First byte in the file.
    pub(crate) offset: u64,
    /// First byte in the buffer.
    pub(crate) at: usize,
    /// Bytes.
    pub(crate) bytes: usize,
}

/// Whether a transfer continues.
#[derive(Debug)]
pub(crate) enum Step {
    /// It does; [`Transfer::next`] returns the next piece.
    More,
    /// It is complete.
    Done(Result<usize, Error>),
}

/// The state of one read, write or sync.
///
/// A direct read covers the blocks around the range:
/// ```text
/// file    |----block----|----block----|----block----|
///                 [     wanted     ]
/// buffer  0      head   ...                        span
/// ```
#[derive(Debug)]
pub(crate) struct Transfer {
    kind: RequestKind,
    /// File offset of the first byte of the buffer.
    begin: u64,
    /// Bytes before the range.
    head: usize,
    /// Bytes requested.
    wanted: usize,
    /// Bytes to transfer: the range, extended to whole blocks.
    span: usize,
    /// Bytes of the span that have been transferred.
    done: usize,
    alignment: usize,
    piece_bytes_max: usize,
    /// Attempts without progress.
    tries: u32,
    /// Bytes transferred, including repeated ones.
    moved: u64,
    /// Pieces that had to be continued or repeated.
    resumed: u64,
}

impl Transfer {
    /// Checks a request against its file and plans it.
    pub(crate) fn plan<B>(request: &Request, file: &Opened<B>) -> Result<Self, Error> {
        let (kind, offset) = (request.kind, request.offset);
        let wanted = if kind == RequestKind::Sync { 0 } else { request.bytes };
        let end = offset.checked_add(wanted as u64).filter(|&end| i64::try_from(end).is_ok());
        let alignment = file.alignment.unwrap_or(1);
        let plan = Self {
            kind,
            begin: offset,
            head: 0,
            wanted,
            span: wanted,
            done: 0,
            alignment,
            piece_bytes_max: file.piece_bytes_max,
            tries: 0,
            moved: 0,
            resumed: 0,
        };
        let Some(end) = end else {
            let source = io::Error::new(
                io::ErrorKind::InvalidInput,
                "the range passes the largest offset that a file can have",
            );
            return Err(plan.failed(file, source));
        };
        let plan = match kind {
            RequestKind::Read if wanted > 0 => {
                let begin = offset - offset % alignment as u64;
                let head = (offset - begin) as usize;
                let span = (end - begin) as usize;
                Self { begin, head, span: span.next_multiple_of(alignment), ..plan }
            }
            RequestKind::Write
                if !offset.is_multiple_of(alignment as u64)
                    || !wanted.is_multiple_of(alignment) =>
            {
                return Err(Error::Unaligned { offset, bytes: wanted, alignment });
            }
            RequestKind::Read | RequestKind::Write | RequestKind::Sync => plan,
        };
        if plan.span > request.buffer.capacity() {
            let capacity = request.buffer.capacity();
            return Err(Error::BufferTooSmall { capacity, needed: plan.span });
        }
        Ok(plan)
    }

    /// The next piece. A direct transfer resumes at the last whole block.
    pub(crate) fn next(&self) -> Piece {
        let at = self.done - self.done % self.alignment;
        let bytes = (self.span - at).min(self.piece_bytes_max);
        Piece { offset: self.begin + at as u64, at, bytes }
    }

    /// Whether there is nothing to transfer.
    pub(crate) fn is_empty(&self) -> bool {
        self.kind != RequestKind::Sync && self.wanted == 0
    }

    /// Updates the state with the kernel's result for [`Transfer::next`].
    pub(crate) fn step<B>(&mut self, answer: io::Result<usize>, file: &Opened<B>) -> Step {
        match answer {
            Err(source) if is_passing(&source) && self.tries < RETRIES_MAX => {
                self.tries += 1;
                self.resumed += 1;
                Step::More
            }
            Err(source) => Step::Done(Err(self.failed(file, source))),
            Ok(_) if self.kind == RequestKind::Sync => Step::Done(Ok(0)),
            Ok(moved) => self.moved_on(moved, file),
        }
    }

    fn moved_on<B>(&mut self, moved: usize, file: &Opened<B>) -> Step {
        let piece = self.next();
        self.moved += moved as u64;
        // After a short direct transfer, the last block is transferred again; that alone is not
        // progress.
        if piece.at + moved <= self.done {
            return Step::Done(Err(self.ended(file)));
        }
        self.done = piece.at + moved;
        self.tries = 0;
        if self.done >= self.head + self.wanted {
            return Step::Done(Ok(self.wanted));
        }
        if moved < piece.bytes {
            self.resumed += 1;
        }
        Step::More
    }

    /// The result at the end of the file, or of the free space.
    fn ended<B>(&self, file: &Opened<B>) -> Error {
        match self.kind {
            RequestKind::Read => Error::ShortRead {
                path: file.path.clone(),
                offset: self.begin + self.head as u64,
                wanted: self.wanted,
                got: self.done.saturating_sub(self.head),
            },
            RequestKind::Write | RequestKind::Sync => {
                self.failed(file, io::ErrorKind::WriteZero.into())
            }
        }
    }

    fn failed<B>(&self, file: &Opened<B>, source: io::Error) -> Error {
        Error::Io {
            action: action(self.kind),
            path: file.path.clone(),
            offset: self.begin + self.head as u64,
            bytes: self.wanted,
            source,
        }
    }
}

/// The action of a request, for errors.
pub(crate) fn action(kind: RequestKind) -> &'static str {
    match kind {
        RequestKind::Read => "read",
        RequestKind::Write => "write",
        RequestKind::Sync => "sync",
    }
}

/// Whether to retry after a failure. The kernel cancels a request whose thread has ended.
fn is_passing(error: &io::Error) -> bool {
    [libc::EINTR, libc::EAGAIN, libc::ECANCELED]
        .iter()
        .any(|&code| error.raw_os_error() == Some(code))
}

/// A request that an engine has accepted.
#[derive(Debug)]
pub(crate) struct Work<B> {
    pub(crate) token: u64,
    pub(crate) file: Arc<Opened<B>>,
    pub(crate) buffer: AlignedBuffer,
    pub(crate) transfer: Transfer,
}

impl<B> Work<B> {
    /// Accepts a request, or returns it with the reason.
    pub(crate) fn accept(
        request: Request,
        files: &FileTable<B>,
        in_flight: usize,
        depth: usize,
    ) -> Result<Self, Box<RefusedRequest>> {
        let checked = if in_flight >= depth {
            Err(Error::QueueFull { depth })
        } else {
            files.get(request.file).and_then(|file| Ok((file, Transfer::plan(&request, file)?)))
        };
        match checked {
            Ok((file, transfer)) => Ok(Self {
                token: request.token,
                file: Arc::clone(file),
                buffer: request.buffer,
                transfer,
            }),
            Err(error) => Err(Box::new(RefusedRequest { request, error })),
        }
    }

    /// What it does.
    pub(crate) fn kind(&self) -> RequestKind {
        self.transfer.kind
    }

    /// Updates the transfer with the kernel's result.
    pub(crate) fn step(&mut self, answer: io::Result<usize>) -> Step {
        self.transfer.step(answer, &self.file)
    }

    /// Turns it into a completion, and counts it.
    pub(crate) fn finish(self, result: Result<usize, Error>, books: &mut Counters) -> Completion {
        let transfer = &self.transfer;
        books.resumed += transfer.resumed;
        match (&result, transfer.kind) {
            (Err(_), _) => books.errors += 1,
            (Ok(bytes), RequestKind::Read) => {
                books.reads += 1;
                books.bytes_read += *bytes as u64;
                books.bytes_read_device += transfer.moved;
            }
            (Ok(bytes), RequestKind::Write) => {
                books.writes += 1;
                books.bytes_written += *bytes as u64;
            }
            (Ok(_), RequestKind::Sync) => {}
        }
        Completion { token: self.token, buffer: self.buffer, start: transfer.head, result }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileId;

    fn file(alignment: Option<usize>) -> Opened<()> {
        let piece_bytes_max = crate::open::PIECE_BYTES_MAX;
        Opened { path: "part".into(), alignment, piece_bytes_max, body: () }
    }

    fn request(kind: RequestKind, offset: u64, bytes: usize, capacity: usize) -> Request {
        let buffer = AlignedBuffer::zeroed(capacity);
        Request { token: 1, file: FileId(0), kind, offset, bytes, buffer }
    }

    #[test]
    fn a_direct_read_covers_the_blocks_around_the_range() {
        let request = request(RequestKind::Read, 5000, 4000, 12288);
        let mut plan = Transfer::plan(&request, &file(Some(4096))).unwrap();
        assert_eq!(plan.next(), Piece { offset: 4096, at: 0, bytes: 8192 });
        assert_eq!(plan.head, 904);
        // 904 + 4000 bytes are enough: the file ends inside the second block.
        assert!(matches!(plan.step(Ok(4904), &file(Some(4096))), Step::Done(Ok(4000))));
    }

    #[test]
    fn a_short_direct_read_goes_on_at_the_last_whole_block_and_ends_without_progress() {
        let file = file(Some(512));
        let mut plan = Transfer::plan(&request(RequestKind::Read, 0, 4096, 4096), &file).unwrap();
        assert!(matches!(plan.step(Ok(1000), &file), Step::More));
        assert_eq!(plan.next(), Piece { offset: 512, at: 512, bytes: 3584 });
        let Step::Done(Err(Error::ShortRead { got, wanted, .. })) = plan.step(Ok(488), &file)
        else {
            panic!("a file that ends is a short read");
        };
        assert_eq!((got, wanted), (1000, 4096));
        assert_eq!(plan.resumed, 1);
    }

    #[test]
    fn an_interrupted_transfer_is_tried_again_a_bounded_number_of_times() {
        let file = file(None);
        let mut plan = Transfer::plan(&request(RequestKind::Write, 7, 10, 4096), &file).unwrap();
        let interrupted = || Err(io::Error::from_raw_os_error(libc::EINTR));
        for _ in 0..RETRIES_MAX {
            assert!(matches!(plan.step(interrupted(), &file), Step::More));
        }
        assert!(matches!(plan.step(Ok(4), &file), Step::More));
        for _ in 0..RETRIES_MAX {
            assert!(matches!(plan.step(interrupted(), &file), Step::More));
        }
        let Step::Done(Err(Error::Io { action, offset, bytes, source, .. })) =
            plan.step(interrupted(), &file)
        else {
            panic!("retries are bounded");
        };
        assert_eq!((action, offset, bytes), ("write", 7, 10));
        assert_eq!(source.raw_os_error(), Some(libc::EINTR));
    }

    #[test]
    fn a_long_transfer_is_split_at_the_limit_of_its_file() {
        let file = Opened { piece_bytes_max: 8192, ..file(Some(4096)) };
        let request = request(RequestKind::Read, 5000, 20_000, 28_672);
        let mut plan = Transfer::plan(&request, &file).unwrap();
        let mut pieces = Vec::new();
        loop {
            let piece = plan.next();
            pieces.push((piece.offset, piece.at, piece.bytes));
            match plan.step(Ok(piece.bytes), &file) {
                Step::More => {}
                Step::Done(result) => break assert_eq!(result.unwrap(), 20_000),
            }
        }
        assert_eq!(pieces, [(4096, 0, 8192), (12_288, 8192, 8192), (20_480, 16_384, 8192)]);
        assert_eq!(plan.resumed, 0, "nothing was cut short");
    }

    #[test]
    fn a_write_that_moves_nothing_is_an_error() {
        let file = file(None);
        let mut plan = Transfer::plan(&request(RequestKind::Write, 0, 10, 4096), &file).unwrap();
        assert!(matches!(plan.step(Ok(0), &file), Step::Done(Err(Error::Io { .. }))));
    }

    #[test]
    fn requests_that_cannot_work_are_refused() {
        let direct = file(Some(4096));
        let plan = |request: Request| Transfer::plan(&request, &direct).map(|_| ()).unwrap_err();
        assert!(matches!(
            plan(request(RequestKind::Write, 100, 4096, 4096)),
            Error::Unaligned { offset: 100, bytes: 4096, alignment: 4096 }
        ));
        assert!(matches!(
            plan(request(RequestKind::Write, 4096, 100, 4096)),
            Error::Unaligned { .. }
        ));
        assert!(matches!(
            plan(request(RequestKind::Read, 4095, 2, 4096)),
            Error::BufferTooSmall { capacity: 4096, needed: 8192 }
        ));
        assert!(matches!(plan(request(RequestKind::Read, u64::MAX, 2, 8192)), Error::Io { .. }));
        assert!(matches!(plan(request(RequestKind::Read, 1 << 63, 2, 8192)), Error::Io { .. }));
    }
}
