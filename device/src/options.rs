//! The configuration of a device, and its description of itself.

use crate::{ExtentRoot, Root, ServeNotice};
use meetpoint_link::tls::TlsFiles;
use meetpoint_link::{DeviceInfo, Emulation, Endpoint, Fault, TcpAddress};
use meetpoint_prepare::{CpuPreparers, PreparerFactory};
use meetpoint_storage::EngineKind;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// Everything that [`crate::serve()`] needs.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Where to listen.
    pub listen: Listen,
    /// File with a token that every call of a host must carry; `None`: calls need none. A network
    /// address without TLS requires it.
    pub token_file: Option<PathBuf>,
    /// Folders whose datasets may be served; datasets elsewhere are invisible to hosts. For a
    /// network, all of them have names.
    pub roots: Vec<Root>,
    /// Datasets that are served by their extents, and found before those of the roots.
    pub extents: Vec<ExtentRoot>,
    /// The speed to emulate.
    pub emulation: Emulation,
    /// Whether control groups limit CPU time and memory besides, so that a device never takes
    /// more than it emulates.
    pub cgroup: bool,
    /// The faults to inject.
    pub faults: Vec<Fault>,
    /// Creates the preparer of each job.
    pub preparers: Arc<dyn PreparerFactory>,
    /// How datasets are read and file spools written.
    pub engine: EngineKind,
    /// Maximum number of hosts that it serves at the same time: the ranks of a job, or jobs. Its
    /// threads are divided fairly among them.
    pub hosts: u32,
    /// Batches that it prepares at the same time, for all hosts together. With an emulated speed
    /// it is 1, because that is the speed of one core.
    pub threads: u32,
    /// Where its counters and its health are served, unencrypted; port 0 chooses one.
    pub metrics: Option<TcpAddress>,
    /// How long it may take from the first request to end until the end; meanwhile, batches in
    /// progress are finished and hosts are notified.
    pub drain_timeout: Duration,
    /// Exit when all hosts have disconnected after the first one: for a device that a host starts
    /// for itself. It then also exits when the thread that started it ends (`PR_SET_PDEATHSIG`, as
    /// SIGTERM), or if no host connects within [`ServeOptions::FIRST_HOST_TIMEOUT`]. At the end it
    /// removes the socket's folder if that is empty and named `meetpoint-…`, because a killed host
    /// cannot.
    pub once: bool,
    /// With `once`: the process that started this one. If the parent is another process by the time
    /// the device watches it, that process has already ended, and the device exits.
    pub parent: Option<u32>,
    /// Exit after this time without a connection; `None`: never.
    pub idle_timeout: Option<Duration>,
    /// Called with a sentence for connections over a network that were refused, at most a few
    /// times a minute.
    pub report: fn(&str),
}

/// Where a device listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A Unix socket, created with mode 0600.
    Socket(PathBuf),
    /// An address of this machine.
    Tcp {
        /// Port 0 chooses one.
        address: TcpAddress,
        /// Certificates. `None`: connections are not encrypted, which is permitted on the loopback
        /// interface alone, and needs a token.
        tls: Option<TlsFiles>,
    },
}

impl Listen {
    /// The path of a Unix socket.
    pub(crate) fn socket(&self) -> Option<&Path> {
        match self {
            Self::Socket(path) => Some(path),
            Self::Tcp { .. } => None,
        }
    }
}

impl ServeOptions {
    /// How long a device with `once` waits for its host.
    pub const FIRST_HOST_TIMEOUT: Duration = Duration::from_secs(30);

    /// Maximum number of hosts at the same time.
    pub const HOSTS_MAX: u32 = 64;

    /// Maximum number of batches prepared at the same time.
    pub const THREADS_MAX: u32 = 1024;

    /// Default of [`ServeOptions::drain_timeout`]: less than the 30 s after which Kubernetes kills.
    pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(25);

    /// A device at a socket that serves some folders, neither slow nor faulty.
    pub fn new(socket: impl Into<PathBuf>, roots: Vec<PathBuf>) -> Self {
        Self {
            listen: Listen::Socket(socket.into()),
            token_file: None,
            roots: roots.into_iter().map(Root::from).collect(),
            extents: Vec::new(),
            emulation: Emulation::default(),
            cgroup: false,
            faults: Vec::new(),
            preparers: Arc::new(CpuPreparers::default()),
            engine: EngineKind::Auto,
            hosts: 1,
            threads: 1,
            metrics: None,
            drain_timeout: Self::DRAIN_TIMEOUT,
            once: false,
            parent: None,
            idle_timeout: None,
            report: |_| (),
        }
    }
}

/// Requests that a device end; shared with the thread that serves.
#[derive(Debug, Default)]
pub struct Shutdown(AtomicU8);

impl Shutdown {
    /// The first call asks it to drain: begin no batches, deliver those in progress, notify hosts.
    /// A second one asks it to end at once.
    pub fn ask(&self) {
        let next = |asked: u8| Some(asked.saturating_add(1));
        // The closure never declines.
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
    }

    /// Asks it to end at once.
    pub fn end(&self) {
        self.0.store(2, Ordering::Release);
    }

    /// Whether it should end, by draining or at once.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }

    /// Whether it should end at once.
    pub fn is_at_once(&self) -> bool {
        self.0.load(Ordering::Acquire) > 1
    }
}

/// The information from [`crate::serve()`] once hosts can connect.
#[derive(Debug, Clone, PartialEq)]
pub struct Ready {
    /// Where it listens, with the port that was chosen.
    pub endpoint: Endpoint,
    /// Where its counters are served, likewise.
    pub metrics: Option<TcpAddress>,
    /// The description of the device.
    pub device: DeviceInfo,
    /// Notices for the user, such as missing features.
    pub notices: Vec<ServeNotice>,
}

/// What a device did until it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ServeSummary {
    /// Jobs that were loaded.
    pub jobs: u64,
    /// Batches that were published.
    pub batches: u64,
    /// Connections that were closed because they were not from a host.
    pub connections_refused: u64,
    /// Jobs that were refused.
    pub loads_refused: u64,
    /// Whether hosts had to be disconnected at the end, because they did not leave in time.
    pub cut_off: bool,
    /// What each client has used, by name.
    pub clients: Vec<ClientSummary>,
    /// Time in nanoseconds that its control group throttled it; `None` without one.
    pub cgroup_throttled_ns: Option<u64>,
}

/// What one client of a device has used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ClientSummary {
    /// The name in its certificate, its IP address, or `local` for processes of this machine.
    pub client: String,
    /// Jobs that were loaded.
    pub jobs: u64,
    /// Batches that were published.
    pub batches: u64,
    /// Samples in them.
    pub samples: u64,
    /// Batches that were left to the host.
    pub failed_batches: u64,
    /// Bytes of slots that were written or sent.
    pub sent_bytes: u64,
    /// Bytes read from datasets.
    pub read_bytes: u64,
    /// CPU time of preparing threads, in nanoseconds.
    pub cpu_ns: u64,
    /// Time in which batches waited for a thread, in nanoseconds.
    pub turn_wait_ns: u64,
    /// Time in which prepared batches waited for a free slot, in nanoseconds.
    pub slot_wait_ns: u64,
}
