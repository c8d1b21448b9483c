//! How fast the simulator is, and what memory it takes: `scale DEVICES RANKS BATCHES_PER_RANK
//! [STRATEGY]`.
//!
//! Prints one line: sizes, virtual time, real time, events a second, peak memory, and a hash of the
//! outcome, so that nobody optimises the work away. Without arguments: 100 devices, 10 ranks, 1,000
//! batches each.
#![expect(clippy::disallowed_methods, reason = "it measures real time, and is not the simulator")]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use meetpoint_sim::run;
use meetpoint_sim::scenario::{Device, Distribution, Scenario, Serve, Span, StrategyName};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u32| match arguments.get(at) {
        None => default,
        Some(text) => text.parse().unwrap_or_else(|_| refuse(text)),
    };
    let (devices, ranks, batches) = (number(0, 100), number(1, 10), number(2, 1_000));
    let name = arguments.get(3).map_or("wrr", String::as_str);
    let strategy = StrategyName::ALL.into_iter().find(|strategy| strategy.name() == name);
    let lognormal = |ms: u64| {
        let mean = Span(ms * 1_000_000);
        Distribution::Lognormal { mean, sigma: 0.3 }
    };
    let mut scenario = Scenario::new(batches, lognormal(700), lognormal(300));
    let each = devices.div_ceil(ranks).max(1);
    scenario.devices = vec![Device {
        count: devices,
        spool_slots: Some(64),
        ..Device::new(lognormal(2_000 * u64::from(each)))
    }];
    if devices == 0 {
        scenario.devices.clear();
    }
    scenario.strategy = strategy.unwrap_or_else(|| refuse(name));
    scenario.serve = Serve::OwnRanks;
    scenario.ranks.count = ranks;
    scenario.ranks.collective = std::env::var_os("ALONE").is_none();
    scenario.stall_timeout = Span(600_000_000_000);
    let began = Instant::now();
    let outcome = run(&scenario, 7).unwrap_or_else(|error| refuse(&error.to_string()));
    let took = began.elapsed().as_secs_f64();
    let mut hash = DefaultHasher::new();
    format!("{outcome:?}").hash(&mut hash);
    println!(
        "{devices} devices, {ranks} ranks, {} batches, {name}: {:.0} s of virtual time in \
         {took:.2} s; {} events, {:.0} events/s, {:.0} ns/batch; {:.1} % by devices; peak \
         memory {}; {:016x}",
        u64::from(ranks) * u64::from(batches),
        outcome.total_ns as f64 / 1e9,
        outcome.events,
        outcome.events as f64 / took,
        took * 1e9 / outcome.batches().max(1) as f64,
        outcome.device_share() * 100.0,
        peak_memory(),
        hash.finish()
    );
}

fn refuse<T>(what: &str) -> T {
    eprintln!("scale: {what}; it takes DEVICES RANKS BATCHES_PER_RANK [STRATEGY]");
    std::process::exit(2)
}

/// As Linux counts it; elsewhere not known.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.map_or_else(|| "not known".to_owned(), |peak| peak.trim().to_owned())
}
