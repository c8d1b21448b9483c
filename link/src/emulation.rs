//! Speed limits of an emulated device.

use meetpoint_diagnose::{Diagnose, Remedy};
use meetpoint_format::wire;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The smallest share of a core that can be emulated.
pub const CPU_RATIO_MIN: f64 = 0.001;
/// The longest latency of a command, in nanoseconds.
pub const LATENCY_NS_MAX: u64 = 1_000_000_000;

/// The settings of an emulated device; the default is as fast as the machine.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Emulation {
    /// Speed limits, and its core.
    pub targets: Targets,
    /// Whether it may run on a machine with only one core, which it then shares with the host.
    pub allow_shared: bool,
    /// Maximum memory of its worker in bytes, without the spool.
    pub memory_bytes_max: Option<u64>,
}

/// Speed limits of an emulated device; `None` is "not limited".
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Targets {
    /// Share of a core's time that its worker computes: 0.25 is a core four times as slow.
    pub cpu_ratio: Option<f64>,
    /// Bandwidth of the dataset's storage in bytes per second.
    pub read_bytes_per_second: Option<u64>,
    /// Bandwidth into the spool in bytes per second.
    pub write_bytes_per_second: Option<u64>,
    /// Latency of each storage command in nanoseconds.
    pub latency_ns: Option<u64>,
    /// Core that its worker is pinned to; by default the last one, if any speed is limited.
    pub core: Option<u32>,
}

/// A setting of an emulation. `Display` names it as a job file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// [`Targets::cpu_ratio`].
    CpuRatio,
    /// [`Targets::read_bytes_per_second`].
    ReadBandwidth,
    /// [`Targets::write_bytes_per_second`].
    WriteBandwidth,
    /// [`Targets::latency_ns`].
    Latency,
    /// [`Emulation::memory_bytes_max`].
    MemoryMax,
}

/// A setting outside its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{setting} is {value}")]
pub struct SettingError {
    /// The setting.
    pub setting: Setting,
    /// The given value.
    pub value: String,
    /// The expected value.
    pub remedy: &'static str,
}

impl Diagnose for SettingError {
    fn cause(&self) -> &'static str {
        "emulation_setting"
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(self.remedy.into())
    }
}

impl Setting {
    /// Its name in a job file and in Python.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CpuRatio => "cpu_ratio",
            Self::ReadBandwidth => "read_bandwidth",
            Self::WriteBandwidth => "write_bandwidth",
            Self::Latency => "latency",
            Self::MemoryMax => "memory_max",
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Targets {
    /// Whether any speed is limited.
    pub fn is_limited(&self) -> bool {
        let Self { cpu_ratio, read_bytes_per_second, write_bytes_per_second, latency_ns, core: _ } =
            self;
        cpu_ratio.is_some()
            || read_bytes_per_second.is_some()
            || write_bytes_per_second.is_some()
            || latency_ns.is_some()
    }

    /// Latency of each storage command.
    pub fn latency(&self) -> Option<Duration> {
        self.latency_ns.map(Duration::from_nanos)
    }
}

impl Emulation {
    /// Whether anything slows it down.
    pub fn is_on(&self) -> bool {
        self.targets.is_limited() || self.memory_bytes_max.is_some()
    }

    /// Refuses values outside their ranges.
    pub fn check(&self) -> Result<(), SettingError> {
        let wrong = |setting, value, remedy| Err(SettingError { setting, value, remedy });
        let targets = &self.targets;
        if let Some(ratio) = targets.cpu_ratio
            && !(CPU_RATIO_MIN..=1.0).contains(&ratio)
        {
            let remedy = "give a share from 0.001 to 1";
            return wrong(Setting::CpuRatio, ratio.to_string(), remedy);
        }
        for (setting, bytes) in [
            (Setting::ReadBandwidth, targets.read_bytes_per_second),
            (Setting::WriteBandwidth, targets.write_bytes_per_second),
            (Setting::MemoryMax, self.memory_bytes_max),
        ] {
            if bytes == Some(0) {
                return wrong(setting, "0".to_owned(), "leave it out for \"not limited\"");
            }
        }
        if let Some(latency) = targets.latency()
            && targets.latency_ns > Some(LATENCY_NS_MAX)
        {
            return wrong(Setting::Latency, format!("{latency:?}"), "give at most 1s");
        }
        Ok(())
    }
}

// On the wire, 0 is "not limited".

impl From<Targets> for wire::Emulation {
    fn from(targets: Targets) -> Self {
        Self {
            cpu_ratio: targets.cpu_ratio.unwrap_or(0.0),
            read_bytes_per_second: targets.read_bytes_per_second.unwrap_or(0),
            write_bytes_per_second: targets.write_bytes_per_second.unwrap_or(0),
            latency_ns: targets.latency_ns.unwrap_or(0),
            core: targets.core,
        }
    }
}

impl From<wire::Emulation> for Targets {
    fn from(message: wire::Emulation) -> Self {
        let set = |number: u64| (number != 0).then_some(number);
        Self {
            cpu_ratio: (message.cpu_ratio != 0.0).then_some(message.cpu_ratio),
            read_bytes_per_second: set(message.read_bytes_per_second),
            write_bytes_per_second: set(message.write_bytes_per_second),
            latency_ns: set(message.latency_ns),
            core: message.core,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(targets: Targets) -> Emulation {
        Emulation { targets, ..Emulation::default() }
    }

    #[test]
    fn values_outside_their_ranges_are_refused_and_named() {
        let none = Targets::default();
        assert!(with(none).check().is_ok() && !with(none).is_on());
        let refused = |targets| with(targets).check().unwrap_err().setting;
        for ratio in [0.0, -0.5, 1.5, f64::NAN, f64::INFINITY] {
            assert_eq!(refused(Targets { cpu_ratio: Some(ratio), ..none }), Setting::CpuRatio);
        }
        let read = Targets { read_bytes_per_second: Some(0), ..none };
        assert_eq!(refused(read), Setting::ReadBandwidth);
        let write = Targets { write_bytes_per_second: Some(0), ..none };
        assert_eq!(refused(write), Setting::WriteBandwidth);
        let slow = with(Targets { latency_ns: Some(2_000_000_000), ..none });
        let refused = slow.check().unwrap_err();
        assert_eq!((refused.value.as_str(), refused.remedy), ("2s", "give at most 1s"));
        let memory = Emulation { memory_bytes_max: Some(0), ..Emulation::default() };
        assert_eq!(memory.check().unwrap_err().setting, Setting::MemoryMax);
        let latency_ns = Some(LATENCY_NS_MAX);
        let good = with(Targets { cpu_ratio: Some(1.0), latency_ns, ..none });
        assert!(good.check().is_ok() && good.is_on());
    }

    #[test]
    fn targets_survive_the_wire() {
        let all = Targets {
            cpu_ratio: Some(0.25),
            read_bytes_per_second: Some(1),
            write_bytes_per_second: Some(u64::MAX),
            latency_ns: Some(100_000),
            core: Some(0),
        };
        for targets in [Targets::default(), all] {
            assert_eq!(Targets::from(wire::Emulation::from(targets)), targets);
        }
    }
}
