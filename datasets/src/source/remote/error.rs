//! What can go wrong with a source elsewhere.

use std::path::PathBuf;

/// A source elsewhere that does not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// This build reaches nothing elsewhere.
    #[error(
        "{url} cannot be read by this build, which has no object stores; install one that has: \
         cargo install --path cli --features remote"
    )]
    NotBuilt {
        /// What was named.
        url: String,
    },
    /// A URL that names nothing that can be read.
    #[error("{url}: {problem}")]
    Address {
        /// What was named.
        url: String,
        /// Why not, and what to name instead.
        problem: String,
    },
    /// A place that is written to, and has to be a folder here.
    #[error("{url} cannot be written to; name a folder on this machine, and copy it from there")]
    Destination {
        /// What was named.
        url: String,
    },
    /// The server does not give it.
    #[error("failed to read {url}{}: {problem}\n{remedy}", of_status(*status))]
    Refused {
        /// The object, or what was listed.
        url: String,
        /// HTTP status, where there was an answer.
        status: Option<u16>,
        /// What it said.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
    /// Nothing lies there.
    #[error("{url} names nothing: there is neither an object of that name nor one below it")]
    Nothing {
        /// What was named.
        url: String,
    },
    /// An object became another one.
    #[error("{url} changed while it was read ({what}); pack again when nothing writes to it")]
    Changed {
        /// The object.
        url: String,
        /// Which of what is known of it.
        what: String,
    },
    /// An object that is longer than all that may be held.
    #[error(
        "{url} has {bytes} bytes, and {limit} bytes of objects may be held at once; allow more \
         with --cache-size"
    )]
    TooLarge {
        /// The object, or the folder that is needed as a whole.
        url: String,
        /// Its length.
        bytes: u64,
        /// What may be held.
        limit: u64,
    },
    /// An object whose name is none of a file.
    #[error("{url} holds an object {key:?}, which {problem}; name something that is without it")]
    Name {
        /// What was listed.
        url: String,
        /// Its name.
        key: String,
        /// Why not.
        problem: &'static str,
    },
    /// The cache folder cannot be written to.
    #[error("failed to write {}, where objects are held: {problem}; --cache names another folder",
            path.display())]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// A cache folder in which others could read or replace objects.
    #[error(
        "cannot cache objects in {}: {problem}; choose another folder with --cache",
        path.display()
    )]
    NotPrivate {
        /// The folder.
        path: PathBuf,
        /// Why not.
        problem: &'static str,
    },
    /// The user has no cache folder.
    #[error(
        "no folder to cache objects in: neither XDG_CACHE_HOME nor HOME is set; choose a folder \
         with --cache"
    )]
    NoCache,
    /// Stopped on request.
    #[error("interrupted")]
    Interrupted,
}

fn of_status(status: Option<u16>) -> String {
    status.map_or_else(String::new, |status| format!(" (HTTP status {status})"))
}
