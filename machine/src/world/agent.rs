//! Device processes.

use super::dataset::Fixture;
use super::plan::DevicePlan;
use super::preparer::SlowPreparers;
use crate::machine::{self, ProcessIndex, Shared, with};
use meetpoint_device::{Listen, Root, ServeOptions, Shutdown, serve};
use meetpoint_link::TcpAddress;
use meetpoint_storage::EngineKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The text of the token of devices over a network.
pub(super) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Name under which devices serve the folder of the dataset.
pub(super) const ROOT_NAME: &str = "data";

/// Where a device listens, and where the network offers it to the host.
#[derive(Debug, Clone)]
pub(super) enum Location {
    /// Two sockets of the machine.
    Sockets { own: PathBuf, offered: PathBuf },
    /// Two ports.
    Ports { own: u16, offered: u16 },
}

impl Location {
    pub(super) fn new(folder: &Path, device: usize, is_remote: bool) -> Self {
        let number = u16::try_from(device).expect("there are few devices");
        if is_remote {
            return Self::Ports { own: 7000 + number, offered: 7100 + number };
        }
        let own = folder.join(format!("own-{device}"));
        let offered = folder.join(format!("offered-{device}"));
        Self::Sockets { own: own.join("s"), offered: offered.join("s") }
    }
}

/// A device process, which can be started and ended.
#[derive(Debug)]
pub(super) struct Agent {
    number: usize,
    plan: DevicePlan,
    location: Location,
    /// The running process.
    running: Option<(ProcessIndex, Arc<Shutdown>)>,
    starts: u32,
    token_file: PathBuf,
}

impl Agent {
    pub(super) fn new(number: usize, plan: DevicePlan, location: Location, folder: &Path) -> Self {
        let token_file = folder.join("token");
        Self { number, plan, location, running: None, starts: 0, token_file }
    }

    /// The process, if it has not been killed and has not ended.
    pub(super) fn process(&self) -> Option<ProcessIndex> {
        let (process, _) = self.running.as_ref()?;
        with(|machine| machine.is_alive(*process) && machine.has_threads(*process))
            .then_some(*process)
    }

    /// Starts it, unless it runs.
    pub(super) fn start(&mut self, fixture: &Fixture) {
        if self.process().is_some() {
            return;
        }
        self.starts += 1;
        let name = format!("device-{}.{}", self.number, self.starts);
        let options = self.options(fixture);
        let stop = Arc::new(Shutdown::default());
        let asked = Arc::clone(&stop);
        let process = spawn(name, move || {
            machine::note("starts");
            match serve(options, |_| machine::note("listens"), asked) {
                Ok(summary) => machine::note(&format!("ends after {} batches", summary.batches)),
                Err(error) => machine::fail(&format!("a device cannot serve: {error}")),
            }
        });
        self.running = Some((process, stop));
    }

    /// Kills it if it may still inject faults itself; it is then started again without them.
    pub(super) fn forget_faults(&mut self) {
        if self.starts == 1
            && !self.plan.own_faults.is_empty()
            && let Some(process) = self.process()
        {
            with(|machine| machine.kill(process));
        }
    }

    /// Tells it to end, after draining or at once.
    pub(super) fn shut_down(&self, is_at_once: bool) {
        if let Some((_, stop)) = &self.running {
            match is_at_once {
                true => stop.end(),
                false => stop.ask(),
            }
        }
    }

    fn options(&self, fixture: &Fixture) -> ServeOptions {
        let folder = fixture.dataset.clone();
        let mut options = match &self.location {
            Location::Sockets { own, .. } => ServeOptions::new(own, vec![folder]),
            Location::Ports { own, .. } => {
                let mut options = ServeOptions::new("unused", Vec::new());
                let address = TcpAddress { host: "127.0.0.1".to_owned(), port: *own };
                options.listen = Listen::Tcp { address, tls: None };
                options.token_file = Some(self.token_file.clone());
                options.roots = vec![Root { name: Some(ROOT_NAME.to_owned()), folder }];
                options
            }
        };
        // A device that dies at its n-th batch would die again after each start.
        options.faults = if self.starts == 1 { self.plan.own_faults.clone() } else { Vec::new() };
        options.preparers = Arc::new(SlowPreparers { sample_ns: self.plan.sample_ns });
        options.engine = EngineKind::Threads;
        options.threads = self.plan.threads;
        options
    }
}

/// Starts a process with one thread.
pub(super) fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> ProcessIndex {
    let process = with(|machine| {
        let process = machine.add_process(name);
        machine.set_next_process(process);
        process
    });
    let thread = std::thread::Builder::new().name("main".to_owned()).spawn(body);
    if thread.is_err() {
        machine::fail("no thread could be started");
    }
    process
}

/// Where a killed host continues; shared by the operator and the host.
pub(super) type SharedLedger = Arc<Shared<super::ledger::Ledger>>;
