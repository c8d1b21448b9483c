//! Detects the kind of a source, with the table of all kinds.
//!
//! New kinds of source are registered here.

use super::limit::limited;
use super::links::refuse_leading_out;
use super::{
    Source, SourceOptions, arrow, cifar, datadings, ffcv, folder, idx, mds, meetpoint, parquet,
    side_labels, table, tar, tfrecord, zip,
};
use crate::Error;
use crate::store::{FileKind, StorePath};
use meetpoint_storage::is_of_the_file;

/// Opens a source of one kind.
pub type OpenSource = fn(&StorePath, &SourceOptions) -> Result<Box<dyn Source>, Error>;

/// A kind of source.
#[derive(Debug, Clone, Copy)]
pub struct SourceKind {
    /// Its name for `--from`.
    pub name: &'static str,
    /// Its description, as in "looked for a folder of images, …".
    pub words: &'static str,
    /// Names of kinds that it may also match: a source that matches both is of this kind.
    pub covers: &'static [&'static str],
    /// Returns the evidence that `path` is of this kind: "it holds the image a.jpg". It reads only
    /// names and the first bytes of files, in time independent of the number of samples.
    pub recognise: fn(&StorePath) -> Result<Option<String>, Error>,
    /// Opens it.
    pub open: OpenSource,
}

/// All kinds of sources, in the order of the list in messages.
pub const KINDS: [SourceKind; 13] = [
    SourceKind {
        name: "folder",
        words: "a folder of images, flat or with one sub-folder per class",
        covers: &[],
        recognise: folder::recognise,
        open: folder::open,
    },
    SourceKind {
        name: "table",
        words: "a CSV, TSV or JSON Lines table that names files, or a folder with one",
        covers: &["folder"],
        recognise: table::recognise,
        open: table::open,
    },
    SourceKind {
        name: "tar",
        words: "WebDataset tar shards: one, a folder of them, or a pattern such as a-{00..99}.tar",
        // img2dataset writes a Parquet file of metadata beside each shard.
        covers: &["parquet"],
        recognise: tar::recognise,
        open: tar::open,
    },
    SourceKind {
        name: "zip",
        words: "a ZIP archive of images, flat or with one folder per class",
        covers: &[],
        recognise: zip::recognise,
        open: zip::open,
    },
    SourceKind {
        name: "cifar",
        words: "CIFAR-10 or CIFAR-100, binary version: a folder, a file of it, or its archive",
        covers: &["tar"],
        recognise: cifar::recognise,
        open: cifar::open,
    },
    SourceKind {
        name: "idx",
        words: "IDX files such as those of MNIST, plain or compressed",
        covers: &[],
        recognise: idx::recognise,
        open: idx::open,
    },
    SourceKind {
        name: "parquet",
        words: "a Parquet file, or a folder of them",
        covers: &[],
        recognise: parquet::recognise,
        open: parquet::open,
    },
    SourceKind {
        name: "arrow",
        words: "an Arrow or Feather file, or a saved Hugging Face dataset",
        covers: &[],
        recognise: arrow::recognise,
        open: arrow::open,
    },
    SourceKind {
        name: "meetpoint",
        words: "another Meetpoint dataset",
        covers: &["folder", "arrow"],
        recognise: meetpoint::recognise,
        open: meetpoint::open,
    },
    SourceKind {
        name: "tfrecord",
        words: "TFRecord files of tf.train.Example: one, or a folder of them",
        covers: &[],
        recognise: tfrecord::recognise,
        open: tfrecord::open,
    },
    SourceKind {
        name: "mds",
        words: "a MosaicML streaming (MDS) dataset: a folder with index.json",
        covers: &[],
        recognise: mds::recognise,
        open: mds::open,
    },
    SourceKind {
        name: "datadings",
        words: "a datadings file, X.msgpack, with its index beside it, or a folder with one",
        covers: &[],
        recognise: datadings::recognise,
        open: datadings::open,
    },
    SourceKind {
        name: "ffcv",
        words: "an FFCV file, .beton",
        covers: &[],
        recognise: ffcv::recognise,
        open: ffcv::open,
    },
];

/// The kind of that name.
pub fn kind_named(name: &str) -> Option<&'static SourceKind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// Detects the kind of `path`.
///
/// A path that matches no kind or several is an error that lists the kinds or the matches. A folder
/// that matches no kind is treated as a folder of images, whose files may have any name.
pub fn detect(path: &StorePath) -> Result<&'static SourceKind, Error> {
    let mut found = Vec::new();
    let metadata = path.metadata();
    let mut failed = Vec::new();
    for kind in &KINDS {
        match (kind.recognise)(path) {
            Ok(Some(by_what)) => found.push((kind, by_what)),
            Ok(None) => {}
            // The process could not open the source, so its kind is unknown.
            Err(Error::Source { path, source }) if !is_of_the_file(&source) => {
                return Err(Error::Source { path, source });
            }
            // It may still be of another kind: a pattern is not a file, and a dangling link in a
            // folder is reported by the kind.
            Err(error) => failed.push((kind, error)),
        }
    }
    // A folder of images with an unreadable table is not treated as one without a table.
    let is_folder = metadata.as_ref().is_ok_and(|metadata| metadata.kind == FileKind::Folder);
    let is_hidden = |kind: &SourceKind| {
        let covers = |name: &str| kind.covers.contains(&name);
        is_folder && covers("folder") && found.iter().all(|(found, _)| covers(found.name))
    };
    if let Some(at) = failed.iter().position(|(kind, _)| is_hidden(kind)) {
        return Err(failed.swap_remove(at).1);
    }
    let covered: Vec<_> = found.iter().flat_map(|(kind, _)| kind.covers).copied().collect();
    found.retain(|(kind, _)| !covered.contains(&kind.name));
    match found.as_slice() {
        [(kind, _)] => Ok(kind),
        [] => match metadata {
            Ok(metadata) if metadata.kind == FileKind::Folder => {
                Ok(kind_named("folder").expect("the table lists it"))
            }
            // A file that matches a kind only by its name gets the error of that kind.
            Ok(_) => named(path).ok_or_else(|| {
                let first = failed.into_iter().next().map(|(_, error)| error);
                first.unwrap_or_else(|| Error::UnknownSource {
                    path: path.to_path_buf(),
                    looked_for: KINDS.iter().map(|kind| (kind.name, kind.words)).collect(),
                })
            }),
            Err(source) => Err(Error::Source { path: path.to_path_buf(), source }),
        },
        _ => Err(Error::AmbiguousSource {
            path: path.to_path_buf(),
            found: found
                .into_iter()
                .map(|(kind, by_what)| (kind.name, kind.words, by_what))
                .collect(),
        }),
    }
}

/// The kind that a file's name indicates.
fn named(path: &StorePath) -> Option<&'static SourceKind> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let kind = if tar::has_tar_name(path.path()) {
        "tar"
    } else if name.contains(".tfrec") {
        "tfrecord"
    } else if ends(&["-ubyte", "-ubyte.gz"]) {
        "idx"
    } else if ends(&[".zip"]) {
        "zip"
    } else if ends(&[".parquet"]) {
        "parquet"
    } else if ends(&[".arrow", ".feather"]) {
        "arrow"
    } else if ends(&[".msgpack"]) {
        "datadings"
    } else if ends(&[".beton"]) {
        "ffcv"
    } else if ends(&[".csv", ".tsv", ".jsonl", ".ndjson"]) {
        "table"
    } else {
        return None;
    };
    kind_named(kind)
}

/// Opens `path` as the kind of that name, or as the detected kind.
pub(super) fn open_kind(
    path: &StorePath,
    kind: Option<&str>,
    options: &SourceOptions,
) -> Result<Box<dyn Source>, Error> {
    let is_detected = kind.is_none();
    let kind = match kind {
        None => detect(path)?,
        Some(name) => kind_named(name).ok_or_else(|| Error::NoSuchKind {
            name: name.to_owned(),
            kinds: KINDS.iter().map(|kind| (kind.name, kind.words)).collect(),
        })?,
    };
    // These two kinds report each link themselves.
    if !["folder", "table"].contains(&kind.name) {
        refuse_leading_out(path, options.follow_links)?;
    }
    let source = (kind.open)(path, options)?;
    if is_detected && let Some(table) = source.unread_table() {
        return Err(table.refused(kind.name));
    }
    let source = side_labels::named(source, kind.name, path)?;
    Ok(limited(source, options.sample_bytes_max))
}
