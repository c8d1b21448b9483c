//! The common part of `agent` and `device serve`: options of a process that serves hosts, serving
//! until a signal, and the summary.

use crate::surface::{Output, Stop, failure, output, units};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use meetpoint_device::{ExtentRoot, Listen, Ready, Root, ServeOptions, ServeSummary, Shutdown};
use meetpoint_diagnose::{Diagnose, Surface, shown};
use meetpoint_link::tls::TlsFiles;
use meetpoint_link::{DeviceInfo, TcpAddress};
use meetpoint_storage::EngineKind;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Options of a process that serves hosts.
#[derive(Debug, clap::Args)]
pub(super) struct Service {
    /// Certificate of the authority that signs the certificates of hosts, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "Network")]
    ca: Option<PathBuf>,
    /// Certificate of this device, in PEM. All files are read again once they change.
    #[arg(long, value_name = "FILE", requires_all = ["key", "ca", "listen"],
          help_heading = "Network")]
    cert: Option<PathBuf>,
    /// Private key of --cert, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "Network")]
    key: Option<PathBuf>,
    /// List of revoked certificates, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "Network")]
    crl: Option<PathBuf>,
    /// File with a token that every host must send: at least 16 printable characters.
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    token_file: Option<PathBuf>,
    /// Folder whose datasets may be served; may be given several times. With --listen, write
    /// NAME=FOLDER: hosts refer to the folder by NAME.
    #[arg(long = "root", required_unless_present = "extents", value_name = "[NAME=]FOLDER")]
    roots: Vec<OsString>,
    /// Serve a dataset by its extents, without mounting its file system: a file that `dataset
    /// extents --to` wrote; may be given several times. It is read from the device of --block.
    #[arg(long, value_name = "[NAME=]FILE", requires = "blocks", help_heading = "Extents")]
    extents: Vec<OsString>,
    /// Device that the extents are on: the block device or its drive, an image of either, or an
    /// NVMe namespace (/dev/ng0n1), which is always read by NVMe commands. With --engine spdk, also
    /// a device of SPDK. Only the extents are read, and nothing is written. Give it once for all
    /// --extents, or once for each, in the same order.
    #[arg(long = "block", value_name = "BLOCK", requires = "extents", help_heading = "Extents")]
    blocks: Vec<PathBuf>,
    /// Number of batches prepared at once, for all loaders together. By default 1 for `device
    /// serve`, and all cores that the process may use for `agent`.
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Number of loaders served at once, up to 64: ranks, or jobs with one rank. Clients get equal
    /// shares of the threads' time. By default 1 for `device serve`, and 16 for `agent`.
    #[arg(long, value_name = "N")]
    hosts: Option<u32>,
    /// Address for monitoring, such as tcp://127.0.0.1:9464: /metrics for Prometheus, /healthz, and
    /// gRPC health v1. It is not encrypted and shows the names of clients.
    #[arg(long, value_name = "ADDRESS", help_heading = "Operation")]
    metrics: Option<TcpAddress>,
    /// Longest time from the first SIGTERM or SIGINT until the end. Meanwhile, batches in progress
    /// are delivered and hosts continue without this device. A second signal ends it at once.
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, default_value = "25s",
          help_heading = "Operation")]
    drain_timeout: Duration,
    /// Exit after this time without a connection, such as 10min.
    #[arg(long, value_name = "TIME", value_parser = units::parse_positive_duration,
          help_heading = "Operation")]
    idle_timeout: Option<Duration>,
    /// How blocks are read and written.
    ///
    /// auto: io_uring if it works, otherwise threads, and the reason is printed; io_uring: an error
    /// if it does not work; threads: blocking reads on a few threads; spdk: block devices of SPDK,
    /// in programs that were built with it.
    #[arg(long, value_parser = engine_parser(), default_value = "auto", value_name = "ENGINE")]
    engine: EngineKind,
}

/// Defaults of options that the user did not give.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults {
    pub(super) threads: u32,
    pub(super) hosts: u32,
}

impl Service {
    /// The certificates; the parser accepts all of them or none.
    pub(super) fn tls(&self) -> Option<TlsFiles> {
        match (self.ca.clone(), self.cert.clone(), self.key.clone()) {
            (Some(ca), Some(cert), Some(key)) => {
                Some(TlsFiles { ca, cert, key, crl: self.crl.clone() })
            }
            _ => None,
        }
    }

    /// The configuration of a device that is neither slow nor faulty.
    pub(super) fn options(
        self,
        listen: Listen,
        defaults: Defaults,
    ) -> anyhow::Result<ServeOptions> {
        Ok(ServeOptions {
            listen,
            extents: extent_roots(&self.extents, &self.blocks)?,
            roots: self.roots.iter().map(|root| Root::parse(root)).collect(),
            token_file: self.token_file,
            report: output::notice,
            engine: self.engine,
            hosts: self.hosts.unwrap_or(defaults.hosts),
            threads: self.threads.unwrap_or(defaults.threads),
            metrics: self.metrics,
            drain_timeout: self.drain_timeout,
            idle_timeout: self.idle_timeout,
            ..ServeOptions::new("", Vec::new())
        })
    }
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

/// Parses the name of a storage engine.
pub(super) fn engine_parser() -> impl TypedValueParser<Value = EngineKind> {
    let names = EngineKind::ALL.map(EngineKind::as_str);
    PossibleValuesParser::new(names).map(|name| {
        let kind = EngineKind::ALL.into_iter().find(|kind| kind.as_str() == name);
        kind.expect("only names of engines are taken")
    })
}

/// Serves until a signal, and prints the summary.
pub(super) fn serve(options: ServeOptions, output: Output) -> anyhow::Result<()> {
    let summary = serve_until_signal(options, output)?;
    output.result(&summary, || summarize(&summary))
}

/// Serves until a signal.
pub(super) fn serve_until_signal(
    options: ServeOptions,
    output: Output,
) -> anyhow::Result<ServeSummary> {
    let (stop, shutdown) = (Stop::install()?, Arc::new(Shutdown::default()));
    let asked = Arc::clone(&shutdown);
    stop.on_signal(move || asked.ask());
    let ready = |ready: &Ready| {
        let notices = ready.notices.iter().map(|notice| notice.in_full(Surface::CommandLine));
        notices.for_each(|text| output::notice(&text));
        let mut text = format!("listening on {}\n", ready.endpoint);
        if let Some(address) = &ready.metrics {
            text.push_str(&format!("metrics at http://{}/metrics\n", address.authority()));
        }
        text.push_str(&describe(&ready.device));
        output.line(text.trim_end());
    };
    let served = meetpoint_device::serve(options, ready, shutdown);
    served.map_err(|error| match error {
        meetpoint_device::Error::Emulation(error) => {
            let option = error.setting.as_str().replace('_', "-");
            failure::Fault::usage(format!("--{option} is {}", error.value), error.remedy).into()
        }
        error => anyhow::Error::from(error),
    })
}

/// A summary in words.
pub(super) fn summarize(summary: &ServeSummary) -> String {
    let ServeSummary { jobs, batches, connections_refused, loads_refused, .. } = summary;
    let mut text = format!(
        "served {}, {}; refused {} and {}",
        units::count(*jobs, "job"),
        units::count(*batches, "batch"),
        units::count(*connections_refused, "connection"),
        units::count(*loads_refused, "job")
    );
    if let Some(ns) = summary.cgroup_throttled_ns {
        let time = units::nanoseconds(ns);
        text.push_str(&format!("; its control group throttled it for {time}"));
    }
    for client in &summary.clients {
        let waited = units::nanoseconds(client.turn_wait_ns.saturating_add(client.slot_wait_ns));
        text.push_str(&format!(
            "\n{}: {}, {}, {}, {} of CPU time; batches waited for {waited}",
            client.client,
            units::count(client.jobs, "job"),
            units::count(client.batches, "batch"),
            units::bytes(client.sent_bytes),
            units::nanoseconds(client.cpu_ns),
        ));
    }
    if summary.cut_off {
        text.push_str("\nhosts that had not disconnected in time were cut off");
    }
    text
}

/// The description of a device.
pub(super) fn describe(info: &DeviceInfo) -> String {
    let mut text = format!(
        "process {}, meetpoint {}, link version {}\n",
        info.process_id, info.program_version, info.protocol_version
    );
    for root in &info.roots {
        text.push_str(&format!("serves {}\n", shown(root)));
    }
    text.push_str(&format!("storage engine {}", info.storage_engine));
    if let Some(note) = &info.storage_note {
        text.push_str(&format!(" ({note})"));
    }
    text.push('\n');
    if info.threads > 1 {
        text.push_str(&format!("prepares {} batches at once\n", info.threads));
    }
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
