//! What can go wrong with a source elsewhere.

use crate::message::Message;
use crate::words::{Setting, Words};
use std::fmt;
use std::path::PathBuf;

/// A source elsewhere that does not read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoteError {
    /// This build reaches nothing elsewhere.
    NotBuilt {
        /// What was named.
        url: String,
    },
    /// A URL that names nothing that can be read.
    Address {
        /// What was named.
        url: String,
        /// Why not, and what to name instead.
        problem: Message,
    },
    /// A place that is written to, and has to be a folder here.
    Destination {
        /// What was named.
        url: String,
    },
    /// The server does not give it.
    Refused {
        /// The object, or what was listed.
        url: String,
        /// HTTP status, where there was an answer.
        status: Option<u16>,
        /// What it said.
        problem: String,
        /// What to do about it.
        remedy: Message,
    },
    /// Nothing lies there.
    Nothing {
        /// What was named.
        url: String,
    },
    /// An object became another one.
    Changed {
        /// The object.
        url: String,
        /// Which of what is known of it.
        what: String,
    },
    /// An object that is longer than all that may be held.
    TooLarge {
        /// The object, or the folder that is needed as a whole.
        url: String,
        /// Its length.
        bytes: u64,
        /// What may be held.
        limit: u64,
    },
    /// An object whose name is none of a file.
    Name {
        /// What was listed.
        url: String,
        /// Its name.
        key: String,
        /// Why not.
        problem: &'static str,
    },
    /// The cache folder cannot be written to.
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// A cache folder in which others could read or replace objects.
    NotPrivate {
        /// The folder.
        path: PathBuf,
        /// Why not.
        problem: &'static str,
    },
    /// The user has no cache folder.
    NoCache,
    /// Stopped on request.
    Interrupted,
}

impl RemoteError {
    /// What failed, and what to do.
    pub fn message(&self) -> Message {
        let text = match self {
            Self::Refused { url, status, problem, remedy } => {
                let status =
                    status.map_or_else(String::new, |status| format!(" (HTTP status {status})"));
                return Message::from(format!("failed to read {url}{status}: {problem}\n"))
                    + remedy.clone();
            }
            Self::Address { url, problem } => {
                return Message::from(format!("{url}: ")) + problem.clone();
            }
            Self::TooLarge { url, bytes, limit } => {
                return Message::from(format!(
                    "{url} has {bytes} bytes, and the cache may hold {limit} bytes of objects; \
                     allow more with "
                )) + Setting::CacheSize;
            }
            Self::Cache { path, problem } => {
                return Message::from(format!(
                    "failed to write {}, in the cache of objects: {problem}; choose another \
                     folder with ",
                    path.display()
                )) + Setting::Cache;
            }
            Self::NotPrivate { path, problem } => {
                return Message::from(format!(
                    "cannot cache objects in {}: {problem}; choose another folder with ",
                    path.display()
                )) + Setting::Cache;
            }
            Self::NoCache => {
                return Message::from(
                    "no folder to cache objects in: neither XDG_CACHE_HOME nor HOME is set; \
                     choose a folder with ",
                ) + Setting::Cache;
            }
            Self::NotBuilt { url } => format!(
                "{url} cannot be read by this build, which does not support object stores; \
                 install one that does: cargo install --path cli --features remote"
            ),
            Self::Destination { url } => format!(
                "{url} cannot be written to; name a folder on this machine, and copy it from there"
            ),
            Self::Nothing { url } => format!(
                "{url} names nothing: there is neither an object of that name nor one below it"
            ),
            Self::Changed { url, what } => format!(
                "{url} changed while it was read ({what}); pack again when nothing writes to it"
            ),
            Self::Name { url, key, problem } => format!(
                "{url} holds an object {key:?}, which {problem}; name something that is without it"
            ),
            Self::Interrupted => "interrupted".to_owned(),
        };
        text.into()
    }
}

/// As on the command line.
impl fmt::Display for RemoteError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.message().in_words(Words::CommandLine))
    }
}

impl std::error::Error for RemoteError {}
