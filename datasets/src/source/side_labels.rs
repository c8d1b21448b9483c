//! Names of labels in a side file, for formats whose labels are numbers: `labels.json`, a JSON list
//! of strings by index, as the sinks write it.

use super::side_files::LABELS_NAME;
use super::{Entry, Finished, SampleOrigin, Size, Source, SourceSchema};
use crate::Error;
use crate::message::Message;
use crate::store::StorePath;
use std::io::Read;

/// Maximum bytes of such a file.
const BYTES_MAX: u64 = 64 << 20;
/// Kinds of sources that may have one.
const KINDS: [&str; 4] = ["tar", "tfrecord", "mds", "datadings"];

/// A source whose labels get the names in a side file, unless it has names itself.
struct WithLabelNames {
    source: Box<dyn Source>,
    names: Vec<String>,
}

/// Names the labels of a source if there is a side file.
pub(super) fn named(
    source: Box<dyn Source>,
    kind: &str,
    path: &StorePath,
) -> Result<Box<dyn Source>, Error> {
    let names = match KINDS.contains(&kind) {
        true if path.is_dir() => of_folder(path)?,
        true => of_folder(&path.folder())?,
        false => Vec::new(),
    };
    Ok(if names.is_empty() { source } else { Box::new(WithLabelNames { source, names }) })
}

impl Source for WithLabelNames {
    fn schema(&self) -> &SourceSchema {
        self.source.schema()
    }

    fn size(&self) -> Size {
        self.source.size()
    }

    fn next(&mut self) -> Result<Option<Entry>, Error> {
        self.source.next()
    }

    fn finish(&mut self) -> Result<Finished, Error> {
        let mut finished = self.source.finish()?;
        if finished.labels.is_empty() {
            finished.labels = std::mem::take(&mut self.names);
        }
        Ok(finished)
    }
}

/// The names in the side file of a folder; none if there is no such file.
fn of_folder(folder: &StorePath) -> Result<Vec<String>, Error> {
    let path = folder.join(LABELS_NAME);
    let failed = |source| Error::Source { path: path.to_path_buf(), source };
    let file = match path.open() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened.map_err(failed)?,
    };
    let malformed = |problem: String| Error::Malformed {
        origin: Box::new(SampleOrigin {
            file: path.display().to_string(),
            ..SampleOrigin::default()
        }),
        problem: Message::from(problem).remedy("move it away"),
    };
    let mut text = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(malformed(format!("more than {BYTES_MAX} bytes")));
    }
    serde_json::from_slice(&text)
        .map_err(|error| malformed(format!("not a JSON list of the names of labels ({error})")))
}
