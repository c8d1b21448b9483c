//! The mean time of a batch over a few intervals, with its error.

use super::Interval;

/// Minimum number of intervals on each side of a comparison.
pub(super) const WINDOW_MIN: usize = 4;

/// Maximum number of intervals on each side; older ones are dropped.
pub(super) const WINDOW_MAX: usize = 16;

/// The latest intervals under one concurrency.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Window {
    intervals: Vec<Interval>,
}

impl Window {
    /// Adds an interval; the oldest beyond [`WINDOW_MAX`] is dropped.
    pub(super) fn push(&mut self, interval: Interval) {
        if self.intervals.len() == WINDOW_MAX {
            self.intervals.remove(0);
        }
        self.intervals.push(interval);
    }

    /// Whether there are enough intervals to compare.
    pub(super) fn is_enough(&self) -> bool {
        self.intervals.len() >= WINDOW_MIN
    }

    pub(super) fn is_full(&self) -> bool {
        self.intervals.len() == WINDOW_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// Mean nanoseconds of a batch.
    pub(super) fn batch_ns(&self) -> f64 {
        self.duration_ns() / self.batches().max(1.0)
    }

    /// Standard error of that mean, from the variance of the intervals; infinite with fewer than
    /// two.
    pub(super) fn batch_ns_error(&self) -> f64 {
        self.batch_ns_deviation() / (self.intervals.len() as f64).sqrt()
    }

    /// Standard error of the mean of `other`, if its intervals vary as these do.
    pub(super) fn expected_error(&self, other: &Self) -> f64 {
        self.batch_ns_deviation() / (other.intervals.len() as f64).sqrt()
    }

    /// Standard deviation of the mean time of a batch between intervals.
    fn batch_ns_deviation(&self) -> f64 {
        let count = self.intervals.len() as f64;
        if count < 2.0 {
            return f64::INFINITY;
        }
        let mean = self.batch_ns();
        let of = |it: &Interval| it.duration_ns as f64 / f64::from(it.batches.max(1));
        let squares: f64 = self.intervals.iter().map(|it| (of(it) - mean).powi(2)).sum();
        (squares / (count - 1.0)).sqrt()
    }

    /// Share of the time during which the consumer waited.
    pub(super) fn waited_share(&self) -> f64 {
        self.share(|it| it.wait_ns)
    }

    /// Mean number of workers that were busy.
    pub(super) fn workers_busy(&self) -> f64 {
        self.share(|it| it.busy_ns)
    }

    /// Mean number of cores that the process used.
    pub(super) fn cores_used(&self) -> f64 {
        self.share(|it| it.cpu_ns)
    }

    fn share(&self, of: impl Fn(&Interval) -> u64) -> f64 {
        self.intervals.iter().map(|it| of(it) as f64).sum::<f64>() / self.duration_ns().max(1.0)
    }

    fn duration_ns(&self) -> f64 {
        self.intervals.iter().map(|it| it.duration_ns as f64).sum()
    }

    fn batches(&self) -> f64 {
        self.intervals.iter().map(|it| f64::from(it.batches)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(duration_ns: u64) -> Interval {
        Interval { batches: 2, duration_ns, wait_ns: 50, busy_ns: 150, cpu_ns: 200 }
    }

    #[test]
    fn the_oldest_interval_is_dropped_and_the_rest_averaged() {
        let mut window = Window::default();
        window.push(interval(1_000_000));
        for duration in [80, 120].repeat(WINDOW_MAX / 2) {
            window.push(interval(duration));
        }
        assert!(window.is_enough() && window.is_full());
        assert!((window.batch_ns() - 50.0).abs() < 1e-9);
        // Means of a batch are 40 and 60, sixteen in all: a variance of 1600 / 15.
        assert!((window.batch_ns_error() - (1600.0_f64 / 15.0 / 16.0).sqrt()).abs() < 1e-9);
        assert!((window.waited_share() - 0.5).abs() < 1e-9);
        assert!((window.workers_busy() - 1.5).abs() < 1e-9);
        assert!((window.cores_used() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn one_interval_has_no_error_that_is_known() {
        let mut window = Window::default();
        window.push(interval(80));
        assert!(!window.is_enough() && window.batch_ns_error().is_infinite());
    }
}
