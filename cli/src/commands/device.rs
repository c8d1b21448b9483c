//! `meetpoint device`: runs the storage-side process, queries a running one, makes certificates,
//! and measures how well this machine emulates a device.

use super::{calibrate, keys};
use crate::surface::failure;
use crate::surface::remote::RemoteArguments;
use crate::surface::{Output, Stop, output, units};
use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use meetpoint_device::{ExtentRoot, Listen, Ready, Root, ServeOptions, ServeSummary};
use meetpoint_host::DeviceKind;
use meetpoint_link::tls::TlsFiles;
use meetpoint_link::{DeviceInfo, Emulation, Fault, Target, Targets, TcpAddress};
use meetpoint_prepare::csx::{EmulatedCsxPreparers, Leg, LegTotals};
use meetpoint_prepare::{CpuPreparers, PreparerFactory};
use meetpoint_storage::EngineKind;
use serde::Serialize;
use std::ffi::OsString;
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
    /// Certificate of the authority that signs those of hosts, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "Network")]
    ca: Option<PathBuf>,
    /// Certificate of this device, in PEM. All files are read again once they change.
    #[arg(long, value_name = "FILE", requires_all = ["key", "ca", "listen"],
          help_heading = "Network")]
    cert: Option<PathBuf>,
    /// Its private key, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "Network")]
    key: Option<PathBuf>,
    /// Revoked certificates, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "Network")]
    crl: Option<PathBuf>,
    /// File with a token that every host must send: at least 16 printable characters.
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    token_file: Option<PathBuf>,
    /// Folder whose datasets may be served; may be given several times. With --listen it has a
    /// name, by which hosts find it: NAME=FOLDER.
    #[arg(long = "root", required_unless_present = "extents", value_name = "[NAME=]FOLDER")]
    roots: Vec<OsString>,
    /// Serve a dataset by its extents, without mounting its file system: a file that `dataset
    /// extents --to` wrote; may be given several times. It is read from the device of --block.
    #[arg(long, value_name = "[NAME=]FILE", requires = "blocks", help_heading = "Extents")]
    extents: Vec<OsString>,
    /// Device that the extents are on: the block device or its drive, an image of either, or an
    /// NVMe namespace (/dev/ng0n1). Only the extents are read, and nothing is written. Once for
    /// all, or once for each --extents.
    #[arg(long = "block", value_name = "BLOCK", requires = "extents", help_heading = "Extents")]
    blocks: Vec<PathBuf>,
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
    /// How blocks are read and written.
    ///
    /// auto: io_uring if it works, otherwise threads, and the reason is printed; io_uring: an error
    /// if it does not work; threads: blocking reads on a few threads.
    #[arg(long, value_parser = engine_parser(), default_value = "auto", value_name = "ENGINE")]
    engine: EngineKind,
    /// Number of hosts served at once, up to 64: ranks of a job, or jobs. They take turns.
    #[arg(long, value_name = "N", default_value_t = 1)]
    hosts: u32,
    /// Serve one host, then exit. A host that starts its own device uses this option.
    #[arg(long)]
    once: bool,
    /// With --once: ID of the process that started this one. If that process has ended, exit at
    /// once.
    #[arg(long, value_name = "PID", hide = true)]
    parent: Option<u32>,
    /// Exit after this time without a connection, such as 10min.
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    idle_timeout: Option<Duration>,
}

/// Print what a device reports about itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint device probe --socket /run/user/1000/csd.sock
  meetpoint device probe --device tcp://10.0.0.7:7000 --device-keys keys")]
struct Probe {
    /// Unix socket of the device.
    #[arg(
        long,
        value_name = "PATH",
        required_unless_present = "devices",
        conflicts_with = "devices"
    )]
    socket: Option<PathBuf>,
    #[command(flatten)]
    remote: RemoteArguments,
}

impl Probe {
    fn target(self) -> anyhow::Result<Target> {
        if let Some(socket) = self.socket {
            return Ok(Target::Socket(socket));
        }
        let [device] = <[DeviceKind; 1]>::try_from(self.remote.devices()).map_err(|_| {
            crate::surface::fault::Fault::usage("--device names several", "name one device")
        })?;
        match device {
            DeviceKind::Connect { socket } => Ok(Target::Socket(socket)),
            DeviceKind::Remote(device) => Ok(Target::Remote(device)),
            DeviceKind::Emulated(_) => unreachable!("an address names a running device"),
        }
    }
}

/// Parses the name of a storage engine.
fn engine_parser() -> impl TypedValueParser<Value = EngineKind> {
    let names = EngineKind::ALL.map(EngineKind::as_str);
    PossibleValuesParser::new(names).map(|name| {
        let kind = EngineKind::ALL.into_iter().find(|kind| kind.as_str() == name);
        kind.expect("only names of engines are taken")
    })
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
        ([], []) => "free".to_owned(),
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
    let stop = Stop::install()?;
    let files = (arguments.ca, arguments.cert, arguments.key);
    let listen = match (arguments.listen, arguments.socket) {
        (Some(address), _) => {
            let tls = match files {
                (Some(ca), Some(cert), Some(key)) => {
                    Some(TlsFiles { ca, cert, key, crl: arguments.crl })
                }
                // The parser accepts all of them or none.
                _ => None,
            };
            Listen::Tcp { address, tls }
        }
        (None, socket) => Listen::Socket(socket.expect("the parser asks for it")),
    };
    let extents = extent_roots(&arguments.extents, &arguments.blocks)?;
    let csx = arguments.function_memory.map(|bytes| Arc::new(EmulatedCsxPreparers::new(bytes)));
    let preparers: Arc<dyn PreparerFactory> = match &csx {
        Some(csx) => Arc::clone(csx) as _,
        None => Arc::new(CpuPreparers::default()),
    };
    let options = ServeOptions {
        listen,
        preparers,
        token_file: arguments.token_file,
        roots: arguments.roots.iter().map(|root| Root::parse(root)).collect(),
        extents,
        report: output::notice,
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
        engine: arguments.engine,
        hosts: arguments.hosts,
        once: arguments.once,
        parent: arguments.parent,
        idle_timeout: arguments.idle_timeout,
    };
    let ready = |ready: &Ready| {
        ready.notices.iter().for_each(|text| output::notice(text));
        let line = format!("listening on {}\n{}", ready.endpoint, describe(&ready.device));
        output.line(line.trim_end());
    };
    let served = meetpoint_device::serve(options, ready, stop.flag());
    let summary: ServeSummary = served.map_err(|error| match error {
        meetpoint_device::Error::Emulation(error) => {
            let option = error.setting.as_str().replace('_', "-");
            failure::Fault::usage(format!("--{option} is {}", error.value), error.remedy).into()
        }
        error => anyhow::Error::from(error),
    })?;
    let legs = csx.map(|csx| csx.totals());
    output.result(&Served { summary: &summary, legs }, || {
        let ServeSummary { jobs, batches, connections_refused, loads_refused, .. } = &summary;
        let held = summary
            .cgroup_throttled_ns
            .map(|ns| format!("; its control group throttled it for {}", units::nanoseconds(ns)));
        format!(
            "served {jobs} jobs, {batches} batches; refused {connections_refused} connections and \
             {loads_refused} jobs{}{}",
            held.unwrap_or_default(),
            legs.map(legs_in_words).unwrap_or_default()
        )
    })
}

/// What a device did until it ended.
#[derive(Debug, Serialize)]
struct Served<'a> {
    #[serde(flatten)]
    summary: &'a ServeSummary,
    /// With --function-memory: bytes and time of each leg of its jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    legs: Option<LegTotals>,
}

fn legs_in_words(legs: LegTotals) -> String {
    let leg = |name: &str, leg: Leg| {
        format!("{name} {} in {}", units::bytes(leg.bytes), units::nanoseconds(leg.device_ns))
    };
    let LegTotals { load, compute, copy } = legs;
    format!("; {}, {}, {}", leg("loaded", load), leg("computed", compute), leg("copied", copy))
}

/// The files of extents with their devices.
fn extent_roots(extents: &[OsString], blocks: &[PathBuf]) -> anyhow::Result<Vec<ExtentRoot>> {
    if blocks.len() > 1 && blocks.len() != extents.len() {
        let message = format!("{} --block for {} --extents", blocks.len(), extents.len());
        let remedy = "give --block once, or once for each --extents";
        return Err(failure::Fault::usage(message, remedy).into());
    }
    let block = |index: usize| blocks.get(index).or(blocks.first());
    let root = |(index, text): (usize, &OsString)| {
        let Root { name, folder: file } = Root::parse(text);
        let block = block(index).expect("the parser asks for it").clone();
        ExtentRoot { name, file, block }
    };
    Ok(extents.iter().enumerate().map(root).collect())
}

fn describe(info: &DeviceInfo) -> String {
    let mut text = format!(
        "process {}, meetpoint {}, link version {}\n",
        info.process_id, info.program_version, info.protocol_version
    );
    for root in &info.roots {
        text.push_str(&format!("serves {}\n", root.display()));
    }
    text.push_str(&format!("storage engine {}", info.storage_engine));
    if !info.storage_note.is_empty() {
        text.push_str(&format!(" ({})", info.storage_note));
    }
    text.push('\n');
    let Some(settings) = &info.emulation else {
        text.push_str("not slowed down\n");
        return text;
    };
    let rate = |rate: u64| units::rate(rate as f64);
    let settings = [
        ("CPU ratio", settings.cpu_ratio.map(|ratio| ratio.to_string())),
        ("read bandwidth", settings.read_bytes_per_second.map(rate)),
        ("write bandwidth", settings.write_bytes_per_second.map(rate)),
        ("latency", settings.latency_ns.map(units::nanoseconds)),
        ("core", settings.core.map(|core| core.to_string())),
    ];
    let set = settings.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value?)));
    text.push_str(&format!("emulated: {}\n", set.collect::<Vec<_>>().join(", ")));
    text
}
