//! Parts of the machine against arithmetic: legs, cores, faults, ranks that are late or dead.

use meetpoint_sim::scenario::{
    Bandwidth, Bytes, Device, Distribution, Scenario, Span, StrategyName,
};
use meetpoint_sim::{LostRank, Outcome, Recording, run, run_keeping};

const MS: u64 = 1_000_000;
const BATCHES: u32 = 1_000;

fn ms(count: u64) -> Distribution {
    Distribution::constant_ns(count * MS)
}

fn host(preparation: u64, step: u64) -> Scenario {
    Scenario::new(BATCHES, ms(preparation), ms(step))
}

fn total_ms(scenario: &Scenario) -> f64 {
    run(scenario, 0).expect("it can be run").total_ns as f64 / MS as f64
}

/// Within 0.1 %, and a few batches at the ends.
fn is_about(scenario: &Scenario, wanted_ms: f64) {
    let found = total_ms(scenario);
    assert!((found - wanted_ms).abs() <= wanted_ms * 0.001 + 200.0, "{found} is not {wanted_ms}");
}

#[test]
fn a_read_comes_before_preparation_or_beside_it() {
    let mut scenario = host(70, 30);
    scenario.storage.read_bytes = Bytes(10_000_000);
    scenario.storage.host_read_bandwidth = Some(Bandwidth(500_000_000));
    scenario.storage.latency = Span(5 * MS);
    is_about(&scenario, 1000.0 * (5.0 + 20.0 + 70.0 + 30.0));
    scenario.storage.overlap = true;
    is_about(&scenario, 1000.0 * (70.0 + 30.0));
    scenario.storage.host_read_bandwidth = Some(Bandwidth(100_000_000));
    is_about(&scenario, 1000.0 * (105.0 + 30.0));
    assert_eq!(run(&scenario, 0).unwrap().bytes().host_read, 1000 * 10_000_000);
}

#[test]
fn workers_share_a_leg_and_cores() {
    let mut scenario = host(80, 10);
    scenario.host.workers = 8;
    is_about(&scenario, 1000.0 * 10.0);
    scenario.host.cores = Some(2);
    is_about(&scenario, 1000.0 * 40.0);
    scenario.host.cores = None;
    scenario.host.efficiency = 0.5;
    is_about(&scenario, 1000.0 * 20.0);
    scenario.storage.read_bytes = Bytes(10_000_000);
    scenario.storage.host_read_bandwidth = Some(Bandwidth(250_000_000));
    // Equal workers run in lockstep: all read for 320 ms, then all prepare for 160 ms.
    is_about(&scenario, 1000.0 * (320.0 + 160.0) / 8.0);
    scenario.storage.overlap = true;
    is_about(&scenario, 1000.0 * 40.0);
}

#[test]
fn a_device_reads_prepares_and_writes_one_after_the_other() {
    let mut scenario = host(70, 30);
    scenario.strategy = StrategyName::DeviceOnly;
    scenario.storage.read_bytes = Bytes(10_000_000);
    scenario.storage.batch_bytes = Bytes(40_000_000);
    let mut device = Device::new(ms(100));
    device.read_bandwidth = Some(Bandwidth(500_000_000));
    device.write_bandwidth = Some(Bandwidth(400_000_000));
    device.latency = Span(3 * MS);
    scenario.devices = vec![device.clone()];
    is_about(&scenario, 1000.0 * (20.0 + 100.0 + 100.0));
    assert_eq!(scenario.device_ns(&device), 220.0 * MS as f64);
    scenario.storage.overlap = true;
    is_about(&scenario, 1000.0 * 200.0);
}

#[test]
fn host_and_device_share_a_drive() {
    // Ten megabytes for each batch at the host, fifty written and read again for one of the
    // device's: the drive is the bottleneck.
    let mut scenario = host(1, 1);
    scenario.strategy = StrategyName::DeviceOnly;
    scenario.storage.read_bytes = Bytes(10_000_000);
    scenario.storage.batch_bytes = Bytes(50_000_000);
    let mut device = Device::new(ms(1));
    device.drive_bandwidth = Some(Bandwidth(1_000_000_000));
    scenario.devices = vec![device];
    let outcome = run(&scenario, 0).unwrap();
    let bytes = outcome.bytes();
    let moved = bytes.host_read + bytes.device_read + bytes.spool_write + bytes.spool_read;
    assert_eq!(moved, 1000 * (10 + 50 + 50) * 1_000_000);
    let least_ms = moved as f64 / 1e9 * 1e3;
    let found = outcome.total_ns as f64 / MS as f64;
    assert!(found >= least_ms * 0.999 && found < least_ms * 1.1, "{found} against {least_ms}");
}

fn two_ranks() -> Scenario {
    let mut scenario = host(70, 30);
    scenario.batches = 100;
    scenario.ranks.count = 2;
    scenario.ranks.collective = false;
    scenario.ranks.timeout = Span(10_000 * MS);
    scenario
}

fn with_rank_fault(fault: &str) -> Outcome {
    let mut scenario = two_ranks();
    scenario.ranks.faults = vec![fault.parse().expect("a fault of a rank")];
    run(&scenario, 0).expect("it can be run")
}

#[test]
fn ranks_end_their_steps_together() {
    assert_eq!(total_ms(&two_ranks()), 100.0 * 100.0);
    let mut uneven = two_ranks();
    let values = [20, 40].map(|ms| Span(ms * MS)).to_vec();
    let step = meetpoint_sim::scenario::Values { file: None, values };
    uneven.accelerator.step = Distribution::Trace(step);
    assert_eq!(total_ms(&uneven), 100.0 * 100.0);
    uneven.ranks.count = 8;
    uneven.accelerator.step = Distribution::Uniform { low: Span(20 * MS), high: Span(40 * MS) };
    // The mean of the slowest of eight is 20 + 20·8/9.
    let wanted = 100.0 * (70.0 + 20.0 + 20.0 * 8.0 / 9.0);
    assert!((total_ms(&uneven) / wanted - 1.0).abs() < 0.01);
}

#[test]
fn a_rank_that_comes_late_is_named_and_waited_for() {
    let outcome = with_rank_fault("late@1:5s");
    assert_eq!(outcome.late_ranks, [1]);
    assert_eq!(outcome.lost_rank, None);
    assert_eq!(outcome.total_ns, (5_000 + 100 * 100) * MS);
}

#[test]
fn a_rank_that_comes_too_late_or_dies_is_named_and_ends_the_run() {
    let outcome = with_rank_fault("late@1:20s");
    let lost = outcome.lost_rank.expect("it is waited for ten seconds");
    assert_eq!((lost.rank, lost.step), (1, 1));
    let outcome = with_rank_fault("die@0:41");
    // Rank 1 begins its 41st step after 40·100 + 70 ms, and waits ten seconds.
    let at_ns = lost_at(&outcome);
    assert_eq!(outcome.lost_rank, Some(LostRank { rank: 0, epoch: 0, step: 41, at_ns }));
    assert!((14_000 * MS..=14_070 * MS).contains(&at_ns), "{at_ns}");
    assert_eq!(outcome.epochs[0].ranks[1].steps, 40);
    assert_eq!(with_rank_fault("die@1:1").lost_rank.map(|it| it.step), Some(1));
}

fn lost_at(outcome: &Outcome) -> u64 {
    outcome.lost_rank.expect("a rank was lost").at_ns
}

#[test]
fn later_epochs_know_what_the_first_learned_and_what_is_dead() {
    let mut scenario = host(70, 30);
    scenario.strategy = StrategyName::Wrr;
    scenario.devices = vec![Device::new(ms(200))];
    scenario.epochs = 3;
    let outcome = run(&scenario, 0).unwrap();
    assert_eq!(outcome.epochs.len(), 3);
    // n_s = N·t_c/(t_s+t_c−t_g).
    for epoch in &outcome.epochs {
        assert!(epoch.ranks[0].device_batches.abs_diff(370) <= 1);
    }
    assert_eq!(outcome.total_ns, outcome.epochs.iter().map(|epoch| epoch.total_ns).sum::<u64>());
    scenario.devices[0].faults = vec!["die@100".parse().unwrap()];
    let outcome = run(&scenario, 0).unwrap();
    let epochs: Vec<_> =
        outcome.epochs.iter().map(|it| (it.ranks[0].device_batches, it.ranks[0].stalls)).collect();
    assert_eq!(epochs[0].0, 99);
    assert!(epochs[0].1 >= 1);
    assert_eq!(epochs[1..], [(0, 0), (0, 0)], "nothing is asked of a dead device");
}

#[test]
fn a_damaged_slot_is_redone_by_the_host() {
    let mut scenario = host(70, 30);
    scenario.strategy = StrategyName::Wrr;
    let mut device = Device::new(ms(200));
    device.faults = vec!["corrupt@5".parse().unwrap(), "corrupt@9".parse().unwrap()];
    scenario.devices = vec![device];
    let keep = Recording { sequence: true, ..Recording::default() };
    let outcome = run_keeping(&scenario, 0, keep).unwrap();
    let rank = &outcome.epochs[0].ranks[0];
    assert_eq!(rank.redone, 2);
    assert_eq!(outcome.epochs[0].devices[0].published, rank.device_batches + 2);
}

#[test]
fn how_devices_are_numbered_makes_no_difference() {
    let total = |times: &[u64], count: u32| {
        let mut scenario = host(70, 30);
        scenario.strategy = StrategyName::Wrr;
        scenario.devices =
            times.iter().map(|time| Device { count, ..Device::new(ms(*time)) }).collect();
        total_ms(&scenario)
    };
    let one = total(&[400, 600, 1_000], 1);
    for order in [[600, 1_000, 400], [1_000, 600, 400], [1_000, 400, 600]] {
        let other = total(&order, 1);
        // The last batches may go to another device.
        assert!((other - one).abs() <= 1_000.0, "{order:?}: {other} against {one}");
    }
    assert_eq!(total(&[400, 400], 1), total(&[400], 2));
}
