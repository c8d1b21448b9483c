//! An epoch with constant t_c, t_g and t_s: its simulated time and its closed form.

use crate::Error;
use meetpoint_scheduler::{AnyStrategy, Mte, Profile, Split, Tail};
use meetpoint_sim::closed_forms::{Inputs, NotApplicable};
use meetpoint_sim::scenario::{Device, Distribution, Scenario, Span};

/// Nanoseconds of a time without a unit. Results depend only on ratios.
pub const UNIT_NS: f64 = 1e9;

/// A stall timeout that no slow device reaches; in virtual time, waiting costs nothing.
const PATIENCE: Span = Span(u64::MAX / 4);

/// Constant times of each batch, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Constants {
    /// t_p: one worker, or the consumer, prepares a batch.
    pub preparation_ns: f64,
    /// t_t: a step on a batch of the host.
    pub step_ns: f64,
    /// t_d: additional time of a step on a batch of the device.
    pub direct_read_ns: f64,
    /// t_s: the device prepares a batch.
    pub device_ns: f64,
    /// w: threads that prepare in the background; 0: the consumer prepares.
    pub workers: u32,
    /// N.
    pub batches: u32,
}

/// The result of an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Simulated {
    /// T.
    pub total_ns: f64,
    /// n_s.
    pub device_batches: u32,
    /// Core-nanoseconds of the host's preparation.
    pub host_busy_ns: f64,
    /// Time that the device worked.
    pub device_busy_ns: f64,
    /// Time that the accelerator spent in steps.
    pub accelerator_busy_ns: f64,
}

impl Constants {
    /// Without background workers, from t_c, t_g and t_s in units of [`UNIT_NS`].
    ///
    /// Only the sums t_p + t_t = t_c and t_t + t_d = t_g matter for time. The step takes all of t_g
    /// if that leaves time for preparation, otherwise half of t_c.
    pub fn serial(t_c: f64, t_g: f64, t_s: f64, batches: u32) -> Self {
        let step = if t_g < t_c { t_g } else { t_c / 2.0 };
        Self {
            preparation_ns: (t_c - step) * UNIT_NS,
            step_ns: step * UNIT_NS,
            direct_read_ns: (t_g - step) * UNIT_NS,
            device_ns: t_s * UNIT_NS,
            workers: 0,
            batches,
        }
    }

    /// With background workers of combined period `p`, in units of [`UNIT_NS`].
    pub fn background(p: f64, t_t: f64, t_s: f64, workers: u32, batches: u32) -> Self {
        Self {
            preparation_ns: p * f64::from(workers) * UNIT_NS,
            step_ns: t_t * UNIT_NS,
            direct_read_ns: 0.0,
            device_ns: t_s * UNIT_NS,
            workers,
            batches,
        }
    }

    /// p: time from one prepared batch to the next, all workers together.
    pub fn period_ns(&self) -> f64 {
        self.preparation_ns / f64::from(self.workers.max(1))
    }

    /// t_c: the time of a batch that the host prepares.
    pub fn t_c_ns(&self) -> f64 {
        match self.workers {
            0 => self.preparation_ns + self.step_ns,
            _ => self.period_ns().max(self.step_ns),
        }
    }

    /// t_g: the step on a batch that the device had ready.
    pub fn t_g_ns(&self) -> f64 {
        self.step_ns + self.direct_read_ns
    }

    /// Simulates the epoch with the real scheduler and an unlimited spool.
    pub fn simulate(&self, strategy: AnyStrategy) -> Result<Simulated, Error> {
        let outcome = meetpoint_sim::run(&self.scenario(strategy), 0)
            .map_err(Error::simulating(strategy.name().as_str()))?;
        let device_batches = outcome.sum(|rank| rank.device_batches.into());
        Ok(Simulated {
            total_ns: outcome.total_ns as f64,
            device_batches: u32::try_from(device_batches).unwrap_or(u32::MAX),
            host_busy_ns: outcome.sum(|rank| rank.host_busy_ns) as f64,
            device_busy_ns: outcome.sum_devices(|device| device.busy_ns) as f64,
            accelerator_busy_ns: outcome.sum(|rank| rank.accelerator_busy_ns) as f64,
        })
    }

    /// The time by the closed form in nanoseconds, or why none applies.
    pub fn closed_form(&self, strategy: AnyStrategy) -> Result<f64, NotApplicable> {
        strategy.closed_form(&self.inputs()).map(|found| found.total_ns)
    }

    fn scenario(&self, strategy: AnyStrategy) -> Scenario {
        let constant = |time_ns| Distribution::constant_ns(whole(time_ns));
        let (preparation, step) = (constant(self.preparation_ns), constant(self.step_ns));
        let mut scenario = Scenario::new(self.batches, preparation, step);
        scenario.choose(strategy);
        scenario.stall_timeout = PATIENCE;
        scenario.host.workers = self.workers;
        scenario.accelerator.direct_read = Span(whole(self.direct_read_ns));
        scenario.devices = vec![Device::new(constant(self.device_ns))];
        if !strategy.uses_devices() {
            scenario.devices.clear();
        }
        scenario
    }

    fn inputs(&self) -> Inputs {
        Inputs {
            batches: self.batches,
            background: self.workers > 0,
            profile: Profile {
                host_ns: whole(self.t_c_ns()),
                device_ns: whole(self.device_ns),
                ready_ns: whole(self.t_g_ns()),
            },
            spool_slots: self.batches,
        }
    }
}

/// `mte` with the split at which both ends finish at the same time.
pub const MTE: AnyStrategy =
    AnyStrategy::Mte(Mte { split: Split::EqualFinish, tail: Tail::Descending });

/// `mte` with a given split.
pub fn mte_with(split: u32) -> AnyStrategy {
    AnyStrategy::Mte(Mte { split: Split::Fixed(split), tail: Tail::Descending })
}

/// n_s = N·t_c/(t_s+t_c−t_g): the split with the shortest epoch (w = 0), whole batches.
pub fn optimal_split(constants: &Constants) -> u32 {
    let (t_c, t_g) = (constants.t_c_ns(), constants.t_g_ns());
    let share = t_c / (constants.device_ns + t_c - t_g);
    // If the share exceeds all batches (a device faster than the step), the device prepares all of
    // them.
    let share = if share.is_finite() && (0.0..=1.0).contains(&share) { share } else { 1.0 };
    (f64::from(constants.batches) * share).floor() as u32
}

fn whole(time_ns: f64) -> u64 {
    time_ns.round().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::{Constants, MTE, mte_with, optimal_split};
    use meetpoint_scheduler::{AnyStrategy, Wrr};

    #[test]
    fn the_constants_come_back_as_they_were_given() {
        for (t_c, t_g, t_s) in [(1.0, 0.375, 2.0), (1.0, 1.0, 2.0), (1.0, 1.5, 4.0)] {
            let constants = Constants::serial(t_c, t_g, t_s, 10);
            assert!((constants.t_c_ns() - t_c * 1e9).abs() < 1.0);
            assert!((constants.t_g_ns() - t_g * 1e9).abs() < 1.0);
            assert!(constants.preparation_ns > 0.0 && constants.direct_read_ns >= 0.0);
        }
    }

    #[test]
    fn no_other_split_is_faster_than_the_optimal_one() {
        let constants = Constants::serial(1.0, 0.375, 2.0, 400);
        let best = optimal_split(&constants);
        let time = |split| constants.simulate(mte_with(split)).unwrap().total_ns;
        for other in [best - 20, best - 5, best + 5, best + 20] {
            assert!(time(best) < time(other), "{best} against {other}");
        }
        assert!(time(best) < constants.simulate(MTE).unwrap().total_ns);
        let wrr = constants.closed_form(AnyStrategy::Wrr(Wrr)).unwrap();
        assert!((time(best) / wrr - 1.0).abs() < 0.01);
    }
}
