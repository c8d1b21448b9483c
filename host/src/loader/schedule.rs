//! What the scheduler is told before an epoch.

use super::Loader;
use crate::clock;
use crate::places::DEVICE_AHEAD;
use meetpoint_scheduler::{Config, DeviceConfig, Holders};

/// After this many stalls a device gets no more work in the epoch.
const STALLS_MAX: u32 = 3;

impl Loader {
    /// The parameters of the next epoch.
    pub(super) fn schedule_config(&self) -> Config {
        let devices = self.limits.spools.iter().map(|spool| DeviceConfig {
            ahead: DEVICE_AHEAD.min(spool.slots_scheduled.max(1)),
            spool_slots: spool.slots_scheduled,
            first_generation: self.next_generation,
        });
        Config {
            batches: self.batches,
            strategy: self.config.strategy,
            host_ahead: self.limits.host_ahead,
            fetch_ahead: self.limits.fetch_ahead,
            devices: devices.collect(),
            holders: Holders::Shared,
            stall_timeout_ns: clock::duration_ns(self.config.stall_timeout),
            stalls_max: STALLS_MAX,
            profile_batches: self.config.profile_batches,
            learned: self.learned.clone(),
            replay: self.config.replay.clone(),
            ranks: self.config.ranks,
            costs: self.config.costs,
        }
    }
}
