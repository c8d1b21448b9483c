//! The time that the closed form gives for the measured profile, and how far off it was.

use super::Prediction;
use meetpoint_scheduler::AnyStrategy;
use meetpoint_sim::closed_forms::{Inputs, Regime};

/// What one epoch should have taken: (seconds, which form), or why no form applies.
pub fn epoch(strategy: AnyStrategy, inputs: &Inputs) -> Result<(f64, String), String> {
    match strategy.closed_form(inputs) {
        Ok(found) => {
            let form = format!("{}; {}", found.formula, regime(found.regime));
            Ok((found.total_ns / 1e9, form))
        }
        Err(reason) => Err(format!("no closed form: {reason}")),
    }
}

/// The epochs' predictions together, beside the measured time.
pub fn total(epochs: Vec<Result<(f64, String), String>>, measured: f64) -> Prediction {
    let mut seconds = 0.0;
    let mut form = String::new();
    for epoch in epochs {
        match epoch {
            Ok((epoch_seconds, epoch_form)) => {
                seconds += epoch_seconds;
                form = epoch_form;
            }
            Err(reason) => {
                return Prediction { seconds: None, error_ratio: None, form: reason };
            }
        }
    }
    Prediction { seconds: Some(seconds), error_ratio: Some(measured / seconds - 1.0), form }
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
    use super::{epoch, total};
    use meetpoint_scheduler::{AnyStrategy, HostOnly, Profile, Wrr};
    use meetpoint_sim::closed_forms::Inputs;

    fn inputs(profile: Profile) -> Inputs {
        Inputs { batches: 100, background: false, profile, spool_slots: 100 }
    }

    #[test]
    fn the_error_is_measured_over_predicted() {
        let profile = Profile { host_ns: 80_000_000, device_ns: 0, ready_ns: 0 };
        let predicted = epoch(AnyStrategy::HostOnly(HostOnly), &inputs(profile));
        let found = total(vec![predicted.clone(), predicted], 16.8);
        assert!((found.seconds.unwrap() - 16.0).abs() < 1e-9);
        assert!((found.error_ratio.unwrap() - 0.05).abs() < 1e-9);
    }

    #[test]
    fn an_unknown_time_is_named() {
        let predicted = epoch(AnyStrategy::Wrr(Wrr), &inputs(Profile::default()));
        let found = total(vec![predicted], 1.0);
        assert_eq!(found.seconds, None);
        assert!(found.form.contains("t_c is not known"), "{}", found.form);
    }
}
