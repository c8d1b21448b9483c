//! The scheduler that ships, in virtual time, meets the closed forms.

use meetpoint_scheduler::{
    AnyStrategy, BatchIndex, DeviceOnly, HostOnly, Mte, Profile, Source, Split, Tail, Wrr,
};
use meetpoint_sim::closed_forms::Inputs;
use meetpoint_sim::scenario::{Device, Distribution, Scenario, Span};
use meetpoint_sim::{Outcome, RankOutcome, Recording, run, run_keeping};
use proptest::prelude::{ProptestConfig, proptest};

const BATCHES: u32 = 5_000;

const fn mte(split: Split, tail: Tail) -> AnyStrategy {
    AnyStrategy::Mte(Mte { split, tail })
}

const DESCENDING: AnyStrategy = mte(Split::EqualFinish, Tail::Descending);
const ASCENDING: AnyStrategy = mte(Split::EqualFinish, Tail::Ascending);
const WRR: AnyStrategy = AnyStrategy::Wrr(Wrr);
const HOST_ONLY: AnyStrategy = AnyStrategy::HostOnly(HostOnly);
const DEVICE_ONLY: AnyStrategy = AnyStrategy::DeviceOnly(DeviceOnly);

fn ns(units: f64) -> u64 {
    (units * 1e6).round() as u64
}

/// A machine of constants.
fn machine(preparation: f64, workers: u32, step: f64, direct_read: f64, t_s: f64) -> Scenario {
    let constant = |units| Distribution::constant_ns(ns(units));
    let mut scenario = Scenario::new(BATCHES, constant(preparation), constant(step));
    scenario.host.workers = workers;
    scenario.accelerator.direct_read = Span(ns(direct_read));
    scenario.devices = vec![Device::new(constant(t_s))];
    scenario.stall_timeout = Span((10 * ns(t_s)).max(1));
    scenario.profile_batches = 8;
    scenario
}

/// A machine without workers, from t_c, t_g and t_s.
fn serial(t_c: f64, t_g: f64, t_s: f64) -> Scenario {
    // The step takes half of t_g; the rest is read, so that both parts occur.
    let train = t_g / 2.0;
    machine(t_c - train, 0, train, t_g - train, t_s)
}

fn simulated(scenario: &Scenario, chosen: AnyStrategy) -> Outcome {
    run(&scenario.under(chosen), 0).expect("it can be run")
}

/// The only rank of the only epoch, with what it consumed.
fn in_detail(scenario: &Scenario) -> (u64, RankOutcome) {
    let keep = Recording { sequence: true, ..Recording::default() };
    let outcome = run_keeping(scenario, 0, keep).expect("it can be run");
    (outcome.total_ns, outcome.epochs[0].ranks[0].clone())
}

fn saving(scenario: &Scenario, chosen: AnyStrategy) -> f64 {
    let host_only = simulated(scenario, HOST_ONLY).total_ns;
    1.0 - simulated(scenario, chosen).total_ns as f64 / host_only as f64
}

fn profile(scenario: &Scenario) -> Profile {
    let (t_c, t_g) = scenario.step_times_ns();
    let device_ns = scenario.device_ns(&scenario.devices[0]);
    Profile { host_ns: t_c as u64, device_ns: device_ns as u64, ready_ns: t_g as u64 }
}

/// Within 0.1 % of the form, and as many batches as the two ends may have in progress.
fn meets(scenario: &Scenario, chosen: AnyStrategy) {
    let total = simulated(scenario, chosen).total_ns as f64;
    let profile = profile(scenario);
    let background = scenario.host.workers > 0;
    let inputs = Inputs { batches: BATCHES, background, profile, spool_slots: BATCHES };
    let strategy = chosen;
    let predicted = strategy.closed_form(&inputs).expect("the form applies").total_ns;
    let ends = (2 * profile.host_ns + 2 * profile.device_ns) as f64;
    assert!(
        (total - predicted).abs() <= predicted * 0.001 + ends,
        "{strategy:?} on {scenario:?}: simulated {total}, predicted {predicted}"
    );
}

#[test]
fn the_savings_without_workers_are_the_checked_ones() {
    for (t_c, t_g, t_s, mte, wrr) in [
        (0.25, 0.10, 1.0, 0.1200, 0.1304),
        (1.0, 0.375, 2.0, 0.2083, 0.2381),
        (1.0, 0.494, 2.15, 0.1606, 0.1905),
        (0.5, 0.4, 1.0, 0.0667, 0.0909),
        (1.0, 0.2, 3.0, 0.2000, 0.2105),
        (1.0, 0.05, 8.0, 0.1056, 0.1061),
    ] {
        let machine = serial(t_c, t_g, t_s);
        let found = [DESCENDING, ASCENDING, WRR].map(|s| saving(&machine, s));
        assert!((found[0] - mte).abs() < 0.001, "mte {t_c} {t_g} {t_s}: {found:?}");
        assert!((found[1] - mte).abs() < 0.002, "mte ascending {t_c} {t_g} {t_s}: {found:?}");
        assert!((found[2] - wrr).abs() < 0.001, "wrr {t_c} {t_g} {t_s}: {found:?}");
    }
}

#[test]
fn every_closed_form_is_met_without_workers() {
    for (t_c, t_g, t_s) in [(0.25, 0.10, 1.0), (1.0, 0.375, 2.0), (1.0, 0.5, 0.4), (1.0, 0.3, 1.0)]
    {
        let machine = serial(t_c, t_g, t_s);
        let strategies = [HOST_ONLY, DEVICE_ONLY, DESCENDING, WRR];
        strategies.into_iter().for_each(|strategy| meets(&machine, strategy));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_closed_forms_are_met_on_any_machine_without_workers(
        t_c in 0.5_f64..2.0, ready in 0.05_f64..0.95, t_s in 0.1_f64..10.0,
    ) {
        let machine = serial(t_c, ready * t_c, t_s);
        let strategies = [HOST_ONLY, DEVICE_ONLY, DESCENDING, WRR];
        strategies.into_iter().for_each(|strategy| meets(&machine, strategy));
    }
}

#[test]
fn the_times_with_workers_are_the_checked_ones() {
    for (p, t_t, t_s, wrr) in [
        (1.0, 0.3, 4.0, 0.8000),
        (1.0, 0.9, 4.0, 0.9000),
        (1.0, 0.3, 2.0, 0.6667),
        (0.5, 0.3, 2.0, 0.4000),
        (1.0, 1.2, 4.0, 1.2000),
    ] {
        for workers in [1, 2, 4] {
            let machine = machine(p * f64::from(workers), workers, t_t, 0.0, t_s);
            let total = simulated(&machine, WRR).total_ns as f64;
            let per_batch = total / f64::from(BATCHES) / 1e6;
            assert!((per_batch - wrr).abs() < 0.002, "{p} {t_t} {t_s} w={workers}: {per_batch}");
            let strategies = [HOST_ONLY, DEVICE_ONLY, WRR];
            strategies.into_iter().for_each(|strategy| meets(&machine, strategy));
            if p > t_t {
                meets(&machine, DESCENDING);
            }
        }
    }
}

#[test]
fn a_split_found_within_the_epoch_comes_to_the_same_as_a_profile() {
    let mut machine = serial(1.0, 0.375, 2.0).under(DESCENDING);
    let (_, known) = in_detail(&machine);
    machine.profile.known = false;
    let (_, measured) = in_detail(&machine);
    assert_eq!(measured.split, known.split);
    assert_eq!(measured.sequence, known.sequence);
}

#[test]
fn mte_profiled_against_a_faster_device_is_slower_than_no_device_and_wrr_is_not() {
    // Twice as slow as in the profile: the host's part ends after 2/3 N, the device's after 4/3 N.
    let mut machine = serial(1.0, 0.3, 4.0);
    machine.profile.device_factor = 0.5;
    let total = |chosen| simulated(&machine, chosen).total_ns;
    let alone = total(HOST_ONLY);
    assert!(total(DESCENDING) > alone, "a static split against a slower device loses");
    assert!(total(WRR) < alone, "wrr follows what the device really does");
}

#[test]
fn wrr_is_never_slower_than_the_host_alone_by_more_than_one_percent() {
    for t_s in [0.2, 0.5, 1.0, 3.0, 20.0, 500.0, 4_000.0] {
        for profile_known in [true, false] {
            let mut machine = serial(1.0, 0.4, t_s);
            let alone = simulated(&machine, HOST_ONLY).total_ns as f64;
            machine.profile.known = profile_known;
            let total = simulated(&machine, WRR).total_ns as f64;
            assert!(total <= alone * 1.01, "t_s {t_s}: {total} against {alone}");
        }
    }
}

#[test]
fn a_device_that_dies_costs_no_more_than_its_stall() {
    let mut machine = serial(1.0, 0.4, 2.0);
    let alone = simulated(&machine, HOST_ONLY).total_ns;
    machine.devices[0].faults = vec!["die@101".parse().unwrap()];
    for chosen in [DEVICE_ONLY, DESCENDING, ASCENDING, WRR] {
        let (total, rank) = in_detail(&machine.under(chosen));
        assert_eq!(rank.sequence.expect("it was kept").len(), BATCHES as usize);
        assert_eq!(rank.device_batches, 100);
        assert!(rank.stalls >= 1);
        let bound = alone + machine.stall_timeout.0 + 100 * ns(2.0);
        assert!(total <= bound, "{chosen:?} took {total}");
    }
}

#[test]
fn the_fixed_orders_are_what_they_say() {
    let machine = serial(1.0, 0.4, 2.0);
    let order = |chosen| {
        let sequence = in_detail(&machine.under(chosen)).1.sequence.expect("it was kept");
        sequence.iter().map(|(batch, _)| *batch).collect::<Vec<_>>()
    };
    let ascending: Vec<_> = (0..BATCHES).map(BatchIndex).collect();
    for chosen in [HOST_ONLY, DEVICE_ONLY, ASCENDING] {
        assert_eq!(order(chosen), ascending);
    }
    // n_s = 5000·1/(1+2), to the nearest.
    let mut towards_each_other = ascending;
    towards_each_other[3_333..].reverse();
    assert_eq!(order(DESCENDING), towards_each_other);
}

#[test]
fn a_small_spool_limits_an_equal_finish() {
    let mut machine = serial(1.0, 0.4, 2.0);
    machine.devices[0].spool_slots = Some(32);
    for chosen in [DESCENDING, ASCENDING] {
        let (_, rank) = in_detail(&machine.under(chosen));
        assert_eq!(rank.split, Some(32));
        let sequence = rank.sequence.expect("it was kept");
        assert_eq!(sequence.iter().filter(|(_, by)| *by != Source::Host).count(), 32);
    }
}
