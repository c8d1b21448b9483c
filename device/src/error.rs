//! Errors of starting a device or connecting to it.

use crate::cgroup::CgroupError;
use meetpoint_diagnose::{Change, Command, Diagnose, Remedy, Setting, shown};
use meetpoint_link::tls::TlsError;
use meetpoint_link::{Endpoint, TcpAddress, TokenError};
use meetpoint_storage::open_files_limit_behind;
use std::path::PathBuf;

/// Why a device cannot be started or reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting of the emulation outside its range.
    #[error(transparent)]
    Emulation(#[from] meetpoint_link::SettingError),
    /// The number of hosts is out of range.
    #[error("the number of hosts is {given}")]
    Hosts {
        /// The given value.
        given: u32,
    },
    /// The number of preparing threads is out of range.
    #[error("the number of preparing threads is {given}; it must be from 1 to {most}")]
    Threads {
        /// The given value.
        given: u32,
        /// The highest possible value: 1 for an emulated device.
        most: u32,
    },
    /// No root was given.
    #[error("no dataset root is given")]
    NoRoots,
    /// A root does not exist or is not a folder.
    #[error("dataset root {} cannot be served: {source}", shown(path))]
    Root {
        /// Folder.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A root has no name, which hosts on a network need.
    #[error("root {} has no name; hosts on a network need one to find it", shown(path))]
    UnnamedRoot {
        /// Folder.
        path: PathBuf,
    },
    /// A file of extents has no name, which hosts on a network need.
    #[error(
        "the file of extents {} has no name; hosts on a network need one to find it",
        shown(path)
    )]
    UnnamedExtents {
        /// File.
        path: PathBuf,
    },
    /// Two roots have the same name.
    #[error("there are two roots named {name}")]
    RootNamedTwice {
        /// Name.
        name: String,
    },
    /// The address cannot be listened on.
    #[error("failed to listen on {address}: {source}")]
    Listen {
        /// Address.
        address: TcpAddress,
        /// Cause.
        source: std::io::Error,
    },
    /// The connection over a network would not be encrypted.
    #[error("{address} can be reached by other machines, and connections would not be encrypted")]
    Cleartext {
        /// Address.
        address: TcpAddress,
    },
    /// An unencrypted network address requires a token.
    #[error("every user of this machine could connect to {address}: it asks for no token")]
    NoToken {
        /// Address.
        address: TcpAddress,
    },
    /// The certificates cannot be used, or the ends do not trust each other.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The token cannot be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A device on a network refused this host.
    #[error("the device at {endpoint} refused to answer: {reason}")]
    Refused {
        /// Where it listens.
        endpoint: Endpoint,
        /// The reason that it gave, or why the connection failed.
        reason: String,
        /// The remedy.
        remedy: Option<Remedy>,
    },
    /// The only core would be shared with the host, which makes measurements meaningless.
    #[error("an emulated device needs a separate core, but this process has only core {core}")]
    OneCore {
        /// The core.
        core: usize,
    },
    /// This process may not use the given core.
    #[error("core {core} is not among those that this process may use ({usable})")]
    Core {
        /// The given value.
        core: usize,
        /// Cores that it may use.
        usable: String,
    },
    /// Another device listens on the socket.
    #[error("a device already listens on {}", shown(path))]
    SocketInUse {
        /// Socket.
        path: PathBuf,
    },
    /// The path exists and is not a socket.
    #[error("{} exists and is not a socket", shown(path))]
    NotASocket {
        /// Path.
        path: PathBuf,
    },
    /// The path to probe is not a socket.
    #[error("no device answers on {}: it is {what}, not a socket", shown(path))]
    ProbedNoSocket {
        /// Path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The path is longer than the address of a Unix socket can be.
    #[error(
        "socket path {} has {} bytes, more than the {limit} of a Unix socket",
        shown(path), path.as_os_str().len()
    )]
    SocketPathTooLong {
        /// Path.
        path: PathBuf,
        /// Maximum length in bytes.
        limit: usize,
    },
    /// The socket cannot be created.
    #[error("failed to {action} socket {}: {source}", shown(path))]
    Socket {
        /// What was attempted.
        action: &'static str,
        /// Socket.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The process cannot be set up.
    #[error("failed to {action}: {source}")]
    Process {
        /// What was attempted.
        action: &'static str,
        /// Cause.
        source: std::io::Error,
    },
    /// The parent process ended before it could be watched.
    #[error("the process that started this device has ended")]
    Orphan,
    /// The control group around the device cannot be set up.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// A dataset cannot be served by its extents.
    #[error(transparent)]
    Extents(meetpoint_prepare::Error),
    /// No storage engine can be opened.
    #[error(transparent)]
    Storage(#[from] meetpoint_storage::Error),
    /// No process answers on the socket.
    #[error("no device answers on {endpoint}: {reason}")]
    NoDevice {
        /// Where the device was expected.
        endpoint: Endpoint,
        /// Why.
        reason: String,
    },
    /// The process that answers is not a device.
    #[error("the process that listens on {endpoint} is not a device, or hangs: {reason}")]
    NotADevice {
        /// Where the device was expected.
        endpoint: Endpoint,
        /// Why.
        reason: String,
    },
}

impl Diagnose for Error {
    fn cause(&self) -> &'static str {
        match self {
            Self::Emulation(source) => source.cause(),
            Self::Hosts { .. } => "hosts_out_of_range",
            Self::Threads { .. } => "threads_out_of_range",
            Self::NoRoots => "no_roots",
            Self::Root { .. } => "root_unreadable",
            Self::UnnamedRoot { .. } => "root_unnamed",
            Self::UnnamedExtents { .. } => "extents_unnamed",
            Self::RootNamedTwice { .. } => "root_named_twice",
            Self::Listen { .. } => "listen",
            Self::Cleartext { .. } => "cleartext",
            Self::NoToken { .. } | Self::Token(_) => "token",
            Self::Tls(_) => "tls",
            Self::Refused { .. } => "device_refused",
            Self::OneCore { .. } => "one_core",
            Self::Core { .. } => "core_not_permitted",
            Self::SocketInUse { .. } => "socket_in_use",
            Self::NotASocket { .. } | Self::ProbedNoSocket { .. } => "not_a_socket",
            Self::SocketPathTooLong { .. } => "socket_path_too_long",
            Self::Socket { .. } => "socket",
            Self::Process { .. } => "process",
            Self::Orphan => "orphan",
            Self::Cgroup(source) => source.cause(),
            Self::Extents(source) => source.cause(),
            Self::Storage(source) => source.cause(),
            Self::NoDevice { .. } => "device_unreachable",
            Self::NotADevice { .. } => "not_a_device",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        if let Some(limit) = open_files_limit_behind(self) {
            return Some(limit.into());
        }
        let path = "correct the path of the socket";
        Some(match self {
            Self::Emulation(source) => return source.remedy(),
            Self::Cgroup(source) => return source.remedy(),
            Self::Extents(source) => return source.remedy(),
            Self::Storage(source) => return source.remedy(),
            Self::Hosts { .. } => {
                let most = crate::ServeOptions::HOSTS_MAX;
                Remedy::set(Setting::DeviceHosts, Change::To(format!("1 to {most}")))
            }
            Self::Threads { most: 1, .. } => {
                Remedy::advice("leave the emulation options out").or("prepare with one thread")
            }
            Self::Threads { most, .. } => format!("prepare with 1 to {most} threads").into(),
            Self::NoRoots | Self::Root { .. } => {
                let folder = "a folder that can be read";
                Remedy::set(Setting::DeviceRoot, Change::To(folder.to_owned()))
            }
            Self::UnnamedRoot { path } => {
                let named = format!("NAME={}", shown(path));
                Remedy::set(Setting::DeviceRoot, Change::To(named))
            }
            Self::UnnamedExtents { path } => {
                let named = format!("NAME={}", shown(path));
                Remedy::set(Setting::DeviceExtents, Change::To(named))
            }
            Self::RootNamedTwice { .. } => "give each a name of its own".into(),
            Self::Listen { .. } => {
                "name an address of this machine, and a port that is free".into()
            }
            Self::Cleartext { .. } => {
                Remedy::by("encrypt them", Setting::DeviceCertificates, Change::Other)
                    .or_run(Command::MakeKeys)
                    .or("listen on 127.0.0.1 or ::1")
            }
            Self::NoToken { .. } => Remedy::by(
                "ask for a token",
                Setting::DeviceToken,
                Change::Other,
            )
            .or_by("for certificates", Setting::DeviceCertificates, Change::Other),
            Self::Tls(source) => source.remedy(),
            Self::Token(_) => TokenError::REMEDY.into(),
            Self::Refused { remedy, .. } => return remedy.clone(),
            Self::OneCore { .. } => Remedy::set(Setting::AllowShared, Change::On)
                .or("give this process more cores")
                .or("leave the emulation out"),
            Self::Core { usable, .. } => format!("name one of the cores {usable}").into(),
            Self::SocketInUse { .. } => Remedy::advice("stop it").or("choose another socket"),
            Self::NotASocket { .. } => Remedy::advice("move it away").or("choose another path"),
            Self::ProbedNoSocket { .. } => path.into(),
            Self::SocketPathTooLong { .. } => "choose a shorter path".into(),
            Self::Socket { .. } => "name a path in a folder that can be written".into(),
            Self::NoDevice { endpoint, .. } => match endpoint {
                Endpoint::Socket(socket) => {
                    Remedy::run(Command::ServeDevice { socket: Some(socket.clone()) }).or(path)
                }
                Endpoint::Tcp(address) => {
                    Remedy::run(Command::ListenDevice { address: address.to_string() })
                        .or("correct the address")
                }
            },
            Self::NotADevice { .. } => Remedy::run(Command::ServeDevice { socket: None }).or(path),
            Self::Process { .. } | Self::Orphan => return None,
        })
    }
}
