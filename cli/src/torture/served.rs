//! The devices of a job that the campaign starts, and the proxies before them.

use super::child::Running;
use super::job::{TortureJob, Transport};
use super::relay::Relay;
use super::trouble::{Needs, Trouble};
use anyhow::{Context, bail};
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a device may take until it listens, and to end.
const LIMIT: Duration = Duration::from_secs(30);

/// The token of devices on ports; every user of the machine can connect to them.
pub(super) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// One device.
#[derive(Debug)]
struct Served {
    /// `None` once it was killed or has ended.
    running: Option<Running>,
    /// What hosts connect to: a path, or `tcp://HOST:PORT`.
    address: String,
    relay: Option<Relay>,
    /// Restarts so far, for the names of its output files.
    starts: u32,
}

/// All devices of a job; empty if the host starts its own.
#[derive(Debug)]
pub(super) struct Devices {
    folder: PathBuf,
    root: PathBuf,
    served: Vec<Served>,
}

impl Devices {
    /// No devices yet. `root` is the folder that they serve.
    pub(super) fn new(folder: &Path, root: &Path) -> Self {
        Self { folder: folder.to_path_buf(), root: root.to_path_buf(), served: Vec::new() }
    }

    /// Starts the devices of a job and waits until they listen.
    pub(super) fn start(&mut self, job: &TortureJob) -> anyhow::Result<()> {
        for number in 0..job.devices {
            let mut served =
                Served { running: None, address: format!("d{number}"), relay: None, starts: 0 };
            self.start_one(job, number, &mut served)?;
            if job.transport == Transport::Tcp {
                let port = port_of(&served)?;
                if job.trouble.needs() == Needs::Proxy {
                    let relay = Relay::start(port)?;
                    served.address = format!("tcp://127.0.0.1:{}", relay.port());
                    served.relay = Some(relay);
                } else {
                    served.address = format!("tcp://127.0.0.1:{port}");
                }
            }
            self.served.push(served);
        }
        Ok(())
    }

    fn start_one(&self, job: &TortureJob, number: u32, served: &mut Served) -> anyhow::Result<()> {
        let hosts = job.ranks.to_string();
        let mut line = vec!["device", "serve", "--allow-shared", "--hosts", &hosts];
        // A host that was cut off by the network looks alive to the device for a while.
        line.extend(["--drain-timeout", "1s"]);
        let root = self.root.display().to_string();
        let named = format!("sets={root}");
        match job.transport {
            Transport::Tcp => line.extend([
                "--listen",
                "tcp://127.0.0.1:0",
                "--token-file",
                "token",
                "--root",
                &named,
            ]),
            Transport::Unix | Transport::Spawned => {
                line.extend(["--socket", &served.address, "--root", &root]);
            }
        }
        let ratio = job.cpu_ratio.map(|ratio| ratio.to_string());
        if let Some(ratio) = &ratio {
            line.extend(["--cpu-ratio", ratio]);
        }
        let fault = job.device_fault().filter(|_| number == 0 && served.starts == 0);
        if let Some(fault) = &fault {
            line.extend(["--fault", fault]);
        }
        let memory = format!("{}MiB", 8 << (job.detail % 5));
        if job.trouble == Trouble::DeviceMemoryTight {
            line.extend(["--memory-max", &memory]);
        }
        line.extend(["--engine", job.engine]);
        let name = format!("device{number}-{}", served.starts);
        served.starts += 1;
        let mut running = Running::start(&self.folder, &name, &line)?;
        let until = Instant::now() + LIMIT;
        while !running.stdout().contains("listening on ") {
            if let Some(status) = running.ended()? {
                // Too little memory is an error at the start, which the host then sees.
                if job.trouble == Trouble::DeviceMemoryTight && status.code() == Some(1) {
                    break;
                }
                bail!("a device ended with {status} before it listened: {}", running.stderr());
            }
            if Instant::now() > until {
                bail!("a device did not listen within {LIMIT:?}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        served.running = Some(running);
        Ok(())
    }

    /// What hosts connect to, one for each device.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.served.iter().map(|served| served.address.clone()).collect()
    }

    /// The process ids of those that run.
    pub(super) fn ids(&self) -> Vec<u32> {
        self.served.iter().filter_map(|served| Some(served.running.as_ref()?.id())).collect()
    }

    /// Kills a device and waits for its end.
    pub(super) fn kill(&mut self, number: usize) -> anyhow::Result<()> {
        let count = self.served.len();
        if let Some(mut running) = self.served[number % count].running.take() {
            running.signal(Signal::KILL);
            running.wait(LIMIT)?;
        }
        Ok(())
    }

    /// Starts a killed device at the same address.
    pub(super) fn restart(&mut self, job: &TortureJob, number: usize) -> anyhow::Result<()> {
        let number = number % self.served.len();
        let mut served = self.served.remove(number);
        let started = self.start_one(job, u32::try_from(number)?, &mut served);
        self.served.insert(number, served);
        started
    }

    /// The proxies.
    pub(super) fn relays(&self) -> impl Iterator<Item = &Relay> {
        self.served.iter().filter_map(|served| served.relay.as_ref())
    }

    /// Ends all devices as a user would, and returns what was wrong with their ends.
    pub(super) fn end(&mut self, job: &TortureJob) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        for (number, served) in self.served.iter_mut().enumerate() {
            let Some(mut running) = served.running.take() else { continue };
            running.signal(Signal::CONT);
            running.signal(Signal::TERM);
            let status = running.wait(LIMIT)?;
            let killed_itself = job.device_fault().is_some_and(|fault| fault.starts_with("die"))
                && status.and_then(|status| status.signal()) == Some(9);
            match status {
                Some(status) if status.code().is_some_and(|code| code <= 1) => {}
                Some(_) if killed_itself => {}
                Some(status) => wrong.push(format!("device {number} ended with {status}")),
                None => wrong.push(format!("device {number} did not end within {LIMIT:?}")),
            }
            wrong.extend(super::judge::defects(&format!("device {number}"), &running.stderr()));
        }
        Ok(wrong)
    }
}

/// The port that a device reports.
fn port_of(served: &Served) -> anyhow::Result<u16> {
    let Some(running) = &served.running else { return Ok(0) };
    let said = running.stdout();
    let line = said.lines().next().unwrap_or_default();
    // A device that ended at once has no port, and port 9 refuses connections.
    match line.rsplit(':').next().map(str::trim) {
        _ if line.is_empty() => Ok(9),
        Some(port) => port.parse().with_context(|| format!("no port in {line:?}")),
        None => bail!("no port in {line:?}"),
    }
}
