//! Times measured within the epoch: durations of steps, device batches and preparation.
//!
//! Estimates are trimmed means of the last few samples: they are exact on constant input, and a
//! single outlier has no effect.

use crate::types::{Source, Time};

/// Number of samples in the recent mean.
const WINDOW: usize = 16;

/// One sample in this many is dropped at either end of the sorted window.
const TRIM: usize = 8;

/// Mean of all samples, and trimmed mean of recent ones, of one type of interval.
#[derive(Debug, Clone, Default)]
pub(crate) struct Estimate {
    count: u32,
    sum_ns: u64,
    recent_ns: u64,
    /// The window by age; the next sample is stored at `count % WINDOW`.
    window: [u64; WINDOW],
    /// The window by size.
    sorted: [u64; WINDOW],
}

impl Estimate {
    pub(crate) fn add(&mut self, sample_ns: u64) {
        let at = self.count as usize % WINDOW;
        let mut len = (self.count as usize).min(WINDOW);
        if len == WINDOW {
            let gone = self.sorted.partition_point(|&other| other < self.window[at]);
            self.sorted.copy_within(gone + 1.., gone);
            len -= 1;
        }
        let place = self.sorted[..len].partition_point(|&other| other < sample_ns);
        self.sorted.copy_within(place..len, place + 1);
        self.sorted[place] = sample_ns;
        self.window[at] = sample_ns;
        len += 1;
        self.count = self.count.saturating_add(1);
        self.sum_ns = self.sum_ns.saturating_add(sample_ns);
        let middle = &self.sorted[len / TRIM..len - len / TRIM];
        let sum: u128 = middle.iter().map(|&sample| u128::from(sample)).sum();
        let mean = sum / middle.len() as u128;
        self.recent_ns = u64::try_from(mean).expect("a mean of u64 is one");
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Mean of all samples, 0 without any.
    pub(crate) fn mean_ns(&self) -> u64 {
        self.sum_ns.checked_div(u64::from(self.count)).unwrap_or(0)
    }

    /// Trimmed mean of the last few, `None` without any. At least 1.
    pub(crate) fn recent_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.recent_ns.max(1))
    }
}

/// Times of steps and of host preparation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Steps {
    /// From one step's end to the next, for a host batch that followed a host batch. After a device
    /// batch, the interval is shorter if workers prepare in the background.
    host_after_host: Estimate,
    /// The same for any host batch: used if host batches never follow each other.
    host_any: Estimate,
    /// From consuming a host batch to the end of its step: the step alone.
    train: Estimate,
    /// From consuming a device batch to the end of its step.
    device: Estimate,
    /// From claiming a host batch until it is ready, one claim sampled at a time.
    preparation: Estimate,
    sampled: Option<(u32, Time)>,
    begun: Option<Time>,
    running: Option<(Source, Time)>,
    previous: Option<Source>,
    /// Whether the accelerator waited for a device in this interval, so that it does not measure
    /// the host.
    waited: bool,
}

impl Steps {
    /// The accelerator is free. `background`: whether host batches are prepared while it works, so
    /// that its first interval fills the pipeline and is not a step.
    pub(crate) fn accelerator_ready(&mut self, now: Time, background: bool) {
        if let (Some(begun), Some((source, consumed_at))) = (self.begun, self.running.take()) {
            let step_ns = now.saturating_sub(consumed_at);
            let interval_ns = now.saturating_sub(begun);
            match (source, self.previous) {
                (Source::Host, _) if self.waited => self.train.add(step_ns),
                (Source::Host, None) if background => self.train.add(step_ns),
                (Source::Host, Some(Source::Host) | None) => {
                    self.train.add(step_ns);
                    self.host_after_host.add(interval_ns);
                    self.host_any.add(interval_ns);
                }
                (Source::Host, Some(Source::Device(_))) => {
                    self.train.add(step_ns);
                    self.host_any.add(interval_ns);
                }
                (Source::Device(_), _) => {
                    self.device.add(step_ns);
                }
            }
            self.previous = Some(source);
        }
        self.begun = Some(now);
        self.waited = false;
    }

    /// When the current step began, if it is on a device batch.
    pub(crate) fn on_device_since(&self) -> Option<Time> {
        self.running.and_then(|(source, since)| (source != Source::Host).then_some(since))
    }

    pub(crate) fn consumed(&mut self, now: Time, source: Source) {
        self.running = Some((source, now));
    }

    /// The accelerator waits for a device.
    pub(crate) fn waits_for_device(&mut self) {
        self.waited = true;
    }

    pub(crate) fn host_claimed(&mut self, now: Time, batch: u32) {
        self.sampled.get_or_insert((batch, now));
    }

    pub(crate) fn host_finished(&mut self, now: Time, batch: u32) {
        if let Some((_, since)) = self.sampled.take_if(|(sampled, _)| *sampled == batch) {
            self.preparation.add(now.saturating_sub(since));
        }
    }

    /// Steps over host batches.
    pub(crate) fn host(&self) -> &Estimate {
        if self.host_after_host.count() > 0 { &self.host_after_host } else { &self.host_any }
    }

    /// Steps over device batches.
    pub(crate) fn device(&self) -> &Estimate {
        &self.device
    }

    /// The step alone, over host batches.
    pub(crate) fn train(&self) -> &Estimate {
        &self.train
    }

    /// Preparation of one host batch, begin to end.
    pub(crate) fn preparation(&self) -> &Estimate {
        &self.preparation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::DeviceId;

    #[test]
    fn constant_times_are_found_exactly() {
        for time in [1, 7, 1_000_000_007, u64::MAX / 100] {
            let mut estimate = Estimate::default();
            for _ in 0..50 {
                estimate.add(time);
                assert_eq!((estimate.mean_ns(), estimate.recent_ns()), (time, Some(time)));
            }
        }
    }

    #[test]
    fn the_recent_mean_follows_a_device_that_slows_down() {
        let mut estimate = Estimate::default();
        (0..100).for_each(|_| estimate.add(1_000));
        (0..16).for_each(|_| estimate.add(3_000));
        assert_eq!(estimate.recent_ns(), Some(3_000));
        assert_eq!(estimate.mean_ns(), (100 * 1_000 + 16 * 3_000) / 116);
    }

    #[test]
    fn one_outlier_in_eight_has_no_effect() {
        let mut estimate = Estimate::default();
        for at in 0..200 {
            estimate.add(if at % 8 == 3 { 100_000 } else { 1_000 });
            if at > 16 {
                assert_eq!(estimate.recent_ns(), Some(1_000));
            }
        }
    }

    #[test]
    fn the_window_stays_sorted() {
        let mut estimate = Estimate::default();
        let mut samples = Vec::new();
        let mut value = 12_345_u64;
        for _ in 0..500 {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let sample = value >> 40;
            estimate.add(sample);
            samples.push(sample);
            let mut last = samples[samples.len().saturating_sub(WINDOW)..].to_vec();
            last.sort_unstable();
            assert_eq!(&estimate.sorted[..last.len()], &last[..]);
        }
    }

    #[test]
    fn steps_are_measured_by_source() {
        let mut steps = Steps::default();
        let mut now = 0;
        for (source, wait, step) in [
            (Source::Host, 70, 30),
            (Source::Host, 70, 30),
            (Source::Device(DeviceId(0)), 5, 40),
            (Source::Host, 10, 30),
        ] {
            steps.accelerator_ready(now, false);
            steps.consumed(now + wait, source);
            now += wait + step;
        }
        steps.accelerator_ready(now, false);
        assert_eq!((steps.host().mean_ns(), steps.host().count()), (100, 2));
        assert_eq!((steps.device().mean_ns(), steps.device().count()), (40, 1));
        assert_eq!((steps.train().mean_ns(), steps.train().count()), (30, 3));
    }

    #[test]
    fn an_interval_with_a_wait_for_a_device_does_not_measure_the_host() {
        let mut steps = Steps::default();
        for (now, wait) in [(0, false), (100, false), (200, true), (9_000, false)] {
            steps.accelerator_ready(now, false);
            steps.consumed(now + 10, Source::Host);
            if wait {
                steps.waits_for_device();
            }
        }
        steps.accelerator_ready(9_100, false);
        assert_eq!((steps.host().mean_ns(), steps.host().count()), (100, 3));
    }
}
