//! What a decision of the scheduler costs: time and allocations over whole epochs.
//!
//! A synthetic driver answers every decision at once, so that almost all of the time is the
//! scheduler's; what the driver itself takes is left in. The peer is an uncontended lock of a
//! mutex, which a host takes around every call anyway.
#![expect(unsafe_code, reason = "a global allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use meetpoint_benches::{Options, Report, Row, Target, median};
use meetpoint_scheduler::{
    AcceleratorDecision, BatchIndex, Config, DeviceConfig, DeviceDecision, DeviceId, Epoch,
    Generation, Goal, Holders, HostDecision, Interleave, Learned, Order, Profile, Source, Split,
    Strategy, Tail,
};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is handed to the system's allocator unchanged; the counter is an atomic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract of `alloc`, which is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as for `alloc`; the pointer came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const DEVICE: DeviceId = DeviceId(0);
const STEP_NS: u64 = 1_000;
/// Calls that are timed together; the clock costs as much as a call.
const CHUNK_CALLS: u64 = 1_000;
const DECISION_NS_MAX: f64 = 200.0;

/// Costs of an epoch.
struct Costs {
    /// Nanoseconds per call, one value per chunk.
    chunks: Vec<f64>,
    calls: u64,
    allocations: u64,
    sequence_hash: u64,
    device_batches: u32,
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

fn config(strategy: Strategy, batches: u32) -> Config {
    let profile = Profile { host_ns: STEP_NS, device_ns: 2 * STEP_NS, ready_ns: STEP_NS / 2 };
    let spool_slots = match strategy {
        // An equal finish has the device's whole part in the spool.
        Strategy::Mte { .. } | Strategy::MteFeedback => batches,
        _ => 32,
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
fn work_through(strategy: Strategy, batches: u32) -> anyhow::Result<Costs> {
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
            for offset in 0..run.count {
                let first = run.first.0;
                let batch = if run.descending { first - offset } else { first + offset };
                queue.push_back((BatchIndex(batch), generation));
            }
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
fn many_devices(devices: u16, batches: u32) -> anyhow::Result<Costs> {
    let device_ns = STEP_NS * u64::from(devices);
    let profile = Profile { host_ns: STEP_NS, device_ns, ready_ns: STEP_NS / 2 };
    let mut config = config(Strategy::Wrr, batches);
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

/// Nanoseconds to lock and unlock a mutex that nobody else wants.
fn mutex_ns() -> f64 {
    let counter = Mutex::new(0_u64);
    let chunks = (0..200).map(|_| {
        let since = Instant::now();
        for _ in 0..CHUNK_CALLS {
            *black_box(&counter).lock().expect("nobody panics with it") += 1;
        }
        since.elapsed().as_nanos() as f64 / CHUNK_CALLS as f64
    });
    median(&chunks.collect::<Vec<_>>())
}

fn main() -> anyhow::Result<()> {
    let options = Options::from_args(&[])?;
    let batches = if options.quick { 10_000 } else { 1_000_000 };
    let mut report = Report::new("scheduler", &options);
    report.note(format!("{batches} batches an epoch; a call is one decision or one event"));
    let peer_ns = mutex_ns();
    for (name, strategy) in [
        ("wrr", Strategy::Wrr),
        ("wrr-frozen", Strategy::WrrFrozen),
        ("mte-feedback", Strategy::MteFeedback),
        ("windowed", Strategy::Windowed { window: 128 }),
        ("auto", Strategy::Auto { goal: Goal::Throughput, order: Order::Any }),
        ("mte descending", Strategy::Mte { split: Split::EqualFinish, tail: Tail::Descending }),
        ("mte ascending", Strategy::Mte { split: Split::EqualFinish, tail: Tail::Ascending }),
        ("device-only", Strategy::DeviceOnly),
        ("host-only", Strategy::HostOnly),
    ] {
        let costs = work_through(strategy, batches)?;
        let mut sorted = costs.chunks.clone();
        sorted.sort_by(f64::total_cmp);
        let p99 = sorted[sorted.len() * 99 / 100];
        report.note(format!(
            "{name}: {} calls, {} batches by the device, order and sources {:016x}",
            costs.calls, costs.device_batches, costs.sequence_hash
        ));
        report.row(
            Row::alone(format!("{name}: call, median"), median(&costs.chunks), "ns")
                .against("mutex lock", peer_ns)
                .target(Target::ValueAtMost(DECISION_NS_MAX)),
        );
        report.row(Row::alone(format!("{name}: call, p99 of chunks of 1000"), p99, "ns"));
        report.row(
            Row::alone(format!("{name}: allocations"), costs.allocations as f64, "count")
                .target(Target::ValueAtMost(0.0)),
        );
    }
    for devices in [1, 10, 100, 1_000, 10_000] {
        let costs = many_devices(devices, batches)?;
        report.note(format!(
            "{devices} devices: {} batches by them, order and sources {:016x}",
            costs.device_batches, costs.sequence_hash
        ));
        report.row(
            Row::alone(
                format!("wrr, {devices} devices: call, median"),
                median(&costs.chunks),
                "ns",
            )
            .against("mutex lock", peer_ns),
        );
    }
    report.finish(&options)
}
