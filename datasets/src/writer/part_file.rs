//! A part file being written: its bytes are gathered, hashed and written in large pieces, past the
//! page cache where the file system takes that, while the next piece is gathered.
//!
//! The page cache costs more time of the processor than everything else about packing: its pages
//! are made, filled and written out for a file that is longer than it as a rule. A part of less
//! than a piece is written plainly, without an engine.

use meetpoint_storage::{
    AlignedBuffer, Completion, Engine, EngineKind, Error as StorageError, FileId, Request,
    RequestKind, open_engine,
};
use rustix::fs::{FallocateFlags, fallocate};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes that are written at once; from 2 MiB on buffers are on huge pages.
const PIECE_BYTES: usize = 2 << 20;
/// Pieces that are gathered or on their way.
const PIECES: usize = 4;
/// Bytes that a file is made longer by ahead of what is written: a write at a file's end is waited
/// for by the kernel, one before it is not.
const AHEAD_BYTES: u64 = 64 << 20;
/// Time that one look at what was written takes at most.
const WAIT: Duration = Duration::from_secs(60);

/// What is kept from part to part.
#[derive(Default)]
pub(super) struct Pieces {
    /// Made when the first piece is full.
    engine: Option<Box<dyn Engine>>,
    free: Vec<AlignedBuffer>,
    made: usize,
    done: Vec<Completion>,
}

/// A part file being written.
pub(super) struct PartFile {
    file: File,
    path: PathBuf,
    pieces: Pieces,
    hasher: Sha256,
    gathered: AlignedBuffer,
    /// Bytes of `gathered` that are there.
    filled: usize,
    /// Bytes before these.
    offset: u64,
    way: Way,
}

/// How pieces get to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// There was none yet.
    Unknown,
    /// Past the page cache; the file has been made so long.
    Direct { file: FileId, length: u64 },
    /// As any file is written.
    Plain,
}

impl PartFile {
    /// Makes the file, which must not be there.
    pub(super) fn create(path: &Path, mut pieces: Pieces) -> io::Result<Self> {
        let file = File::create_new(path)?;
        let gathered = pieces.take()?;
        let (path, hasher) = (path.to_path_buf(), Sha256::new());
        let way = Way::Unknown;
        Ok(Self { file, path, pieces, hasher, gathered, filled: 0, offset: 0, way })
    }

    /// Writes what is left and brings all of it to the drive; gives the SHA-256.
    pub(super) fn finish(mut self) -> io::Result<([u8; 32], Pieces)> {
        self.pieces.settle()?;
        let rest = &self.gathered.as_slice()[..self.filled];
        self.hasher.update(rest);
        self.file.write_all_at(rest, self.offset)?;
        if let Way::Direct { file, .. } = self.way {
            self.file.set_len(self.offset + self.filled as u64)?;
            if let Some(engine) = &mut self.pieces.engine {
                engine.close(file);
            }
        }
        self.file.sync_all()?;
        self.pieces.free.push(self.gathered);
        Ok((self.hasher.finalize().into(), self.pieces))
    }

    /// Hashes a whole piece and hands it on.
    fn write_piece(&mut self) -> io::Result<()> {
        self.hasher.update(self.gathered.as_slice());
        if self.way == Way::Unknown {
            self.way = self.pieces.way(&self.file, &self.path)?;
        }
        let offset = self.offset;
        self.offset += PIECE_BYTES as u64;
        self.filled = 0;
        match &mut self.way {
            Way::Direct { file, length } => {
                if *length < self.offset {
                    // Where it cannot be made longer, writing it does.
                    let _ = fallocate(&self.file, FallocateFlags::empty(), offset, AHEAD_BYTES);
                    *length = offset + AHEAD_BYTES;
                }
                let next = self.pieces.take()?;
                let buffer = std::mem::replace(&mut self.gathered, next);
                self.pieces.submit(*file, offset, buffer)
            }
            _ => self.file.write_all_at(self.gathered.as_slice(), offset),
        }
    }
}

impl Write for PartFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.filled == PIECE_BYTES {
            self.write_piece()?;
        }
        let room = &mut self.gathered.as_mut_slice()[self.filled..PIECE_BYTES];
        let count = bytes.len().min(room.len());
        room[..count].copy_from_slice(&bytes[..count]);
        self.filled += count;
        Ok(count)
    }

    /// What is gathered stays: [`PartFile::finish`] writes it.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Pieces {
    /// How a file is written; makes the engine where there is none.
    fn way(&mut self, file: &File, path: &Path) -> io::Result<Way> {
        let engine = match &mut self.engine {
            Some(engine) => engine,
            none => {
                let chosen = open_engine(EngineKind::Auto, PIECES).map_err(as_io)?;
                none.insert(chosen.engine)
            }
        };
        let name = path.display().to_string();
        let id = engine.adopt(file.try_clone()?, &name).map_err(as_io)?;
        if engine.is_direct(id) {
            return Ok(Way::Direct { file: id, length: 0 });
        }
        engine.close(id);
        Ok(Way::Plain)
    }

    /// Memory for a piece, as soon as there is some.
    fn take(&mut self) -> io::Result<AlignedBuffer> {
        loop {
            if let Some(buffer) = self.free.pop() {
                return Ok(buffer);
            }
            if self.made < PIECES {
                self.made += 1;
                return Ok(AlignedBuffer::zeroed(PIECE_BYTES));
            }
            self.reap()?;
        }
    }

    fn submit(&mut self, file: FileId, offset: u64, buffer: AlignedBuffer) -> io::Result<()> {
        let engine = self.engine.as_mut().expect("a file has it from there");
        let kind = RequestKind::Write;
        let request = Request { token: 0, file, kind, offset, bytes: PIECE_BYTES, buffer };
        engine.submit(request).map_err(|refused| as_io(refused.error))
    }

    /// Takes back what has been written, at least one piece.
    fn reap(&mut self) -> io::Result<()> {
        let engine = self.engine.as_mut().expect("pieces are on their way");
        engine.wait(WAIT, &mut self.done).map_err(as_io)?;
        for completion in self.done.drain(..) {
            self.free.push(completion.buffer);
            completion.result.map_err(as_io)?;
        }
        Ok(())
    }

    /// Waits until nothing is on its way.
    fn settle(&mut self) -> io::Result<()> {
        while self.engine.as_ref().is_some_and(|engine| engine.in_flight() > 0) {
            self.reap()?;
        }
        Ok(())
    }
}

/// The cause alone: who asked names the file.
fn as_io(error: StorageError) -> io::Error {
    match error {
        StorageError::Open { source, .. }
        | StorageError::Length { source, .. }
        | StorageError::Io { source, .. } => source,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes files of these lengths one after another in steps, and looks at what is there.
    fn write_and_look(folder: &Path, lengths: &[usize], step: usize) {
        let mut pieces = Pieces::default();
        for (number, length) in lengths.iter().enumerate() {
            let path = folder.join(format!("{number}"));
            let bytes: Vec<u8> = (0..*length).map(|at| (at * 31 / 7 + number) as u8).collect();
            let mut file = PartFile::create(&path, pieces).unwrap();
            for chunk in bytes.chunks(step) {
                file.write_all(chunk).unwrap();
            }
            let (sha256, rest) = file.finish().unwrap();
            pieces = rest;
            assert_eq!(sha256[..], Sha256::digest(&bytes)[..]);
            assert!(std::fs::read(&path).unwrap() == bytes, "file {number} of {length} bytes");
            assert!(pieces.made <= PIECES && pieces.free.len() == pieces.made);
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
        // Memory takes them or not, by the version of the kernel.
        if let Ok(folder) = tempfile::tempdir_in("/dev/shm") {
            write_and_look(folder.path(), &[2 * PIECE_BYTES + 5, PIECE_BYTES], 65_536);
        }
    }

    #[test]
    fn what_is_there_is_not_written_over_and_a_full_drive_is_an_error() {
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
}
