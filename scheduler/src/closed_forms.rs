//! Closed forms that several strategies share: the duration of an epoch from t_c, t_g and t_s.
//! Forms of a single strategy are in its file.
//!
//! Formulas of DDLP (arXiv 2407.00005) for constant times. Without background workers, t_c is
//! preparation and step in series. With workers of combined period p, t_c is the steady interval
//! max(p, t_t) and replaces p in the formulas: if t_t is larger, the accelerator is the bottleneck
//! in either case. The first and last batches of the epoch are ignored.

use crate::terms::Costs;
use crate::types::Profile;
use serde::{Deserialize, Serialize};

/// The inputs of a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inputs {
    /// N.
    pub batches: u32,
    /// Whether host batches are prepared while the accelerator works (w > 0).
    pub background: bool,
    /// t_c, t_s, t_g in nanoseconds; 0 if not known.
    pub profile: Profile,
    /// Slots of the spool.
    pub spool_slots: u32,
}

/// The predicted duration of an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// T, the whole epoch, in nanoseconds.
    pub total_ns: f64,
    /// n_s, batches that the device prepares.
    pub device_batches: f64,
    /// The bottleneck.
    pub regime: Regime,
    /// The form that was evaluated, as text.
    pub formula: &'static str,
}

/// The bottleneck of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Regime {
    /// The host prepares everything.
    HostAlone,
    /// The device prepares everything.
    DeviceAlone,
    /// Both ends work all the time.
    BothEnds,
    /// The accelerator never waits for a batch.
    Accelerator,
    /// The host has finished its part and waits for the device.
    WaitsForDevice,
    /// The device has finished its part, or filled the spool, before the host.
    WaitsForHost,
}

/// Why a closed form does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotApplicable {
    /// A time is not known.
    #[error("{0} is not known")]
    Unknown(&'static str),
    /// The balance of `wrr` requires t_g < t_c.
    #[error("a step on a device batch (t_g) is not shorter than on a host batch (t_c)")]
    NoGainPerBatch,
    /// The time of a strategy does not follow from these constants.
    #[error("{strategy} has no closed form")]
    NoForm {
        /// Its name.
        strategy: &'static str,
    },
    /// The device's part exceeds the spool, so the device waits for consumption.
    #[error("the device's part of {part} batches exceeds the spool's {slots} slots")]
    SpoolTooSmall {
        /// n_s.
        part: u32,
        /// The configured value.
        slots: u32,
    },
}

/// N, and the times of a batch, all known.
pub(crate) struct Times {
    pub(crate) n: f64,
    pub(crate) t_c: f64,
    pub(crate) t_s: f64,
    pub(crate) t_g: f64,
}

/// n_s = N·t_c/(t_s+t_c-t_g) = T/t_s, the shortest epoch of two phases: the device works on while
/// its part is drained. The same form holds with background workers, where the drain hides no
/// preparation. Through a spool of S slots the part is at most n_s = S + n_s·t_g/t_s, and then
/// T = (N-n_s)·t_c + n_s·t_g.
pub(crate) fn two_phases(inputs: &Inputs) -> Result<Prediction, NotApplicable> {
    let free = round_robin(&Inputs { background: false, ..*inputs })?;
    let Times { n, t_c, t_s, t_g } = Times::of(inputs)?;
    let most = f64::from(inputs.spool_slots) * t_s / (t_s - t_g);
    if t_s <= t_g || free.device_batches <= most {
        return Ok(free);
    }
    let total_ns = (n - most) * t_c + most * t_g;
    let formula = "T = (N−n_s)·t_c+n_s·t_g";
    Ok(Prediction { total_ns, device_batches: most, regime: Regime::WaitsForHost, formula })
}

/// Without background workers n_s = T/t_s, T = N·t_c·t_s/(t_s+t_c-t_g), for t_g < t_c and t_s ≥
/// t_g; a faster device prepares everything. With workers T = N·max(t_g, t_c·t_s/(t_c+t_s)).
pub(crate) fn round_robin(inputs: &Inputs) -> Result<Prediction, NotApplicable> {
    let Times { n, t_c, t_s, t_g } = Times::of(inputs)?;
    if inputs.background {
        let both = t_c * t_s / (t_c + t_s);
        let regime = if t_g > both { Regime::Accelerator } else { Regime::BothEnds };
        let total_ns = n * t_g.max(both);
        let formula = "T = N·max(t_g, t_c·t_s/(t_c+t_s))";
        let device_batches = (total_ns / t_s).min(n);
        return Ok(Prediction { total_ns, device_batches, regime, formula });
    }
    if t_s < t_g {
        let total_ns = n * t_g;
        let (regime, formula) = (Regime::DeviceAlone, "T = N·t_g");
        return Ok(Prediction { total_ns, device_batches: n, regime, formula });
    }
    if t_g >= t_c {
        return Err(NotApplicable::NoGainPerBatch);
    }
    let total_ns = n * t_c * t_s / (t_s + t_c - t_g);
    let (regime, formula) = (Regime::BothEnds, "T = N·t_c·t_s/(t_s+t_c−t_g)");
    Ok(Prediction { total_ns, device_batches: total_ns / t_s, regime, formula })
}

/// The share of the devices that minimises λ·T/T0 + (1-λ)·E/E0 with T at most T0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BestShare {
    /// n_s.
    pub share: u32,
    /// The minimised value; 1 for the host alone.
    pub value: f64,
    /// Whether the accelerator then waits for the devices, which saves energy but no time.
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
    let Times { n, t_c, t_s, t_g } = Times::of(inputs)?;
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
    let together = round_robin(inputs).map_or(0.0, |found| found.device_batches).floor();
    let longest = (n * t_c / t_s).min(n).floor();
    let mut best = BestShare { share: 0, value: 1.0, waits: false };
    for (share, waits) in [(together, false), (longest, longest > together)] {
        // A negligible gain does not justify waking a device.
        if time(share) <= time_alone && value(share) < best.value - 1e-9 {
            best = BestShare { share: share as u32, value: value(share), waits };
        }
    }
    Ok(best)
}

/// A time, or the error with its name if it is not known.
pub(crate) fn known(time_ns: u64, name: &'static str) -> Result<f64, NotApplicable> {
    if time_ns == 0 { Err(NotApplicable::Unknown(name)) } else { Ok(time_ns as f64) }
}

impl Times {
    pub(crate) fn of(inputs: &Inputs) -> Result<Self, NotApplicable> {
        Ok(Self {
            n: f64::from(inputs.batches),
            t_c: known(inputs.profile.host_ns, "t_c")?,
            t_s: known(inputs.profile.device_ns, "t_s")?,
            t_g: known(inputs.profile.ready_ns, "t_g")?,
        })
    }
}
