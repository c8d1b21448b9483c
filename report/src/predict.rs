//! The time by the closed form with the measured profile, and its error.

use super::Prediction;
use meetpoint_scheduler::AnyStrategy;
use meetpoint_sim::closed_forms::{Inputs, NotApplicable, Regime};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The closed form that was evaluated, or why none applies. `Display` gives it in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Form {
    /// A form was evaluated.
    Evaluated {
        /// The form, such as `T = N·t_c`.
        formula: String,
        /// The bottleneck of the epoch.
        regime: Regime,
    },
    /// The run has no epoch.
    NoEpoch,
    /// The strategy has no closed form.
    NoForm {
        /// Its name.
        strategy: String,
    },
    /// A time of the profile was not measured.
    TimeUnknown {
        /// `t_c`, `t_g` or `t_s`.
        time: String,
    },
    /// A step on a device batch does not take less time than one on a host batch.
    NoGainPerBatch,
    /// The device's part is larger than the spool.
    SpoolTooSmall {
        /// Batches of the part.
        part: u32,
        /// Slots of the spool.
        slots: u32,
    },
    /// Several ranks share the devices.
    SharedDevices,
    /// A device was lost.
    DeviceLost,
    /// A device stalled.
    DeviceStalled,
    /// The job injects faults.
    FaultsInJob,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self {
            Self::Evaluated { formula, regime: of } => {
                return write!(f, "{formula}; {}", regime(*of));
            }
            Self::NoEpoch => "the run has no epoch",
            Self::NoForm { strategy } => {
                return write!(f, "no closed form: {strategy} has none");
            }
            Self::TimeUnknown { time } => {
                return write!(f, "no closed form: {time} is not known");
            }
            Self::NoGainPerBatch => {
                "a step on a device batch (t_g) is not shorter than on a host batch (t_c)"
            }
            Self::SpoolTooSmall { part, slots } => {
                return write!(
                    f,
                    "no closed form: the device's part of {part} batches exceeds the spool's \
                     {slots} slots"
                );
            }
            Self::SharedDevices => "ranks share the devices",
            Self::DeviceLost => "a device was lost",
            Self::DeviceStalled => "a device stalled",
            Self::FaultsInJob => "the job injects faults",
        };
        write!(f, "no closed form: {why}")
    }
}

impl From<NotApplicable> for Form {
    fn from(reason: NotApplicable) -> Self {
        match reason {
            NotApplicable::Unknown(time) => Self::TimeUnknown { time: time.to_owned() },
            NotApplicable::NoGainPerBatch => Self::NoGainPerBatch,
            NotApplicable::NoForm { strategy } => Self::NoForm { strategy: strategy.to_owned() },
            NotApplicable::SpoolTooSmall { part, slots } => Self::SpoolTooSmall { part, slots },
        }
    }
}

/// The predicted time of one epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicted {
    /// Its duration; `None` if no form applies.
    pub seconds: Option<f64>,
    /// The form, or why none applies.
    pub form: Form,
}

/// The predicted time of one epoch, by the closed form of its strategy.
pub fn epoch(strategy: AnyStrategy, inputs: &Inputs) -> Predicted {
    match strategy.closed_form(inputs) {
        Ok(found) => {
            let formula = found.formula.to_owned();
            let form = Form::Evaluated { formula, regime: found.regime };
            Predicted { seconds: Some(found.total_ns / 1e9), form }
        }
        Err(reason) => Predicted { seconds: None, form: reason.into() },
    }
}

/// The sum of the epochs' predictions, compared with the measured time. The form is that of the
/// last epoch, or of the first that has none.
pub fn total(epochs: &[Predicted], measured: f64) -> Prediction {
    let times: Option<Vec<f64>> = epochs.iter().map(|epoch| epoch.seconds).collect();
    let without = epochs.iter().find(|epoch| epoch.seconds.is_none());
    let form = without.or(epochs.last()).map_or(Form::NoEpoch, |epoch| epoch.form.clone());
    let seconds = times.filter(|times| !times.is_empty()).map(|times| times.iter().sum::<f64>());
    Prediction { seconds, error_ratio: seconds.map(|seconds| measured / seconds - 1.0), form }
}

fn regime(regime: Regime) -> &'static str {
    match regime {
        Regime::HostAlone => "the host alone",
        Regime::DeviceAlone => "the device alone",
        Regime::BothEnds => "both ends busy",
        Regime::Accelerator => "the accelerator is the limit",
        Regime::WaitsForDevice => "the host's part ends first",
        Regime::WaitsForHost => "the device's part ends first",
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, Regime, epoch, total};
    use meetpoint_scheduler::{AnyStrategy, HostOnly, Profile, Wrr};
    use meetpoint_sim::closed_forms::Inputs;

    fn inputs(profile: Profile) -> Inputs {
        Inputs { batches: 100, background: false, profile, spool_slots: 100 }
    }

    #[test]
    fn the_error_is_measured_over_predicted() {
        let profile = Profile { host_ns: 80_000_000, device_ns: 0, ready_ns: 0 };
        let predicted = epoch(AnyStrategy::HostOnly(HostOnly), &inputs(profile));
        let found = total(&[predicted.clone(), predicted], 16.8);
        assert!((found.seconds.unwrap() - 16.0).abs() < 1e-9);
        assert!((found.error_ratio.unwrap() - 0.05).abs() < 1e-9);
        assert!(matches!(found.form, Form::Evaluated { regime: Regime::HostAlone, .. }));
    }

    #[test]
    fn an_unknown_time_is_named() {
        let predicted = epoch(AnyStrategy::Wrr(Wrr), &inputs(Profile::default()));
        let found = total(&[predicted], 1.0);
        assert_eq!((found.seconds, found.error_ratio), (None, None));
        assert_eq!(found.form, Form::TimeUnknown { time: "t_c".to_owned() });
    }

    #[test]
    fn a_run_without_epochs_has_no_prediction() {
        let found = total(&[], 1.0);
        assert_eq!((found.seconds, found.error_ratio, found.form), (None, None, Form::NoEpoch));
    }
}
