//! A device whose batches are sent over a network, beside the same device with a spool in shared
//! memory, at the same bandwidth.
//!
//! All devices run as they ship, in this process, over the loopback interface. Kinds take turns
//! within a round, and each figure is a median over rounds. Times say what an epoch under
//! `device-only` takes; CPU times are those of host and device together.

use anyhow::{Context, ensure};
use meetpoint_benches::{Options, Report, Row, Target, median, pictures};
use meetpoint_device::{Listen, Root, ServeOptions, Shutdown, serve};
use meetpoint_format::recipe::Recipe;
use meetpoint_host::{DeviceSource, Endpoint, Loader, LoaderConfig, RemoteDevice};
use meetpoint_link::tls::TlsFiles;
use meetpoint_link::tls::keys::{Authority, Subject, Validity};
use meetpoint_scheduler::{AnyStrategy, DeviceOnly};
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

/// Most time of an epoch whose batches are sent, relative to shared memory.
const RATIO_MAX: f64 = 1.05;

/// How batches reach the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Memory,
    Cleartext,
    Tls,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Memory, Self::Cleartext, Self::Tls];

    fn name(self) -> &'static str {
        match self {
            Self::Memory => "shared memory",
            Self::Cleartext => "sent, without TLS",
            Self::Tls => "sent, TLS",
        }
    }
}

/// A device on a thread of this process.
struct Device {
    source: DeviceSource,
    stop: Arc<Shutdown>,
    thread: Option<JoinHandle<Result<meetpoint_device::ServeSummary, meetpoint_device::Error>>>,
}

impl Device {
    fn start(path: &Path, folder: &Path, kind: Kind, rate: Option<u64>) -> anyhow::Result<Self> {
        let mut options = ServeOptions::new(folder.join("device.sock"), Vec::new());
        options.roots = vec![Root { name: Some("bench".to_owned()), folder: path.to_path_buf() }];
        options.emulation.targets.write_bytes_per_second = rate;
        options.emulation.allow_shared = true;
        let keys = folder.join("keys");
        let token = folder.join("token");
        let tls = (kind == Kind::Tls).then(|| TlsFiles::in_folder(&keys, "server"));
        if kind != Kind::Memory {
            options.listen = Listen::Tcp { address: "tcp://127.0.0.1:0".parse()?, tls };
            options.token_file = Some(token.clone());
        }
        let stop = Arc::new(Shutdown::default());
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                let tell = move |it: &meetpoint_device::Ready| {
                    // The receiver waits below; if it has ended, the result is not needed.
                    let _ = ready.send(it.endpoint.clone());
                };
                serve(options, tell, stop)
            })
        };
        let endpoint = is_ready.recv().context("the device ended before it was ready")?;
        let source = match endpoint {
            Endpoint::Socket(socket) => DeviceSource::Connect { socket },
            Endpoint::Tcp(address) => {
                let mut remote = RemoteDevice::new(address);
                if kind == Kind::Tls {
                    remote = remote.with_keys(&keys);
                }
                remote.token_file = Some(token);
                DeviceSource::Remote(Box::new(remote))
            }
        };
        Ok(Self { source, stop, thread: Some(thread) })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.stop.end();
        if let Some(thread) = self.thread.take() {
            // A device that failed made an epoch fail before.
            let _ = thread.join();
        }
    }
}

fn main() -> anyhow::Result<()> {
    let options = Options::from_args(&["dir"])?;
    let folder = tempfile::tempdir().context("making a temporary folder")?;
    let source = options.path("dir");
    let count = if options.quick { 64 } else { 512 };
    let path = pictures::dataset(folder.path(), source.as_deref(), count)?;
    let authority = Authority::open_or_make(&folder.path().join("keys"))?;
    let device = Subject::Device { hosts: vec!["127.0.0.1".to_owned()] };
    authority.issue(&device, Validity::days(1), false)?;
    let host = Subject::Host { name: "client".to_owned() };
    authority.issue(&host, Validity::days(1), false)?;
    std::fs::write(folder.path().join("token"), "0123456789abcdef0123456789abcdef")?;
    let mut report = Report::new("network", &options);
    let rounds = if options.quick { 1 } else { 7 };
    for (name, rate) in [("125 MB/s", Some(125_000_000)), ("no limit", None)] {
        let mut devices = Vec::new();
        for kind in Kind::ALL {
            devices.push((kind, Device::start(&path, folder.path(), kind, rate)?));
        }
        let mut loaders = Vec::new();
        for (kind, device) in &devices {
            loaders.push((*kind, open(&path, &device.source)?));
        }
        let mut times = vec![(Vec::new(), Vec::new()); loaders.len()];
        let mut sums = Vec::new();
        for round in 0..=rounds {
            for ((_, loader), (wall, cpu)) in loaders.iter_mut().zip(&mut times) {
                let (seconds, cpu_seconds, sum) = epoch(loader, round)?;
                sums.push((round, sum));
                // The first round opens files and fills caches.
                if round > 0 {
                    wall.push(seconds);
                    cpu.push(cpu_seconds);
                }
            }
        }
        let is_equal = |pair: &[(u32, u64)]| pair[0].0 != pair[1].0 || pair[0].1 == pair[1].1;
        ensure!(sums.windows(2).all(is_equal), "all kinds give the same bytes: {sums:?}");
        let medians: Vec<[f64; 2]> =
            times.iter().map(|(wall, cpu)| [median(wall), median(cpu)]).collect();
        for ((kind, _), [wall, cpu]) in loaders.iter().zip(&medians) {
            let row = |what: &str, value: f64, peer: f64, limit| {
                let row = Row::alone(format!("{name}, {}: {what}", kind.name()), value, "s");
                match (*kind, limit) {
                    (Kind::Memory, _) => row,
                    (_, Some(limit)) => {
                        row.against(Kind::Memory.name(), peer).target(Target::RatioAtMost(limit))
                    }
                    (_, None) => row.against(Kind::Memory.name(), peer),
                }
            };
            report.row(row("epoch", *wall, medians[0][0], rate.map(|_| RATIO_MAX)));
            report.row(row("CPU", *cpu, medians[0][1], None));
        }
    }
    report.finish(&options)
}

fn open(path: &Path, source: &DeviceSource) -> anyhow::Result<Loader> {
    let recipe = "[[operation]]\nname = \"decode\"\n[[operation]]\nname = \"resize\"\n\
                  size = [224, 224]\n";
    let mut config = LoaderConfig::new(path, Arc::new(Recipe::from_toml(recipe)?), 32);
    config.strategy = AnyStrategy::DeviceOnly(DeviceOnly);
    config.devices = vec![source.clone()];
    Ok(Loader::open(config)?)
}

/// Seconds and CPU seconds of an epoch, and a checksum of its batches.
fn epoch(loader: &mut Loader, number: u32) -> anyhow::Result<(f64, f64, u64)> {
    let (begun, cpu_begun) = (Instant::now(), cpu_seconds());
    let mut running = loader.start_epoch(number)?;
    let mut sum = 0_u64;
    while let Some(batch) = running.next_batch()? {
        // A few bytes of each batch: reading all of them would take the time of a copy.
        let bytes = batch.bytes();
        let some = bytes.iter().step_by(997);
        sum = some.fold(sum, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    }
    let stats = running.finish();
    let times = (begun.elapsed().as_secs_f64(), cpu_seconds() - cpu_begun, sum);
    ensure!(stats.schedule.host_batches == 0, "the device lost batches: {:?}", stats.events);
    Ok(times)
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
