//! A part file being written: its bytes are buffered here, and hashed and written in large pieces
//! on a separate thread, bypassing the page cache if the file system supports it.
//!
//! The page cache would take more CPU time than the rest of packing: its pages are allocated,
//! filled and written back for a file that usually does not fit into it. A part smaller than a
//! piece is written normally, without the thread.

use super::part_drain::{Drain, DrainCommand, PIECE_BYTES};
use meetpoint_storage::AlignedBuffer;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Number of buffers: being filled, waiting to be hashed, or being written.
const PIECES: usize = 6;

/// The state reused from part to part: buffers, and the thread that writes.
#[derive(Default)]
pub(super) struct Pieces {
    /// Created when the first piece is full.
    drain: Option<DrainThread>,
    /// Buffers that were not passed to the thread yet.
    own: Vec<AlignedBuffer>,
    made: usize,
}

/// The handle to the thread.
struct DrainThread {
    /// `None` once the thread must end.
    commands: Option<Sender<DrainCommand>>,
    /// Receives the buffers of completed writes.
    free: Receiver<AlignedBuffer>,
    thread: Option<JoinHandle<()>>,
}

/// A part file being written.
pub(super) struct PartFile {
    file: File,
    path: PathBuf,
    pieces: Pieces,
    gathered: AlignedBuffer,
    /// Number of bytes in `gathered`.
    filled: usize,
    /// Number of bytes before these.
    offset: u64,
    /// Whether a write failed.
    has_failed: Arc<AtomicBool>,
}

/// A part that is being synced.
pub(super) enum SyncingPart {
    /// It is synced; its SHA-256.
    There([u8; 32]),
    /// Receives the result from the thread.
    Underway(Receiver<io::Result<[u8; 32]>>),
}

impl SyncingPart {
    /// Waits until it is synced; returns the SHA-256.
    pub(super) fn wait(self) -> io::Result<[u8; 32]> {
        match self {
            Self::There(sha256) => Ok(sha256),
            Self::Underway(said) => said.recv().unwrap_or_else(|_| Err(gone())),
        }
    }
}

impl PartFile {
    /// Creates the file, which must not exist.
    pub(super) fn create(path: &Path, mut pieces: Pieces) -> io::Result<Self> {
        let file = File::create_new(path)?;
        let gathered = pieces.take()?;
        let path = path.to_path_buf();
        let has_failed = Arc::default();
        Ok(Self { file, path, pieces, gathered, filled: 0, offset: 0, has_failed })
    }

    /// Starts to write the remaining bytes and sync the file, while the next part is buffered.
    pub(super) fn finish(mut self) -> io::Result<(SyncingPart, Pieces)> {
        if self.offset > 0 {
            let said = self.end()?;
            return Ok((SyncingPart::Underway(said), self.pieces));
        }
        let bytes = &self.gathered.as_slice()[..self.filled];
        self.file.write_all(bytes)?;
        self.file.sync_all()?;
        let sha256 = Sha256::digest(bytes).into();
        self.pieces.own.push(self.gathered);
        Ok((SyncingPart::There(sha256), self.pieces))
    }

    /// Passes a full piece to the thread.
    fn write_piece(&mut self) -> io::Result<()> {
        if self.offset == 0 {
            let (file, path) = (self.file.try_clone()?, self.path.clone());
            let has_failed = Arc::clone(&self.has_failed);
            self.pieces.send(DrainCommand::Begin { file, path, has_failed })?;
        }
        if self.has_failed.load(Ordering::Relaxed) {
            let said = self.end()?.recv().unwrap_or_else(|_| Err(gone()));
            return Err(said.err().unwrap_or_else(gone));
        }
        let next = self.pieces.take()?;
        let piece = std::mem::replace(&mut self.gathered, next);
        self.filled = 0;
        self.offset += PIECE_BYTES as u64;
        self.pieces.send(DrainCommand::Piece(piece))
    }

    /// Orders the thread to end the file.
    fn end(&mut self) -> io::Result<Receiver<io::Result<[u8; 32]>>> {
        let rest = std::mem::replace(&mut self.gathered, AlignedBuffer::zeroed(0));
        let (reply, said) = channel();
        let filled = std::mem::take(&mut self.filled);
        self.pieces.send(DrainCommand::End { rest, filled, reply })?;
        Ok(said)
    }
}

impl Write for PartFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.filled == PIECE_BYTES {
            self.write_piece()?;
        }
        // The buffers of a failed file are lost.
        let room = self.gathered.as_mut_slice().get_mut(self.filled..PIECE_BYTES);
        let room = room.ok_or_else(|| io::Error::other("an earlier write failed"))?;
        let count = bytes.len().min(room.len());
        room[..count].copy_from_slice(&bytes[..count]);
        self.filled += count;
        Ok(count)
    }

    /// Does nothing: [`PartFile::finish`] writes the buffered bytes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Pieces {
    /// Waits for a free buffer.
    fn take(&mut self) -> io::Result<AlignedBuffer> {
        if let Some(buffer) = self.own.pop() {
            return Ok(buffer);
        }
        if let Some(buffer) = self.drain.as_ref().and_then(|drain| drain.free.try_recv().ok()) {
            return Ok(buffer);
        }
        if self.made < PIECES {
            self.made += 1;
            return Ok(AlignedBuffer::zeroed(PIECE_BYTES));
        }
        let drain = self.drain.as_ref().expect("it has the memory that is not here");
        drain.free.recv().map_err(|_| gone())
    }

    /// Sends a command to the thread, which is started if necessary.
    fn send(&mut self, command: DrainCommand) -> io::Result<()> {
        let drain = match &mut self.drain {
            Some(drain) => drain,
            none => none.insert(DrainThread::start()?),
        };
        let commands = drain.commands.as_ref().expect("it is there until it is dropped");
        commands.send(command).map_err(|_| gone())
    }
}

impl DrainThread {
    fn start() -> io::Result<Self> {
        let ((commands, commands_of_thread), (to_free, free)) = (channel(), channel());
        let drain = Drain::new(to_free);
        let thread = std::thread::Builder::new()
            .name("meetpoint-part".to_owned())
            .spawn(move || drain.run(&commands_of_thread))?;
        Ok(Self { commands: Some(commands), free, thread: Some(thread) })
    }
}

impl Drop for DrainThread {
    /// Waits until the thread has ended, so that nothing is written afterwards.
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported as an error of the file.
            let _ = thread.join();
        }
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that writes parts panicked; this is a defect")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes files of these lengths in steps, and checks their contents.
    fn write_and_look(folder: &Path, lengths: &[usize], step: usize) {
        let mut pieces = Pieces::default();
        for (number, length) in lengths.iter().enumerate() {
            let path = folder.join(format!("{number}"));
            let bytes: Vec<u8> = (0..*length).map(|at| (at * 31 / 7 + number) as u8).collect();
            let mut file = PartFile::create(&path, pieces).unwrap();
            for chunk in bytes.chunks(step) {
                file.write_all(chunk).unwrap();
            }
            let (ending, rest) = file.finish().unwrap();
            pieces = rest;
            assert_eq!(ending.wait().unwrap()[..], Sha256::digest(&bytes)[..]);
            assert!(std::fs::read(&path).unwrap() == bytes, "file {number} of {length} bytes");
            let free = pieces.drain.iter().flat_map(|drain| drain.free.try_iter());
            pieces.own.extend(free.collect::<Vec<_>>());
            assert!(pieces.made <= PIECES && pieces.own.len() == pieces.made);
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn files_of_any_length_are_whole_and_share_their_memory() {
        let folder = tempfile::tempdir().unwrap();
        let piece = PIECE_BYTES;
        let lengths = [0, 1, piece - 1, piece, piece + 1, 6 * piece, 5 * piece + 4097, 3];
        write_and_look(folder.path(), &lengths, 300_001);
        write_and_look(folder.path(), &[3 * piece + 17], usize::MAX);
    }

    #[test]
    fn a_file_system_without_direct_writes_is_written_plainly() {
        // A file system in memory supports direct I/O depending on the kernel version.
        if let Ok(folder) = tempfile::tempdir_in("/dev/shm") {
            write_and_look(folder.path(), &[2 * PIECE_BYTES + 5, PIECE_BYTES], 65_536);
        }
    }

    #[test]
    fn existing_files_are_not_overwritten_and_a_full_drive_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part");
        std::fs::write(&path, b"mine").unwrap();
        let error = PartFile::create(&path, Pieces::default()).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        let mut full = PartFile::create(&folder.path().join("other"), Pieces::default()).unwrap();
        full.file = File::options().write(true).open("/dev/full").unwrap();
        full.write_all(b"x").unwrap();
        assert_eq!(full.finish().err().unwrap().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_drive_that_fills_up_ends_a_long_part_before_all_of_it_is_gathered() {
        let folder = tempfile::tempdir().unwrap();
        let mut full = PartFile::create(&folder.path().join("part"), Pieces::default()).unwrap();
        full.file = File::options().write(true).open("/dev/full").unwrap();
        let piece = vec![1; PIECE_BYTES];
        let mut written = 0;
        let error = loop {
            match full.write_all(&piece) {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(written <= PIECES + 2, "{written} pieces were taken");
    }

    #[test]
    fn a_part_that_fails_at_its_end_is_reported_when_it_is_awaited() {
        let folder = tempfile::tempdir().unwrap();
        let mut full = PartFile::create(&folder.path().join("part"), Pieces::default()).unwrap();
        full.file = File::options().write(true).open("/dev/full").unwrap();
        full.write_all(&vec![1; PIECE_BYTES + 1]).unwrap();
        let (ending, pieces) = full.finish().unwrap();
        assert_eq!(ending.wait().unwrap_err().kind(), io::ErrorKind::StorageFull);
        // The next part is not affected.
        let path = folder.path().join("next");
        let mut next = PartFile::create(&path, pieces).unwrap();
        next.write_all(&vec![2; PIECE_BYTES + 1]).unwrap();
        next.finish().unwrap().0.wait().unwrap();
        assert!(std::fs::read(&path).unwrap() == vec![2; PIECE_BYTES + 1]);
    }
}
