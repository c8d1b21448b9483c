//! Errors of remote sources.

use crate::message::Message;
use meetpoint_diagnose::{Change, Diagnose, Remedy, Setting, Surface};
use meetpoint_format::units::show_bytes_at_least;
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
                format!("failed to write {}, in the cache of objects: {problem}", path.display())
            }
            Self::NotPrivate { path, problem } => {
                format!("cannot cache objects in {}: {problem}", path.display())
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
                "install a build that does: cargo install --path cli --features remote".into()
            }
            Self::Destination { .. } => {
                "write to a folder on this machine, and copy it from there".into()
            }
            Self::Nothing { .. } => "correct the name".into(),
            Self::Changed { .. } => "pack again when no program writes to it".into(),
            Self::Name { .. } => "choose a location without this object".into(),
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
