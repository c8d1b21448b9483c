//! The journal of a writer, from which another writer can resume: the complete parts, and the state
//! of the caller at the end of each.
//!
//! A file of JSON lines in the working folder. The first line identifies the job; each further line
//! is appended and synced after its part was synced. An incomplete last line was being written when
//! the process was killed, and is ignored.

use super::written::{RowCounts, WrittenParts, sha256_of};
use crate::Error;
use crate::destination::JOURNAL_NAME;
use crate::writer_inputs::{ResumeConflict, WriterInputs};
use meetpoint_format::dataset::{PartEntry, part_name};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Longest journal that is read, in bytes.
const JOURNAL_BYTES_MAX: u64 = 1 << 30;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    /// Program and version, which affect the bytes.
    tool: String,
    #[serde(rename = "recipe")]
    inputs: WriterInputs,
}

/// A line for each part.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    part: PartEntry,
    /// Row counts of all parts so far.
    image_bytes: u64,
    image_bytes_max: u64,
    entry_points: u64,
    entry_points_bytes: u64,
    /// The state of the caller.
    state: String,
}

/// A journal being written.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    /// Number of recorded parts.
    parts: u64,
}

/// The content of a journal, limited to parts that are intact.
#[derive(Default)]
pub(super) struct JournalContent {
    pub(super) written: WrittenParts,
    /// The state of the caller at the end of each part.
    pub(super) states: Vec<String>,
    /// Why recorded parts are written again, as sentences.
    pub(super) again: Option<String>,
}

impl Journal {
    /// Creates a journal.
    pub(super) fn create(folder: &Path, inputs: &WriterInputs) -> Result<Self, Error> {
        let path = folder.join(JOURNAL_NAME);
        let file = File::create_new(&path)
            .map_err(|source| Error::Write { path: path.clone(), source })?;
        let mut journal = Self { file, path, parts: 0 };
        let tool = super::TOOL.to_owned();
        journal.add(&Head { tool, inputs: inputs.clone() })?;
        Ok(journal)
    }

    /// Records that a part is complete and synced; `rows` counts those of all parts so far.
    pub(super) fn note(
        &mut self,
        part: &PartEntry,
        rows: &RowCounts,
        state: String,
    ) -> Result<(), Error> {
        self.add(&Line {
            part: part.clone(),
            image_bytes: rows.image_bytes,
            image_bytes_max: rows.image_bytes_max,
            entry_points: rows.entry_points,
            entry_points_bytes: rows.entry_points_bytes,
            state,
        })?;
        self.parts += 1;
        Ok(())
    }

    /// Number of parts after which a writer can resume.
    pub(super) fn parts(&self) -> u64 {
        self.parts
    }

    fn add(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let mut text = serde_json::to_string(line).expect("strings and integers always serialise");
        text.push('\n');
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_all());
        written.map_err(|source| Error::Write { path: self.path.clone(), source })
    }

    /// Removes the journal of a finished dataset.
    pub(super) fn remove(&self) -> Result<(), Error> {
        std::fs::remove_file(&self.path)
            .map_err(|source| Error::Write { path: self.path.clone(), source })
    }

    /// Resumes the journal in `folder`: retains the intact parts and removes everything else.
    pub(super) fn resume(folder: &Path) -> Result<(Self, JournalContent), Error> {
        let path = folder.join(JOURNAL_NAME);
        let failed = |source| Error::Write { path: path.clone(), source };
        let text = read(&path).map_err(failed)?;
        let mut found = JournalContent::default();
        let mut kept_bytes = text.find('\n').map_or(0, |end| end + 1);
        for line in text[kept_bytes..].split_inclusive('\n') {
            let Ok(Line {
                part,
                image_bytes,
                image_bytes_max,
                entry_points,
                entry_points_bytes,
                state,
            }) = serde_json::from_str(line)
            else {
                let line = found.states.len() + 2;
                found.again = Some(again(&path, &format!("its line {line} cannot be parsed")));
                break;
            };
            if let Some(problem) = why_not_whole(folder, &part) {
                let part = folder.join(&part.file);
                found.again = Some(again(&part, problem));
                break;
            }
            kept_bytes += line.len();
            let samples = found.written.rows.samples + part.samples;
            found.written.rows = RowCounts {
                samples,
                image_bytes,
                image_bytes_max,
                entry_points,
                entry_points_bytes,
            };
            found.written.entries.push(part);
            found.states.push(state);
        }
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let is_kept = name == JOURNAL_NAME
                || found.written.entries.iter().any(|part| name.to_str() == Some(&part.file));
            if !is_kept {
                std::fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        let file = OpenOptions::new().append(true).open(&path).map_err(failed)?;
        file.set_len(kept_bytes as u64).and_then(|()| file.sync_all()).map_err(failed)?;
        let parts = found.states.len() as u64;
        Ok((Self { file, path, parts }, found))
    }
}

/// The note about a part that is written again.
fn again(path: &Path, problem: &str) -> String {
    format!("{}: {problem}; that part and all later ones were written again", path.display())
}

/// Compares the inputs of the journal in `folder`; the error is the first difference. `None` if
/// there is nothing to resume.
pub(crate) fn compare(folder: &Path, inputs: &WriterInputs) -> Option<Result<(), ResumeConflict>> {
    let unreadable = |problem: String| Some(Err(ResumeConflict::Journal { problem }));
    let text = match read(&folder.join(JOURNAL_NAME)) {
        // The process was killed before it wrote the first line, or the folder is one for files.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return unreadable(error.to_string()),
        Ok(text) => text,
    };
    let Some((first, _)) = text.split_once('\n') else {
        let has_part = folder.join(part_name(0)).exists();
        return if has_part { unreadable("it is empty".to_owned()) } else { None };
    };
    let head: Head = match serde_json::from_str(first) {
        Err(error) => return unreadable(error.to_string()),
        Ok(head) => head,
    };
    if head.tool != super::TOOL {
        return Some(Err(ResumeConflict::Tool { before: head.tool, now: super::TOOL.to_owned() }));
    }
    Some(head.inputs.difference(inputs).map_or(Ok(()), Err))
}

/// The complete lines of a journal.
fn read(path: &Path) -> std::io::Result<String> {
    if path.symlink_metadata()?.len() > JOURNAL_BYTES_MAX {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = std::fs::read(path)?;
    bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
    String::from_utf8(bytes).map_err(|error| std::io::Error::other(error.utf8_error()))
}

/// The problem of a written part; `None` if it is intact.
fn why_not_whole(folder: &Path, part: &PartEntry) -> Option<&'static str> {
    let mut names = Path::new(&part.file).components();
    let is_plain =
        matches!((names.next(), names.next()), (Some(std::path::Component::Normal(_)), None));
    let path = folder.join(&part.file);
    let Ok(found) = path.symlink_metadata() else { return Some("it is no longer there") };
    if !is_plain || !found.is_file() {
        return Some("it is not a part file");
    }
    if found.len() != part.bytes {
        return Some("its length differs from the recorded one");
    }
    match File::open(path).and_then(|mut file| sha256_of(&mut file)) {
        Err(_) => Some("it does not read"),
        Ok(sha256) if sha256 != part.sha256 => Some("its checksum differs from the recorded one"),
        Ok(_) => None,
    }
}
