//! Checks whether every bit of a dataset is unchanged since it was packed, and locates damage by
//! part, row and key.
//!
//! In reading order: [`verify`] and [`verify_with`] (each file against its SHA-256), `diagnose`
//! (a part that differs: which of its checksums do), `locate` (which byte a checksum points to),
//! `consistency` (a part that does not differ: whether the manifest tells the truth about it),
//! `contents` (files of content in place), [`sharded`] (the same on many hosts), `in_store`
//! (a dataset at a URL), [`verify_deep`] (each sample decoded, its form and entry
//! points rebuilt).

mod consistency;
pub(crate) mod contents;
mod deep;
mod diagnose;
mod in_store;
mod locate;
mod problem;
pub mod sharded;

pub use deep::verify_deep;
pub use problem::{DamageLocation, Problem};

use crate::Error;
use crate::key_index::check_keys;
use crate::store::RemoteOptions;
use crate::stored_part::StoredPart;
use consistency::Sums;
use contents::check_contents;
pub(crate) use diagnose::cause_of;
use meetpoint_format::dataset::{MANIFEST_BYTES_MAX, MANIFEST_NAME, Manifest, PartEntry};
use meetpoint_format::key_index::KEY_INDEX_NAME;
use meetpoint_prepare::{Dataset, is_url};
use meetpoint_storage::files::read_regular;
use meetpoint_storage::is_of_the_file;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes per read.
const READ_BYTES: usize = 1 << 20;

/// The progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VerifyProgress {
    /// Bytes of part files read.
    pub bytes_done: u64,
    /// Bytes of all part files, and of content in place.
    pub bytes: u64,
    /// Samples of the dataset.
    pub samples: u64,
}

/// Options of [`verify_with`].
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// Threads that read content in place; 0 for one per processor.
    pub threads: usize,
    /// Set by another thread to stop, with [`Error::Interrupted`].
    pub stop: Arc<AtomicBool>,
    /// How a dataset at a URL is read.
    pub remote: RemoteOptions,
}

/// The result of verification.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct VerifyReport {
    /// Samples that the manifest lists.
    pub samples: u64,
    /// Part files that were checked.
    pub parts: u64,
    /// Number of checked bytes.
    pub bytes: u64,
    /// The problems; empty for a sound dataset.
    pub problems: Vec<Problem>,
    /// Notes, as sentences: the folder of a plan that was not removed.
    pub notes: Vec<String>,
    /// The results of [`verify_deep`], if it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deep: Option<DeepReport>,
}

/// Counts of intact samples.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct DeepReport {
    /// Samples that can be decoded.
    pub decoded: u64,
    /// Samples that can be restored from the coefficient form.
    pub converted: u64,
    /// Samples that are not JPEG.
    pub not_jpeg: u64,
    /// Samples whose entry points match their file.
    pub entry_points: u64,
}

impl VerifyReport {
    /// Whether every bit is unchanged.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

/// [`verify_with`] the default options.
///
/// ```
/// use meetpoint_datasets::{PackOptions, DamageLocation, pack, verify};
///
/// # let folder = tempfile::tempdir()?;
/// # let set = folder.path().join("pictures.set");
/// pack("tests/golden/pictures".as_ref(), &set, &PackOptions::default(), &mut |_| ())?;
/// assert!(verify(&set, &mut |_| ())?.is_sound());
///
/// // One flipped bit in the middle of a part is found, and reported with the sample.
/// let part = set.join("part-00000.arrow");
/// let mut bytes = std::fs::read(&part)?;
/// let middle = bytes.len() / 2;
/// bytes[middle] ^= 1;
/// std::fs::write(&part, bytes)?;
/// let report = verify(&set, &mut |_| ())?;
/// assert_eq!(report.problems[0].file, "part-00000.arrow");
/// assert!(matches!(report.problems[0].place, DamageLocation::Row { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn verify(
    path: &Path,
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<VerifyReport, Error> {
    verify_with(path, &VerifyOptions::default(), progress)
}

/// Reads a whole dataset and compares it with its checksums.
///
/// Damage is reported, not returned as an error; a folder that cannot be read is an error.
pub fn verify_with(
    path: &Path,
    options: &VerifyOptions,
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<VerifyReport, Error> {
    if is_url(path) {
        return in_store::verify(path, options, progress);
    }
    let failed = |source| meetpoint_prepare::Error::Open { path: path.to_path_buf(), source };
    let text = match read_regular(&path.join(MANIFEST_NAME), MANIFEST_BYTES_MAX) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && path.is_dir() => {
            let problem = "it holds no dataset.json";
            let path = path.to_path_buf();
            return Err(meetpoint_prepare::Error::NotADataset { path, problem }.into());
        }
        read => read.map_err(failed)?,
    };
    let mut report = VerifyReport::default();
    let manifest = match Manifest::from_json(&text) {
        Ok(manifest) => manifest,
        Err(error) => {
            report.problems.push(Problem {
                file: MANIFEST_NAME.to_owned(),
                place: DamageLocation::File,
                problem: format!(
                    "{error}; restore it, since the parts cannot be checked without it, or recover \
                     the samples with `meetpoint dataset repair`"
                ),
            });
            return Ok(report);
        }
    };
    report.samples = manifest.samples;
    let mut done = VerifyProgress {
        bytes_done: 0,
        bytes: manifest.parts.iter().map(|part| part.bytes).sum(),
        samples: manifest.samples,
    };
    if manifest.is_in_place() {
        done.bytes += manifest.image_bytes;
    }
    progress(done);
    let mut sums = Sums::default();
    for entry in &manifest.parts {
        let before = done.bytes_done;
        let mut advance = |bytes| {
            done.bytes_done += bytes;
            progress(done);
            !options.stop.load(Ordering::Relaxed)
        };
        let problems = check_entry(path, entry, &manifest, &mut sums, &mut advance)?;
        if options.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        report.problems.extend(problems);
        report.parts += 1;
        report.bytes += done.bytes_done - before;
        done.bytes_done = before + entry.bytes;
    }
    check_whole(path, &manifest, &sums, options, &mut report, &mut |bytes| {
        done.bytes_done += bytes;
        progress(done);
    })?;
    Ok(report)
}

/// What is wrong with one part; an error where this process cannot open it.
fn check_entry(
    path: &Path,
    entry: &PartEntry,
    manifest: &Manifest,
    sums: &mut Sums,
    advance: &mut dyn FnMut(u64) -> bool,
) -> Result<Vec<Problem>, Error> {
    let part = StoredPart { path: path.join(&entry.file) };
    let file = match part.open() {
        Err(source) if !is_damage(&source) => {
            return Err(Error::Source { path: part.path, source });
        }
        opened => opened,
    };
    let problems = verify_part((&part, file), entry, manifest, sums, advance).into_iter();
    let file = &entry.file;
    Ok(problems.map(|(place, problem)| Problem { file: file.clone(), place, problem }).collect())
}

/// Whether a part that does not open is damaged, and not merely out of reach of this process.
fn is_damage(error: &std::io::Error) -> bool {
    is_of_the_file(error) && error.kind() != ErrorKind::PermissionDenied
}

/// Adds what is wrong with the dataset as a whole, where its parts are sound; `advance` receives
/// the bytes of content read elsewhere.
fn check_whole(
    path: &Path,
    manifest: &Manifest,
    sums: &Sums,
    options: &VerifyOptions,
    report: &mut VerifyReport,
    advance: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    // The sums of damaged parts would only tell the same damage again.
    if report.is_sound() {
        let differences = sums.differences(manifest).into_iter();
        report.problems.extend(differences.map(|problem| Problem {
            file: MANIFEST_NAME.to_owned(),
            place: DamageLocation::File,
            problem,
        }));
    }
    if report.is_sound() && manifest.is_in_place() {
        let dataset = Dataset::open(path)?;
        let mut read = 0;
        let found = check_contents(&dataset, options.threads, &options.stop, &mut |bytes| {
            read += bytes;
            advance(bytes);
        })?;
        report.bytes += read;
        report.problems.extend(found);
    }
    if report.is_sound()
        && let Some(problem) = check_keys(&Dataset::open(path)?)?
    {
        let (file, place) = (KEY_INDEX_NAME.to_owned(), DamageLocation::File);
        report.problems.push(Problem { file, place, problem });
    }
    Ok(())
}

/// The problems of a part, given the result of opening its file.
fn verify_part(
    (part, file): (&StoredPart, std::io::Result<File>),
    entry: &PartEntry,
    manifest: &Manifest,
    sums: &mut Sums,
    advance: &mut dyn FnMut(u64) -> bool,
) -> Vec<(DamageLocation, String)> {
    let opened = file.and_then(|file| Ok((file.metadata()?.len(), file)));
    let (bytes, file) = match opened {
        Err(error) => {
            return vec![(DamageLocation::File, format!("does not open: {error}; restore it"))];
        }
        Ok(opened) => opened,
    };
    if bytes != entry.bytes {
        let problem =
            format!("{bytes} bytes long, packed with {}; restore it or pack again", entry.bytes);
        return vec![(DamageLocation::File, problem)];
    }
    match sha256_of(&file, bytes, advance) {
        Err(error) => vec![(DamageLocation::File, format!("cannot be read: {error}; restore it"))],
        Ok(sha256) if sha256 == entry.sha256 => consistency::check(part, entry, manifest, sums),
        Ok(_) => diagnose::diagnose(part, entry),
    }
}

/// The SHA-256 of a part; `advance` receives the bytes read, and returns whether to continue.
fn sha256_of(
    file: &File,
    bytes: u64,
    advance: &mut dyn FnMut(u64) -> bool,
) -> std::io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; READ_BYTES];
    let mut offset = 0;
    while offset < bytes {
        let wanted = (bytes - offset).min(READ_BYTES as u64);
        let buffer = &mut buffer[..usize::try_from(wanted).expect("at most READ_BYTES")];
        file.read_exact_at(buffer, offset)?;
        hasher.update(&*buffer);
        offset += wanted;
        if !advance(wanted) {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::{ErrorKind, is_damage};

    #[test]
    fn a_part_without_permission_is_not_damaged() {
        assert!(!is_damage(&ErrorKind::PermissionDenied.into()));
        assert!(is_damage(&ErrorKind::NotFound.into()));
    }
}
