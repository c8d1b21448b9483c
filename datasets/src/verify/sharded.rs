//! Verification divided into shards: each shard checks part files, and the commit checks the
//! dataset as a whole.

use super::consistency::Sums;
use super::{Problem, VerifyOptions, VerifyReport, check_entry, check_whole};
use crate::Error;
use crate::error::ShardError;
use crate::shards::{
    Attempt, PlanFolder, PlannedPart, ShardCommand, ShardOptions, ShardPlan, ShardSummary,
    folder_of,
};
use meetpoint_format::checksum::hexadecimal;
use meetpoint_format::dataset::{MANIFEST_BYTES_MAX, MANIFEST_NAME, Manifest};
use meetpoint_storage::files::read_regular;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The data of a verification plan besides the parts.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct VerifyJob {
    /// SHA-256 of the manifest.
    manifest_sha256: String,
}

/// The result of checking a part.
#[derive(Debug, Serialize, Deserialize)]
struct Checked {
    problems: Vec<Problem>,
    sums: Sums,
    /// Bytes that were read.
    bytes: u64,
}

/// Reads the manifest of a dataset, and returns its SHA-256 too.
fn manifest_of(path: &Path) -> Result<(Manifest, String), Error> {
    let open = |source| meetpoint_prepare::Error::Open { path: path.to_path_buf(), source };
    let text = read_regular(&path.join(MANIFEST_NAME), MANIFEST_BYTES_MAX).map_err(open)?;
    let manifest = Manifest::from_json(&text).map_err(Error::Row)?;
    Ok((manifest, hexadecimal(&Sha256::digest(&text))))
}

/// Plans to verify a dataset in a number of shards: writes the plan to the folder [`folder_of`] it.
/// Fails if the manifest is damaged, since it lists the parts.
pub fn plan_verify(dataset: &Path, shards: u64) -> Result<PlanFolder, Error> {
    let (manifest, manifest_sha256) = manifest_of(dataset)?;
    let mut first = 0;
    let parts = manifest.parts.iter().map(|entry| {
        let (samples, source_bytes, sha256) = (entry.samples, entry.bytes, entry.sha256.clone());
        let part = PlannedPart { first, samples, source_bytes, sha256 };
        first += entry.samples;
        part
    });
    let parts: Vec<PlannedPart> = parts.collect();
    let bytes = parts.iter().map(|part| part.source_bytes).sum();
    let cut = (parts, manifest.samples, bytes);
    let plan = ShardPlan::new(ShardCommand::Verify, dataset, cut, &VerifyJob { manifest_sha256 });
    PlanFolder::create(&folder_of(&plan.destination), plan.in_shards(shards)?, &[])
}

/// The manifest, if it is the one that was planned.
fn planned_manifest(folder: &PlanFolder) -> Result<Manifest, Error> {
    let job: VerifyJob = folder.plan().job(folder.path())?;
    let dataset = &folder.plan().destination;
    let (manifest, sha256) = manifest_of(dataset)?;
    if sha256 != job.manifest_sha256 {
        let (source, file) = (dataset.clone(), Some(dataset.join(MANIFEST_NAME)));
        return Err(ShardError::SourceChanged { source, file, files: (1, 1) }.into());
    }
    Ok(manifest)
}

/// Checks the part files of a shard that have no result yet. `progress` receives the bytes read.
pub fn run_verify(
    folder: &PlanFolder,
    shard: u64,
    options: &mut ShardOptions<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<ShardSummary, Error> {
    let attempt = folder.attempt(shard)?;
    let missing = attempt.missing::<Checked>()?;
    let checked = run_missing(&attempt, &missing, options, progress);
    checked.map_err(|error| attempt.explain(error))?;
    Ok(attempt.summary(&missing))
}

fn run_missing(
    attempt: &Attempt<'_>,
    missing: &[Range<u64>],
    options: &mut ShardOptions<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let folder = attempt.folder();
    let manifest = planned_manifest(folder)?;
    for part in missing.iter().cloned().flatten() {
        let entry = &manifest.parts[usize::try_from(part).expect("it is listed")];
        let (mut sums, mut bytes) = (Sums::default(), 0);
        let stop = Arc::clone(&options.stop);
        let mut advance = |read| {
            bytes += read;
            progress(read);
            !stop.load(Ordering::Relaxed)
        };
        let dataset = &folder.plan().destination;
        let problems = check_entry(dataset, entry, &manifest, &mut sums, &mut advance)?;
        if options.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let line = attempt.publish(part, &[], Checked { problems, sums, bytes })?;
        options.report(&line);
    }
    Ok(())
}

/// Joins the results of all shards, and checks the dataset as a whole: sums, the index of keys, and
/// the content of a dataset that is indexed in place.
pub fn commit_verify(folder: PlanFolder, options: &VerifyOptions) -> Result<VerifyReport, Error> {
    let parts: Vec<Checked> = folder.all_done()?;
    let manifest = planned_manifest(&folder)?;
    let mut report = VerifyReport { samples: manifest.samples, ..VerifyReport::default() };
    let mut sums = Sums::default();
    for part in parts {
        report.parts += 1;
        report.bytes += part.bytes;
        report.problems.extend(part.problems);
        sums.add(&part.sums);
    }
    let dataset = folder.plan().destination.clone();
    check_whole(&dataset, &manifest, &sums, options, &mut report, &mut |_| ())?;
    report.notes.extend(folder.remove().1);
    Ok(report)
}
