//! Errors of files and engines.

use crate::RingRefusal;
use crate::own_limits::open_files_limit;
use meetpoint_diagnose::{Diagnose, Remedy, shown};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// The remedy for a file that cannot be opened.
fn remedy_of_open(source: &std::io::Error) -> Remedy {
    if let Some(limit) = open_files_limit(source) {
        return limit.into();
    }
    match Errno::from_io_error(source) {
        Some(Errno::ACCESS | Errno::PERM) => "make it readable for this user".into(),
        _ => "restore it".into(),
    }
}

/// A failed operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be opened.
    #[error("failed to open {}: {source}", shown(path))]
    Open {
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A device outside of the kernel does not open.
    #[error("failed to open {} ({device}): {reason}", shown(path))]
    Device {
        /// The name under which it was to be opened.
        path: PathBuf,
        /// Its name in the library that drives it.
        device: Box<str>,
        /// Why.
        reason: Box<str>,
        /// What may help.
        remedy: Box<Remedy>,
    },
    /// The length of a file cannot be determined.
    #[error("failed to find the length of {}: {source}", shown(path))]
    Length {
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A read, write or sync failed.
    #[error("failed to {action} {bytes} bytes at offset {offset} of {}: {source}", shown(path))]
    Io {
        /// `read`, `write` or `sync`.
        action: &'static str,
        /// File.
        path: PathBuf,
        /// First byte.
        offset: u64,
        /// Bytes.
        bytes: usize,
        /// Cause.
        source: std::io::Error,
    },
    /// The file ends before the range does.
    #[error("{} ends early: {got} of {wanted} bytes at offset {offset}", shown(path))]
    ShortRead {
        /// File.
        path: PathBuf,
        /// First byte.
        offset: u64,
        /// Bytes requested.
        wanted: usize,
        /// Bytes in the file from `offset` on.
        got: usize,
    },
    /// The maximum number of requests is in flight.
    #[error("{depth} requests are in flight, the engine takes no more")]
    QueueFull {
        /// Limit.
        depth: usize,
    },
    /// The file id belongs to another engine.
    #[error("no open file with id {0}")]
    NoSuchFile(u32),
    /// The buffer is too small for the range and the blocks that contain it.
    #[error("a buffer of {capacity} bytes cannot take {needed}")]
    BufferTooSmall {
        /// Its size.
        capacity: usize,
        /// Needed.
        needed: usize,
    },
    /// The offset or the length of a direct write is not a multiple of the block size.
    #[error("direct write of {bytes} bytes at {offset} is not aligned to {alignment}")]
    Unaligned {
        /// First byte.
        offset: u64,
        /// Bytes.
        bytes: usize,
        /// Needed alignment.
        alignment: usize,
    },
    /// io_uring is not available here.
    #[error("io_uring is not available: {0}")]
    NoRing(#[from] RingRefusal),
    /// The engine itself is not available here.
    #[error("{engine} is not available: {reason}")]
    Unavailable {
        /// Its name.
        engine: &'static str,
        /// Why.
        reason: String,
        /// How to make it available, if that is possible.
        remedy: Option<Remedy>,
    },
}

impl Error {
    /// The file that the error concerns.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Open { path, .. }
            | Self::Device { path, .. }
            | Self::Length { path, .. }
            | Self::Io { path, .. }
            | Self::ShortRead { path, .. } => Some(path),
            _ => None,
        }
    }
}

impl Diagnose for Error {
    fn cause(&self) -> &'static str {
        match self {
            Self::Open { .. } => "file_not_opened",
            Self::Device { .. } => "device_not_opened",
            Self::Length { .. } => "file_length",
            Self::Io { .. } => "input_output",
            Self::ShortRead { .. } => "file_ends_early",
            Self::QueueFull { .. } => "queue_full",
            Self::NoSuchFile(_) => "no_such_file_id",
            Self::BufferTooSmall { .. } => "buffer_too_small",
            Self::Unaligned { .. } => "unaligned_write",
            Self::NoRing(_) | Self::Unavailable { .. } => "engine_unavailable",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Open { source, .. } => Some(remedy_of_open(source)),
            Self::Device { remedy, .. } => Some(Remedy::clone(remedy)),
            Self::Length { source, .. } | Self::Io { source, .. } => {
                open_files_limit(source).map(Remedy::from)
            }
            Self::ShortRead { .. } => Some("restore the file from its source".into()),
            Self::NoRing(refusal) => refusal.remedy(),
            Self::Unavailable { remedy, .. } => remedy.clone(),
            // Errors of the caller's code, not of a file.
            Self::QueueFull { .. }
            | Self::NoSuchFile(_)
            | Self::BufferTooSmall { .. }
            | Self::Unaligned { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_open_for_want_of_descriptors_names_their_limit() {
        let shown = |remedy: Remedy| remedy.spelled(meetpoint_diagnose::Surface::CommandLine);
        let remedy = |errno: Errno| shown(remedy_of_open(&errno.into()));
        assert!(remedy(Errno::MFILE).contains("ulimit -n"));
        assert_ne!(remedy(Errno::NOENT), remedy(Errno::MFILE));
    }
}
