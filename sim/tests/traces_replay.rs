//! A recorded run, replayed from its times alone, takes the recorded total time.

use meetpoint_sim::scenario::{
    Bandwidth, Bytes, Device, Distribution, Scenario, Span, StrategyName,
};
use meetpoint_sim::{Outcome, Recording, Trace, run, run_keeping};

fn recorded(workers: u32, strategy: StrategyName, seed: u64) -> (Scenario, Outcome) {
    let jitter = |ms: u64| {
        let mean = Span(ms * 1_000_000);
        Distribution::Lognormal { mean, sigma: 0.5 }
    };
    let mut scenario = Scenario::new(300, jitter(700), jitter(300));
    scenario.host.workers = workers;
    scenario.host.copy = Span(20_000_000);
    scenario.strategy = strategy;
    scenario.devices = vec![Device::new(jitter(2_000)), Device::new(jitter(3_000))];
    scenario.storage.read_bytes = Bytes(20_000_000);
    scenario.storage.host_read_bandwidth = Some(Bandwidth(100_000_000));
    let keep = Recording { timeline: true, ..Recording::default() };
    let outcome = run_keeping(&scenario, seed, keep).expect("it can be run");
    (scenario, outcome)
}

#[test]
fn a_replayed_run_comes_to_its_total_within_two_percent() {
    for workers in [0, 2] {
        for strategy in [StrategyName::HostOnly, StrategyName::Mte, StrategyName::Wrr] {
            for seed in 0..5 {
                let (scenario, outcome) = recorded(workers, strategy, seed);
                let rank = &outcome.epochs[0].ranks[0];
                let trace = Trace::of(rank, scenario.device_count());
                // Another seed, which must have no effect.
                let mut replay = scenario.replaying(&trace).unwrap();
                replay.replay = rank.record.clone();
                let replayed = run(&replay, 99).unwrap();
                let ratio = replayed.total_ns as f64 / outcome.total_ns as f64;
                assert!((ratio - 1.0).abs() < 0.02, "{strategy:?} w={workers}: {ratio}");
            }
        }
    }
}

#[test]
fn a_trace_of_other_devices_is_refused() {
    let (scenario, _) = recorded(0, StrategyName::HostOnly, 0);
    let trace = Trace { device_ns: vec![vec![1]], ..Trace::default() };
    let error = scenario.replaying(&trace).unwrap_err().to_string();
    assert!(error.contains("has 2 devices, the trace 1"), "{error}");
}
