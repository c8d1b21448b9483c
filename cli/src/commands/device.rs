//! `meetpoint device`: runs the storage-side process, queries a running one, makes certificates,
//! and measures how well this machine emulates a device.

use super::serving::{Defaults, Service, describe, serve, serve_until_signal, summarize};
use super::{calibrate, keys};
use crate::surface::remote::RemoteArguments;
use crate::surface::{Output, units};
use clap::Subcommand;
use meetpoint_device::{Listen, ServeOptions, ServeSummary};
use meetpoint_host::DeviceKind;
use meetpoint_link::{DeviceInfo, Emulation, Fault, Target, Targets, TcpAddress};
use meetpoint_prepare::csx::{EmulatedCsxPreparers, Leg, LegTotals};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Run a storage-side device, or query one.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<Serve>),
    Probe(Probe),
    Keys(keys::Arguments),
    Calibrate(calibrate::Arguments),
}

/// Serve datasets as a device: prepare batches near the data for hosts that connect.
///
/// Without emulation options the device is as fast as this machine. Emulation options slow it down;
/// the achieved value of each is measured, and the host's report compares it with the target. `run`
/// and `demo` start their own devices. Start one yourself to share it, or to run it on a drive's
/// own processor.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint device serve --socket /run/user/1000/csd.sock --root photos.set --cpu-ratio 0.3
  meetpoint device serve --socket s --root photos.set --read-bandwidth 500MB/s --latency 100us
  meetpoint device serve --socket s --root photos.set --fault stall@3:2s
  meetpoint device serve --listen tcp://10.0.0.7:7000 --root photos=/data/photos.set \\
      --ca ca.pem --cert server.pem --key server.key
  meetpoint device serve --socket s --extents photos.extents.json --block /dev/nvme0n1")]
struct Serve {
    /// Unix socket to listen on; created with mode 0600, removed at the end.
    #[arg(long, value_name = "PATH", required_unless_present = "listen")]
    socket: Option<PathBuf>,
    /// Address to listen on instead, for hosts of a network: tcp://HOST:PORT. Needs certificates,
    /// or on the loopback interface a token.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "socket", help_heading = "Network")]
    listen: Option<TcpAddress>,
    #[command(flatten)]
    service: Service,
    /// Share of a core's time that the device may use, above 0 and at most 1.
    #[arg(long, value_name = "RATIO", help_heading = "Emulation")]
    cpu_ratio: Option<f64>,
    /// Maximum read bandwidth, such as 500MB/s.
    #[arg(long, value_name = "RATE", value_parser = units::parse_rate, help_heading = "Emulation")]
    read_bandwidth: Option<u64>,
    /// Maximum write bandwidth, such as 500MB/s.
    #[arg(long, value_name = "RATE", value_parser = units::parse_rate, help_heading = "Emulation")]
    write_bandwidth: Option<u64>,
    /// Latency of each command, such as 100us.
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration,
          help_heading = "Emulation")]
    latency: Option<Duration>,
    /// Core to which the preparing thread is pinned; by default the last one.
    #[arg(long, value_name = "N", help_heading = "Emulation")]
    core: Option<u32>,
    /// Run even if host and device must share a core; measurements are then less accurate.
    #[arg(long, help_heading = "Emulation")]
    allow_shared: bool,
    /// Maximum memory, such as 512MiB.
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes,
          help_heading = "Emulation")]
    memory_max: Option<u64>,
    /// Prepare batches as jobs of an emulated device that only has primitive requests (load,
    /// compute, copy), with function data memory of this size, such as 256MiB.
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes,
          help_heading = "Emulation")]
    function_memory: Option<u64>,
    /// Also limit CPU time and memory by a control group, a little above the emulated values, so
    /// that the device never takes more. Needs a group that this user may change.
    #[arg(long, help_heading = "Emulation")]
    cgroup: bool,
    /// Inject a fault at batch N: die@N, stall@N, stall@N:2s, slow@N:x4, corrupt@N, tear@N,
    /// enospc@N, drop-link@N. May be given several times.
    #[arg(long = "fault", value_name = "FAULT", help_heading = "Faults")]
    faults: Vec<Fault>,
    /// Serve one host, then exit. A host that starts its own device uses this option.
    #[arg(long)]
    once: bool,
    /// With --once: ID of the process that started this one. If that process has ended, exit at
    /// once.
    #[arg(long, value_name = "PID", hide = true)]
    parent: Option<u32>,
}

/// Print what a device reports about itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint device probe --socket /run/user/1000/csd.sock
  meetpoint device probe --device tcp://10.0.0.7:7000 --device-keys keys")]
#[command(group = clap::ArgGroup::new("target").args(["socket", "devices"]).required(true))]
struct Probe {
    /// Unix socket of the device.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    #[command(flatten)]
    remote: RemoteArguments,
}

impl Probe {
    fn target(self) -> anyhow::Result<Target> {
        if let Some(socket) = self.socket {
            return Ok(Target::Socket(socket));
        }
        let [device] = <[DeviceKind; 1]>::try_from(self.remote.devices()?).map_err(|_| {
            crate::surface::fault::Fault::usage("--device names several", "name one device")
        })?;
        match device {
            DeviceKind::Connect { socket } => Ok(Target::Socket(socket)),
            DeviceKind::Remote(device) => Ok(Target::Remote(Box::new(device.located()?))),
            DeviceKind::Emulated(_) => unreachable!("an address names a running device"),
        }
    }
}

pub(super) fn run(arguments: Arguments, output: Output) -> anyhow::Result<()> {
    match arguments.command {
        Command::Serve(serve) => serve_device(*serve, output),
        Command::Keys(arguments) => keys::run(&arguments, output),
        Command::Calibrate(arguments) => calibrate::run(&arguments, output),
        Command::Probe(probe) => {
            let info = meetpoint_device::probe(probe.target()?)?;
            output.result(&info, || format!("{}{}", describe(&info), state(&info)))
        }
    }
}

/// The hosts that a device serves.
fn state(info: &DeviceInfo) -> String {
    match (&info.hosts[..], &info.remote_hosts[..]) {
        ([], []) => "serves no host at present".to_owned(),
        ([host], []) if info.hosts_max == 1 => {
            format!("busy: works for the host with process id {host}")
        }
        ([], [host]) if info.hosts_max == 1 => format!("busy: works for the host {host}"),
        (hosts, []) => format!(
            "works for {} of {} hosts, process ids {}",
            hosts.len(),
            info.hosts_max,
            hosts.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
        ),
        (_, remote) => {
            format!("works for {} of {} hosts, {}", remote.len(), info.hosts_max, remote.join(", "))
        }
    }
}

fn serve_device(arguments: Serve, output: Output) -> anyhow::Result<()> {
    let listen = match (arguments.listen, arguments.socket) {
        (Some(address), _) => Listen::Tcp { address, tls: arguments.service.tls() },
        (None, socket) => Listen::Socket(socket.expect("the parser asks for it")),
    };
    let csx = arguments.function_memory.map(|bytes| Arc::new(EmulatedCsxPreparers::new(bytes)));
    let plain = arguments.service.options(listen, Defaults { threads: 1, hosts: 1 })?;
    let options = ServeOptions {
        preparers: match &csx {
            Some(csx) => Arc::clone(csx) as _,
            None => Arc::clone(&plain.preparers),
        },
        emulation: Emulation {
            targets: Targets {
                cpu_ratio: arguments.cpu_ratio,
                read_bytes_per_second: arguments.read_bandwidth,
                write_bytes_per_second: arguments.write_bandwidth,
                latency_ns: arguments
                    .latency
                    .map(|latency| u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX)),
                core: arguments.core,
            },
            allow_shared: arguments.allow_shared,
            memory_bytes_max: arguments.memory_max,
        },
        cgroup: arguments.cgroup,
        faults: arguments.faults,
        once: arguments.once,
        parent: arguments.parent,
        ..plain
    };
    let Some(csx) = csx else { return serve(options, output) };
    let summary = serve_until_signal(options, output)?;
    let legs = csx.totals();
    let served = Served { summary: &summary, legs };
    output.result(&served, || format!("{}{}", summarize(&summary), legs_in_words(legs)))
}

/// The summary of a device with function memory.
#[derive(Debug, Serialize)]
struct Served<'a> {
    #[serde(flatten)]
    summary: &'a ServeSummary,
    /// Bytes and time of each leg of its jobs.
    legs: LegTotals,
}

fn legs_in_words(legs: LegTotals) -> String {
    let leg = |name: &str, leg: Leg| {
        format!("{name} {} in {}", units::bytes(leg.bytes), units::nanoseconds(leg.device_ns))
    };
    let LegTotals { load, compute, copy } = legs;
    format!("\n{}, {}, {}", leg("loaded", load), leg("computed", compute), leg("copied", copy))
}
