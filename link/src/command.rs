//! The command line that starts a device: `device serve` and its options.

use crate::{Emulation, Fault, Targets};
use std::ffi::OsString;

/// A device process to start.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServeCommand {
    /// Its speed limits.
    pub emulation: Emulation,
    /// The faults to inject.
    pub faults: Vec<Fault>,
    /// Name of its storage engine; `None` leaves the choice to it.
    pub engine: Option<&'static str>,
}

impl ServeCommand {
    /// The arguments after the program's own, without socket and roots, which the loader adds.
    pub fn arguments(&self) -> Vec<OsString> {
        let Self { emulation, faults, engine } = self;
        let Emulation { targets, allow_shared, memory_bytes_max } = emulation;
        let Targets { cpu_ratio, read_bytes_per_second, write_bytes_per_second, latency_ns, core } =
            targets;
        let mut arguments: Vec<OsString> = vec!["device".into(), "serve".into()];
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                arguments.extend([name.into(), value.into()]);
            }
        };
        let rate = |bytes: u64| format!("{bytes}B/s");
        add("--cpu-ratio", cpu_ratio.map(|ratio| ratio.to_string()));
        add("--read-bandwidth", read_bytes_per_second.map(rate));
        add("--write-bandwidth", write_bytes_per_second.map(rate));
        add("--latency", latency_ns.map(|time| format!("{time}ns")));
        add("--core", core.map(|core| core.to_string()));
        add("--memory-max", memory_bytes_max.map(|bytes| format!("{bytes}B")));
        faults.iter().for_each(|fault| add("--fault", Some(fault.to_string())));
        add("--engine", engine.map(str::to_owned));
        if *allow_shared {
            arguments.push("--allow-shared".into());
        }
        arguments
    }
}
