//! The folder of a plan, which all shards and the commit share.
//!
//! It contains `plan.json`, `stamps.bin` and, for each finished part, its files and its record
//! `part-NNNNN.json`, which appears last and begins with the SHA-256 of its other fields. Every
//! attempt writes files with unique names and renames them. Two attempts at the same part write the
//! same bytes, so either may be renamed last. Files of killed attempts are named `.attempt-…`; the
//! commit removes them.

use super::plan::{ShardPlan, ShardSummary};
use super::stamps;
use crate::Error;
use crate::error::ShardError;
use meetpoint_diagnose::shown;
use meetpoint_format::checksum::hexadecimal;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Name of the plan.
const PLAN_NAME: &str = "plan.json";
/// Name of the stamps of the files of the source.
const STAMPS_NAME: &str = "stamps.bin";
/// The first key of a record, up to its value.
const SHA256_KEY: &str = "\"sha256\":\"";
/// Prefix of the names of unfinished files.
const ATTEMPT: &str = ".attempt-";
/// Maximum size of a plan or a record, in bytes.
const JSON_BYTES_MAX: u64 = 1 << 30;
/// Maximum retries of emptying a folder into which an attempt still writes.
const REMOVALS_MAX: u32 = 10;

/// A finished part, as one line of JSON in its record and in the output of its shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line<T> {
    /// SHA-256 of the plan.
    pub plan: String,
    /// The shard.
    pub shard: u64,
    /// The part.
    pub part: u64,
    /// Its result.
    pub result: T,
}

/// The folder of a plan.
#[derive(Debug)]
pub struct PlanFolder {
    path: PathBuf,
    plan: ShardPlan,
    sha256: String,
}

/// One run of a shard; unfinished files are removed when it is dropped.
#[derive(Debug)]
pub struct Attempt<'a> {
    folder: &'a PlanFolder,
    shard: u64,
    prefix: String,
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::Write { path: path.to_path_buf(), source }
}

/// Name of the record of a part.
fn record_name(part: u64) -> String {
    format!("part-{part:05}.json")
}

impl PlanFolder {
    /// Creates the folder for a new plan; the plan itself appears last.
    pub fn create(path: &Path, plan: ShardPlan, stamps: &[u128]) -> Result<Self, Error> {
        plan.check_paths()?;
        match std::fs::create_dir(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // A folder without a plan was left behind by a killed planner.
                match Self::open(path) {
                    Ok(there) => {
                        let (folder, shards) = (path.to_path_buf(), there.plan.shards);
                        return Err(ShardError::PlanExists { folder, shards }.into());
                    }
                    Err(_) if path.join(PLAN_NAME).symlink_metadata().is_ok() || !is_ours(path) => {
                        return Err(ShardError::NotAPlan { folder: path.to_path_buf() }.into());
                    }
                    Err(_) => {
                        remove(path)?;
                        std::fs::create_dir(path).map_err(failed(path))?;
                    }
                }
            }
            created => created.map_err(failed(path))?,
        }
        let write = || {
            let (text, sha256) = plan.to_json();
            write_synced(path, STAMPS_NAME, &stamps::to_bytes(stamps))?;
            write_synced(path, PLAN_NAME, text.as_bytes())?;
            Ok(sha256)
        };
        match write() {
            Ok(sha256) => Ok(Self { path: path.to_path_buf(), plan, sha256 }),
            Err(error) => {
                // If the folder cannot be removed now, the next plan removes it.
                let _ = remove(path);
                Err(error)
            }
        }
    }

    /// Opens the folder of a plan.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let folder = || path.to_path_buf();
        let text = match read_text(&path.join(PLAN_NAME)) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let problem = match path.exists() {
                    false => "it does not exist",
                    true if is_ours(path) => {
                        "it contains no plan.json, because planning or a commit was killed; if \
                         the destination exists, it is complete, and this folder can be removed"
                    }
                    true => "it contains no plan.json",
                };
                let problem = problem.to_owned();
                return Err(ShardError::NoPlan { folder: folder(), problem }.into());
            }
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                let problem = "its plan.json is not UTF-8".to_owned();
                return Err(ShardError::NoPlan { folder: folder(), problem }.into());
            }
            Err(source) => return Err(Error::Source { path: path.join(PLAN_NAME), source }),
        };
        let (plan, sha256) = ShardPlan::from_json(path, &text)?;
        Ok(Self { path: path.canonicalize().unwrap_or_else(|_| folder()), plan, sha256 })
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The plan.
    pub fn plan(&self) -> &ShardPlan {
        &self.plan
    }

    /// SHA-256 of the plan.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Fails if the source changed since it was planned. The error names a file.
    pub fn check_source(&self) -> Result<(), Error> {
        match &self.plan.source {
            None => Ok(()),
            Some(source) => stamps::check(source, &self.path.join(STAMPS_NAME)),
        }
    }

    /// The record of a part; `None` if it is not finished. Fails if the record cannot be parsed or
    /// belongs to another plan.
    pub fn done<T: for<'de> Deserialize<'de>>(&self, part: u64) -> Result<Option<T>, Error> {
        let file = self.path.join(record_name(part));
        let text = match read_text(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Source { path: file, source }),
        };
        let shard = self.plan.shard_of(part);
        let damaged = |problem: String| ShardError::Damaged { file: file.clone(), problem, shard };
        let fields = checked(&text).ok_or_else(|| damaged("its SHA-256 is wrong".to_owned()))?;
        let Line { plan, part: of, result, .. } = serde_json::from_str(&fields)
            .map_err(|error| damaged(format!("it cannot be parsed: {error}")))?;
        if plan != self.sha256 || of != part {
            return Err(ShardError::OtherPlan { file, shard }.into());
        }
        Ok(Some(result))
    }

    /// The records of all parts. If some are missing, the error names their shards.
    /// Fails, too, if the folder contains foreign files.
    pub fn all_done<T: for<'de> Deserialize<'de>>(&self) -> Result<Vec<T>, Error> {
        self.check_entries()?;
        let mut results = Vec::with_capacity(self.plan.parts.len());
        let mut missing: Vec<(u64, u64)> = Vec::new();
        for part in 0..self.plan.parts.len() as u64 {
            if let Some(result) = self.done(part)? {
                results.push(result);
                continue;
            }
            let shard = self.plan.shard_of(part);
            match missing.last_mut() {
                Some((last, parts)) if *last == shard => *parts += 1,
                _ => missing.push((shard, 1)),
            }
        }
        if missing.is_empty() {
            return Ok(results);
        }
        Err(ShardError::Missing { folder: self.path.clone(), shards: missing }.into())
    }

    /// The error for a part whose files differ from its record. Removes the record, so that the
    /// shard produces the part again.
    pub(crate) fn damaged(&self, part: u64, file: PathBuf, problem: &str) -> Error {
        // If the removal fails, the shard skips the part, and the next commit fails again.
        let _ = std::fs::remove_file(self.path.join(record_name(part)));
        let shard = self.plan.shard_of(part);
        ShardError::Damaged { file, problem: problem.to_owned(), shard }.into()
    }

    /// Fails if the folder contains anything but files of the plan, which a commit would have to
    /// delete with it.
    fn check_entries(&self) -> Result<(), Error> {
        match foreign(&self.path) {
            None => Ok(()),
            Some(file) => Err(ShardError::Foreign { file }.into()),
        }
    }

    /// Locks the folder against commits by other processes, as long as the returned file is open.
    /// Fails if another process holds the lock, or has committed the plan and removed the folder.
    /// Hosts whose shared file system has no locks are not excluded.
    pub fn lock(&self) -> Result<File, Error> {
        let folder = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(self.gone()),
            opened => opened.map_err(failed(&self.path))?,
        };
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) | Err(Errno::NOLCK | Errno::NOTSUP) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(ShardError::InUse { folder: self.path.clone() }.into());
            }
            Err(errno) => return Err(failed(&self.path)(errno.into())),
        }
        if !self.path.join(PLAN_NAME).exists() {
            return Err(self.gone());
        }
        Ok(folder)
    }

    /// The error for a folder that another process has removed.
    fn gone(&self) -> Error {
        ShardError::Gone { folder: self.path.clone() }.into()
    }

    /// Begins an attempt at a shard.
    pub fn attempt(&self, shard: u64) -> Result<Attempt<'_>, Error> {
        let shards = self.plan.shard_count();
        if shard >= shards {
            return Err(ShardError::Index { shard, shards }.into());
        }
        // A process ID may be the same on two hosts.
        let prefix = format!("{ATTEMPT}{:016x}-", RandomState::new().hash_one(shard));
        Ok(Attempt { folder: self, shard, prefix })
    }

    /// Removes the folder once the result is complete. Returns the files of unfinished attempts
    /// that were in it, and a note for the user if it cannot be removed.
    pub fn remove(self) -> (Vec<PathBuf>, Option<String>) {
        let why = match remove(&self.path) {
            Ok(attempts) => return (attempts, None),
            Err(Error::Write { source, .. }) => source.to_string(),
            Err(error) => error.to_string(),
        };
        let note = format!(
            "{} is not removed: {why}; remove it, since the result is complete",
            shown(&self.path)
        );
        (Vec::new(), Some(note))
    }
}

impl Attempt<'_> {
    /// The folder of the plan.
    pub fn folder(&self) -> &PlanFolder {
        self.folder
    }

    /// Its parts that are not finished, as ranges. They include parts whose record is damaged or
    /// belongs to another plan.
    pub fn missing<T: for<'de> Deserialize<'de>>(&self) -> Result<Vec<Range<u64>>, Error> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for part in self.folder.plan.parts_of(self.shard) {
            match self.folder.done::<T>(part) {
                Ok(Some(_)) => continue,
                Ok(None)
                | Err(Error::Shards(ShardError::Damaged { .. } | ShardError::OtherPlan { .. })) => {
                }
                Err(error) => return Err(error),
            }
            match ranges.last_mut() {
                Some(last) if last.end == part => last.end += 1,
                _ => ranges.push(part..part + 1),
            }
        }
        Ok(ranges)
    }

    /// Temporary path of a file that is not finished.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path.join(format!("{}{name}", self.prefix))
    }

    /// Renames the files of a part to their names, then writes its record. Returns the record.
    ///
    /// The files must be synced. Files that another attempt has published have the same bytes.
    pub fn publish<T: Serialize>(
        &self,
        part: u64,
        files: &[(PathBuf, String)],
        result: T,
    ) -> Result<Line<T>, Error> {
        for (from, name) in files {
            let to = self.folder.path.join(name);
            std::fs::rename(from, &to).map_err(failed(&to))?;
        }
        let (plan, shard) = (self.folder.sha256.clone(), self.shard);
        let line = Line { plan, shard, part, result };
        let text = with_sha256(&serde_json::to_string(&line).expect("results serialise"));
        let name = record_name(part);
        let record = self.path(&name);
        let write = || {
            let mut file = File::create_new(&record)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            // The renames must be durable before the record appears.
            File::open(&self.folder.path)?.sync_all()?;
            std::fs::rename(&record, self.folder.path.join(&name))?;
            File::open(&self.folder.path)?.sync_all()
        };
        write().map_err(failed(&record))?;
        Ok(line)
    }

    /// Summarises the run; `missing` are the parts that were unfinished at its beginning.
    pub fn summary(&self, missing: &[Range<u64>]) -> ShardSummary {
        let plan = &self.folder.plan;
        let parts = plan.parts_of(self.shard);
        let made = missing.iter().cloned().flatten();
        let samples = made.clone().map(|part| plan.parts[index(part)].samples).sum();
        let parts = parts.end - parts.start;
        ShardSummary {
            shard: self.shard,
            shards: plan.shard_count(),
            parts,
            parts_before: parts - made.count() as u64,
            samples,
        }
    }

    /// The error of a shard. If the folder no longer exists, returns that as the cause.
    pub fn explain(&self, error: Error) -> Error {
        if matches!(error, Error::Write { .. }) && !self.folder.path.join(PLAN_NAME).exists() {
            return self.folder.gone();
        }
        error
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let Ok(entries) = std::fs::read_dir(&self.folder.path) else { return };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(&self.prefix) {
                // If removal fails, the commit removes it.
                let _ = std::fs::remove_file(entry.path());
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// The number of a part as an index into the plan's parts.
pub(super) fn index(part: u64) -> usize {
    usize::try_from(part).expect("parts are addressable")
}

fn read_text(path: &Path) -> std::io::Result<String> {
    let bytes = meetpoint_storage::files::read_regular(path, JSON_BYTES_MAX)?;
    String::from_utf8(bytes).map_err(|error| std::io::Error::new(ErrorKind::InvalidData, error))
}

/// The text of a record: a JSON object with the SHA-256 of `fields`, itself an object, as its first
/// field.
fn with_sha256(fields: &str) -> String {
    let sha256 = hexadecimal(&Sha256::digest(fields.as_bytes()));
    format!("{{{SHA256_KEY}{sha256}\",{}\n", &fields[1..])
}

/// The fields of a record without its checksum; `None` if they differ from it.
fn checked(text: &str) -> Option<String> {
    let rest = text.strip_prefix('{')?.strip_prefix(SHA256_KEY)?;
    let (digest, fields) = rest.split_once("\",")?;
    let fields = format!("{{{}", fields.trim_end());
    (hexadecimal(&Sha256::digest(fields.as_bytes())) == digest).then_some(fields)
}

/// Writes a file atomically.
fn write_synced(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let partial = folder.join(format!("{ATTEMPT}{name}"));
    let write = || {
        let mut file = File::create(&partial)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&partial, folder.join(name))?;
        File::open(folder)?.sync_all()
    };
    write().map_err(failed(&partial))
}

/// Whether a path is a folder, not a link to one, that contains only files of a plan.
fn is_ours(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir()) && foreign(path).is_none()
}

/// An entry of a folder that is not a file of a plan; the folder itself if it cannot be read.
fn foreign(path: &Path) -> Option<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else { return Some(path.to_path_buf()) };
    let is_foreign = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_folder = entry.file_type().is_ok_and(|found| found.is_dir());
        !name.starts_with(ATTEMPT) && (is_folder || !is_name_of_plan(&name))
    };
    entries.flatten().filter(is_foreign).map(|entry| entry.path()).min()
}

/// Whether a file of this name belongs to a plan: the plan, its stamps, or `part-NNNNN.…`.
fn is_name_of_plan(name: &str) -> bool {
    let is_part = || {
        let (number, rest) = name.strip_prefix("part-")?.split_once('.')?;
        let is_number = number.len() >= 5 && number.bytes().all(|byte| byte.is_ascii_digit());
        Some(is_number && !rest.is_empty())
    };
    name == PLAN_NAME || name == STAMPS_NAME || is_part().unwrap_or(false)
}

/// Removes the folder of a plan, which must contain no foreign files. Removes the plan itself
/// first, so that a partly removed folder is not a valid plan. Returns the files of unfinished
/// attempts.
pub(super) fn remove(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if let Some(file) = foreign(path) {
        return Err(ShardError::Foreign { file }.into());
    }
    match std::fs::remove_file(path.join(PLAN_NAME)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(path)(error)),
        _ => {}
    }
    let mut attempts = Vec::new();
    for round in 1.. {
        for entry in std::fs::read_dir(path).map_err(failed(path))?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(ATTEMPT) {
                attempts.push(entry.path());
            }
        }
        match std::fs::remove_dir_all(path) {
            // A running attempt has created a file in the meantime; its next file will fail.
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty && round < REMOVALS_MAX => {}
            removed => {
                removed.map_err(failed(path))?;
                break;
            }
        }
    }
    attempts.sort();
    attempts.dedup();
    Ok(attempts)
}
