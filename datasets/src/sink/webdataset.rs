//! Tar shards as WebDataset reads them.
//!
//! The members of a sample are consecutive and share a name up to the first dot: the content with
//! the extension of its format, `.cls` with the label in decimal, `.json` with the further columns,
//! and one member for each column of bytes. Headers contain no time, owner or machine, so that
//! shards are reproducible.

use super::extension::{extension_of, split};
use super::files::{Output, write_labels};
use super::{Closed, OutSample, Refusal, Shards, Sink, SinkKind, Tally, Value, type_notes};
use super::{tree, unheld, value};
use crate::Error;
use crate::key_set::KeySet;
use crate::source::tar::WHOLE_KEY;
use crate::source::{ContentKind, SourceSchema};
use std::path::PathBuf;
use std::sync::Arc;
use tar::{Builder, EntryType, Header};

/// Default bytes of a shard.
const SHARD_BYTES: u64 = 1 << 30;
/// Bytes of a tar header; members are padded to a multiple of it.
const BLOCK: u64 = 512;
/// Extension of the member with the further columns, and with the key if the name does not
/// determine it.
const JSON: &str = "json";
/// Extension of the member with the label.
const CLS: &str = "cls";

/// Writes `shard-NNNNNN.tar`.
pub(super) struct WebDataset {
    folder: PathBuf,
    kind: ContentKind,
    shards: Shards,
    /// The current shard, and its number of samples.
    open: Option<(Builder<Output>, u64)>,
    begun: usize,
    /// Names of the samples so far.
    names: KeySet,
    has_renamed: bool,
    tally: Tally,
    notes: Vec<String>,
}

impl WebDataset {
    pub(super) fn create(
        folder: PathBuf,
        schema: &SourceSchema,
        shards: Shards,
    ) -> Result<Self, Error> {
        for field in schema.extra.fields() {
            let is_bytes = is_bytes(field.data_type());
            if !is_bytes && value::has_bytes(field.data_type()) {
                let reason = "it contains bytes, which JSON cannot store";
                return Err(unheld(SinkKind::WebDataset, field.name(), reason));
            }
            let is_member_name = !field.name().is_empty() && !field.name().contains(['/', '\0']);
            if is_bytes && !is_member_name {
                let reason = "its name cannot be part of a file name";
                return Err(unheld(SinkKind::WebDataset, field.name(), reason));
            }
        }
        let notes = type_notes(&schema.extra, "JSON", &|field| {
            is_bytes(field.data_type()) || value::is_determined_by_its_values(field.data_type())
        });
        Ok(Self {
            folder,
            kind: schema.kind,
            shards,
            open: None,
            begun: 0,
            names: KeySet::default(),
            has_renamed: false,
            tally: Tally::default(),
            notes,
        })
    }

    /// The members of a sample in order, by extension.
    fn members(&self, sample: &OutSample<'_>, name: &Name) -> Result<Members, Refusal> {
        let mut members = Vec::new();
        if self.kind != ContentKind::None {
            members.push((name.extension.clone(), sample.file.to_vec()));
        }
        if let Some(label) = sample.label {
            members.push((CLS.to_owned(), label.to_string().into_bytes()));
        }
        let mut object = sample.json()?;
        if name.is_renamed {
            object.insert(WHOLE_KEY.to_owned(), sample.key.into());
        }
        if !object.is_empty() {
            let text = serde_json::to_vec(&object).expect("an object of plain values serialises");
            members.push((JSON.to_owned(), text));
        }
        for (column, value) in sample.values() {
            if let Value::Bytes(bytes) = value {
                let extension = extension_of("", &bytes, ContentKind::Bytes);
                members.push((format!("{column}.{extension}"), bytes));
            }
        }
        Ok(members)
    }

    /// The shard to which the next `more` bytes are written.
    fn shard(&mut self, more: u64) -> Result<&mut (Builder<Output>, u64), Error> {
        let is_full = self.open.as_ref().is_some_and(|(shard, samples)| {
            self.shards.is_full(shard.get_ref().bytes(), *samples, more, SHARD_BYTES)
        });
        if is_full {
            self.close()?;
        }
        if self.open.is_none() {
            let path = self.folder.join(SinkKind::WebDataset.shard_name(self.begun));
            self.begun += 1;
            self.open = Some((Builder::new(Output::create(path)?), 0));
        }
        Ok(self.open.as_mut().expect("it was opened just now"))
    }

    fn close(&mut self) -> Result<(), Error> {
        let Some((shard, _)) = self.open.take() else { return Ok(()) };
        let path = shard.get_ref().path().to_path_buf();
        let output = shard.into_inner().map_err(|source| Error::Write { path, source })?;
        output.finish(&mut self.tally)
    }
}

/// Contents of members by extension.
type Members = Vec<(String, Vec<u8>)>;

/// The name of a sample in a shard.
struct Name {
    /// The name up to the first dot.
    stem: String,
    /// The extension of its content.
    extension: String,
    /// Whether the key cannot be derived from the two.
    is_renamed: bool,
}

/// The name for a key: dots before the extension become underscores, since readers take everything
/// after the first dot for the extension.
fn name_of(sample: &OutSample<'_>, kind: ContentKind) -> Result<Name, Refusal> {
    tree::check_key(sample.key).map_err(|problem| Refusal::Sample(problem.to_owned()))?;
    let extension = extension_of(sample.key, sample.file, kind);
    let stem = stem_of(sample.key);
    let is_renamed = stem != sample.key;
    Ok(Name { stem, extension, is_renamed })
}

/// The name of a sample in a shard, up to the first dot.
pub(super) fn stem_of(key: &str) -> String {
    let stem = split(key).map_or(key, |(stem, _)| stem);
    let (folders, last) = match stem.rsplit_once('/') {
        Some((folders, last)) => (format!("{folders}/"), last),
        None => (String::new(), stem),
    };
    format!("{folders}{}", last.replace('.', "_"))
}

fn is_bytes(data_type: &arrow_schema::DataType) -> bool {
    use arrow_schema::DataType;
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_))
}

impl Sink for WebDataset {
    fn root(&self) -> Option<Arc<super::Root>> {
        None
    }

    fn put(&mut self, sample: &OutSample<'_>, is_kept: bool) -> Result<(), Refusal> {
        let name = name_of(sample, self.kind)?;
        let members = self.members(sample, &name)?;
        if members.is_empty() {
            let problem = "it has neither content nor label nor columns".to_owned();
            return Err(Refusal::Sample(problem));
        }
        if !self.names.insert(&name.stem) {
            return Err(Refusal::Sample(format!(
                "its name up to the first dot, {:?}, is that of another sample, and WebDataset \
                 would merge the two",
                name.stem
            )));
        }
        if !is_kept {
            return Ok(());
        }
        let more = members.iter().map(|(_, bytes)| BLOCK + bytes.len() as u64 + BLOCK).sum();
        let (shard, samples) = self.shard(more)?;
        for (extension, bytes) in &members {
            let path = format!("{}.{extension}", name.stem);
            let mut header = Header::new_ustar();
            header.set_entry_type(EntryType::Regular);
            header.set_mode(0o444);
            header.set_mtime(0);
            header.set_uid(0);
            header.set_gid(0);
            header.set_size(bytes.len() as u64);
            let appended = shard.append_data(&mut header, &path, &bytes[..]);
            appended.map_err(|source| shard.get_ref().failed(source))?;
        }
        *samples += 1;
        self.has_renamed |= name.is_renamed;
        Ok(())
    }

    fn finish(mut self: Box<Self>, labels: &[String]) -> Result<Closed, Error> {
        self.close()?;
        if write_labels(&self.folder, labels, &mut self.tally)? {
            let note = "the names of the labels are in labels.json, since `.cls` holds numbers";
            self.notes.push(note.to_owned());
        }
        if self.has_renamed {
            let note = "some keys are not the names in the shards, which end at the first dot: \
                        they are in `meetpoint.key` of the .json members";
            self.notes.push(note.to_owned());
        }
        Ok(Closed { tally: self.tally, notes: self.notes })
    }
}
