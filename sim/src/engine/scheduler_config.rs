//! The configuration of the scheduler, and its learned times: the true means of the machine,
//! multiplied by the factors of the scenario.

use std::sync::Arc;

use meetpoint_scheduler::{
    BatchIndex, Config, Costs, DeviceConfig, DeviceId, Holders, Interleave, Learned, Record,
};

use super::layout::Layout;
use crate::Error;
use crate::scenario::{Bandwidth, Device, Holders as Held, Scenario, ScenarioError};

impl Scenario {
    /// The true mean time of a batch at a worker of the host (reads, contention for cores and
    /// efficiency included), in nanoseconds.
    pub fn preparation_ns(&self) -> f64 {
        let host = &self.host;
        let threads = self.ranks.count.saturating_mul(host.workers.max(1));
        let all_threads = self.rank_count().saturating_mul(host.workers.max(1));
        let contention =
            host.cores.map_or(1.0, |cores| (f64::from(threads) / f64::from(cores)).max(1.0));
        let efficiency = if host.workers == 0 { 1.0 } else { host.efficiency };
        let compute = host.preparation.mean_ns() / efficiency * contention;
        let storage = &self.storage;
        let shared = threads as f64;
        let read = transfer_ns(storage.read_bytes.0, storage.host_read_bandwidth) * shared;
        let read = match &self.stores {
            None => read + storage.latency.0 as f64,
            Some(stores) => {
                // Each leg, if all threads read at once, and the cached share is read beside it.
                let rate = self.hit_rate(self.epochs.min(2).saturating_sub(1));
                let bytes = storage.read_bytes.0 as f64;
                let leg = |share: f64, bandwidth, users: u32| {
                    transfer_ns((bytes * share) as u64, bandwidth) * f64::from(users)
                };
                let store = leg(1.0 - rate, stores.bandwidth, all_threads);
                let core = leg(1.0 - rate, self.network.core_bandwidth, all_threads);
                let link = leg(1.0 - rate, self.hosts.link_bandwidth, threads);
                let cache = self.cache.as_ref().and_then(|cache| cache.bandwidth);
                let slowest = (store / f64::from(stores.count)).max(core).max(link);
                slowest.max(leg(rate, cache, threads)) + stores.latency.0 as f64
            }
        };
        if storage.overlap { compute.max(read) } else { compute + read }
    }

    /// The true mean t_c, t_g in nanoseconds.
    pub fn step_times_ns(&self) -> (f64, f64) {
        let step = self.accelerator.step.mean_ns();
        let (host, device) =
            (step + self.host.copy.0 as f64, step + self.accelerator.direct_read.0 as f64);
        let preparation = self.preparation_ns();
        match self.host.workers {
            0 => (preparation + host, device),
            workers => ((preparation / f64::from(workers)).max(host), device),
        }
    }

    /// The true mean t_s of a device of this kind, on one core for one rank alone and without
    /// links, in nanoseconds.
    pub fn device_ns(&self, device: &Device) -> f64 {
        let read = transfer_ns(self.storage.read_bytes.0, device.read_bandwidth);
        let write = transfer_ns(self.storage.batch_bytes.0, device.write_bandwidth);
        let drive_read = transfer_ns(self.storage.read_bytes.0, device.drive_bandwidth);
        let drive_write = transfer_ns(self.storage.batch_bytes.0, device.drive_bandwidth);
        let (read, write) = (read + drive_read, write + drive_write);
        let compute = device.preparation.mean_ns();
        write + if self.storage.overlap { compute.max(read) } else { compute + read }
    }
}

/// The true mean time between two batches that a lane's device prepares for its rank, if all ranks
/// use all their devices, in nanoseconds.
fn lane_ns(scenario: &Scenario, layout: &Layout, lane: u32) -> f64 {
    let device = layout.lane_device(lane);
    let rank = layout.lane_rank(lane);
    let kind = &scenario.devices[layout.kind(device)];
    let ranks = layout.lanes_of_device(device).len() as f64;
    // A core without a granted batch is idle.
    let busy = f64::from(kind.cores).min(f64::from(kind.ahead) * ranks);
    let prepared = scenario.device_ns(kind) * ranks / busy;
    let leg =
        |bandwidth, lanes: f64| transfer_ns(scenario.storage.batch_bytes.0, bandwidth) * lanes;
    let of_rank = layout.lanes_of_rank(rank).len() as f64;
    prepared
        .max(leg(kind.link_bandwidth, ranks))
        .max(leg(scenario.hosts.link_bandwidth, of_rank * f64::from(scenario.ranks.count)))
        .max(leg(scenario.network.core_bandwidth, f64::from(layout.lanes())))
}

/// Nanoseconds of an unshared transfer; 0 without a limit.
pub(super) fn transfer_ns(bytes: u64, bandwidth: Option<Bandwidth>) -> f64 {
    bandwidth.map_or(0.0, |bandwidth| bytes as f64 * 1e9 / bandwidth.0 as f64)
}

/// What is known before the first epoch of a rank.
pub(super) fn learned(scenario: &Scenario, layout: &Layout, rank: u32) -> Learned {
    let profile = &scenario.profile;
    if !profile.known {
        return Learned::nothing();
    }
    let (t_c, t_g) = scenario.step_times_ns();
    let at_least_one = |ns: f64| (ns.round() as u64).max(1);
    let device_ns =
        |lane: u32| at_least_one(lane_ns(scenario, layout, lane) * profile.device_factor);
    Learned {
        host_ns: at_least_one(t_c * profile.host_factor),
        ready_ns: at_least_one(t_g * profile.ready_factor),
        preparation_ns: at_least_one(scenario.preparation_ns() * profile.host_factor),
        alone_ns: 0,
        window: 0,
        turn: 0,
        rest: 0,
        patience: 0,
        device_ns: layout.lanes_of_rank(rank).map(device_ns).collect(),
        common: None,
    }
}

/// The configuration of a rank's epoch; `generations` are the first of each of its lanes.
pub(super) fn config(
    scenario: &Scenario,
    layout: &Layout,
    rank: u32,
    learned: Learned,
    generations: impl Fn(u32) -> u32,
) -> Result<Config, Error> {
    let lane_config = |lane: u32| {
        let device = layout.lane_device(lane);
        let kind = &scenario.devices[layout.kind(device)];
        let ranks = u32::try_from(layout.lanes_of_device(device).len()).unwrap_or(u32::MAX);
        let slots = scenario.slots_of(kind, ranks);
        // Slots with retained batches cannot be filled.
        let spool_slots = slots - scenario.retained_most(kind, ranks);
        DeviceConfig { ahead: kind.ahead, spool_slots, first_generation: generations(lane) }
    };
    let devices: Vec<_> = layout.lanes_of_rank(rank).map(lane_config).collect();
    let slots = devices.iter().fold(0_u32, |sum, it| sum.saturating_add(it.spool_slots));
    let fetch_ahead = scenario.accelerator.fetch_ahead.unwrap_or(slots.max(1));
    let holders = match scenario.holders {
        Held::Interleaved if !devices.is_empty() => Holders::Interleaved(Arc::new(RoundRobin {
            devices: u16::try_from(devices.len()).expect("checked: at most 60,000"),
            batches: scenario.batches,
        })),
        Held::Interleaved | Held::Shared => Holders::Shared,
    };
    let replay = scenario.replay.as_deref().map(|text| {
        let wrong = |error: &dyn std::fmt::Display| {
            ScenarioError::new("replay", error.to_string(), "a record such as \"mte:812\"")
        };
        text.parse::<Record>().map_err(|error| wrong(&error))
    });
    Ok(Config {
        batches: scenario.batches,
        strategy: scenario.chosen(),
        host_ahead: scenario.host_ahead(),
        fetch_ahead: fetch_ahead.min(scenario.batches),
        devices,
        holders,
        stall_timeout_ns: scenario.stall_timeout.0,
        stalls_max: scenario.stalls_max,
        profile_batches: scenario.profile_batches,
        learned,
        replay: replay.transpose()?,
        ranks: if scenario.ranks.collective { scenario.ranks_together() } else { 1 },
        costs: scenario.power.as_ref().map(|power| {
            let microwatts = |watts: f64| (watts * 1e6).round() as u64;
            Costs {
                base_uw: microwatts(power.base_w),
                host_core_uw: microwatts(power.host_core_w),
                device_uw: microwatts(power.device_w),
            }
        }),
    })
}

/// Batch b belongs to device b mod D.
#[derive(Debug)]
struct RoundRobin {
    devices: u16,
    batches: u32,
}

impl Interleave for RoundRobin {
    fn devices(&self) -> u16 {
        self.devices
    }

    fn count(&self, device: DeviceId) -> u32 {
        let devices = u32::from(self.devices);
        (self.batches + devices - 1).saturating_sub(u32::from(device.0)) / devices
    }

    fn holder(&self, batch: BatchIndex) -> (DeviceId, u32) {
        let devices = u32::from(self.devices);
        let device = u16::try_from(batch.0 % devices).expect("a remainder of a u16");
        (DeviceId(device), batch.0 / devices)
    }

    fn nth(&self, device: DeviceId, n: u32) -> BatchIndex {
        BatchIndex(n * u32::from(self.devices) + u32::from(device.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_even_interleave_is_a_partition_and_its_own_inverse() {
        for (devices, batches) in [(1, 7), (3, 7), (4, 8), (5, 5)] {
            let even = RoundRobin { devices, batches };
            let counts = (0..devices).map(|device| even.count(DeviceId(device)));
            assert_eq!(counts.sum::<u32>(), batches);
            for batch in (0..batches).map(BatchIndex) {
                let (device, n) = even.holder(batch);
                assert!(n < even.count(device));
                assert_eq!(even.nth(device, n), batch);
            }
        }
    }
}
