//! Verifies a dataset in a store: each part against its SHA-256, through the cache.
//!
//! In a part that differs, damaged samples and tables are located by their own checksums.

use super::{DamageLocation, Problem, READ_BYTES, VerifyOptions, VerifyProgress, VerifyReport};
use crate::{Error, open_dataset};
use meetpoint_prepare::{Dataset, Error as PrepareError};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::atomic::Ordering;

/// Bytes of a part that are fetched ahead.
const AHEAD_BYTES: u64 = 16 << 20;

/// As [`super::verify_with`].
pub(super) fn verify(
    url: &Path,
    options: &VerifyOptions,
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<VerifyReport, Error> {
    let dataset = open_dataset(url, &options.remote)?;
    let manifest = dataset.manifest();
    let bytes = manifest.parts.iter().map(|part| part.bytes).sum();
    let mut done = VerifyProgress { bytes_done: 0, bytes, samples: manifest.samples };
    let mut report = VerifyReport { samples: manifest.samples, ..VerifyReport::default() };
    let mut first_sample = 0;
    for (part, entry) in manifest.parts.iter().enumerate() {
        let mut advance = |read: u64| {
            done.bytes_done += read;
            progress(done);
            !options.stop.load(Ordering::Relaxed)
        };
        let mut sha256 = sha256_of(&dataset, part, &mut advance)?;
        if sha256 != entry.sha256 {
            // It may be the cache that is damaged.
            dataset.discard_part(part);
            sha256 = sha256_of(&dataset, part, &mut |_| !options.stop.load(Ordering::Relaxed))?;
        }
        let samples = first_sample..first_sample + entry.samples;
        if sha256 != entry.sha256 {
            let found = damage(&dataset, &entry.file, samples.clone(), options)?;
            report.problems.extend(found);
        }
        first_sample = samples.end;
        report.parts += 1;
        report.bytes += entry.bytes;
    }
    Ok(report)
}

/// The SHA-256 of a part; `advance` receives the bytes read, and returns whether to continue.
fn sha256_of(
    dataset: &Dataset,
    part: usize,
    advance: &mut dyn FnMut(u64) -> bool,
) -> Result<String, Error> {
    let bytes = dataset.manifest().parts[part].bytes;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; READ_BYTES];
    let mut offset = 0;
    while offset < bytes {
        let wanted = (bytes - offset).min(READ_BYTES as u64);
        let buffer = &mut buffer[..usize::try_from(wanted).expect("at most READ_BYTES")];
        dataset.begin_part(part, offset..bytes.min(offset + AHEAD_BYTES));
        dataset.read_part(part, offset, buffer)?;
        hasher.update(&*buffer);
        offset += wanted;
        if !advance(wanted) {
            return Err(Error::Interrupted);
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The damaged rows of a part, or the part as a whole if every row is intact.
fn damage(
    dataset: &Dataset,
    file: &str,
    samples: std::ops::Range<u64>,
    options: &VerifyOptions,
) -> Result<Vec<Problem>, Error> {
    let mut found = Vec::new();
    let problem = |place, problem: String| Problem { file: file.to_owned(), place, problem };
    for sample in samples {
        if options.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let Err(error) = dataset.read_sample(sample) else { continue };
        if error.remote_failure().is_some() {
            return Err(error.into());
        }
        match &error {
            PrepareError::ChecksumMismatch { row, key, .. } => {
                let place = DamageLocation::Row { row: *row, key: key.clone() };
                found.push(problem(place, format!("{}; copy it again", error.what())));
            }
            // The table of a record batch: what follows in the part has the same fault, or its own.
            _ => {
                found.push(problem(DamageLocation::File, format!("{error}; copy it again")));
                break;
            }
        }
    }
    if found.is_empty() {
        let words = "its SHA-256 is not that of dataset.json, and every sample is intact; copy the \
                     part again";
        found.push(problem(DamageLocation::File, words.to_owned()));
    }
    Ok(found)
}
