//! Errors of starting a device or connecting to it.

use meetpoint_diagnose::{Change, Command, Diagnose, Remedy, Setting};
use std::path::PathBuf;

/// A device that cannot be served or reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting of the emulation outside its range.
    #[error(transparent)]
    Emulation(#[from] meetpoint_link::SettingError),
    /// No host, or too many.
    #[error("the number of hosts is {given}")]
    Hosts {
        /// The given value.
        given: u32,
    },
    /// No folder was named.
    #[error("no dataset root is given")]
    NoRoots,
    /// A root that is missing or not a folder.
    #[error("dataset root {} cannot be served: {source}", path.display())]
    Root {
        /// Folder.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The only core would be shared with the host, which makes measurements meaningless.
    #[error("an emulated device needs a separate core, but this process has only core {core}")]
    OneCore {
        /// The core.
        core: usize,
    },
    /// A core that this process may not use.
    #[error("core {core} is not among those that this process may use ({usable})")]
    Core {
        /// The given value.
        core: usize,
        /// Those it may.
        usable: String,
    },
    /// Another device listens there.
    #[error("a device already listens on {}", path.display())]
    SocketInUse {
        /// Socket.
        path: PathBuf,
    },
    /// The path exists and is not a socket.
    #[error("{} exists and is not a socket", path.display())]
    NotASocket {
        /// Path.
        path: PathBuf,
    },
    /// The path to probe is not a socket.
    #[error("no device answers on {}: it is {what}, not a socket", path.display())]
    ProbedNoSocket {
        /// Path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A path that does not fit the address of a Unix socket.
    #[error(
        "socket path {} has {} bytes, more than the {limit} of a Unix socket",
        path.display(), path.as_os_str().len()
    )]
    SocketPathTooLong {
        /// Path.
        path: PathBuf,
        /// Most bytes.
        limit: usize,
    },
    /// The socket cannot be created.
    #[error("failed to {action} socket {}: {source}", path.display())]
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
    /// The parent process ended before it could be watched.
    #[error("the process that started this device has ended")]
    Orphan,
    /// No storage engine can be opened.
    #[error(transparent)]
    Storage(#[from] meetpoint_storage::Error),
    /// No process answers on the socket.
    #[error("no device answers on {}: {reason}", socket.display())]
    NoDevice {
        /// Socket.
        socket: PathBuf,
        /// Why.
        reason: String,
    },
    /// The process that answers is not a device.
    #[error("the process that listens on {} is not a device, or hangs: {reason}", socket.display())]
    NotADevice {
        /// Socket.
        socket: PathBuf,
        /// Why.
        reason: String,
    },
}

impl Diagnose for Error {
    fn cause(&self) -> &'static str {
        match self {
            Self::Emulation(source) => source.cause(),
            Self::Hosts { .. } => "hosts_out_of_range",
            Self::NoRoots => "no_roots",
            Self::Root { .. } => "root_unreadable",
            Self::OneCore { .. } => "one_core",
            Self::Core { .. } => "core_not_permitted",
            Self::SocketInUse { .. } => "socket_in_use",
            Self::NotASocket { .. } | Self::ProbedNoSocket { .. } => "not_a_socket",
            Self::SocketPathTooLong { .. } => "socket_path_too_long",
            Self::Socket { .. } => "socket",
            Self::Process { .. } => "process",
            Self::Orphan => "orphan",
            Self::Storage(source) => source.cause(),
            Self::NoDevice { .. } => "device_unreachable",
            Self::NotADevice { .. } => "not_a_device",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        let path = "correct the path of the socket";
        Some(match self {
            Self::Emulation(source) => return source.remedy(),
            Self::Storage(source) => return source.remedy(),
            Self::Hosts { .. } => {
                let most = crate::ServeOptions::HOSTS_MAX;
                Remedy::set(Setting::DeviceHosts, Change::To(format!("1 to {most}")))
            }
            Self::NoRoots | Self::Root { .. } => {
                let folder = "a folder that can be read";
                Remedy::set(Setting::DeviceRoot, Change::To(folder.to_owned()))
            }
            Self::OneCore { .. } => Remedy::set(Setting::AllowShared, Change::On)
                .or("give this process more cores")
                .or("leave the emulation out"),
            Self::Core { usable, .. } => format!("name one of the cores {usable}").into(),
            Self::SocketInUse { .. } => Remedy::advice("stop it").or("choose another socket"),
            Self::NotASocket { .. } => Remedy::advice("move it away").or("choose another path"),
            Self::ProbedNoSocket { .. } => path.into(),
            Self::SocketPathTooLong { .. } => "choose a shorter path".into(),
            Self::Socket { .. } => "name a path in a folder that can be written".into(),
            Self::NoDevice { socket, .. } => {
                Remedy::run(Command::ServeDevice { socket: Some(socket.clone()) }).or(path)
            }
            Self::NotADevice { .. } => Remedy::run(Command::ServeDevice { socket: None }).or(path),
            Self::Process { .. } | Self::Orphan => return None,
        })
    }
}
