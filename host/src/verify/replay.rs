//! The order that a record determines, computed by the scheduler itself with a host and devices
//! that take no time. A replayed epoch has this order regardless of its host and devices (C3).

use super::finding::ReplayProblem;
use crate::loader::holders;
use meetpoint_format::batching::Batching;
use meetpoint_scheduler::{
    AcceleratorDecision, Config, DeviceConfig, DeviceDecision, DeviceId, Epoch, HostDecision,
    Learned, Record,
};

/// Rounds without a step after which the replay is abandoned: nothing in it takes time.
const IDLE_ROUNDS_MAX: u32 = 1000;

/// Nanoseconds between rounds.
const ROUND_NS: u64 = 1_000;

/// The batches of an epoch in the order that a record determines, or why it determines none.
pub(super) fn order(
    record: &Record,
    batching: &Batching,
    batches: u32,
    devices: usize,
) -> Result<Vec<u32>, ReplayProblem> {
    let device = DeviceConfig { ahead: 2, spool_slots: batches, first_generation: 1 };
    let config = Config {
        batches,
        strategy: record.strategy().with_defaults(),
        host_ahead: 2,
        fetch_ahead: batches,
        devices: vec![device; devices],
        holders: holders(batching, devices),
        stall_timeout_ns: u64::MAX,
        stalls_max: 1,
        profile_batches: 1,
        learned: Learned::nothing(),
        replay: Some(record.clone()),
        ranks: 1,
        costs: None,
    };
    let mut epoch =
        Epoch::new(config).map_err(|error| ReplayProblem::Refused { detail: error.to_string() })?;
    let mut order = Vec::with_capacity(batches as usize);
    let (mut now, mut idle) = (0, 0);
    epoch.accelerator_ready(now);
    loop {
        now += ROUND_NS;
        work(&mut epoch, now, devices);
        match epoch.accelerator(now) {
            AcceleratorDecision::Consume(batch, _) => {
                order.push(batch.0);
                idle = 0;
                epoch.accelerator_ready(now);
            }
            AcceleratorDecision::Done => return Ok(order),
            AcceleratorDecision::Agree(proposal) => {
                epoch.agreed(now, proposal.agreement());
            }
            AcceleratorDecision::WaitUntil(_) if idle < IDLE_ROUNDS_MAX => idle += 1,
            AcceleratorDecision::WaitUntil(_) => {
                return Err(ReplayProblem::EndsEarly { step: order.len() });
            }
        }
    }
}

/// Host and devices do immediately everything that they may.
fn work(epoch: &mut Epoch, now: u64, devices: usize) {
    for device in (0..=u16::MAX).take(devices).map(DeviceId) {
        loop {
            match epoch.device(now, device) {
                DeviceDecision::Work(run, generation) => {
                    for batch in run.batches() {
                        epoch.device_published(now, device, batch, generation);
                    }
                }
                DeviceDecision::Revoke(_) | DeviceDecision::Stop => {}
                DeviceDecision::Idle => break,
            }
        }
    }
    while let Some((batch, device, generation)) = epoch.fetch(now) {
        epoch.device_fetched(now, device, batch, generation);
    }
    while let HostDecision::Prepare(batch) = epoch.host(now) {
        epoch.host_finished(now, batch);
    }
}
