//! Whether a destination can be created or replaced.

use super::leftover::{SiblingPaths, find_places};
use super::names::foreign_entry;
use crate::Error;
use crate::source::refuse_destination;
use meetpoint_diagnose::shown;
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// What may be replaced at a destination.
pub(crate) enum Replace<'a> {
    /// A dataset, if `force` is set.
    Dataset {
        /// Whether the user allowed replacing it.
        force: bool,
    },
    /// An empty folder; if `force` is set, also one without foreign files.
    Files {
        /// Whether the user allowed replacing it.
        force: bool,
        /// Returns a file in the folder that must not be removed.
        foreign: &'a dyn Fn(&Path) -> std::io::Result<Option<String>>,
    },
}

/// The destination of the result.
#[derive(Debug)]
pub(crate) struct Destination {
    /// Absolute, links resolved.
    pub(super) path: PathBuf,
    /// Whether the destination exists and is to be replaced.
    pub(super) exists: bool,
    /// Leftover working folders that were removed.
    pub(crate) cleaned: Vec<PathBuf>,
    /// Notes about other folders found beside the destination, as sentences.
    pub(crate) notes: Vec<String>,
}

impl Destination {
    /// Checks that `to` can be created or replaced.
    ///
    /// None of the inputs `sources` may be inside `to`, or contain it.
    pub(crate) fn resolve(
        sources: &[PathBuf],
        to: &Path,
        replace: &Replace<'_>,
    ) -> Result<Self, Error> {
        refuse_destination(to)?;
        let failed = |source| Error::Write { path: to.to_path_buf(), source };
        let exists = to.symlink_metadata().is_ok();
        let path = if exists {
            to.canonicalize().map_err(failed)?
        } else {
            let name = to.file_name().ok_or(Errno::INVAL.into()).map_err(failed)?;
            let parent = to.parent().filter(|parent| *parent != Path::new(""));
            parent.unwrap_or(Path::new(".")).canonicalize().map_err(failed)?.join(name)
        };
        for from in sources {
            let read = |source| Error::Source { path: from.clone(), source };
            let from = from.canonicalize().map_err(read)?;
            if path.starts_with(&from) || from.starts_with(&path) {
                return Err(Error::Overlap { from, to: path });
            }
        }
        if exists {
            may_be_replaced(&path, replace)?;
        }
        Ok(Self { path, exists, cleaned: Vec::new(), notes: Vec::new() })
    }

    /// The path of the result; absolute, links resolved.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The working folders beside the destination.
    pub(crate) fn places(&self) -> Result<SiblingPaths, Error> {
        let failed = |source| Error::Write { path: self.path.clone(), source };
        find_places(&self.path).map_err(failed)
    }

    /// Removes the working folders of processes that have ended, and records their names and those
    /// that remain.
    pub(crate) fn clean(&mut self) -> Result<(), Error> {
        let places = self.places()?;
        let stays = |(path, entry): &(PathBuf, String)| {
            format!(
                "{} is not removed: it contains {entry}, which Meetpoint did not write",
                shown(path)
            )
        };
        self.notes.extend(places.foreign.iter().map(stays));
        for remains in places.remains {
            let failed = |source| Error::Write { path: remains.path().to_path_buf(), source };
            remains.remove().map_err(failed)?;
            self.cleaned.push(remains.path().to_path_buf());
        }
        self.cleaned.sort();
        Ok(())
    }
}

/// Returns an error if the path exists and must not be replaced.
fn may_be_replaced(path: &Path, replace: &Replace<'_>) -> Result<(), Error> {
    let failed = |source| Error::Write { path: path.to_path_buf(), source };
    let to = path.to_path_buf();
    match replace {
        Replace::Dataset { force: false } => Err(Error::Exists { path: to }),
        Replace::Dataset { force: true } => match foreign_entry(path, None).map_err(failed)? {
            None => Ok(()),
            Some(entry) => Err(Error::NotReplaced { path: to, entry }),
        },
        Replace::Files { .. } if is_empty_folder(path).map_err(failed)? => Ok(()),
        Replace::Files { force: false, .. } => Err(Error::Exists { path: to }),
        Replace::Files { force: true, foreign } => match foreign(path).map_err(failed)? {
            None => Ok(()),
            Some(entry) => Err(Error::Foreign { path: to, entry }),
        },
    }
}

fn is_empty_folder(path: &Path) -> std::io::Result<bool> {
    Ok(path.is_dir() && std::fs::read_dir(path)?.next().is_none())
}
