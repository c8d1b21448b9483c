//! How the devices of a job are started: this program again, as `device serve`.

use anyhow::Context;
use meetpoint_host::{DeviceJob, DeviceKind, DeviceSource, EmulatedDevice, SpawnDevice};
use meetpoint_storage::EngineKind;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

/// How this program is started again, where the file of the running process does not do it.
static OWN_COMMAND: OnceLock<OwnCommand> = OnceLock::new();

/// A command line that starts this program, but for the arguments of a command.
#[derive(Debug, Clone)]
pub struct OwnCommand {
    /// File that is started.
    pub program: PathBuf,
    /// What stands before the arguments of a command.
    pub arguments: Vec<OsString>,
}

impl OwnCommand {
    /// Uses it for the rest of the process, unless another one is used already.
    pub(crate) fn keep(self) {
        // A process is started in one way, so a second one is the same.
        let _ = OWN_COMMAND.set(self);
    }

    fn current() -> anyhow::Result<Self> {
        if let Some(kept) = OWN_COMMAND.get() {
            return Ok(kept.clone());
        }
        let program = std::env::current_exe().context("failed to find this program's own file")?;
        Ok(Self { program, arguments: Vec::new() })
    }
}

/// Where the job's devices come from.
pub(super) fn sources(
    devices: &[DeviceJob],
    engine: EngineKind,
) -> anyhow::Result<Vec<DeviceSource>> {
    let source = |device: &DeviceJob| {
        Ok(match &device.kind {
            DeviceKind::Connect { socket } => DeviceSource::Connect { socket: socket.clone() },
            DeviceKind::Emulated(knobs) => {
                let OwnCommand { program, arguments: mut line } = OwnCommand::current()?;
                line.extend(arguments(knobs, engine));
                DeviceSource::Spawn(SpawnDevice { program, arguments: line })
            }
        })
    };
    devices.iter().map(source).collect()
}

/// The command line of `meetpoint device serve`, without what the loader adds.
fn arguments(knobs: &EmulatedDevice, engine: EngineKind) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["device".into(), "serve".into()];
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            arguments.push(name.into());
            arguments.push(value.into());
        }
    };
    let rate = |bytes: u64| format!("{bytes}B/s");
    add("--cpu-ratio", knobs.cpu_ratio.map(|ratio| ratio.to_string()));
    add("--read-bandwidth", knobs.read_bytes_per_second.map(rate));
    add("--write-bandwidth", knobs.write_bytes_per_second.map(rate));
    add("--latency", knobs.latency.map(|time| format!("{}ns", time.as_nanos())));
    add("--core", knobs.core.map(|core| core.to_string()));
    knobs.faults.iter().for_each(|fault| add("--fault", Some(fault.clone())));
    let engine = match engine {
        EngineKind::Auto => "auto",
        EngineKind::Uring => "io_uring",
        EngineKind::Threads => "threads",
    };
    add("--engine", Some(engine.to_owned()));
    if knobs.allow_shared {
        arguments.push("--allow-shared".into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::arguments;
    use crate::commands::Arguments;
    use clap::Parser;
    use meetpoint_host::EmulatedDevice;
    use meetpoint_storage::EngineKind;
    use std::ffi::OsString;
    use std::time::Duration;

    #[test]
    fn every_knob_becomes_an_argument_that_the_program_takes() {
        let knobs = EmulatedDevice {
            cpu_ratio: Some(0.3125),
            read_bytes_per_second: Some(500_000_000),
            write_bytes_per_second: Some(1),
            latency: Some(Duration::from_micros(100)),
            core: Some(1),
            allow_shared: true,
            faults: vec!["stall@3:2s".to_owned(), "die@9".to_owned()],
        };
        let mut line: Vec<OsString> = vec!["meetpoint".into()];
        line.extend(arguments(&knobs, EngineKind::Threads));
        line.extend(["--socket", "s", "--root", "r", "--once"].map(OsString::from));
        let parsed = Arguments::try_parse_from(line).unwrap();
        let shown = format!("{parsed:?}");
        for part in [
            "cpu_ratio: Some(0.3125)",
            "read_bandwidth: Some(500000000)",
            "write_bandwidth: Some(1)",
            "latency: Some(100µs)",
            "core: Some(1)",
            "allow_shared: true",
            "faults: [StallAt { n: 3, duration: Some(2s) }, DieAt(9)]",
            "engine: Threads",
            "once: true",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }
}
