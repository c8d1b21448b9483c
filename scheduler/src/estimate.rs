//! Times measured within the epoch: how long a step, a device batch, a preparation takes.

use crate::types::{Profile, Source, Time};

/// Weight of the newest sample in the recent mean is 1 / 2^`RECENT_SHIFT`.
const RECENT_SHIFT: u32 = 3;

/// Mean over everything and a recent mean of one kind of interval.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Estimate {
    count: u32,
    sum_ns: u64,
    recent_ns: u64,
}

impl Estimate {
    pub(crate) fn add(&mut self, sample_ns: u64) {
        self.count = self.count.saturating_add(1);
        self.sum_ns = self.sum_ns.saturating_add(sample_ns);
        // A plain mean until there are enough samples for the weight to be smaller than theirs.
        let weight = u64::from(self.count.min(1 << RECENT_SHIFT));
        self.recent_ns = if sample_ns >= self.recent_ns {
            self.recent_ns + (sample_ns - self.recent_ns) / weight
        } else {
            self.recent_ns - (self.recent_ns - sample_ns) / weight
        };
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Mean of all samples, 0 without any.
    pub(crate) fn mean_ns(&self) -> u64 {
        self.sum_ns.checked_div(u64::from(self.count)).unwrap_or(0)
    }

    /// Mean that follows the last few, `None` without any. At least 1.
    pub(crate) fn recent_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.recent_ns.max(1))
    }
}

/// Times of steps and of host preparation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Steps {
    /// From one step's end to the next, over a host batch that followed a host batch. After a
    /// device batch the interval is shorter when workers prepare in the background.
    host_after_host: Estimate,
    /// The same over any host batch: stands in where host batches never follow each other.
    host_any: Estimate,
    /// From consuming a device batch to the end of its step.
    device: Estimate,
    /// From claiming a host batch to its being ready, one claim sampled at a time.
    preparation: Estimate,
    sampled: Option<(u32, Time)>,
    begun: Option<Time>,
    running: Option<(Source, Time)>,
    previous: Option<Source>,
}

impl Steps {
    /// The accelerator is free. `background`: host batches are prepared while it works, so that
    /// its first interval is the filling of the pipeline and not a step.
    pub(crate) fn accelerator_ready(&mut self, now: Time, background: bool) {
        if let (Some(begun), Some((source, consumed_at))) = (self.begun, self.running.take()) {
            match (source, self.previous) {
                (Source::Host, None) if background => {}
                (Source::Host, Some(Source::Host) | None) => {
                    self.host_after_host.add(now.saturating_sub(begun));
                    self.host_any.add(now.saturating_sub(begun));
                }
                (Source::Host, Some(Source::Device(_))) => {
                    self.host_any.add(now.saturating_sub(begun));
                }
                (Source::Device(_), _) => self.device.add(now.saturating_sub(consumed_at)),
            }
            self.previous = Some(source);
        }
        self.begun = Some(now);
    }

    pub(crate) fn consumed(&mut self, now: Time, source: Source) {
        self.running = Some((source, now));
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

    /// Preparation of one host batch, begin to end.
    pub(crate) fn preparation(&self) -> &Estimate {
        &self.preparation
    }
}

/// The measured time where there is one, else the profiled, else `None`.
pub(crate) fn measured_or(estimate: &Estimate, profiled_ns: u64) -> Option<u64> {
    estimate.recent_ns().or((profiled_ns > 0).then_some(profiled_ns))
}

/// n_s = N·t_c/(t_c+t_s), to the nearest: both ends finish together (DDLP, arXiv 2407.00005).
/// `None` when a time is not known.
pub(crate) fn equal_finish(batches: u32, profile: &Profile) -> Option<u32> {
    if profile.host_ns == 0 || profile.device_ns == 0 {
        return None;
    }
    let host = u128::from(profile.host_ns);
    let both = host + u128::from(profile.device_ns);
    let share = (u128::from(batches) * host + both / 2) / both;
    Some(u32::try_from(share).expect("a share of a u32 is no larger"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(host_ns: u64, device_ns: u64) -> Profile {
        Profile { host_ns, device_ns, ready_ns: 0 }
    }

    #[test]
    fn equal_finish_is_the_published_formula_rounded() {
        assert_eq!(equal_finish(5_000, &profile(250, 1_000)), Some(1_000));
        assert_eq!(equal_finish(9, &profile(1, 2)), Some(3));
        assert_eq!(equal_finish(10, &profile(1, 2)), Some(3));
        assert_eq!(equal_finish(u32::MAX, &profile(u64::MAX, 1)), Some(u32::MAX));
        assert_eq!(equal_finish(10, &profile(0, 2)), None);
    }

    #[test]
    fn the_recent_mean_follows_a_device_that_slows_down() {
        let mut estimate = Estimate::default();
        (0..100).for_each(|_| estimate.add(1_000));
        assert_eq!((estimate.mean_ns(), estimate.recent_ns()), (1_000, Some(1_000)));
        (0..40).for_each(|_| estimate.add(3_000));
        assert!(estimate.recent_ns().unwrap() > 2_900);
        assert_eq!(estimate.mean_ns(), (100 * 1_000 + 40 * 3_000) / 140);
    }

    #[test]
    fn steps_are_told_apart_by_source() {
        let mut steps = Steps::default();
        let mut now = 0;
        for (source, wait, step) in [
            (Source::Host, 70, 30),
            (Source::Host, 70, 30),
            (Source::Device(crate::types::DeviceId(0)), 5, 40),
            (Source::Host, 10, 30),
        ] {
            steps.accelerator_ready(now, false);
            steps.consumed(now + wait, source);
            now += wait + step;
        }
        steps.accelerator_ready(now, false);
        assert_eq!((steps.host().mean_ns(), steps.host().count()), (100, 2));
        assert_eq!((steps.device().mean_ns(), steps.device().count()), (40, 1));
    }
}
