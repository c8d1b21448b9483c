//! The closed forms: how long an epoch takes under each strategy, from t_c, t_g and t_s.
//!
//! Formulas of DDLP (arXiv 2407.00005) as derived in the design, for constant times. With no
//! background worker t_c is preparation and step in series. With workers of combined period p, t_c
//! is the steady interval max(p, t_t), and stands for p below: where t_t is larger, the accelerator
//! bounds the epoch either way. Ends of the epoch (first and last batches) are left out.

use crate::config::{Costs, Split, Strategy, Tail};
use crate::types::Profile;

/// What a prediction is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inputs {
    /// N.
    pub batches: u32,
    /// Whether host batches are prepared while the accelerator works (w > 0).
    pub background: bool,
    /// t_c, t_s, t_g in nanoseconds; 0 where not known.
    pub profile: Profile,
    /// Slots of the spool.
    pub spool_slots: u32,
}

/// What an epoch comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// T, the whole epoch, in nanoseconds.
    pub total_ns: f64,
    /// n_s, batches that the device prepares.
    pub device_batches: f64,
    /// What bounds it.
    pub regime: Regime,
}

/// What bounds an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regime {
    /// The host prepares everything.
    HostAlone,
    /// The device prepares everything.
    DeviceAlone,
    /// Both ends work all the time.
    BothEnds,
    /// The accelerator is never without a batch.
    Accelerator,
    /// The host has finished its part and waits for the device.
    WaitsForDevice,
    /// The device has finished its part, or filled the spool, before the host.
    WaitsForHost,
}

/// Why a closed form does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotApplicable {
    /// A time is not known.
    #[error("{0} is not known")]
    Unknown(&'static str),
    /// The balance of `wrr` supposes t_g < t_c.
    #[error("a step on a device batch (t_g) takes no less than on a host batch (t_c)")]
    NoGainPerBatch,
    /// A strategy whose time follows from no formula of these constants.
    #[error("{strategy} has no closed form")]
    NoForm {
        /// Its name.
        strategy: &'static str,
    },
    /// A device part beyond the spool stops and starts with consumption.
    #[error("the device's part of {part} batches exceeds the spool's {slots} slots")]
    SpoolTooSmall {
        /// n_s.
        part: u32,
        /// As given.
        slots: u32,
    },
}

struct Times {
    n: f64,
    t_c: f64,
    t_s: f64,
    t_g: f64,
}

/// The closed form of a strategy.
pub fn predict(strategy: Strategy, inputs: &Inputs) -> Result<Prediction, NotApplicable> {
    match strategy {
        Strategy::HostOnly => host_only(inputs),
        Strategy::DeviceOnly => device_only(inputs),
        Strategy::Mte { split: Split::EqualFinish, tail } => mte_equal(inputs, tail),
        Strategy::Mte { split: Split::Fixed(part), tail } => mte_fixed(inputs, part, tail),
        Strategy::Mte { split: Split::Optimal, .. } => mte_optimal(inputs),
        Strategy::Wrr | Strategy::WrrFrozen => wrr(inputs),
        Strategy::MteFeedback => mte_optimal(inputs),
        Strategy::Windowed { .. } => wrr(&Inputs { background: false, ..*inputs }),
        Strategy::Auto { .. } => Err(NotApplicable::NoForm { strategy: strategy.name() }),
    }
}

/// n_s = N·t_c/(t_s+t_c-t_g) = T/t_s, the shortest epoch of two phases: the device works on while
/// its part is drained. The same form holds with background workers, where the drain hides no
/// preparation. Through a spool of S slots the part is at most n_s = S + n_s·t_g/t_s, and then
/// T = (N-n_s)·t_c + n_s·t_g.
pub fn mte_optimal(inputs: &Inputs) -> Result<Prediction, NotApplicable> {
    let free = wrr(&Inputs { background: false, ..*inputs })?;
    let Times { n, t_c, t_s, t_g } = all_known(inputs)?;
    let most = f64::from(inputs.spool_slots) * t_s / (t_s - t_g);
    if t_s <= t_g || free.device_batches <= most {
        return Ok(free);
    }
    let total_ns = (n - most) * t_c + most * t_g;
    Ok(Prediction { total_ns, device_batches: most, regime: Regime::WaitsForHost })
}

/// T = N·t_c.
pub fn host_only(inputs: &Inputs) -> Result<Prediction, NotApplicable> {
    let t_c = known(inputs.profile.host_ns, "t_c")?;
    let total_ns = f64::from(inputs.batches) * t_c;
    Ok(Prediction { total_ns, device_batches: 0.0, regime: Regime::HostAlone })
}

/// T = N·max(t_s, t_g).
pub fn device_only(inputs: &Inputs) -> Result<Prediction, NotApplicable> {
    let t_s = known(inputs.profile.device_ns, "t_s")?;
    let t_g = known(inputs.profile.ready_ns, "t_g")?;
    let n = f64::from(inputs.batches);
    let regime = if t_g > t_s { Regime::Accelerator } else { Regime::DeviceAlone };
    Ok(Prediction { total_ns: n * t_s.max(t_g), device_batches: n, regime })
}

/// n_s = N·t_c/(t_c+t_s), T = N·t_c·(t_s+t_g)/(t_s+t_c): both ends finish together, then the
/// device's part is drained. A spool smaller than n_s makes it the device's part.
pub fn mte_equal(inputs: &Inputs, tail: Tail) -> Result<Prediction, NotApplicable> {
    let Times { n, t_c, t_s, t_g } = all_known(inputs)?;
    let device_batches = n * t_c / (t_c + t_s);
    if device_batches > f64::from(inputs.spool_slots) {
        return mte_fixed(inputs, inputs.spool_slots, tail);
    }
    let total_ns = n * t_c * (t_s + t_g) / (t_s + t_c);
    Ok(Prediction { total_ns, device_batches, regime: Regime::BothEnds })
}

/// A given split. With a descending tail, draining overlaps producing:
/// T = max(n_c·t_c + n_s·t_g, n_s·t_s + t_g); with an ascending one it begins when the device has
/// finished: T = max(n_c·t_c, n_s·t_s) + n_s·t_g.
pub fn mte_fixed(inputs: &Inputs, part: u32, tail: Tail) -> Result<Prediction, NotApplicable> {
    if part == 0 {
        return host_only(inputs);
    }
    let Times { n, t_c, t_s, t_g } = all_known(inputs)?;
    if part > inputs.spool_slots {
        return Err(NotApplicable::SpoolTooSmall { part, slots: inputs.spool_slots });
    }
    let device_batches = f64::from(part);
    let (host_ends, device_ends) = ((n - device_batches) * t_c, device_batches * t_s);
    let (host_bound, device_bound) = match tail {
        Tail::Descending => (host_ends + device_batches * t_g, device_ends + t_g),
        Tail::Ascending => (host_ends + device_batches * t_g, device_ends + device_batches * t_g),
    };
    let regime =
        if device_bound > host_bound { Regime::WaitsForDevice } else { Regime::WaitsForHost };
    Ok(Prediction { total_ns: host_bound.max(device_bound), device_batches, regime })
}

/// Without background workers n_s = T/t_s, T = N·t_c·t_s/(t_s+t_c-t_g), for t_g < t_c and
/// t_s ≥ t_g; a faster device does everything. With them T = N·max(t_g, t_c·t_s/(t_c+t_s)).
pub fn wrr(inputs: &Inputs) -> Result<Prediction, NotApplicable> {
    let Times { n, t_c, t_s, t_g } = all_known(inputs)?;
    if inputs.background {
        let both = t_c * t_s / (t_c + t_s);
        let regime = if t_g > both { Regime::Accelerator } else { Regime::BothEnds };
        let total_ns = n * t_g.max(both);
        return Ok(Prediction { total_ns, device_batches: (total_ns / t_s).min(n), regime });
    }
    if t_s < t_g {
        let total_ns = n * t_g;
        return Ok(Prediction { total_ns, device_batches: n, regime: Regime::DeviceAlone });
    }
    if t_g >= t_c {
        return Err(NotApplicable::NoGainPerBatch);
    }
    let total_ns = n * t_c * t_s / (t_s + t_c - t_g);
    Ok(Prediction { total_ns, device_batches: total_ns / t_s, regime: Regime::BothEnds })
}

/// The share of the devices that makes λ·T/T0 + (1-λ)·E/E0 smallest, and no longer than T0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BestShare {
    /// n_s.
    pub share: u32,
    /// The value, 1 for the host alone.
    pub value: f64,
    /// Whether the accelerator then waits for the devices, which saves energy and not time.
    pub waits: bool,
}

/// E = P_base·T + P_core·(N-n_s)·t_p + P_device·n_s·t_s, with T = (N-n_s)·t_c + n_s·t_g as long as
/// the devices keep up, n_s·t_s beyond. Both are linear in n_s between n_s = 0, the share at which
/// both ends finish together, and the share that takes T0: the best is one of the three.
pub fn best_share(
    inputs: &Inputs,
    costs: &Costs,
    preparation_ns: u64,
    time_weight_ppm: u32,
) -> Result<BestShare, NotApplicable> {
    let Times { n, t_c, t_s, t_g } = all_known(inputs)?;
    let weight = (f64::from(time_weight_ppm) / 1e6).min(1.0);
    let [base, core, device] =
        [costs.base_uw, costs.host_core_uw, costs.device_uw].map(|p| p as f64);
    let time = |share: f64| {
        let host = if inputs.background {
            ((n - share) * t_c).max(n * t_g)
        } else {
            (n - share) * t_c + share * t_g
        };
        host.max(share * t_s)
    };
    let energy = |share: f64| {
        base * time(share) + core * (n - share) * preparation_ns as f64 + device * share * t_s
    };
    let (time_alone, energy_alone) = (n * t_c, energy(0.0));
    let value = |share: f64| {
        let cost = if energy_alone > 0.0 { energy(share) / energy_alone } else { 1.0 };
        weight * time(share) / time_alone + (1.0 - weight) * cost
    };
    let together = wrr(inputs).map_or(0.0, |found| found.device_batches).floor();
    let longest = (n * t_c / t_s).min(n).floor();
    let mut best = BestShare { share: 0, value: 1.0, waits: false };
    for (share, waits) in [(together, false), (longest, longest > together)] {
        // A hair's breadth is no reason to wake a device.
        if time(share) <= time_alone && value(share) < best.value - 1e-9 {
            best = BestShare { share: share as u32, value: value(share), waits };
        }
    }
    Ok(best)
}

fn known(time_ns: u64, name: &'static str) -> Result<f64, NotApplicable> {
    if time_ns == 0 { Err(NotApplicable::Unknown(name)) } else { Ok(time_ns as f64) }
}

fn all_known(inputs: &Inputs) -> Result<Times, NotApplicable> {
    Ok(Times {
        n: f64::from(inputs.batches),
        t_c: known(inputs.profile.host_ns, "t_c")?,
        t_s: known(inputs.profile.device_ns, "t_s")?,
        t_g: known(inputs.profile.ready_ns, "t_g")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(t_c: f64, t_g: f64, t_s: f64, background: bool) -> Inputs {
        let ns = |units: f64| (units * 1e9).round() as u64;
        let profile = Profile { host_ns: ns(t_c), device_ns: ns(t_s), ready_ns: ns(t_g) };
        Inputs { batches: 5_000, background, profile, spool_slots: 5_000 }
    }

    fn saving(prediction: Prediction, t_c: f64) -> f64 {
        1.0 - prediction.total_ns / (5_000.0 * t_c * 1e9)
    }

    #[test]
    fn mte_and_wrr_without_workers_give_the_checked_savings() {
        for (t_c, t_g, t_s, mte, wrr_saves) in [
            (0.25, 0.10, 1.0, 0.1200, 0.1304),
            (1.0, 0.375, 2.0, 0.2083, 0.2381),
            (1.0, 0.494, 2.15, 0.1606, 0.1905),
            (0.5, 0.4, 1.0, 0.0667, 0.0909),
            (1.0, 0.2, 3.0, 0.2000, 0.2105),
            (1.0, 0.05, 8.0, 0.1056, 0.1061),
        ] {
            let given = inputs(t_c, t_g, t_s, false);
            for tail in [Tail::Descending, Tail::Ascending] {
                let found = saving(mte_equal(&given, tail).unwrap(), t_c);
                assert!((found - mte).abs() < 6e-5, "mte {t_c} {t_g} {t_s}: {found}");
            }
            let found = saving(wrr(&given).unwrap(), t_c);
            assert!((found - wrr_saves).abs() < 6e-5, "wrr {t_c} {t_g} {t_s}: {found}");
        }
    }

    #[test]
    fn wrr_with_workers_gives_the_checked_times_per_batch() {
        for (p, t_t, t_s, per_batch, mte) in [
            (1.0, 0.3, 4.0, 0.8000, Some(0.8600)),
            (1.0, 0.9, 4.0, 0.9000, Some(0.9800)),
            (1.0, 0.3, 2.0, 0.6667, Some(0.7667)),
            (0.5, 0.3, 2.0, 0.4000, Some(0.4600)),
            (1.0, 1.2, 4.0, 1.2000, None),
        ] {
            let given = inputs(f64::max(p, t_t), t_t, t_s, true);
            let found = wrr(&given).unwrap().total_ns / 5_000.0 / 1e9;
            assert!((found - per_batch).abs() < 6e-5, "wrr {p} {t_t} {t_s}: {found}");
            if let Some(mte) = mte {
                let found = mte_equal(&given, Tail::Descending).unwrap();
                assert!((found.total_ns / 5_000.0 / 1e9 - mte).abs() < 6e-5);
            }
        }
    }

    #[test]
    fn a_form_that_does_not_apply_says_why() {
        assert_eq!(wrr(&inputs(0.5, 0.6, 1.0, false)), Err(NotApplicable::NoGainPerBatch));
        assert_eq!(wrr(&inputs(0.5, 0.0, 1.0, false)), Err(NotApplicable::Unknown("t_g")));
        assert_eq!(device_only(&inputs(1.0, 1.0, 0.0, false)), Err(NotApplicable::Unknown("t_s")));
        let small = Inputs { spool_slots: 9, ..inputs(1.0, 0.5, 2.0, false) };
        assert_eq!(
            mte_fixed(&small, 10, Tail::Descending),
            Err(NotApplicable::SpoolTooSmall { part: 10, slots: 9 })
        );
        assert_eq!(mte_equal(&small, Tail::Descending).unwrap().regime, Regime::WaitsForHost);
    }

    #[test]
    fn a_device_faster_than_the_accelerator_does_everything() {
        let found = wrr(&inputs(1.0, 0.5, 0.4, false)).unwrap();
        assert_eq!((found.regime, found.total_ns), (Regime::DeviceAlone, 5_000.0 * 0.5e9));
    }
}
