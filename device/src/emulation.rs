//! The knobs by which a device is slower on purpose.

use crate::Error;
use std::time::Duration;

/// How slow a device is; the default is as fast as the machine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Emulation {
    /// Share of a core's time that the worker computes: 0.25 is a core four times as slow.
    pub cpu_ratio: Option<f64>,
    /// Bandwidth of the dataset's storage in bytes a second.
    pub read_bytes_per_second: Option<u64>,
    /// Bandwidth into the spool in bytes a second.
    pub write_bytes_per_second: Option<u64>,
    /// Latency of each storage command.
    pub latency: Option<Duration>,
    /// Core that the worker is pinned to; by default the last one, when any knob is set.
    pub core: Option<usize>,
    /// Whether it may run where there is only one core, which it then shares with the host.
    pub allow_shared: bool,
    /// Most memory of its own that the worker may use, in bytes; the spool is not counted.
    pub memory_bytes_max: Option<u64>,
}

/// The smallest share of a core that can be emulated.
const CPU_RATIO_MIN: f64 = 0.001;

/// The longest latency of a command.
const LATENCY_MAX: Duration = Duration::from_secs(1);

impl Emulation {
    /// Whether any knob slows it down.
    pub fn is_on(&self) -> bool {
        self.cpu_ratio.is_some()
            || self.read_bytes_per_second.is_some()
            || self.write_bytes_per_second.is_some()
            || self.latency.is_some()
            || self.memory_bytes_max.is_some()
    }

    /// Refuses numbers that mean nothing.
    pub fn check(&self) -> Result<(), Error> {
        let knob = |knob, value: String, remedy| Err(Error::Knob { knob, value, remedy });
        if let Some(ratio) = self.cpu_ratio
            && !(CPU_RATIO_MIN..=1.0).contains(&ratio)
        {
            return knob("cpu ratio", ratio.to_string(), "give a share from 0.001 to 1");
        }
        for (name, bytes) in [
            ("read bandwidth", self.read_bytes_per_second),
            ("write bandwidth", self.write_bytes_per_second),
            ("memory limit", self.memory_bytes_max),
        ] {
            if bytes == Some(0) {
                return knob(name, "0".to_owned(), "leave it out for \"not limited\"");
            }
        }
        if let Some(latency) = self.latency
            && latency > LATENCY_MAX
        {
            return knob("latency", format!("{latency:?}"), "give at most 1s");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_mean_nothing_are_refused_and_named() {
        let none = Emulation::default();
        assert!(none.check().is_ok() && !none.is_on());
        for ratio in [0.0, -0.5, 1.5, f64::NAN, f64::INFINITY] {
            let error = Emulation { cpu_ratio: Some(ratio), ..none.clone() }.check().unwrap_err();
            assert!(error.to_string().contains("cpu ratio"), "{error}");
        }
        let error =
            Emulation { read_bytes_per_second: Some(0), ..none.clone() }.check().unwrap_err();
        assert!(error.to_string().contains("read bandwidth"), "{error}");
        let slow = Emulation { latency: Some(Duration::from_secs(2)), ..none.clone() };
        assert!(slow.check().unwrap_err().to_string().contains("latency is 2s"));
        let good = Emulation { cpu_ratio: Some(1.0), latency: Some(LATENCY_MAX), ..none };
        assert!(good.check().is_ok() && good.is_on());
    }
}
