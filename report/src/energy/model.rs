//! Evaluates the model for a run. No meter is read here.

use super::{Consumption, EnergyPart, ModelledCost, ModelledDram, ModelledEnergy, ModelledWear};
use crate::Run;
use meetpoint_format::slot::HEADER_BYTES;
use meetpoint_sim::power::{Activity, Cost, DramTraffic, PowerModel, Wear};

/// Block size of direct reads.
const BLOCK_BYTES: u64 = 4096;

/// The inputs of the model about machine and job.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Cores that the host may use.
    pub cores: usize,
    /// Devices of the job, used or not: a drive draws its idle power under every strategy.
    pub devices: usize,
    /// Consumers that step together.
    pub accelerators: u32,
    /// Time of one step of an accelerator.
    pub step_seconds: f64,
    /// Bytes of the tensors of a whole batch.
    pub batch_bytes: u64,
    /// Whether slots are written to flash, rather than to memory.
    pub spool_on_flash: bool,
}

/// The model of a run: its energy and other consumption.
pub fn model(power: &PowerModel, run: &Run, setting: &Setting) -> (ModelledEnergy, Consumption) {
    let traffic = traffic(run, setting);
    let devices = u32::try_from(setting.devices).unwrap_or(u32::MAX);
    let steps = run.totals.host_batches + run.totals.device_batches;
    let activity = Activity {
        duration_s: run.totals.seconds,
        host_cores: u32::try_from(setting.cores).unwrap_or(u32::MAX),
        host_busy_core_s: run.totals.host_core_seconds,
        dram_bytes: traffic.total_bytes(),
        devices,
        device_busy_s: run.devices.iter().map(|device| device.busy_seconds).sum(),
        accelerators: setting.accelerators,
        accelerator_busy_s: setting.step_seconds * steps as f64,
    };
    let energy = power.energy(&activity);
    let epochs = run.epochs.len().max(1) as f64;
    let epoch_s = run.totals.seconds / epochs;
    let written = if setting.spool_on_flash { run.totals.device_bytes_written } else { 0 };
    let flash_bytes_per_epoch = (written as f64 / epochs).round() as u64;
    let wear = power.wear(flash_bytes_per_epoch, epoch_s, devices);
    // Prices are of an epoch, energy is of the whole run: the share of one epoch of it.
    let cost = power.cost(run.totals.seconds, 1, devices, &energy, None);
    let cost = cost.map(|cost| per_epoch(cost, epochs, power, wear.as_ref()));
    let samples = run.epochs.iter().map(|epoch| epoch.samples).sum();
    let modelled = ModelledEnergy {
        modelled_joules: energy.total_j,
        modelled_preparation_joules: energy.preparation_j,
        modelled_joules_per_sample: energy.joules_per_sample(samples),
        modelled_parts: energy
            .parts
            .iter()
            .map(|part| EnergyPart {
                name: part.component.name().to_owned(),
                modelled_joules: part.joules(),
            })
            .collect(),
        source: energy.source,
        unverified_watts: energy.unverified,
    };
    let consumption = Consumption {
        device_to_host_bytes: run.totals.device_batches.saturating_mul(setting.batch_bytes),
        flash_bytes_per_epoch,
        modelled_dram: dram(&traffic),
        modelled_wear: wear.map(modelled_wear),
        modelled_cost: cost.map(modelled_cost),
    };
    (modelled, consumption)
}

/// Memory traffic, derived from counted bytes. With a spool in a file, the host's reads include
/// slots: header and payload, in whole blocks.
fn traffic(run: &Run, setting: &Setting) -> DramTraffic {
    let tensors = |batches: u64| batches.saturating_mul(setting.batch_bytes);
    let of_devices = tensors(run.totals.device_batches);
    let slot_bytes = setting.batch_bytes.saturating_add(HEADER_BYTES as u64).div_ceil(BLOCK_BYTES);
    let slot_bytes = slot_bytes.saturating_mul(BLOCK_BYTES);
    let slots = run.totals.device_batches.saturating_mul(slot_bytes);
    let slots_read = if setting.spool_on_flash { slots } else { 0 };
    let encoded = run.totals.host_bytes_read.saturating_sub(slots_read);
    DramTraffic::host(encoded, tensors(run.totals.host_batches))
        .and(DramTraffic::device(of_devices))
}

fn per_epoch(whole: Cost, epochs: f64, power: &PowerModel, wear: Option<&Wear>) -> Cost {
    let flash_wear = wear.map_or(0.0, |wear| power.flash_wear(wear.bytes_per_epoch));
    let (node, energy) = (whole.node / epochs, whole.energy / epochs);
    let device_premium = whole.device_premium / epochs;
    let total = node + energy + device_premium + flash_wear;
    Cost { node, energy, device_premium, flash_wear, total, ..whole }
}

fn dram(traffic: &DramTraffic) -> ModelledDram {
    ModelledDram {
        modelled_bytes: traffic.total_bytes(),
        modelled_read_bytes: traffic.read_bytes,
        modelled_decoded_bytes: traffic.decoded_bytes,
        modelled_written_bytes: traffic.written_bytes,
        modelled_consumed_bytes: traffic.consumed_bytes,
    }
}

fn modelled_wear(wear: Wear) -> ModelledWear {
    ModelledWear {
        modelled_drive_writes_per_day: wear.drive_writes_per_day,
        rated_drive_writes_per_day: wear.rated_drive_writes_per_day,
        modelled_life_share_per_epoch: wear.life_share_per_epoch,
        modelled_years: wear.years,
        unverified: wear.unverified,
    }
}

fn modelled_cost(cost: Cost) -> ModelledCost {
    ModelledCost {
        currency: cost.currency,
        modelled_total: cost.total,
        modelled_node: cost.node,
        modelled_energy: cost.energy,
        modelled_device_premium: cost.device_premium,
        modelled_flash_wear: cost.flash_wear,
        example_prices: cost.examples,
        unverified: cost.unverified,
    }
}

#[cfg(test)]
mod tests {
    use super::{Setting, model};
    use crate::made_up;
    use meetpoint_sim::power::PowerModel;

    fn setting(spool_on_flash: bool) -> Setting {
        Setting {
            cores: 2,
            devices: 1,
            accelerators: 1,
            step_seconds: 0.02,
            batch_bytes: 32 * 150_528,
            spool_on_flash,
        }
    }

    #[test]
    fn the_parts_make_the_whole_and_the_source_says_modelled() {
        let report = made_up::report(10);
        let (energy, _) = model(&PowerModel::bundled(), &report.runs[1], &setting(false));
        let sum: f64 = energy.modelled_parts.iter().map(|part| part.modelled_joules).sum();
        assert!((sum - energy.modelled_joules).abs() < 1e-9);
        assert!(energy.modelled_preparation_joules <= energy.modelled_joules);
        let samples = 10.0 * 32.0;
        let of_a_sample = energy.modelled_joules_per_sample.unwrap();
        assert!((of_a_sample * samples / energy.modelled_joules - 1.0).abs() < 1e-12);
        assert!(energy.source.starts_with("modelled("), "{}", energy.source);
    }

    #[test]
    fn a_spool_in_memory_wears_no_flash_and_one_on_flash_by_its_slots() {
        let report = made_up::report(10);
        let run = &report.runs[1];
        let (_, memory) = model(&PowerModel::bundled(), run, &setting(false));
        assert_eq!(memory.flash_bytes_per_epoch, 0);
        assert_eq!(memory.modelled_wear.as_ref().unwrap().modelled_years, None);
        let (_, flash) = model(&PowerModel::bundled(), run, &setting(true));
        assert_eq!(flash.flash_bytes_per_epoch, run.totals.device_bytes_written);
        assert_eq!(flash.device_to_host_bytes, 4 * 32 * 150_528);
        let wear = flash.modelled_wear.unwrap();
        let rated = 4.84e15;
        let share = flash.flash_bytes_per_epoch as f64 / rated;
        assert!((wear.modelled_life_share_per_epoch / share - 1.0).abs() < 1e-9);
        let (memory, flash) = (memory.modelled_cost.unwrap(), flash.modelled_cost.unwrap());
        assert!((flash.modelled_flash_wear / (500.0 * share) - 1.0).abs() < 1e-9);
        assert_eq!(memory.modelled_flash_wear, 0.0);
        let parts = flash.modelled_node + flash.modelled_energy + flash.modelled_device_premium;
        assert!((flash.modelled_total - parts - flash.modelled_flash_wear).abs() < 1e-12);
    }

    #[test]
    fn reads_of_slots_are_not_taken_for_reads_of_samples() {
        let mut report = made_up::report(10);
        let run = &mut report.runs[1];
        // 4 slots of 32 samples: a header of 4 KiB and 4,816,896 bytes, in whole blocks.
        run.totals.host_bytes_read = 1_000 + 4 * (4_096 + 4_816_896);
        let (_, used) = model(&PowerModel::bundled(), run, &setting(true));
        let of_devices = 4 * 32 * 150_528;
        assert_eq!(used.modelled_dram.modelled_read_bytes, 1_000 + of_devices);
        run.totals.host_bytes_read = 1_000;
        let (_, used) = model(&PowerModel::bundled(), run, &setting(false));
        assert_eq!(used.modelled_dram.modelled_read_bytes, 1_000 + of_devices);
    }

    #[test]
    fn memory_moves_less_when_the_device_prepares() {
        let report = made_up::report(100);
        let bytes = |run: usize| {
            let (_, used) = model(&PowerModel::bundled(), &report.runs[run], &setting(false));
            used.modelled_dram
        };
        let alone = bytes(0);
        let tensors = 100 * 32 * 150_528;
        assert_eq!(alone.modelled_written_bytes, tensors);
        assert_eq!(alone.modelled_read_bytes, 100 * 32 * 110_000);
        assert_eq!(alone.modelled_bytes, 2 * tensors + 2 * 100 * 32 * 110_000);
        let both = bytes(1);
        assert_eq!(both.modelled_written_bytes, tensors * 60 / 100);
        assert_eq!(both.modelled_consumed_bytes, tensors);
    }
}
