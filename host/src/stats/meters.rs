//! Sources of the statistics: histograms of times, and the kernel's counters of this process.

use super::Quantiles;
use hdrhistogram::Histogram;

/// Longest time that a histogram resolves: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Times of one kind, to three significant digits.
#[derive(Debug)]
pub(crate) struct Meter(Histogram<u32>);

impl Meter {
    pub(crate) fn new() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("these bounds are valid"))
    }

    pub(crate) fn add(&mut self, time_ns: u64) {
        self.0.saturating_record(time_ns);
    }

    pub(crate) fn quantiles(&self) -> Quantiles {
        if self.0.is_empty() {
            return Quantiles::default();
        }
        // A bucket's upper bound may exceed the longest recorded time.
        let longest = self.0.max();
        let at = |share: f64| self.0.value_at_quantile(share).min(longest);
        Quantiles {
            count: self.0.len(),
            mean_ns: self.0.mean(),
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            max_ns: longest,
        }
    }
}

/// Peak resident memory of this process since the last reset, in bytes; 0 if /proc does not report
/// it.
pub(crate) fn peak_resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    peak_of(&status).unwrap_or(0)
}

fn peak_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Resets the peak (proc(5), `clear_refs`); without permission it is not reset, as documented at
/// the field.
pub(crate) fn reset_peak_resident() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_what_was_added() {
        let mut meter = Meter::new();
        (1..=100).for_each(|ms| meter.add(ms * 1_000_000));
        let quantiles = meter.quantiles();
        let near = |got: u64, ms: f64| (got as f64 / (ms * 1e6) - 1.0).abs() < 2e-3;
        assert_eq!(quantiles.count, 100);
        assert!(near(quantiles.p50_ns, 50.0), "{quantiles:?}");
        assert!(near(quantiles.p90_ns, 90.0), "{quantiles:?}");
        assert!(near(quantiles.p99_ns, 99.0), "{quantiles:?}");
        assert!(near(quantiles.max_ns, 100.0), "{quantiles:?}");
        assert!((quantiles.mean_ns / 50.5e6 - 1.0).abs() < 2e-3);
        assert_eq!(Meter::new().quantiles(), Quantiles::default());
    }

    #[test]
    fn the_peak_is_read_from_the_kernels_text() {
        assert_eq!(peak_of("Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t 1 kB\n"), Some(2 << 20));
        assert_eq!(peak_of("Name:\tx\n"), None);
        assert!(peak_resident_bytes() > 1 << 20);
    }
}
