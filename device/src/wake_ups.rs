//! How late a thread wakes up from its sleeps.

use crate::clock::nanoseconds;
use hdrhistogram::Histogram;
use std::time::Duration;

/// The longest lateness that the histogram resolves.
const LATE_MAX: Duration = Duration::from_secs(60);

/// Sleeps of the emulation, and how late the thread woke up, to two significant digits.
#[derive(Debug, Clone)]
pub(crate) struct WakeUps {
    late: Histogram<u32>,
    late_sum: Duration,
    late_max: Duration,
    slept: Duration,
}

impl Default for WakeUps {
    fn default() -> Self {
        let late = Histogram::new_with_bounds(1, nanoseconds(LATE_MAX), 2);
        Self {
            late: late.expect("these bounds are valid"),
            late_sum: Duration::ZERO,
            late_max: Duration::ZERO,
            slept: Duration::ZERO,
        }
    }
}

impl WakeUps {
    /// Adds a sleep, with its actual and its requested duration.
    pub(crate) fn add(&mut self, slept: Duration, requested: Duration) {
        let late = slept.saturating_sub(requested);
        self.slept += slept;
        self.late_sum += late;
        self.late_max = self.late_max.max(late);
        self.late.saturating_record(nanoseconds(late));
    }

    /// The sleeps so far.
    pub(crate) fn summary(&self) -> WakeUpSummary {
        let count = self.late.len();
        // A bucket's upper bound may exceed the longest recorded time.
        let at = |share: f64| match count {
            0 => Duration::ZERO,
            _ => Duration::from_nanos(self.late.value_at_quantile(share)).min(self.late_max),
        };
        WakeUpSummary {
            count,
            slept: self.slept,
            late_mean: self.late_sum / u32::try_from(count.max(1)).unwrap_or(u32::MAX),
            late_p50: at(0.5),
            late_p99: at(0.99),
            late_max: self.late_max,
        }
    }
}

/// Sleeps of a thread, and the times by which it woke up late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WakeUpSummary {
    /// Number of sleeps.
    pub(crate) count: u64,
    /// Total duration of the sleeps, including lateness.
    pub(crate) slept: Duration,
    /// Arithmetic mean.
    pub(crate) late_mean: Duration,
    /// Half of the times are at most this long.
    pub(crate) late_p50: Duration,
    /// 99 % of the times are at most this long.
    pub(crate) late_p99: Duration,
    /// Longest.
    pub(crate) late_max: Duration,
}

#[cfg(test)]
mod tests {
    use super::{LATE_MAX, WakeUpSummary, WakeUps};
    use std::time::Duration;

    const US: Duration = Duration::from_micros(1);

    #[test]
    fn lateness_has_a_mean_quantiles_and_a_maximum() {
        let mut wake_ups = WakeUps::default();
        assert_eq!(wake_ups.summary(), WakeUpSummary::default());
        // 97 sleeps are 10 us late, one each 1 ms, 5 ms, and one ends early.
        for late in [[10 * US; 97].as_slice(), &[1000 * US, 5000 * US]].concat() {
            wake_ups.add(500 * US + late, 500 * US);
        }
        wake_ups.add(400 * US, 500 * US);
        let found = wake_ups.summary();
        assert_eq!((found.count, found.late_max), (100, 5000 * US));
        assert_eq!(found.slept, 99 * 500 * US + 400 * US + 6970 * US);
        assert_eq!(found.late_mean, 6970 * US / 100);
        let about = |found: Duration, wanted: Duration| found.abs_diff(wanted) <= wanted / 100;
        assert!(about(found.late_p50, 10 * US), "{found:?}");
        assert!(about(found.late_p99, 1000 * US), "{found:?}");
    }

    #[test]
    fn a_lateness_beyond_the_histogram_keeps_its_value_in_the_maximum() {
        let mut wake_ups = WakeUps::default();
        wake_ups.add(2 * LATE_MAX, Duration::ZERO);
        let found = wake_ups.summary();
        assert_eq!((found.late_max, found.late_mean), (2 * LATE_MAX, 2 * LATE_MAX));
        assert!(found.late_p50 <= found.late_max && found.late_p50 >= LATE_MAX, "{found:?}");
    }
}
