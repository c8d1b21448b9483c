//! How the devices of a job are started: this program again, as `device serve`.

use crate::surface::fault::Fault;
use meetpoint_diagnose::Remedy;
use meetpoint_host::{DeviceJob, DeviceKind, DeviceSource, ServeCommand, SpawnDevice};
use meetpoint_storage::EngineKind;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// How to start this program again, if not by the executable of the running process.
static OWN_COMMAND: OnceLock<OwnCommand> = OnceLock::new();

/// The beginning of a command line that starts this program, without the arguments of a command.
#[derive(Debug, Clone)]
pub struct OwnCommand {
    /// File to execute.
    pub program: PathBuf,
    /// Arguments before those of a command.
    pub arguments: Vec<OsString>,
}

impl OwnCommand {
    /// Uses it for the rest of the process, unless one is already set.
    pub(crate) fn keep(self) {
        // This program has one such command line, so a second one would be equal.
        let _ = OWN_COMMAND.set(self);
    }

    /// The given one, or the executable of the running process.
    pub(crate) fn current() -> anyhow::Result<Self> {
        if let Some(kept) = OWN_COMMAND.get() {
            return Ok(kept.clone());
        }
        let program = std::env::current_exe().or_else(|error| executed().ok_or(error));
        let program = program.map_err(|error| {
            let message = format!("failed to find the file of this program: {error}");
            let remedy = Remedy::advice("mount /proc").or("start the device in another process");
            Fault::new("own_program_unknown", message, remedy)
        })?;
        Ok(Self { program, arguments: Vec::new() })
    }
}

/// The file that was executed, from the auxiliary vector (`AT_EXECFN`), which exists without
/// `/proc`. A relative path starts at the working directory, which this program never changes.
fn executed() -> Option<PathBuf> {
    let name = rustix::param::linux_execfn().to_bytes();
    Path::new(OsStr::from_bytes(name)).canonicalize().ok().filter(|path| path.is_file())
}

/// Where the job's devices come from.
pub(crate) fn sources(
    devices: &[DeviceJob],
    engine: EngineKind,
) -> anyhow::Result<Vec<DeviceSource>> {
    let source = |device: &DeviceJob| {
        Ok(match &device.kind {
            DeviceKind::Connect { socket } => DeviceSource::Connect { socket: socket.clone() },
            DeviceKind::Remote(device) => DeviceSource::Remote(device.clone()),
            DeviceKind::Emulated(command) => {
                let OwnCommand { program, arguments: mut line } = OwnCommand::current()?;
                let command = ServeCommand { engine: Some(engine.as_str()), ..command.clone() };
                line.extend(command.arguments());
                DeviceSource::Spawn(SpawnDevice { program, arguments: line })
            }
        })
    };
    devices.iter().map(source).collect()
}

#[cfg(test)]
mod tests {
    use super::executed;
    use crate::commands::Arguments;
    use clap::Parser;
    use meetpoint_host::{Emulation, ServeCommand, Targets};
    use meetpoint_storage::EngineKind;
    use std::ffi::OsString;

    #[test]
    fn the_executed_file_is_that_of_the_process() {
        assert_eq!(executed(), Some(std::env::current_exe().unwrap().canonicalize().unwrap()));
    }

    #[test]
    fn every_setting_becomes_an_argument_that_the_program_takes() {
        let targets = Targets {
            cpu_ratio: Some(0.3125),
            read_bytes_per_second: Some(500_000_000),
            write_bytes_per_second: Some(1),
            latency_ns: Some(100_000),
            core: Some(1),
        };
        let command = ServeCommand {
            emulation: Emulation { targets, allow_shared: true, memory_bytes_max: Some(1 << 29) },
            faults: ["stall@3:2s", "die@9"].map(|fault| fault.parse().unwrap()).to_vec(),
            engine: Some(EngineKind::Threads.as_str()),
        };
        let mut line: Vec<OsString> = vec!["meetpoint".into()];
        line.extend(command.arguments());
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
            "memory_max: Some(536870912)",
            "faults: [StallAt { n: 3, duration: Some(2s) }, DieAt(9)]",
            "engine: Threads",
            "once: true",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }
}
