//! The files of a table: they share a schema, are counted first, and then read one after another.

use super::hugging_face::{Features, METADATA_KEY};
use super::plain::{difference, plain_schema};
use crate::Error;
use crate::message::Message;
use crate::source::malformed::malformed;
use crate::store::StorePath;
use arrow_schema::SchemaRef;

/// The schema and size of one file.
pub(crate) struct FileSchema {
    /// The schema in the file, before conversion to plain types.
    pub(crate) schema: SchemaRef,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

/// All files, at least one.
pub(crate) struct Files {
    paths: Vec<StorePath>,
    /// The common schema, in plain types.
    pub(crate) schema: SchemaRef,
    /// The features in the metadata of the first file.
    pub(crate) features: Features,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// Index of the next file to open.
    next: usize,
}

impl Files {
    /// Examines each file with `look`; an error if the columns of one differ from those of the
    /// first.
    pub(crate) fn of(
        paths: Vec<StorePath>,
        look: impl Fn(&StorePath) -> Result<FileSchema, Error>,
    ) -> Result<Self, Error> {
        let mut first: Option<(SchemaRef, Features)> = None;
        let (mut rows, mut bytes) = (0_u64, 0);
        for path in &paths {
            let seen = look(path)?;
            let schema = plain_schema(&seen.schema);
            if let Some((first, _)) = &first {
                if let Some(difference) = difference(first, &schema) {
                    let problem = Message::from(difference).remedy("name files of one dataset");
                    return Err(malformed(path, None, problem));
                }
            } else {
                let text = seen.schema.metadata().get(METADATA_KEY);
                let features = text.map(|text| Features::of_metadata(text)).unwrap_or_default();
                first = Some((schema, features));
            }
            rows = rows.saturating_add(seen.rows);
            bytes += seen.bytes;
        }
        let (schema, features) = first.expect("a dataset lists at least one file");
        Ok(Self { paths, schema, features, rows, bytes, next: 0 })
    }

    /// All files, in order.
    pub(crate) fn paths(&self) -> &[StorePath] {
        &self.paths
    }

    /// Opens the next file with `open`, which also returns its schema; `None` after the last. An
    /// error if the columns changed since the file was examined.
    pub(crate) fn open_next<T>(
        &mut self,
        open: impl FnOnce(&StorePath) -> Result<(T, SchemaRef), Error>,
    ) -> Result<Option<T>, Error> {
        let Some(path) = self.paths.get(self.next) else { return Ok(None) };
        self.next += 1;
        let (opened, schema) = open(path)?;
        match difference(&self.schema, &plain_schema(&schema)) {
            None => Ok(Some(opened)),
            Some(_) => Err(Error::SourceChanged { path: path.to_path_buf() }),
        }
    }
}
