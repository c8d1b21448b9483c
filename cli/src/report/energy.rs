//! Modelled energy of a run. No meter is read here.

use super::{EnergyPart, ModelledEnergy, Run};
use meetpoint_sim::power::{Activity, PowerModel};

/// What the model says of a run on a machine with `cores` and so many devices.
///
/// The drive is there under every strategy and draws its idle power; only its work differs.
pub(crate) fn model(
    power: &PowerModel,
    run: &Run,
    cores: usize,
    devices: usize,
    accelerator_busy: f64,
) -> ModelledEnergy {
    let device_busy: f64 = run.devices.iter().map(|device| device.busy_seconds).sum();
    let activity = Activity {
        duration_s: run.totals.seconds,
        host_cores: u32::try_from(cores).unwrap_or(u32::MAX),
        host_busy_core_s: run.totals.host_core_seconds,
        dram_bytes: 0,
        devices: u32::try_from(devices).unwrap_or(u32::MAX),
        device_busy_s: device_busy,
        accelerators: 1,
        accelerator_busy_s: accelerator_busy,
    };
    let energy = power.energy(&activity);
    let parts = energy.parts.iter().map(|part| EnergyPart {
        name: part.component.name().to_owned(),
        modelled_joules: part.joules(),
    });
    ModelledEnergy {
        modelled_joules: energy.total_j,
        modelled_parts: parts.collect(),
        source: energy.source,
        unverified_watts: energy.unverified,
    }
}

#[cfg(test)]
mod tests {
    use super::model;
    use crate::report::made_up;
    use meetpoint_sim::power::PowerModel;

    #[test]
    fn the_parts_make_the_whole_and_the_source_says_modelled() {
        let report = made_up::report(10);
        let energy = model(&PowerModel::bundled(), &report.runs[1], 2, 1, 0.2);
        let sum: f64 = energy.modelled_parts.iter().map(|part| part.modelled_joules).sum();
        assert!((sum - energy.modelled_joules).abs() < 1e-9);
        assert!(energy.source.starts_with("modelled("), "{}", energy.source);
    }
}
