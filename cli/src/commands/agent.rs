//! `meetpoint agent`: serves datasets to training jobs at the full speed of this machine.

use super::serving::{Defaults, Service, serve};
use crate::surface::Output;
use meetpoint_device::{Listen, ServeOptions};
use meetpoint_link::TcpAddress;

/// Default number of hosts served at the same time.
const HOSTS: u32 = 16;

/// Serve datasets to training jobs on other machines: prepare their batches near the data.
///
/// An agent is a device without emulation: all cores prepare, and clients get equal shares of them.
/// It is a service: SIGTERM drains it, systemd is notified (Type=notify), and --metrics serves
/// counters and health. Jobs name it with --device tcp://HOST:PORT, several agents with srv:NAME.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint device keys keys --server storage-1 --client client
  meetpoint agent --listen tcp://0.0.0.0:7000 --root photos=/data/photos.set \\
      --ca keys/ca.pem --cert keys/server.pem --key keys/server.key \\
      --metrics tcp://127.0.0.1:9464")]
pub(crate) struct Arguments {
    /// Address to listen on: tcp://HOST:PORT. Needs certificates, or on the loopback interface a
    /// token.
    #[arg(long, value_name = "ADDRESS", help_heading = "Network")]
    listen: TcpAddress,
    #[command(flatten)]
    service: Service,
}

pub(super) fn run(arguments: Arguments, output: Output) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = u32::try_from(cores).unwrap_or(u32::MAX).min(ServeOptions::THREADS_MAX);
    let tls = arguments.service.tls();
    let listen = Listen::Tcp { address: arguments.listen, tls };
    serve(arguments.service.options(listen, Defaults { threads, hosts: HOSTS })?, output)
}
