//! What can keep a device from starting or from being asked.

use std::path::PathBuf;

/// A device that cannot be served or reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting of the emulation outside its range.
    #[error(transparent)]
    Emulation(#[from] meetpoint_link::SettingError),
    /// No host, or too many.
    #[error("the number of hosts is {given}; give 1 to {}", crate::ServeOptions::HOSTS_MAX)]
    Hosts {
        /// As given.
        given: u32,
    },
    /// No folder was named.
    #[error("no dataset root is given: name at least one folder whose datasets may be served")]
    NoRoots,
    /// A root that is not there, or is no folder.
    #[error(
        "dataset root {} cannot be served: {source}; name a folder that can be read with --root",
        path.display()
    )]
    Root {
        /// Folder.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The only core would be shared with the host, and figures would mean nothing.
    #[error(
        "an emulated device needs a core of its own and this process has only core {core}: \
         allow sharing (--allow-shared, in a job allow_shared = true), give more cores, or drop \
         the emulation"
    )]
    OneCore {
        /// The core.
        core: usize,
    },
    /// A core that this process may not use.
    #[error("core {core} is not among those this process may use ({usable}): name one of them")]
    Core {
        /// As given.
        core: usize,
        /// Those it may.
        usable: String,
    },
    /// Another device listens there.
    #[error("a device already listens on {}: stop it, or choose another socket", path.display())]
    SocketInUse {
        /// Socket.
        path: PathBuf,
    },
    /// Something that is no socket is there.
    #[error("{} exists and is no socket: move it away, or choose another path", path.display())]
    NotASocket {
        /// Path.
        path: PathBuf,
    },
    /// A path to probe that is no socket.
    #[error("no device answers on {}: it is {what}, no socket; correct the path", path.display())]
    ProbedNoSocket {
        /// Path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A path that does not fit the address of a Unix socket.
    #[error(
        "socket path {} has {} bytes, more than the {limit} of a Unix socket: choose a shorter one",
        path.display(), path.as_os_str().len()
    )]
    SocketPathTooLong {
        /// Path.
        path: PathBuf,
        /// Most bytes.
        limit: usize,
    },
    /// The socket cannot be made.
    #[error(
        "failed to {action} socket {}: {source}; name a path in a folder that is there and can \
         be written", path.display()
    )]
    Socket {
        /// What was tried.
        action: &'static str,
        /// Socket.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The process cannot be set up.
    #[error("failed to {action}: {source}")]
    Process {
        /// What was tried.
        action: &'static str,
        /// Cause.
        source: std::io::Error,
    },
    /// The process that started this one ended before it could be watched.
    #[error("the process that started this device has gone")]
    Orphan,
    /// No storage engine can be had.
    #[error(transparent)]
    Storage(#[from] meetpoint_storage::Error),
    /// Nobody answers on a socket.
    #[error(
        "no device answers on {}: {reason}; start one with `meetpoint device serve --socket {} \
         --root FOLDER`, or correct the path", socket.display(), socket.display()
    )]
    NoDevice {
        /// Socket.
        socket: PathBuf,
        /// Why.
        reason: String,
    },
    /// Somebody answers, but not as a device does.
    #[error(
        "what listens on {} is no device, or hangs: {reason}; start a device on a socket of its \
         own with `meetpoint device serve`, or correct the path", socket.display()
    )]
    NotADevice {
        /// Socket.
        socket: PathBuf,
        /// Why.
        reason: String,
    },
}
