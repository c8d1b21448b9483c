//! State that one epoch passes to the next has the expected effect with constant times.

use meetpoint_scheduler::{Mte, Source, Split, Tail};
use meetpoint_sim::scenario::{ChoiceName, Device, Distribution, Scenario, Span, StrategyName};
use meetpoint_sim::{Outcome, Recording, WorkKind, run, run_keeping};

const MS: u64 = 1_000_000;

fn constant(ms: u64) -> Distribution {
    Distribution::Constant(Span(ms * MS))
}

/// `mte` with a fixed split: the host takes 700 + 300 ms a batch, a step on a device batch 300 ms.
fn fixed(batches: u32, split: u32, device_ms: u64, epochs: u32) -> Scenario {
    let mut scenario = Scenario::new(batches, constant(700), constant(300));
    scenario.choose(Mte { split: Split::Fixed(split), tail: Tail::Descending });
    scenario.devices = vec![Device::new(constant(device_ms))];
    scenario.epochs = epochs;
    scenario
}

fn simulated(scenario: &Scenario) -> Outcome {
    run(scenario, 1).expect("it can be simulated")
}

/// A device that is the slower end works without a pause where it runs ahead: E epochs take
/// E·n_s·t_s + t_g instead of E·(n_s·t_s + t_g).
#[test]
fn a_device_that_runs_ahead_is_never_idle() {
    let (split, device_ms, epochs) = (40_u64, 2_000_u64, 5_u64);
    let mut scenario = fixed(100, 40, device_ms, 5);
    let without = simulated(&scenario).total_ns;
    assert_eq!(without, epochs * (split * device_ms + 300) * MS);
    scenario.run_ahead = true;
    let outcome = simulated(&scenario);
    assert_eq!(outcome.total_ns, (epochs * split * device_ms + 300) * MS);
    let busy = outcome.sum_devices(|device| device.busy_ns);
    assert_eq!(busy, epochs * split * device_ms * MS);
}

/// The faster end has all of the next part ready, as far as its slots go, when an epoch begins.
#[test]
fn a_device_runs_ahead_as_far_as_its_slots_go() {
    let mut scenario = fixed(100, 10, 1_000, 3);
    scenario.run_ahead = true;
    let ahead = |outcome: &Outcome| -> Vec<u32> {
        outcome.epochs.iter().map(|epoch| epoch.ranks[0].ahead_batches).collect()
    };
    assert_eq!(ahead(&simulated(&scenario)), [0, 10, 10]);
    scenario.devices[0].spool_slots = Some(12);
    let outcome = simulated(&scenario);
    assert!(outcome.epochs.iter().all(|epoch| epoch.devices[0].slots_max <= 12));
    assert_eq!(ahead(&outcome)[0], 0);
    assert!(ahead(&outcome)[1..].iter().all(|&batches| (2..=10).contains(&batches)));
}

/// Retained batches are neither read nor prepared again: the device does E·n_s - (E-1)·k.
#[test]
fn retained_batches_are_not_prepared_again() {
    let mut scenario = fixed(100, 30, 1_500, 4);
    scenario.reuse = true;
    scenario.devices[0].spool_slots = Some(44);
    let outcome = simulated(&scenario);
    let reused: Vec<u32> =
        outcome.epochs.iter().map(|epoch| epoch.ranks[0].reused_batches).collect();
    // Half of the slots beyond the four that the device has ahead.
    assert_eq!(reused, [0, 20, 20, 20]);
    let published: Vec<u32> =
        outcome.epochs.iter().map(|epoch| epoch.devices[0].published).collect();
    assert_eq!(published, [30, 10, 10, 10]);
    assert!(outcome.epochs.iter().all(|epoch| epoch.devices[0].slots_max <= 44));
}

/// With host time by size alone and device time the same for all, devices get the largest batches,
/// and the host the smallest.
#[test]
fn devices_are_given_what_saves_the_host_most() {
    let (batches, split) = (200, 60);
    let mut scenario = fixed(batches, split, 1_500, 1);
    scenario.host.by_size = 1.0;
    scenario.storage.size_sigma = 0.6;
    let keep = Recording { sequence: true, timeline: true, ..Recording::default() };
    let alone = Scenario { strategy: StrategyName::HostOnly, ..scenario.clone() };
    let alone = run_keeping(&alone, 3, keep).unwrap();
    let timeline = alone.epochs[0].ranks[0].timeline.as_ref().unwrap();
    let preparations = timeline.iter().filter(|it| it.what == WorkKind::Preparing);
    let mut times: Vec<u64> = preparations.map(|it| it.end_ns - it.start_ns).collect();
    let all: u64 = times.iter().sum();
    times.sort_unstable();
    let smallest: u64 = times.iter().take((batches - split) as usize).sum();

    scenario.choice = ChoiceName::Saving;
    let chosen = run_keeping(&scenario, 3, keep).unwrap();
    let rank = &chosen.epochs[0].ranks[0];
    assert_eq!(rank.host_busy_ns, smallest);
    assert!(smallest < all * u64::from(batches - split) / u64::from(batches));
    let steps = u64::from(batches) * 300 * MS;
    assert_eq!(chosen.total_ns, smallest + steps);
    let mut consumed: Vec<u32> =
        rank.sequence.as_ref().unwrap().iter().map(|(batch, _)| batch.0).collect();
    let from_device = rank.sequence.as_ref().unwrap().iter();
    assert_eq!(from_device.filter(|(_, source)| *source != Source::Host).count(), split as usize);
    consumed.sort_unstable();
    assert!(consumed.into_iter().eq(0..batches), "every batch once, whatever its place");
}

#[test]
fn contradictory_options_are_refused() {
    let refused = |change: fn(&mut Scenario)| {
        let mut scenario = fixed(100, 10, 1_000, 2);
        change(&mut scenario);
        scenario.check().unwrap_err().to_string()
    };
    for (change, words) in [
        ((|it| (it.run_ahead, it.reuse) = (true, true)) as fn(&mut Scenario), "reuse"),
        (|it| (it.run_ahead, it.choice) = (true, ChoiceName::Saving), "choice"),
        (|it| it.host.by_size = 1.5, "host.by_size"),
        (|it| it.storage.size_sigma = -1.0, "storage.size_sigma"),
    ] {
        let said = refused(change);
        assert!(said.contains(words), "{said}");
    }
}
