//! A folder with a file for each sample, under its key.
//!
//! If a key has no extension, its file gets that of its content, so that programs recognise it as a
//! picture; the key is then in the column `meetpoint.key` of the table.
//!
//! Further columns, and labels that are not folder names, are written to `metadata.jsonl` as in
//! Hugging Face's image folders: one object per sample, with `file_name`.

use super::extension::{by_content, split};
use super::files::Output;
use super::tree::{self, Root};
use super::{Closed, LABEL, OutSample, Refusal, Sink, SinkKind, Tally, type_notes, unheld, value};
use crate::Error;
use crate::natural_order;
use crate::source::tar::WHOLE_KEY;
use crate::source::{ContentKind, SourceSchema};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::Arc;

/// Name of the table.
pub(crate) const METADATA_NAME: &str = "metadata.jsonl";
/// Name of the table until the names of the labels are known.
const PENDING_NAME: &str = ".metadata.jsonl.pending";
/// Column of the table with the name of the file.
const FILE_NAME: &str = "file_name";

/// Writes the table; the files are written by many threads.
pub(super) struct Folder {
    path: PathBuf,
    root: Arc<Root>,
    has_columns: bool,
    /// The table, with labels as numbers.
    pending: Output,
    /// The folder that contains the samples of each label, and no others; `None` if there is none.
    folders: BTreeMap<Option<i32>, Option<String>>,
    /// Files whose names are not the keys.
    renamed: u64,
    notes: Vec<String>,
}

impl Folder {
    pub(super) fn create(path: PathBuf, schema: &SourceSchema) -> Result<Self, Error> {
        if schema.kind == ContentKind::None {
            let reason = "samples without content are not files";
            return Err(unheld(SinkKind::Folder, "content", reason));
        }
        for field in schema.extra.fields() {
            if value::has_bytes(field.data_type()) {
                let reason = "it has bytes, which metadata.jsonl cannot store";
                return Err(unheld(SinkKind::Folder, field.name(), reason));
            }
            if field.name() == FILE_NAME || field.name() == WHOLE_KEY {
                let reason = "metadata.jsonl has the name or the key of the file there";
                return Err(unheld(SinkKind::Folder, field.name(), reason));
            }
        }
        let notes = type_notes(&schema.extra, "JSON", &|field| {
            value::is_determined_by_its_values(field.data_type())
        });
        let root =
            Root::open(&path).map_err(|source| Error::Write { path: path.clone(), source })?;
        let pending = Output::create(path.join(PENDING_NAME))?;
        Ok(Self {
            path,
            root: Arc::new(root),
            has_columns: !schema.extra.fields().is_empty(),
            pending,
            folders: BTreeMap::new(),
            renamed: 0,
            notes,
        })
    }

    /// Whether the folders determine each label: all samples of a class are in the folder of its
    /// name, and the classes are in the order in which folders are numbered.
    fn folders_name_every_label(&self, labels: &[String]) -> bool {
        let mut sorted = labels.to_vec();
        sorted.sort_by(|left, right| natural_order(left, right));
        if self.folders.keys().all(Option::is_none) {
            // Without labels there must be no folders, since readers would take them for classes.
            return self.folders.values().all(|folder| folder.as_deref() == Some(""));
        }
        sorted == labels
            && self.folders.len() == labels.len()
            && self.folders.iter().all(|(label, folder)| {
                let index = label.and_then(|label| usize::try_from(label).ok());
                let name = index.and_then(|index| labels.get(index));
                name.is_some() && name == folder.as_ref()
            })
    }

    /// Writes the final table.
    fn write_table(&self, labels: &[String], tally: &mut Tally) -> Result<(), Error> {
        let from = self.pending.path();
        let failed = |source| Error::Source { path: from.to_path_buf(), source };
        let mut to = Output::create(self.path.join(METADATA_NAME))?;
        for line in BufReader::new(File::open(from).map_err(failed)?).lines() {
            let line = line.map_err(failed)?;
            // The line is `LABEL NAME-AS-JSON COLUMNS-AS-JSON`, separated by tabs, which JSON
            // escapes.
            let mut pieces = line.splitn(3, '\t');
            let mut piece = || pieces.next().expect("each line was written with three pieces");
            let (label, name, columns) = (piece(), piece(), piece());
            let mut object = format!("{{\"{FILE_NAME}\": {name}");
            if let Ok(label) = label.parse::<i32>() {
                let name = usize::try_from(label).ok().and_then(|label| labels.get(label));
                let name = name.map_or_else(
                    || label.to_string(),
                    |name| serde_json::to_string(name).expect("a string serialises"),
                );
                object.push_str(&format!(", \"{LABEL}\": {name}"));
            }
            let columns = columns.strip_prefix('{').expect("columns are an object");
            if columns != "}" {
                object.push_str(", ");
            }
            object.push_str(columns);
            object.push('\n');
            to.append(object.as_bytes())?;
        }
        to.finish(tally)
    }
}

impl Sink for Folder {
    fn root(&self) -> Option<Arc<Root>> {
        Some(Arc::clone(&self.root))
    }

    fn put(&mut self, sample: &OutSample<'_>, is_kept: bool) -> Result<(), Refusal> {
        let mut object = sample.json()?;
        if !is_kept {
            return Ok(());
        }
        if sample.file_name != sample.key {
            object.insert(WHOLE_KEY.to_owned(), sample.key.into());
            self.renamed += 1;
        }
        let columns = serde_json::to_string(&object).expect("plain values serialise");
        let name = serde_json::to_string(sample.file_name).expect("a string serialises");
        let label = sample.label.map_or(String::new(), |label| label.to_string());
        self.pending.append(format!("{label}\t{name}\t{columns}\n").as_bytes())?;
        let folder = sample.key.split_once('/').map_or("", |(folder, _)| folder);
        let known = self.folders.entry(sample.label).or_insert_with(|| Some(folder.to_owned()));
        if known.as_deref() != Some(folder) {
            *known = None;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, labels: &[String]) -> Result<Closed, Error> {
        let mut tally = Tally::default();
        std::io::Write::flush(&mut self.pending).map_err(|source| self.pending.failed(source))?;
        let folders_name_every_label = self.folders_name_every_label(labels);
        if self.has_columns || self.renamed > 0 || !folders_name_every_label {
            self.write_table(labels, &mut tally)?;
        }
        if !folders_name_every_label && !labels.is_empty() {
            let note = "the folders do not determine the labels: these are in metadata.jsonl, \
                        which does not record their order";
            self.notes.push(note.to_owned());
        }
        if self.renamed > 0 {
            self.notes.push(format!(
                "{} keys have no extension, but their files have one: the keys are in \
                 `{WHOLE_KEY}` of metadata.jsonl",
                self.renamed
            ));
        }
        let pending = self.pending.path().to_path_buf();
        let failed = |source| Error::Write { path: pending.clone(), source };
        std::fs::remove_file(&pending).map_err(failed)?;
        // One sync of everything is faster than one per file.
        self.root.sync().map_err(|source| Error::Write { path: self.path.clone(), source })?;
        Ok(Closed { tally, notes: self.notes })
    }
}

/// The name of a sample's file: its key, with the extension of its content if the key has none and
/// the content identifies one.
pub(crate) fn file_name(key: &str, file: &[u8], kind: ContentKind) -> String {
    let extension = match split(key) {
        Some(_) => None,
        None if kind == ContentKind::Text => Some("txt"),
        None => by_content(file),
    };
    extension.map_or_else(|| key.to_owned(), |extension| format!("{key}.{extension}"))
}

/// The key from which [`file_name`] may have derived a file's name.
pub(crate) fn key_of_file_name(name: &str) -> Option<&str> {
    split(name).map(|(stem, _)| stem).filter(|stem| split(stem).is_none())
}

/// Checks that a key can be the name of a file in the folder; the error is why not.
pub(crate) fn check_key(key: &str) -> Result<(), &'static str> {
    if key == METADATA_NAME || key == PENDING_NAME {
        return Err("its key is the name of the table of columns");
    }
    tree::check_key(key)
}
