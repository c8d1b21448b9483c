//! What a device is told at its start, and what it tells of itself.

use meetpoint_link::{DeviceInfo, Emulation, Fault};
use meetpoint_storage::EngineKind;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// Everything that [`crate::serve()`] needs.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Unix socket to listen on; made with mode 0600.
    pub socket: PathBuf,
    /// Folders whose datasets may be served; a dataset elsewhere does not exist for a host.
    pub roots: Vec<PathBuf>,
    /// How slow to be.
    pub emulation: Emulation,
    /// What to do wrong, and when.
    pub faults: Vec<Fault>,
    /// How datasets are read and file spools written.
    pub engine: EngineKind,
    /// Hosts that it works for at a time: the ranks of a job, or jobs of the same user. Their
    /// batches are prepared in turns.
    pub hosts: u32,
    /// End when a host has come and all that came have gone: for a device that a host starts for
    /// itself. It then also ends with the thread that started it (`PR_SET_PDEATHSIG`, as SIGTERM),
    /// ends when no host has come for [`ServeOptions::FIRST_HOST_TIMEOUT`], and takes the socket's
    /// folder with it where that is empty and named `meetpoint-…`: a host that was killed cannot.
    pub once: bool,
    /// With `once`: the process that started this one. A device whose parent is another by the time
    /// it has asked to be told of the parent's end is too late, and ends at once.
    pub parent: Option<u32>,
    /// End after so long without any connection; `None` is never.
    pub idle_timeout: Option<Duration>,
}

impl ServeOptions {
    /// How long a device with `once` waits for its host.
    pub const FIRST_HOST_TIMEOUT: Duration = Duration::from_secs(30);

    /// Most hosts at a time.
    pub const HOSTS_MAX: u32 = 64;

    /// A device at a socket that serves some folders, neither slow nor faulty.
    pub fn new(socket: impl Into<PathBuf>, roots: Vec<PathBuf>) -> Self {
        Self {
            socket: socket.into(),
            roots,
            emulation: Emulation::default(),
            faults: Vec::new(),
            engine: EngineKind::Auto,
            hosts: 1,
            once: false,
            parent: None,
            idle_timeout: None,
        }
    }
}

/// What [`crate::serve()`] says once hosts can connect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ready {
    /// The socket.
    pub socket: PathBuf,
    /// What the device is.
    pub device: DeviceInfo,
    /// Sentences that a user should see: what it had to do without, and why.
    pub notices: Vec<String>,
}

/// What a device did until it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ServeSummary {
    /// Jobs that were loaded.
    pub jobs: u64,
    /// Batches that were published.
    pub batches: u64,
    /// Connections that were closed because they were no host's.
    pub connections_refused: u64,
    /// Jobs that were refused.
    pub loads_refused: u64,
}
