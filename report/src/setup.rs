//! The setup of a run as values; `Display` writes them for tables and pages.

use crate::units;
use meetpoint_diagnose::shown;
use meetpoint_host::energy::NoMeters;
use meetpoint_scheduler::Reason;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Where the batches of devices are stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Spool {
    /// Memory that host and device share.
    Memory {
        /// Most bytes.
        quota_bytes: u64,
    },
    /// A file.
    File {
        /// Its folder.
        directory: PathBuf,
        /// Most bytes.
        quota_bytes: u64,
    },
}

/// A device as the job describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceSetup {
    /// The processor.
    #[serde(flatten)]
    pub processor: Processor,
    /// Numbers of the dataset's parts that it holds; `None`: all.
    pub parts: Option<Vec<u32>>,
}

/// The processor of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Processor {
    /// A device that already runs.
    Connected {
        /// Its socket.
        socket: PathBuf,
    },
    /// A device on another machine.
    Remote {
        /// Where it listens, as `tcp://HOST:PORT`.
        address: String,
    },
    /// A process of this machine, slowed down; limits that are not set are `None`.
    Emulated {
        /// Share of one core.
        cpu_ratio: Option<f64>,
        /// Limit of its reads.
        read_bytes_per_second: Option<u64>,
        /// Limit of its writes.
        write_bytes_per_second: Option<u64>,
        /// Delay of each of its reads.
        latency_seconds: Option<f64>,
        /// Core that it is pinned to.
        core: Option<u32>,
        /// Whether it may share that core.
        allow_shared: bool,
        /// Faults as job files spell them, such as `die@3`.
        faults: Vec<String>,
    },
}

/// The consumer of batches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Accelerator {
    /// Nothing: what is measured is the loader alone.
    None,
    /// Steps that take this long and no CPU.
    Emulated {
        /// One step.
        step_seconds: f64,
    },
}

/// Which batches the devices prepare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Those at the end of the order.
    Tail,
    /// Those that save the host most time per device time.
    Saving,
}

/// The energy meters of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnergyMeters {
    /// Names of the working meters.
    pub read: Vec<String>,
    /// Why there is none; `None` if there is one.
    pub none_because: Option<NoMeters>,
}

/// The choice of `auto` for an epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoChoice {
    /// Name of the strategy.
    pub strategy: String,
    /// Why.
    #[serde(flatten)]
    pub why: Reason,
}

impl fmt::Display for Spool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { quota_bytes } => {
                write!(f, "memory, at most {}", units::bytes(*quota_bytes))
            }
            Self::File { directory, quota_bytes } => {
                let quota = units::bytes(*quota_bytes);
                write!(f, "a file in {}, at most {quota}", directory.display())
            }
        }
    }
}

impl fmt::Display for DeviceSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.processor.fmt(f)?;
        let Some(parts) = &self.parts else { return Ok(()) };
        let parts: Vec<String> = parts.iter().map(u32::to_string).collect();
        write!(f, ", parts {}", parts.join(", "))
    }
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |bytes: u64| units::rate(bytes as f64);
        let (cpu_ratio, reads, writes, latency, core, shared, faults) = match self {
            Self::Connected { socket } => return write!(f, "at {}", shown(socket)),
            Self::Remote { address } => return write!(f, "at {address}"),
            Self::Emulated {
                cpu_ratio,
                read_bytes_per_second,
                write_bytes_per_second,
                latency_seconds,
                core,
                allow_shared,
                faults,
            } => (
                cpu_ratio.map(|ratio| ratio.to_string()),
                read_bytes_per_second.map(rate),
                write_bytes_per_second.map(rate),
                latency_seconds.map(units::seconds),
                core.map(|core| core.to_string()),
                *allow_shared,
                (!faults.is_empty()).then(|| faults.join(", ")),
            ),
        };
        let set = [
            ("CPU ratio", cpu_ratio),
            ("reads", reads),
            ("writes", writes),
            ("latency", latency),
            ("core", core),
            ("faults", faults),
        ];
        f.write_str("emulated")?;
        if set.iter().all(|(_, value)| value.is_none()) {
            f.write_str(", not slowed down")?;
        }
        for (name, value) in set {
            if let Some(value) = value {
                write!(f, ", {name} {value}")?;
            }
        }
        f.write_str(if shared { ", may share its core" } else { "" })
    }
}

impl fmt::Display for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none: only the loader is measured"),
            Self::Emulated { step_seconds } => {
                write!(f, "emulated, {} a step, no CPU", units::seconds(*step_seconds))
            }
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tail => "the end of the order",
            Self::Saving => "batches that save the most host time per device time",
        })
    }
}

impl fmt::Display for EnergyMeters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.none_because {
            Some(why) => why.fmt(f),
            None => write!(f, "read from {}", self.read.join(", ")),
        }
    }
}

impl fmt::Display for AutoChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.strategy, self.why)
    }
}
