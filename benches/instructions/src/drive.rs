//! Works through epochs as a host does, answering every decision at once, so that almost all of
//! the time is the scheduler's; the driver's own time is included.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use meetpoint_scheduler::{
    AcceleratorDecision, AnyStrategy, BatchIndex, Config, DeviceConfig, DeviceDecision, DeviceId,
    Epoch, Generation, Holders, HostDecision, Interleave, Learned, Profile, Proposal, RecordKind,
    Source, Wrr,
};

/// Allocations of the process, if a global allocator counts them here.
pub static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

const DEVICE: DeviceId = DeviceId(0);
const STEP_NS: u64 = 1_000;
/// Calls that are timed together, because reading the clock costs as much as a call.
pub const CHUNK_CALLS: u64 = 1_000;

/// Costs of an epoch.
pub struct Costs {
    /// Nanoseconds per call, one value per chunk.
    pub chunks: Vec<f64>,
    /// Decisions and events.
    pub calls: u64,
    /// While the epoch was worked through.
    pub allocations: u64,
    /// Of batches and sources in the order in which they were consumed.
    pub sequence_hash: u64,
    /// Batches that the device prepared.
    pub device_batches: u32,
}

/// Counts calls and closes chunks.
struct Meter {
    chunks: Vec<f64>,
    calls: u64,
    chunk_calls: u64,
    since: Instant,
}

impl Meter {
    /// Room for all chunks is taken beforehand, so that an allocation seen is the scheduler's.
    fn new(batches: u32) -> Self {
        let calls_max = 16 * u64::from(batches) + CHUNK_CALLS;
        let room = usize::try_from(calls_max / CHUNK_CALLS + 1).expect("it was a u32");
        Self { chunks: Vec::with_capacity(room), calls: 0, chunk_calls: 0, since: Instant::now() }
    }

    fn count(&mut self, calls: u64) {
        self.calls += calls;
        self.chunk_calls += calls;
        if self.chunk_calls >= CHUNK_CALLS {
            let spent = self.since.elapsed().as_nanos() as f64;
            self.chunks.push(spent / self.chunk_calls as f64);
            self.chunk_calls = 0;
            self.since = Instant::now();
        }
    }
}

fn config(strategy: AnyStrategy, batches: u32) -> Config {
    let profile = Profile { host_ns: STEP_NS, device_ns: 2 * STEP_NS, ready_ns: STEP_NS / 2 };
    let spool_slots = match strategy.name().record() {
        // An equal finish has the device's whole part in the spool.
        RecordKind::Shares => batches,
        RecordKind::None | RecordKind::Turns => 32,
    };
    Config {
        batches,
        strategy,
        host_ahead: 8,
        fetch_ahead: 4,
        devices: vec![DeviceConfig { ahead: 4, spool_slots, first_generation: 1 }],
        holders: Holders::Shared,
        stall_timeout_ns: 1_000 * STEP_NS,
        stalls_max: 3,
        profile_batches: 8,
        learned: Learned::from_profile(&profile, 1),
        replay: None,
        ranks: 1,
        costs: None,
    }
}

/// Works through an epoch: one round is one step of the accelerator; the device publishes every
/// second round.
pub fn work_through(strategy: AnyStrategy, batches: u32) -> anyhow::Result<Costs> {
    let mut epoch = Epoch::new(config(strategy, batches))?;
    let mut queue: VecDeque<(BatchIndex, Generation)> = VecDeque::with_capacity(16);
    let mut meter = Meter::new(batches);
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut now = 0;
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for round in 0_u64.. {
        now += STEP_NS;
        let mut calls = 4;
        if let DeviceDecision::Work(run, generation) = epoch.device(now, DEVICE) {
            queue.extend(run.batches().map(|batch| (batch, generation)));
        }
        if round % 2 == 1
            && let Some((batch, generation)) = queue.pop_front()
        {
            epoch.device_published(now, DEVICE, batch, generation);
            calls += 1;
        }
        if let Some((batch, device, generation)) = epoch.fetch(now) {
            epoch.device_fetched(now, device, batch, generation);
            calls += 1;
        }
        if let HostDecision::Prepare(batch) = epoch.host(now) {
            epoch.host_finished(now, batch);
            calls += 1;
        }
        epoch.accelerator_ready(now);
        calls += 1;
        match epoch.accelerator(now) {
            AcceleratorDecision::Consume(batch, source) => {
                let word = u64::from(batch.0) << 1 | u64::from(source != Source::Host);
                hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
            }
            AcceleratorDecision::WaitUntil(_) => {}
            AcceleratorDecision::Agree(_) => unreachable!("one rank decides alone"),
            AcceleratorDecision::Done => break,
        }
        meter.count(calls);
        anyhow::ensure!(round < 4 * u64::from(batches) + 1_000, "the epoch does not end");
    }
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    let summary = epoch.summary();
    anyhow::ensure!(summary.host_batches + summary.device_batches == batches, "{summary:?}");
    Ok(Costs {
        chunks: meter.chunks,
        calls: meter.calls,
        allocations,
        sequence_hash: hash,
        device_batches: summary.device_batches,
    })
}

/// An epoch of `wrr` in which each of many devices holds its own batches and works on one at a
/// time; together they are as fast as the host.
pub fn many_devices(devices: u16, batches: u32) -> anyhow::Result<Costs> {
    let device_ns = STEP_NS * u64::from(devices);
    let profile = Profile { host_ns: STEP_NS, device_ns, ready_ns: STEP_NS / 2 };
    let mut config = config(AnyStrategy::Wrr(Wrr), batches);
    config.devices = vec![DeviceConfig { ahead: 2, ..config.devices[0] }; usize::from(devices)];
    config.learned = Learned::from_profile(&profile, usize::from(devices));
    config.stall_timeout_ns = 1_000 * device_ns;
    config.holders = Holders::Interleaved(Arc::new(ByTurns { devices, batches }));
    let mut epoch = Epoch::new(config)?;
    let mut queues =
        vec![VecDeque::<(BatchIndex, Generation)>::with_capacity(4); usize::from(devices)];
    let mut meter = Meter::new(batches);
    let (mut now, mut hash, mut at) = (0, 0xcbf2_9ce4_8422_2325_u64, 0_u16);
    (0..devices).for_each(|device| take_work(&mut epoch, now, device, &mut queues));
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for round in 0_u64.. {
        now += STEP_NS;
        // One device publishes in each round, by turns.
        let device = DeviceId(at);
        if let Some((batch, generation)) = queues[usize::from(at)].pop_front() {
            epoch.device_published(now, device, batch, generation);
        }
        take_work(&mut epoch, now, at, &mut queues);
        at = (at + 1) % devices;
        if let Some((batch, device, generation)) = epoch.fetch(now) {
            epoch.device_fetched(now, device, batch, generation);
        }
        if let HostDecision::Prepare(batch) = epoch.host(now) {
            epoch.host_finished(now, batch);
        }
        epoch.accelerator_ready(now);
        match epoch.accelerator(now) {
            AcceleratorDecision::Consume(batch, source) => {
                let word = u64::from(batch.0) << 1 | u64::from(source != Source::Host);
                hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
            }
            AcceleratorDecision::WaitUntil(_) | AcceleratorDecision::Agree(_) => {}
            AcceleratorDecision::Done => break,
        }
        meter.count(9);
        let rounds_max = 4 * u64::from(batches) + 100_000;
        anyhow::ensure!(round < rounds_max, "the epoch does not end: {:?}", epoch.summary());
    }
    Ok(Costs {
        chunks: meter.chunks,
        calls: meter.calls,
        allocations: ALLOCATIONS.load(Ordering::Relaxed) - before,
        sequence_hash: hash,
        device_batches: epoch.summary().device_batches,
    })
}

fn take_work(
    epoch: &mut Epoch,
    now: u64,
    device: u16,
    queues: &mut [VecDeque<(BatchIndex, Generation)>],
) {
    while let DeviceDecision::Work(run, generation) = epoch.device(now, DeviceId(device)) {
        queues[usize::from(device)].push_back((run.first, generation));
    }
}

/// Batch b is held by device b mod D.
#[derive(Debug)]
struct ByTurns {
    devices: u16,
    batches: u32,
}

impl Interleave for ByTurns {
    fn devices(&self) -> u16 {
        self.devices
    }

    fn count(&self, device: DeviceId) -> u32 {
        let devices = u32::from(self.devices);
        (self.batches + devices - 1 - u32::from(device.0)) / devices
    }

    fn holder(&self, batch: BatchIndex) -> (DeviceId, u32) {
        let devices = u32::from(self.devices);
        (DeviceId((batch.0 % devices) as u16), batch.0 / devices)
    }

    fn nth(&self, device: DeviceId, n: u32) -> BatchIndex {
        BatchIndex(n * u32::from(self.devices) + u32::from(device.0))
    }
}

/// Epochs of several ranks, each with a separate device, that agree on the source of each step.
pub fn many_ranks(ranks: u16, batches: u32) -> anyhow::Result<Costs> {
    let mut epochs = (0..ranks)
        .map(|_| {
            Epoch::new(Config { ranks: ranks.into(), ..config(AnyStrategy::Wrr(Wrr), batches) })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut queues =
        vec![VecDeque::<(BatchIndex, Generation)>::with_capacity(16); usize::from(ranks)];
    let mut meter = Meter::new(batches.saturating_mul(ranks.into()));
    let (mut now, mut hash) = (0, 0xcbf2_9ce4_8422_2325_u64);
    let mut proposals: Vec<Option<Proposal>> = vec![None; usize::from(ranks)];
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for round in 0_u64.. {
        now += STEP_NS;
        let mut done = 0;
        for ((epoch, queue), proposal) in epochs.iter_mut().zip(&mut queues).zip(&mut proposals) {
            while let DeviceDecision::Work(run, generation) = epoch.device(now, DEVICE) {
                queue.extend(run.batches().map(|batch| (batch, generation)));
            }
            if round % 2 == 1
                && let Some((batch, generation)) = queue.pop_front()
            {
                epoch.device_published(now, DEVICE, batch, generation);
            }
            if let Some((batch, device, generation)) = epoch.fetch(now) {
                epoch.device_fetched(now, device, batch, generation);
            }
            if let HostDecision::Prepare(batch) = epoch.host(now) {
                epoch.host_finished(now, batch);
            }
            if proposal.is_none() {
                epoch.accelerator_ready(now);
                step(epoch, now, proposal, &mut done, &mut hash);
            }
            meter.count(8);
        }
        if done == ranks {
            break;
        }
        if proposals.iter().all(Option::is_some) {
            let all = proposals.iter_mut().filter_map(Option::take).reduce(Proposal::combine);
            let agreement = all.expect("there is a rank").agreement();
            for epoch in &mut epochs {
                epoch.agreed(now, agreement);
                while epoch.discard(now).is_some() {}
                meter.count(2);
            }
            for (epoch, proposal) in epochs.iter_mut().zip(&mut proposals) {
                step(epoch, now, proposal, &mut done, &mut hash);
                meter.count(1);
            }
        }
        let rounds_max = 16 * u64::from(batches) + 100_000;
        anyhow::ensure!(round < rounds_max, "an epoch does not end: {:?}", epochs[0].summary());
    }
    Ok(Costs {
        chunks: meter.chunks,
        calls: meter.calls,
        allocations: ALLOCATIONS.load(Ordering::Relaxed) - before,
        sequence_hash: hash,
        device_batches: epochs.iter().map(|epoch| epoch.summary().device_batches).sum(),
    })
}

/// The next action of a rank's accelerator.
fn step(epoch: &mut Epoch, now: u64, to: &mut Option<Proposal>, done: &mut u16, hash: &mut u64) {
    match epoch.accelerator(now) {
        AcceleratorDecision::Agree(proposal) => *to = Some(proposal),
        AcceleratorDecision::Consume(batch, source) => {
            let word = u64::from(batch.0) << 1 | u64::from(source != Source::Host);
            *hash = (*hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        }
        AcceleratorDecision::WaitUntil(_) => {}
        AcceleratorDecision::Done => *done += 1,
    }
}
