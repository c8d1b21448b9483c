//! `auto` in epochs of a few hundred batches, with one or many ranks, on links that devices or the
//! host's own reads saturate.

#[expect(dead_code, reason = "each test uses a part of it")]
mod random;

use meetpoint_scheduler::StrategyName;
use meetpoint_sim::scenario::Scenario;
use meetpoint_sim::studies::hosts::{self, Elements};
use meetpoint_sim::{Recording, run_keeping};
use random::Random;

/// A training of the study of hosts. `hosts`: numbers of hosts, agents, and agents used by each
/// host.
fn machine(elements: Elements, hosts: [u32; 3], mbit: u32, batches: u32) -> Scenario {
    let [hosts, agents, each] = hosts;
    hosts::scenario(elements, hosts, (agents, each), mbit, batches)
}

/// Times of all epochs, of the last epoch, and of the middle half of the steps.
fn times(scenario: &Scenario, seed: u64) -> [f64; 3] {
    let keep = Recording { middle_half: true, ..Recording::default() };
    let outcome = run_keeping(scenario, seed, keep).unwrap_or_else(|error| panic!("{error}"));
    let half = outcome.middle_half.expect("it was recorded");
    let last = outcome.epochs.last().expect("there is an epoch").total_ns as f64;
    [outcome.total_ns as f64, last, half.total_ns as f64 / half.steps as f64]
}

/// The times of `auto` divided by those of the host alone.
fn against_host_only(auto: &Scenario, seed: u64) -> [f64; 3] {
    let alone = Scenario { strategy: StrategyName::HostOnly, ..auto.clone() };
    let (with, alone) = (times(auto, seed), times(&alone, seed));
    std::array::from_fn(|at| with[at] / alone[at])
}

#[test]
fn agents_that_ranks_share_do_not_make_short_epochs_longer() {
    for (hosts, middle_most) in [
        ([250, 63, 1], 0.90),
        ([250, 188, 3], 0.80),
        ([250, 250, 1], 0.80),
        ([250, 375, 3], 0.80),
        ([64, 8, 1], 0.95),
        ([64, 4, 1], 0.98),
    ] {
        let [all, _, middle] =
            against_host_only(&machine(Elements::Float32, hosts, 10_000, 400), 0);
        assert!(all < 1.01, "{hosts:?}: {all} of the host alone");
        assert!(middle < middle_most, "{hosts:?}: {middle} of the host alone in the middle half");
    }
}

#[test]
fn a_trial_costs_a_short_epoch_less_than_two_percent_and_later_epochs_less() {
    for hosts in [[1, 1, 1], [8, 8, 1], [8, 24, 3]] {
        for (elements, mbit) in [
            (Elements::Uint8, 100),
            (Elements::Uint8, 1_000),
            (Elements::Float32, 100),
            (Elements::Float32, 1_000),
        ] {
            let mut auto = machine(elements, hosts, mbit, 400);
            let of = format!("{hosts:?}, {}, {mbit} Mbit/s", elements.name());
            let [first, ..] = against_host_only(&auto, 0);
            assert!(first < 1.02, "{of}: {first}");
            auto.epochs = 4;
            let [all, last, _] = against_host_only(&auto, 0);
            assert!(all < 1.015, "{of}: {all} of four epochs");
            assert!(last < 1.015, "{of}: {last} in the last");
        }
    }
}

/// Any such training with up to 64 hosts.
fn any_machine(seed: u64) -> Scenario {
    let mut random = Random::new(seed ^ 0x4a2c_0711);
    let hosts: u32 = random.among(&[1, 2, 3, 8, 17, 64]);
    let (of, per) =
        random.among(&[(1, 16), (1, 8), (1, 4), (1, 2), (3, 4), (1, 1), (3, 2), (3, 1)]);
    let agents = (hosts * of).div_ceil(per);
    let mbit = random.among(&[100, 1_000, 4_000, 10_000, 25_000]);
    let elements = random.among(&Elements::ALL);
    let batches = random.within(300, 900) as u32;
    let mut scenario = machine(elements, [hosts, agents, of.min(agents)], mbit, batches);
    scenario.epochs = random.among(&[1, 1, 3]);
    scenario.profile.known = !random.one_in(3);
    scenario
}

/// A window is judged by finished host batches, so an epoch may take longer by the time of one
/// batch of each worker.
#[test]
fn auto_is_never_slower_on_any_such_machine() {
    let (mut slower, mut gains) = (Vec::new(), 0);
    for seed in 0..120 {
        let auto = any_machine(seed);
        let alone = Scenario { strategy: StrategyName::HostOnly, ..auto.clone() };
        let ([with, ..], [alone, ..]) = (times(&auto, seed), times(&alone, seed));
        if with > alone * 1.02 + auto.preparation_ns() {
            slower.push((seed, with / alone));
        }
        gains += u32::from(with < alone * 0.95);
    }
    assert!(slower.is_empty(), "{slower:.4?}");
    assert!(gains > 40, "only {gains} of 120 are faster");
}
