//! What a decision of the scheduler costs: time and allocations over whole epochs.
//!
//! A synthetic driver answers every decision at once, so that almost all of the time is the
//! scheduler's; what the driver itself takes is left in. The peer is an uncontended lock of a
//! mutex, which a host takes around every call anyway. Where valgrind is installed, instructions
//! of a call are counted too: for that, the bench runs itself as `--epoch NAME --batches N`.
#![expect(unsafe_code, reason = "a global allocator that counts")]

mod instructions;

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Instant;

use meetpoint_benches::{Options, Report, Row, Target, median};
use meetpoint_instructions::drive::{
    ALLOCATIONS, CHUNK_CALLS, Costs, many_devices, many_ranks, work_through,
};
use meetpoint_scheduler::{
    AnyStrategy, Auto, DeviceOnly, Goal, HostOnly, Mte, MteFeedback, Order, Split, Tail, Windowed,
    Wrr, WrrFrozen,
};

struct Counting;

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

const DECISION_NS_MAX: f64 = 200.0;
/// Names of strategies, and their configuration.
const STRATEGIES: [(&str, AnyStrategy); 9] = [
    ("wrr", AnyStrategy::Wrr(Wrr)),
    ("wrr-frozen", AnyStrategy::WrrFrozen(WrrFrozen)),
    ("mte-feedback", AnyStrategy::MteFeedback(MteFeedback)),
    ("windowed", AnyStrategy::Windowed(Windowed { window: 128 })),
    ("auto", AnyStrategy::Auto(Auto { goal: Goal::Throughput, order: Order::Any })),
    ("mte descending", AnyStrategy::Mte(Mte { split: Split::EqualFinish, tail: Tail::Descending })),
    ("mte ascending", AnyStrategy::Mte(Mte { split: Split::EqualFinish, tail: Tail::Ascending })),
    ("device-only", AnyStrategy::DeviceOnly(DeviceOnly)),
    ("host-only", AnyStrategy::HostOnly(HostOnly)),
];
const DEVICES: [u16; 5] = [1, 10, 100, 1_000, 10_000];
const RANKS: [u16; 4] = [1, 10, 100, 1_000];

/// Nanoseconds to lock and unlock an uncontended mutex.
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

/// An epoch by its name: a strategy, or `wrr, N devices`, or `wrr, N ranks`.
fn epoch(name: &str, batches: u32) -> anyhow::Result<Costs> {
    if let Some((_, strategy)) = STRATEGIES.iter().find(|(known, _)| *known == name) {
        return work_through(*strategy, batches);
    }
    let number = |unit: &str| -> Option<u16> {
        name.strip_prefix("wrr, ")?.strip_suffix(unit)?.trim_end().parse().ok()
    };
    match (number("devices"), number("ranks")) {
        (Some(devices), _) => many_devices(devices, batches),
        (_, Some(ranks)) => many_ranks(ranks, (batches / u32::from(ranks)).max(10)),
        _ => anyhow::bail!("no epoch of the name {name:?}"),
    }
}

fn main() -> anyhow::Result<()> {
    let options = Options::from_args(&[instructions::EPOCH, instructions::BATCHES])?;
    if let Some(name) = options.own.get(instructions::EPOCH) {
        let batches = options.own.get(instructions::BATCHES).map_or(Ok(10_000), |it| it.parse())?;
        println!("{}", epoch(name, batches)?.calls);
        return Ok(());
    }
    let batches = if options.quick { 10_000 } else { 1_000_000 };
    let mut report = Report::new("scheduler", &options);
    report.note(format!("{batches} batches an epoch; a call is one decision or one event"));
    let peer_ns = mutex_ns();
    let counts = instructions::has_valgrind() && !options.quick;
    if !counts {
        report
            .note("instructions are not counted: that takes valgrind, and a whole run".to_owned());
    }
    let strategies = STRATEGIES.map(|(name, _)| name.to_owned());
    let devices = DEVICES.map(|devices| format!("wrr, {devices} devices"));
    let ranks = RANKS.map(|ranks| format!("wrr, {ranks} ranks"));
    for name in strategies.iter().chain(&devices).chain(&ranks) {
        let costs = epoch(name, batches)?;
        report.note(format!(
            "{name}: {} calls, {} batches by the device, order and sources {:016x}",
            costs.calls, costs.device_batches, costs.sequence_hash
        ));
        add(&mut report, name, &costs, peer_ns);
        if counts {
            let count = instructions::per_call(name)?;
            report.row(Row::alone(format!("{name}: instructions of a call"), count, "count"));
        }
    }
    report.finish(&options)
}

/// The rows of an epoch.
fn add(report: &mut Report, name: &str, costs: &Costs, peer_ns: f64) {
    let mut sorted = costs.chunks.clone();
    sorted.sort_by(f64::total_cmp);
    let p99 = sorted[sorted.len() * 99 / 100];
    report.row(
        Row::alone(format!("{name}: call, median"), median(&costs.chunks), "ns")
            .against("mutex lock", peer_ns)
            .target(Target::ValueAtMost(DECISION_NS_MAX)),
    );
    report.row(Row::alone(format!("{name}: call, p99 of chunks of 1000"), p99, "ns"));
    let allocations = Row::alone(format!("{name}: allocations"), costs.allocations as f64, "count");
    report.row(if name.contains("devices") || name.contains("ranks") {
        allocations
    } else {
        allocations.target(Target::ValueAtMost(0.0))
    });
}
