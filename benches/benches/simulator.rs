//! How fast the simulator is: events a second, and what a batch costs with many devices and ranks.
//!
//! `--devices N --ranks N --batches N [--strategy NAME]` measures that one machine instead, for
//! instance 10,000 devices, 1,000 ranks and 10,000 batches for each rank. The peer is the bare
//! queue of events: the standard library's binary heap, as full as the simulator's, one pop and
//! one push for each event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::black_box;
use std::time::Instant;

use anyhow::Context;
use meetpoint_benches::{Options, Report, Row};
use meetpoint_sim::run;
use meetpoint_sim::scenario::{Device, Distribution, Scenario, Serve, Span, StrategyName};

/// A machine to simulate.
struct Size {
    devices: u32,
    ranks: u32,
    /// Of each rank.
    batches: u32,
}

fn scenario(size: &Size, strategy: StrategyName) -> Scenario {
    let lognormal = |ms: u64| Distribution::Lognormal { mean: Span(ms * 1_000_000), sigma: 0.3 };
    let mut scenario = Scenario::new(size.batches, lognormal(700), lognormal(300));
    if size.devices > 0 {
        // All devices of a rank together are half as fast as its host.
        let each = size.devices.div_ceil(size.ranks).max(1);
        scenario.devices = vec![Device {
            count: size.devices,
            spool_slots: Some(64),
            ..Device::new(lognormal(2_000 * u64::from(each)))
        }];
    }
    scenario.strategy = strategy;
    scenario.serve = Serve::OwnRanks;
    scenario.ranks.count = size.ranks;
    scenario.stall_timeout = Span(600_000_000_000);
    scenario
}

/// Nanoseconds to take an event from a queue of `waiting` and put one in.
fn queue_ns(waiting: u64) -> f64 {
    const ROUNDS: u64 = 1_000_000;
    let mut queue: BinaryHeap<Reverse<(u64, u64)>> =
        (0..waiting).map(|number| Reverse((number, number))).collect();
    let since = Instant::now();
    for round in 0..ROUNDS {
        let Some(Reverse((at, number))) = black_box(&mut queue).pop() else { break };
        // Some way ahead, without a pattern.
        let ahead = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        queue.push(Reverse((at + ahead % (2 * waiting + 1), number)));
    }
    since.elapsed().as_nanos() as f64 / ROUNDS as f64
}

fn measure(report: &mut Report, size: &Size, strategy: StrategyName) -> anyhow::Result<()> {
    let Size { devices, ranks, batches } = size;
    let scenario = scenario(size, strategy);
    let since = Instant::now();
    let outcome = run(&scenario, 7)?;
    let took = since.elapsed();
    let mut hash = DefaultHasher::new();
    format!("{outcome:?}").hash(&mut hash);
    let name = format!("{strategy}, {devices} devices, {ranks} ranks");
    report.note(format!(
        "{name}: {} batches in {:.2} s, {} events, {:.0} s of virtual time, {:.1} % by devices, \
         {:016x}",
        u64::from(*ranks) * u64::from(*batches),
        took.as_secs_f64(),
        outcome.events,
        outcome.total_ns as f64 / 1e9,
        outcome.device_share() * 100.0,
        hash.finish()
    ));
    let event_ns = took.as_nanos() as f64 / outcome.events.max(1) as f64;
    // About as many events wait as there are devices and ranks.
    let peer_ns = queue_ns(u64::from(devices + ranks).max(8));
    report.row(
        Row::alone(format!("{name}: an event"), event_ns, "ns")
            .against("bare queue of events", peer_ns),
    );
    report.row(Row::alone(format!("{name}: events a second"), 1e9 / event_ns, "count"));
    Ok(())
}

fn main() -> anyhow::Result<()> {
    let options = Options::from_args(&["devices", "ranks", "batches", "strategy"])?;
    let number = |name: &str, default: u32| match options.own.get(name) {
        None => Ok(default),
        Some(text) => text.parse().with_context(|| format!("--{name} takes a number: {text}")),
    };
    let mut report = Report::new("simulator", &options);
    if options.own.is_empty() {
        let batches = if options.quick { 2_000 } else { 1_000_000 };
        let one = Size { devices: 1, ranks: 1, batches };
        for strategy in StrategyName::ALL {
            measure(&mut report, &one, strategy)?;
        }
        for (devices, ranks) in [(10, 1), (1_000, 1), (10, 10), (1_000, 100), (10_000, 1_000)] {
            let batches = (batches / ranks).max(2);
            measure(&mut report, &Size { devices, ranks, batches }, StrategyName::Wrr)?;
        }
    } else {
        let name = options.own.get("strategy").map_or("wrr", String::as_str);
        let strategy: StrategyName = name.parse()?;
        let (devices, ranks) = (number("devices", 100)?, number("ranks", 10)?.max(1));
        let size = Size { devices, ranks, batches: number("batches", 1_000)? };
        measure(&mut report, &size, strategy)?;
        report.note(format!("peak memory {}", peak_memory()));
    }
    report.finish(&options)
}

/// As Linux counts it; elsewhere not known.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.map_or_else(|| "not known".to_owned(), |peak| peak.trim().to_owned())
}
