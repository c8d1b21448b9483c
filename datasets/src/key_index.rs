//! Writes and checks `keys.idx`, the index of a dataset's keys.

use crate::Error;
use crate::destination::partial_keys;
use meetpoint_format::key_index::{KEY_INDEX_NAME, KeyIndex, KeyIndexBuilder, key_hash};
use meetpoint_prepare::Dataset;
use meetpoint_storage::is_of_the_file;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexProgress {
    /// Number of finished samples.
    pub samples_done: u64,
    /// Number of all samples; 0 if it is unknown until the end.
    pub samples: u64,
}

/// The written index.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct KeysSummary {
    /// The file.
    pub path: PathBuf,
    /// Keys in it.
    pub keys: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Writes or rebuilds the index of keys of a dataset; uses 16 bytes of memory per key.
///
/// The file appears complete or not at all: it is written and synced under another name, then
/// renamed.
pub fn index_keys(
    path: &Path,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(IndexProgress),
) -> Result<KeysSummary, Error> {
    let dataset = Dataset::open(path)?;
    let mut builder = KeyIndexBuilder::default();
    let mut done = IndexProgress { samples_done: 0, samples: dataset.len() };
    for batch in 0..dataset.record_batches() {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let rows = dataset.keyed_rows(batch)?;
        rows.keys.iter().for_each(|key| builder.push(key));
        done.samples_done += rows.keys.len() as u64;
        progress(done);
    }
    let keys = builder.len();
    let to = path.join(KEY_INDEX_NAME);
    let partial = path.join(partial_keys(&std::process::id().to_string()));
    let written = write_keys(&partial, builder, dataset.manifest_sha256());
    let bytes = written.and_then(|bytes| {
        let failed = |source| Error::Write { path: to.clone(), source };
        std::fs::rename(&partial, &to).map_err(failed)?;
        File::open(path).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(bytes)
    });
    if bytes.is_err() {
        // If removal fails too, the first error is the one to report.
        let _ = std::fs::remove_file(&partial);
    }
    Ok(KeysSummary { path: to, keys, bytes: bytes? })
}

/// Writes and syncs an index of keys; returns its length in bytes.
pub(crate) fn write_keys(
    path: &Path,
    builder: KeyIndexBuilder,
    manifest_sha256: [u8; 32],
) -> Result<u64, Error> {
    let write = || {
        let file = File::create(path)?;
        let mut sink = BufWriter::with_capacity(1 << 20, file);
        builder.write(manifest_sha256, &mut sink)?;
        sink.flush()?;
        let file = sink.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    };
    write().map_err(|source| Error::Write { path: path.to_path_buf(), source })
}

/// Checks every byte of a dataset's index of keys and looks up every key of the dataset; returns
/// the problem, if there is one.
pub fn check_keys(dataset: &Dataset) -> Result<Option<String>, Error> {
    let path = dataset.path().join(KEY_INDEX_NAME);
    let file = match meetpoint_storage::files::open_regular(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) if is_of_the_file(&error) => {
            return Ok(Some(format!("does not open: {error}")));
        }
        Err(source) => return Err(Error::Source { path, source }),
    };
    let length = |file: &File| file.metadata().map(|metadata| metadata.len());
    let bytes = length(&file).map_err(|source| Error::Source { path, source })?;
    let read = |offset: u64, into: &mut [u8]| file.read_exact_at(into, offset);
    let mut hashes = vec![None; usize::try_from(dataset.len()).expect("samples are addressable")];
    let mut twice = None;
    let checked =
        KeyIndex::open(dataset.manifest_sha256(), dataset.len(), bytes, &read).and_then(|index| {
            index.check(&read, &mut |hash, sample| {
                let place = &mut hashes[usize::try_from(sample).expect("below the keys")];
                if place.replace(hash).is_some() {
                    twice = Some(sample);
                }
            })
        });
    if let Err(error) = checked {
        return Ok(Some(error.to_string()));
    }
    if let Some(sample) = twice {
        return Ok(Some(format!("it has sample {sample} twice")));
    }
    let mut sample = 0;
    for batch in 0..dataset.record_batches() {
        for key in dataset.keyed_rows(batch)?.keys {
            if hashes[sample] != Some(key_hash(&key)) {
                let problem = format!("it does not lead to sample {sample}, key {key}");
                return Ok(Some(problem));
            }
            sample += 1;
        }
    }
    Ok(None)
}
