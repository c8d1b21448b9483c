//! The configuration of the scheduler for an epoch.

use super::Loader;
use crate::LoaderConfig;
use crate::clock;
use crate::limits::{DEVICE_AHEAD, device_ahead};
use meetpoint_format::batching::Batching;
use meetpoint_prepare::Job;
use meetpoint_scheduler::{BatchIndex, Config, DeviceConfig, DeviceId, Holders, Interleave};
use std::sync::Arc;

/// After this many stalls a device gets no more work in the epoch.
const STALLS_MAX: u32 = 3;

impl Loader {
    /// The parameters of the next epoch.
    pub(super) fn schedule_config(&self) -> Config {
        let devices = self.limits.spools.iter().enumerate().map(|(number, spool)| {
            // Slots with reused batches cannot be filled.
            let spool_slots = spool.slots_scheduled - self.retained_most(number);
            DeviceConfig {
                ahead: self.device_ahead(number).min(spool_slots.max(1)),
                spool_slots,
                first_generation: self.next_generation,
            }
        });
        let mut learned = self.learned.clone();
        if self.config.run_ahead > 0 {
            // Another rank's devices may have begun the epoch before the last agreement.
            learned.common = self.known_before;
        }
        Config {
            batches: self.batches,
            strategy: self.config.strategy,
            host_ahead: self.limits.host_ahead_max,
            fetch_ahead: self.limits.fetch_ahead,
            devices: devices.collect(),
            holders: holders(&self.job.batching, self.limits.spools.len()),
            stall_timeout_ns: clock::duration_ns(self.config.stall_timeout),
            stalls_max: STALLS_MAX,
            profile_batches: self.config.profile_batches,
            learned,
            replay: self.config.replay.clone(),
            ranks: self.config.ranks,
            costs: self.config.costs,
        }
    }
}

impl Loader {
    /// Maximum number of batches that a device has queued. If its number of threads is unknown, one
    /// is assumed.
    fn device_ahead(&self, number: usize) -> u32 {
        let info = self.devices.get(number).and_then(Option::as_ref);
        device_ahead(info.map_or(1, |info| info.threads))
    }

    /// Number of batches of a device that may be retained for later epochs, within its spool's
    /// quota. At the beginning of an epoch, the same number again and the batches in progress must
    /// also fit.
    pub(super) fn retained_most(&self, number: usize) -> u32 {
        match self.config.reuse {
            true => self.limits.spools[number].slots_scheduled.saturating_sub(DEVICE_AHEAD) / 2,
            false => 0,
        }
    }
}

/// Batches of an epoch of this rank that each used device can prepare.
pub(super) fn held(config: &LoaderConfig, job: &Job, batches: u32) -> Vec<u32> {
    let devices = if config.uses_devices() { config.devices.len() } else { 0 };
    let batching = &job.batching;
    let held = |device: usize| match batching.devices() {
        1 => batches,
        _ => count(batching, u16::try_from(device).expect("the number of devices was checked")),
    };
    (0..devices).map(held).collect()
}

fn count(batching: &Batching, device: u16) -> u32 {
    u32::try_from(batching.count(device)).expect("no more than there are batches")
}

/// Which device may prepare which batch.
pub(crate) fn holders(batching: &Batching, devices: usize) -> Holders {
    match batching.devices() {
        1 => Holders::Shared,
        _ if devices == 0 => Holders::Shared,
        _ => Holders::Interleaved(Arc::new(HeldBatches(batching.clone()))),
    }
}

/// The batches of an epoch by the devices that hold them, in the form that the scheduler needs.
#[derive(Debug)]
struct HeldBatches(Batching);

impl Interleave for HeldBatches {
    fn devices(&self) -> u16 {
        u16::try_from(self.0.devices()).expect("the number of devices was checked")
    }

    fn count(&self, device: DeviceId) -> u32 {
        count(&self.0, device.0)
    }

    fn holder(&self, batch: BatchIndex) -> (DeviceId, u32) {
        let (device, nth) = self.0.holder(batch.0);
        (DeviceId(device), nth)
    }

    fn nth(&self, device: DeviceId, n: u32) -> BatchIndex {
        BatchIndex(self.0.nth(device.0, n))
    }
}
