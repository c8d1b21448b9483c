//! Cold runs: a storage engine reads samples directly from the drive, many at once.
//!
//! A loader reads with the same engine and depth, so cold figures are those of a real run. This
//! needs no privileges: O_DIRECT bypasses the page cache.

use super::store::{Record, Store};
use crate::Error;
use meetpoint_storage::{
    Access, AlignedBuffer, BLOCK_BYTES, Completion, Engine, EngineKind, FileId, Request,
    RequestKind, open_engine,
};
use std::ops::Range;
use std::time::Duration;

/// Reads in flight for each thread, as in a loader.
const DEPTH: usize = 32;
/// Maximum bytes that are being read or wait to be used; one sample may be longer.
const BYTES_AHEAD_MAX: u64 = 64 << 20;
/// Minimum size of a buffer, so that buffers have few different sizes.
const BUFFER_BYTES_MIN: usize = 128 << 10;
/// Time without a completed read after which reading fails.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The function that receives each sample: its index, and its stored bytes.
pub(super) type Each<'a> = &'a mut dyn FnMut(usize, &[u8]) -> Result<(), Error>;

/// Reads a store from the drive, for one thread.
pub(super) struct DirectReader<'a> {
    store: &'a Store,
    engine: Box<dyn Engine>,
    /// The file of all samples; `None` if each has a separate file.
    shared: Option<FileId>,
    free: Vec<AlignedBuffer>,
    completions: Vec<Completion>,
}

impl<'a> DirectReader<'a> {
    /// Opens an engine, and the file of all samples.
    pub(super) fn open(store: &'a Store) -> Result<Self, Error> {
        let mut engine = open_engine(EngineKind::Auto, DEPTH)?.engine;
        let shared = store.shared_path().map(|path| engine.open(path, Access::Read)).transpose()?;
        Ok(Self { store, engine, shared, free: Vec::new(), completions: Vec::new() })
    }

    /// Whether reads bypass the page cache, checked with the first file only.
    pub(super) fn is_direct(&mut self) -> Result<bool, Error> {
        if let Some(file) = self.shared {
            return Ok(self.engine.is_direct(file));
        }
        let file = self.engine.open(self.store.path(0), Access::Read)?;
        let is_direct = self.engine.is_direct(file);
        self.engine.close(file);
        Ok(is_direct)
    }

    /// Reads samples, as far ahead as a loader does, and passes each on as it arrives.
    pub(super) fn read(&mut self, samples: Range<usize>, each: Each<'_>) -> Result<(), Error> {
        let mut next = samples.start;
        let mut bytes_ahead = 0;
        let mut files: Vec<(usize, FileId)> = Vec::new();
        let outcome = loop {
            while next < samples.end && self.engine.in_flight() < DEPTH {
                let Record { bytes, .. } = self.store.records[next];
                if bytes_ahead > 0 && bytes_ahead + bytes > BYTES_AHEAD_MAX {
                    break;
                }
                self.submit(next, &mut files)?;
                bytes_ahead += bytes;
                next += 1;
            }
            if self.completions.is_empty() {
                if self.engine.in_flight() == 0 {
                    break Ok(());
                }
                if self.engine.wait(TIMEOUT, &mut self.completions)? == 0 {
                    let path = self.store.path(samples.start).to_path_buf();
                    let source = std::io::ErrorKind::TimedOut.into();
                    break Err(Error::Io { action: "read", path, source });
                }
            }
            let Some(completion) = self.completions.pop() else { continue };
            let Completion { token, buffer, start, result } = completion;
            let index = usize::try_from(token).expect("the index of a sample");
            bytes_ahead -= self.store.records[index].bytes;
            if let Some(at) = files.iter().position(|(of, _)| *of == index) {
                self.engine.close(files.swap_remove(at).1);
            }
            let outcome = match result {
                Ok(bytes) => each(index, &buffer.as_slice()[start..start + bytes]),
                Err(error) => Err(error.into()),
            };
            self.free.push(buffer);
            if outcome.is_err() {
                break outcome;
            }
        };
        // After an error, no read may complete during a later call.
        while self.engine.in_flight() > 0 {
            if self.engine.wait(TIMEOUT, &mut self.completions)? == 0 {
                break;
            }
        }
        self.completions.clear();
        outcome
    }

    fn submit(&mut self, index: usize, files: &mut Vec<(usize, FileId)>) -> Result<(), Error> {
        let Record { offset, bytes, .. } = self.store.records[index];
        let file = match self.shared {
            Some(file) => file,
            None => {
                let file = self.engine.open(self.store.path(index), Access::Read)?;
                files.push((index, file));
                file
            }
        };
        let bytes = usize::try_from(bytes).expect("it was in memory");
        let needed = bytes + 2 * BLOCK_BYTES;
        let buffer = match self.free.iter().position(|buffer| buffer.capacity() >= needed) {
            Some(at) => self.free.swap_remove(at),
            None => {
                // A buffer that is too small would only occupy the list.
                self.free.pop();
                self.engine.buffer(needed.next_power_of_two().max(BUFFER_BYTES_MIN))
            }
        };
        let token = index as u64;
        let request = Request { token, file, kind: RequestKind::Read, offset, bytes, buffer };
        self.engine.submit(request).map_err(|refused| refused.error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::store::Writer;
    use crate::vocabulary::{Codec, Form, Point};

    #[test]
    fn every_sample_arrives_once_with_its_bytes_and_a_missing_file_is_an_error() {
        for form in [Form::Files, Form::Packed] {
            let folder = tempfile::tempdir().unwrap();
            let point = Point::encoded(form);
            let samples: Vec<Vec<u8>> = (0..70).map(|at| vec![at; 100 * usize::from(at)]).collect();
            let writer = Writer::create(folder.path(), &point, Codec::None, 70).unwrap();
            for (index, sample) in samples.iter().enumerate() {
                writer.put(index, sample, sample.len() as u64, None).unwrap();
            }
            let store = writer.finish().unwrap();
            let mut reader = DirectReader::open(&store).unwrap();
            for range in [0..70, 3..41, 5..5] {
                let mut seen = vec![0; 70];
                reader
                    .read(range.clone(), &mut |index, bytes| {
                        assert_eq!(bytes, samples[index]);
                        seen[index] += 1;
                        Ok(())
                    })
                    .unwrap();
                let expected: Vec<i32> = (0..70).map(|it| range.contains(&it).into()).collect();
                assert_eq!(seen, expected);
            }
            if form == Form::Files {
                std::fs::remove_file(store.path(9)).unwrap();
                let failed = reader.read(0..70, &mut |_, _| Ok(()));
                assert!(matches!(failed, Err(Error::Storage(_))), "{failed:?}");
            }
        }
    }
}
