//! Errors of remote sources.

use crate::message::Message;
use meetpoint_diagnose::{Change, Diagnose, Remedy, Setting, Surface, shown};
use meetpoint_format::units::{show_bytes, show_bytes_at_least};
use std::fmt;
use std::path::PathBuf;

/// A remote source that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoteError {
    /// This build does not support remote sources.
    NotBuilt {
        /// The given path.
        url: String,
    },
    /// An invalid or unsupported URL.
    Address {
        /// The given path.
        url: String,
        /// The problem, with its remedy.
        problem: Message,
    },
    /// A URL as a destination, which must be a local folder.
    Destination {
        /// The given path.
        url: String,
    },
    /// The server refused the request.
    Refused {
        /// The object, or the listed URL.
        url: String,
        /// HTTP status, if there was a response.
        status: Option<u16>,
        /// The message of the server.
        problem: String,
        /// The remedy.
        remedy: Remedy,
    },
    /// Nothing exists at the URL.
    Nothing {
        /// The given path.
        url: String,
    },
    /// An object changed.
    Changed {
        /// The object.
        url: String,
        /// The property that changed.
        what: String,
    },
    /// An object that is larger than the cache.
    TooLarge {
        /// The object, or the folder that must be cached completely.
        url: String,
        /// Its length.
        bytes: u64,
        /// The limit of the cache.
        limit: u64,
    },
    /// An object whose name cannot be a file name.
    Name {
        /// The listed URL.
        url: String,
        /// Its name.
        key: String,
        /// The cause.
        problem: &'static str,
    },
    /// The cache folder cannot be written to.
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// A cache folder in which other users could read or replace objects.
    NotPrivate {
        /// The folder.
        path: PathBuf,
        /// The cause.
        problem: &'static str,
    },
    /// The user has no cache folder.
    NoCache,
    /// A range of an object of a dataset could not be fetched.
    Range {
        /// The object.
        url: String,
        /// First missing byte.
        offset: u64,
        /// Missing bytes; 0 for the whole object.
        bytes: u64,
        /// Requests without progress.
        attempts: u32,
        /// HTTP status, if there was one.
        status: Option<u16>,
        /// What went wrong with the last request.
        problem: String,
        /// The remedy.
        remedy: Remedy,
    },
    /// An object of a dataset changed while the dataset was open.
    ChangedInUse {
        /// The object.
        url: String,
        /// The property that changed.
        what: String,
    },
    /// An object of a dataset does not exist.
    MissingObject {
        /// The object.
        url: String,
    },
    /// A cache that cannot hold what the readers of a dataset need at once.
    CacheTooSmall {
        /// The dataset.
        url: String,
        /// Bytes that readers may need at once.
        needed: u64,
        /// Bytes that the cache may hold.
        limit: u64,
        /// Number of readers.
        readers: u64,
    },
    /// Stopped on request.
    Interrupted,
}

impl RemoteError {
    /// The fetch error inside an I/O error, if it contains one.
    pub(crate) fn of_file(error: &std::io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().cloned()
    }

    /// The message.
    pub fn message(&self) -> Message {
        let text = match self {
            Self::Refused { url, status, problem, .. } => {
                let status =
                    status.map_or_else(String::new, |status| format!(" (HTTP status {status})"));
                format!("failed to read {url}{status}: {problem}")
            }
            Self::Address { url, problem } => {
                return Message::from(format!("{url}: ")) + problem.clone();
            }
            Self::TooLarge { url, bytes, limit } => {
                format!("{url} has {bytes} bytes, and the cache may hold {limit} bytes of objects")
            }
            Self::Cache { path, problem } => {
                format!("failed to write {}, in the cache of objects: {problem}", shown(path))
            }
            Self::NotPrivate { path, problem } => {
                format!("cannot cache objects in {}: {problem}", shown(path))
            }
            Self::NoCache => {
                "no folder to cache objects in: neither XDG_CACHE_HOME nor HOME is set".to_owned()
            }
            Self::NotBuilt { url } => {
                format!("{url} cannot be read by this build, which does not support object stores")
            }
            Self::Destination { url } => format!("{url} cannot be written to"),
            Self::Nothing { url } => format!(
                "{url} names nothing: there is neither an object of that name nor one below it"
            ),
            Self::Changed { url, what } => format!("{url} changed while it was read ({what})"),
            Self::Name { url, key, problem } => {
                format!("{url} holds an object {key:?}, which {problem}")
            }
            Self::Range { url, offset, bytes, attempts, status, problem, .. } => {
                let what = match bytes {
                    0 => String::new(),
                    bytes => format!("{bytes} bytes at offset {offset} of "),
                };
                let status =
                    status.map_or_else(String::new, |status| format!(" (HTTP status {status})"));
                let requests = if *attempts == 1 { "request" } else { "requests" };
                format!("failed to fetch {what}{url} in {attempts} {requests}{status}: {problem}")
            }
            Self::ChangedInUse { url, what } => {
                format!("{url} is not the object that belongs to the open dataset: {what}")
            }
            Self::MissingObject { url } => format!("{url} does not exist"),
            Self::CacheTooSmall { url, needed, limit, readers } => format!(
                "the cache may hold {} of {url}, and {readers} readers may need {} at once",
                show_bytes(*limit),
                show_bytes_at_least(*needed)
            ),
            Self::Interrupted => "interrupted".to_owned(),
        };
        text.into()
    }
}

impl Diagnose for RemoteError {
    fn cause(&self) -> &'static str {
        match self {
            Self::NotBuilt { .. } => "remote_not_built",
            Self::Address { .. } => "remote_address",
            Self::Destination { .. } => "remote_destination",
            Self::Refused { .. } => "remote_refused",
            Self::Nothing { .. } => "remote_nothing",
            Self::Changed { .. } => "source_changed",
            Self::TooLarge { .. } => "cache_too_small",
            Self::Name { .. } => "remote_name",
            Self::Cache { .. } => "cache_not_written",
            Self::NotPrivate { .. } => "cache_not_private",
            Self::NoCache => "no_cache",
            Self::Range { .. } => "remote_range",
            Self::ChangedInUse { .. } => "dataset_changed",
            Self::MissingObject { .. } => "remote_object_missing",
            Self::CacheTooSmall { .. } => "cache_too_small",
            Self::Interrupted => "interrupted",
        }
    }

    fn message(&self, surface: Surface) -> String {
        self.message().in_words(surface)
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::Refused { remedy, .. } => remedy.clone(),
            Self::Address { problem, .. } => return problem.advice().cloned(),
            Self::TooLarge { bytes, .. } => {
                Remedy::set(Setting::CacheSize, Change::AtLeast(show_bytes_at_least(*bytes)))
            }
            Self::Cache { .. } | Self::NotPrivate { .. } => {
                Remedy::by("choose another folder", Setting::Cache, Change::Other)
            }
            Self::NoCache => Remedy::by("choose a folder", Setting::Cache, Change::Other),
            Self::NotBuilt { .. } => {
                "install a build with the feature `remote`: cargo install --path cli --locked \
                 --features full, or build the Python package with --features remote"
                    .into()
            }
            Self::Destination { .. } => {
                "write to a folder on this machine, and copy it from there".into()
            }
            Self::Nothing { .. } => "correct the name".into(),
            Self::Changed { .. } => "pack again when no program writes to it".into(),
            Self::Name { .. } => "choose a location without this object".into(),
            Self::Range { remedy, .. } => remedy.clone(),
            Self::ChangedInUse { .. } => {
                Remedy::advice("open the dataset again when no program writes to it")
                    .or("copy it to the store again")
            }
            Self::MissingObject { .. } => Remedy::advice("correct the name of the dataset")
                .or("copy the dataset to the store again, dataset.json last"),
            Self::CacheTooSmall { needed, .. } => {
                let least = Change::AtLeast(show_bytes_at_least(*needed));
                Remedy::set(Setting::CacheSize, least).or("use fewer workers")
            }
            Self::Interrupted => return None,
        })
    }
}

/// As on the command line.
impl fmt::Display for RemoteError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.message().in_words(Surface::CommandLine))
    }
}

impl std::error::Error for RemoteError {}
