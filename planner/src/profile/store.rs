//! Stored samples of one point and codec: a temporary file, or a file for each sample.

use crate::Error;
use crate::results::CacheDrop;
use crate::vocabulary::{Codec, Point};
use meetpoint_format::checksum::crc32c;
use meetpoint_format::recipe::TensorSpec;
use rustix::fs::Advice;
use rustix::io::{Errno, ReadWriteFlags};
use std::fs::File;
use std::io::{IoSliceMut, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Number of pages that are probed after the page cache was emptied. A probe can start a read, so
/// few.
const PROBES_MAX: u64 = 8;

/// The properties of a stored sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    /// Its offset in the file of all samples; 0 in a separate file.
    pub(super) offset: u64,
    /// Bytes on the drive.
    pub(super) bytes: u64,
    /// Bytes after decompression.
    pub(super) raw_bytes: u64,
    /// Checksum of the bytes on the drive.
    pub(super) crc32c: u32,
    /// Type of a prepared sample; `None` for a file or a coefficient form.
    pub(super) spec: Option<TensorSpec>,
}

/// Where the bytes are.
#[derive(Debug)]
enum Files {
    One { file: File, path: PathBuf },
    Each(Vec<PathBuf>),
}

/// Stored samples.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) point: Point,
    pub(super) codec: Codec,
    pub(super) records: Vec<Record>,
    files: Files,
}

/// Samples being stored, by many threads.
#[derive(Debug)]
pub(super) struct Writer {
    point: Point,
    codec: Codec,
    files: Files,
    end: AtomicU64,
    records: Mutex<Vec<Option<Record>>>,
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::Io { action, path: path.to_path_buf(), source }
}

impl Writer {
    /// Begins storing samples in an empty folder.
    pub(super) fn create(
        folder: &Path,
        point: &Point,
        codec: Codec,
        samples: usize,
    ) -> Result<Self, Error> {
        let files = if point.is_nothing_offline() {
            Files::Each((0..samples).map(|at| folder.join(format!("{at:08}"))).collect())
        } else {
            let path = folder.join("samples");
            let mut options = File::options();
            let file = options.read(true).write(true).create_new(true).open(&path);
            Files::One { file: file.map_err(failed("create", &path))?, path }
        };
        let records = Mutex::new(vec![None; samples]);
        Ok(Self { point: point.clone(), codec, files, end: AtomicU64::new(0), records })
    }

    /// Stores the sample with an index.
    pub(super) fn put(
        &self,
        index: usize,
        stored: &[u8],
        raw_bytes: u64,
        spec: Option<TensorSpec>,
    ) -> Result<(), Error> {
        let bytes = stored.len() as u64;
        let offset = match &self.files {
            Files::One { file, path } => {
                let offset = self.end.fetch_add(bytes, Ordering::Relaxed);
                file.write_all_at(stored, offset).map_err(failed("write", path))?;
                offset
            }
            Files::Each(paths) => {
                let path = &paths[index];
                std::fs::write(path, stored).map_err(failed("write", path))?;
                0
            }
        };
        let record = Record { offset, bytes, raw_bytes, crc32c: crc32c(stored), spec };
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records[index] = Some(record);
        Ok(())
    }

    /// Waits until everything is on the drive.
    pub(super) fn finish(self) -> Result<Store, Error> {
        match &self.files {
            Files::One { file, path } => file.sync_data().map_err(failed("write", path))?,
            Files::Each(paths) => {
                for path in paths {
                    let synced = File::open(path).and_then(|file| file.sync_data());
                    synced.map_err(failed("write", path))?;
                }
            }
        }
        let records = self.records.into_inner().unwrap_or_else(PoisonError::into_inner);
        let records = records.into_iter().map(|record| record.expect("every sample was stored"));
        let Self { point, codec, files, .. } = self;
        Ok(Store { point, codec, records: records.collect(), files })
    }
}

impl Store {
    /// The name of the point and codec in errors and progress.
    pub(super) fn name(&self) -> String {
        match self.codec {
            Codec::None => self.point.to_string(),
            Codec::Lz4 | Codec::Zstd => format!("{} {}", self.point, self.codec.name()),
        }
    }

    /// Bytes on the drive.
    pub(super) fn bytes(&self) -> u64 {
        self.records.iter().map(|record| record.bytes).sum()
    }

    /// The file of a sample.
    pub(super) fn path(&self, index: usize) -> &Path {
        match &self.files {
            Files::One { path, .. } => path,
            Files::Each(paths) => &paths[index],
        }
    }

    /// The file of all samples; `None` if each has a separate file.
    pub(super) fn shared_path(&self) -> Option<&Path> {
        match &self.files {
            Files::One { path, .. } => Some(path),
            Files::Each(_) => None,
        }
    }

    /// Whether the bytes match the checksum of a stored sample.
    pub(super) fn is_intact(&self, index: usize, stored: &[u8]) -> bool {
        crc32c(stored) == self.records[index].crc32c
    }

    /// Reads the stored bytes of a sample; `false` if they do not match their checksum.
    pub(super) fn read(&self, index: usize, into: &mut Vec<u8>) -> Result<bool, Error> {
        let Record { offset, bytes, .. } = self.records[index];
        let bytes = usize::try_from(bytes).expect("it was in memory");
        into.resize(bytes, 0);
        let read = match &self.files {
            Files::One { file, .. } => file.read_exact_at(into, offset),
            Files::Each(paths) => {
                File::open(&paths[index]).and_then(|mut file| file.read_exact(into))
            }
        };
        read.map_err(failed("read", self.path(index)))?;
        Ok(self.is_intact(index, into))
    }

    /// Evicts these files from the page cache, as far as the system does.
    pub(super) fn drop_cache(&self) -> Result<CacheDrop, Error> {
        match &self.files {
            Files::One { file, path } => {
                drop_file(file, self.bytes()).map_err(failed("read", path))
            }
            Files::Each(paths) => {
                let mut found = CacheDrop::Dropped;
                for (index, path) in paths.iter().enumerate() {
                    let file = File::open(path).map_err(failed("read", path))?;
                    // Only a few files are probed, because a probe can start a read.
                    let probed = if index < 4 { self.records[index].bytes.min(1) } else { 0 };
                    let dropped = drop_file(&file, probed).map_err(failed("read", path))?;
                    found = if dropped == CacheDrop::Dropped { found } else { dropped };
                }
                Ok(found)
            }
        }
    }
}

/// Evicts a file from the page cache, and probes whether pages of its first `bytes` are gone.
fn drop_file(file: &File, bytes: u64) -> std::io::Result<CacheDrop> {
    let drop = || rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
    drop()?;
    let mut found = CacheDrop::Dropped;
    for probe in 0..PROBES_MAX.min(bytes) {
        let mut byte = [0];
        let mut into = [IoSliceMut::new(&mut byte)];
        // Without waiting, only cached pages are read.
        match rustix::io::preadv2(
            file,
            &mut into,
            probe * bytes / PROBES_MAX,
            ReadWriteFlags::NOWAIT,
        ) {
            Err(Errno::AGAIN) => (),
            Ok(_) => {
                found = CacheDrop::Ineffective;
                break;
            }
            Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => {
                found = CacheDrop::Unverified;
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    drop()?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::Form;

    #[test]
    fn stored_samples_are_read_back_and_damage_is_found() {
        for form in [Form::Files, Form::Packed] {
            let folder = tempfile::tempdir().unwrap();
            let samples = [b"first".to_vec(), Vec::new(), vec![7; 9000]];
            let point = Point::encoded(form);
            let writer = Writer::create(folder.path(), &point, Codec::None, 3).unwrap();
            for (index, sample) in samples.iter().enumerate().rev() {
                writer.put(index, sample, sample.len() as u64, None).unwrap();
            }
            let store = writer.finish().unwrap();
            assert_eq!(store.bytes(), 9005);
            let mut read = Vec::new();
            for _ in 0..2 {
                for (index, sample) in samples.iter().enumerate() {
                    assert!(store.read(index, &mut read).unwrap());
                    assert_eq!(&read, sample);
                }
                store.drop_cache().unwrap();
            }
            let file = File::options().write(true).open(store.path(2)).unwrap();
            file.write_all_at(b"x", store.records[2].offset + 100).unwrap();
            assert!(!store.read(2, &mut read).unwrap());
        }
    }
}
