//! A source whose samples are indexed in place: for each sample it yields the file of the content,
//! with the length and time of the file.

use super::{Content, Entry, Finished, Item, Size, Source, SourceSchema};
use crate::message::Message;
use crate::store::{Metadata, StorePath};
use crate::{Error, LeftOut};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use meetpoint_diagnose::{Command, Remedy, printable};
use meetpoint_format::dataset::{ContentFile, ContentLocation};
use meetpoint_prepare::modified_ns;
use std::path::PathBuf;
use std::sync::Arc;

/// Yields the samples of another source with an additional column, their locations.
pub(crate) struct InPlace {
    inner: Box<dyn Source>,
    /// Absolute, links resolved.
    root: PathBuf,
    schema: SourceSchema,
    /// The file that was checked last, since the samples of an archive are consecutive.
    last: Option<(PathBuf, ContentFile)>,
}

impl InPlace {
    /// Wraps a source opened from `from`: a folder, a file or a pattern.
    pub(crate) fn wrap(from: &StorePath, inner: Box<dyn Source>) -> Result<Self, Error> {
        let failed = |source| Error::Source { path: from.to_path_buf(), source };
        let root = if from.is_dir() { from.resolve() } else { from.folder().resolve() };
        let root = root.map_err(failed)?;
        let text = root.to_str().ok_or_else(|| Error::NotInPlace {
            origin: from.display().to_string(),
            problem: Message::from("its path is not UTF-8").remedy("rename it"),
        })?;
        let schema = inner.schema().in_place(text);
        Ok(Self { inner, root, schema, last: None })
    }

    /// Adds the location of the content to an item.
    fn place(&mut self, item: &mut Item) -> Result<(), Error> {
        let (path, offset, bytes, metadata) = match &item.content {
            Content::Bytes(_) => {
                let problem = "the source does not contain its bytes as they would be stored (they \
                               are compressed, split, or pixels that packing encodes as a \
                               picture); use `meetpoint pack`";
                return Err(not_in_place(item, problem));
            }
            Content::File { path, bytes } => (path.clone(), 0, *bytes, None),
            Content::Range { file, offset, bytes } => {
                let metadata = file.file.metadata().map(Metadata::from);
                (file.path.clone(), *offset, *bytes, Some(metadata))
            }
        };
        let failed = |source| Error::Source { path: path.to_path_buf(), source };
        let known = self.last.as_ref().filter(|(known, _)| known == path.path());
        let file = match known {
            Some((_, file)) => file.clone(),
            None => {
                let metadata = match metadata {
                    Some(metadata) => metadata.map_err(failed)?,
                    None => path.metadata().map_err(failed)?,
                };
                let file = self.describe(&path, &metadata, item)?;
                self.last = Some((path.to_path_buf(), file.clone()));
                file
            }
        };
        let column = ContentLocation { file, offset, bytes }.to_array();
        item.extra = Some((Arc::new(with_column(&self.schema.extra, item, column)?), 0));
        Ok(())
    }

    fn describe(
        &self,
        path: &StorePath,
        metadata: &Metadata,
        item: &Item,
    ) -> Result<ContentFile, Error> {
        let failed = |source| Error::Source { path: path.to_path_buf(), source };
        let resolved = path.resolve().map_err(failed)?;
        let relative = resolved.strip_prefix(&self.root).map_err(|_| {
            let to = resolved.display();
            not_in_place(
                item,
                Message::from(format!("it is a link to {to}, outside of the source"))
                    .remedy(Remedy::run(Command::PackFollowingLinks)),
            )
        })?;
        let relative = relative.to_str().ok_or_else(|| {
            not_in_place(item, Message::from("its path is not UTF-8").remedy("rename it"))
        })?;
        Ok(ContentFile {
            path: relative.to_owned(),
            bytes: metadata.bytes,
            modified_ns: modified_ns(metadata.modified),
        })
    }
}

/// The further columns of an item, with one more column.
fn with_column(
    schema: &SchemaRef,
    item: &Item,
    column: arrow_array::ArrayRef,
) -> Result<RecordBatch, Error> {
    let mut columns = match &item.extra {
        Some((batch, row)) => batch.slice(*row, 1).columns().to_vec(),
        None => Vec::new(),
    };
    columns.push(column);
    RecordBatch::try_new(Arc::clone(schema), columns)
        .map_err(|error| not_in_place(item, error.to_string()))
}

fn not_in_place(item: &Item, problem: impl Into<Message>) -> Error {
    let origin = item.origin.to_string();
    let is_told = origin.ends_with(&printable(&item.key));
    let origin = if is_told { origin } else { format!("{origin} ({})", printable(&item.key)) };
    Error::NotInPlace { origin, problem: problem.into() }
}

impl Source for InPlace {
    fn schema(&self) -> &SourceSchema {
        &self.schema
    }

    fn size(&self) -> Size {
        self.inner.size()
    }

    fn next(&mut self) -> Result<Option<Entry>, Error> {
        let mut entry = self.inner.next()?;
        if let Some(Entry::Sample(item)) = &mut entry {
            match self.place(item) {
                // A file that cannot be read (for example a dangling link) affects only one sample.
                Err(Error::Source { source, .. }) => {
                    let (path, reason) = (item.name(), source.to_string().into());
                    entry = Some(Entry::Unreadable(LeftOut { path, reason }));
                }
                placed => placed?,
            }
        }
        Ok(entry)
    }

    fn finish(&mut self) -> Result<Finished, Error> {
        self.inner.finish()
    }
}
