//! The scheduler that ships, in virtual time, meets the closed forms.

use meetpoint_scheduler::{BatchIndex, Learned, Profile, Source, Split, Strategy, Tail};
use meetpoint_sim::closed_forms::{Inputs, predict};
use meetpoint_sim::virtual_time::{Machine, Simulation, simulate};
use proptest::prelude::{ProptestConfig, proptest};

const BATCHES: u32 = 5_000;
const DESCENDING: Strategy = Strategy::Mte { split: Split::EqualFinish, tail: Tail::Descending };
const ASCENDING: Strategy = Strategy::Mte { split: Split::EqualFinish, tail: Tail::Ascending };

fn ns(units: f64) -> u64 {
    (units * 1e6).round() as u64
}

/// A machine without workers, from t_c, t_g and t_s.
fn serial(t_c: f64, t_g: f64, t_s: f64) -> Machine {
    // The step takes half of t_g; the rest is read, so that both parts are there.
    let train = t_g / 2.0;
    Machine {
        preparation_ns: ns(t_c - train),
        workers: 0,
        train_ns: ns(train),
        direct_read_ns: ns(t_g - train),
        device_ns: ns(t_s),
        device_dies_at: None,
    }
}

fn run(machine: &Machine, strategy: Strategy) -> Simulation {
    simulate(&machine.config(BATCHES, strategy), machine).expect("it can be run")
}

fn saving(machine: &Machine, strategy: Strategy) -> f64 {
    let host_only = run(machine, Strategy::HostOnly).total_ns;
    1.0 - run(machine, strategy).total_ns as f64 / host_only as f64
}

/// Within 0.1 % of the form, and as many batches as the two ends may have under way.
fn meets(machine: &Machine, strategy: Strategy) {
    let simulated = run(machine, strategy).total_ns as f64;
    let profile = machine.profile();
    let inputs =
        Inputs { batches: BATCHES, background: machine.workers > 0, profile, spool_slots: BATCHES };
    let predicted = predict(strategy, &inputs).expect("the form applies").total_ns;
    let ends = (2 * profile.host_ns + 2 * profile.device_ns) as f64;
    assert!(
        (simulated - predicted).abs() <= predicted * 0.001 + ends,
        "{strategy:?} on {machine:?}: simulated {simulated}, predicted {predicted}"
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
        let found = [DESCENDING, ASCENDING, Strategy::Wrr].map(|s| saving(&machine, s));
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
        let strategies = [Strategy::HostOnly, Strategy::DeviceOnly, DESCENDING, Strategy::Wrr];
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
        let strategies = [Strategy::HostOnly, Strategy::DeviceOnly, DESCENDING, Strategy::Wrr];
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
            let machine = Machine {
                preparation_ns: ns(p) * u64::from(workers),
                workers,
                train_ns: ns(t_t),
                direct_read_ns: 0,
                device_ns: ns(t_s),
                device_dies_at: None,
            };
            let total = run(&machine, Strategy::Wrr).total_ns as f64;
            let per_batch = total / f64::from(BATCHES) / 1e6;
            assert!((per_batch - wrr).abs() < 0.002, "{p} {t_t} {t_s} w={workers}: {per_batch}");
            let strategies = [Strategy::HostOnly, Strategy::DeviceOnly, Strategy::Wrr];
            strategies.into_iter().for_each(|strategy| meets(&machine, strategy));
            if p > t_t {
                meets(&machine, DESCENDING);
            }
        }
    }
}

#[test]
fn a_split_found_within_the_epoch_comes_to_the_same_as_a_profile() {
    let machine = serial(1.0, 0.375, 2.0);
    let mut config = machine.config(BATCHES, DESCENDING);
    let known = simulate(&config, &machine).unwrap();
    config.learned = Learned::nothing();
    let measured = simulate(&config, &machine).unwrap();
    assert_eq!(measured.summary.split, known.summary.split);
    assert_eq!(measured.sequence, known.sequence);
    assert_eq!(measured.summary.measured, machine.profile());
}

#[test]
fn mte_profiled_against_a_faster_device_is_slower_than_no_device_and_wrr_is_not() {
    let profiled = serial(1.0, 0.3, 2.0);
    // Twice as slow as it was: the host's part ends after 2/3 N, the device's after 4/3 N.
    let real = Machine { device_ns: 2 * profiled.device_ns, ..profiled };
    let told = Profile { device_ns: profiled.device_ns, ..real.profile() };
    let total = |strategy| {
        let mut config = real.config(BATCHES, strategy);
        config.learned = Learned::from_profile(&told, 1);
        simulate(&config, &real).unwrap().total_ns
    };
    let alone = total(Strategy::HostOnly);
    assert!(total(DESCENDING) > alone, "a static split against a slower device loses");
    assert!(total(Strategy::Wrr) < alone, "wrr follows what the device really does");
}

#[test]
fn wrr_is_never_slower_than_the_host_alone_by_more_than_one_percent() {
    for t_s in [0.2, 0.5, 1.0, 3.0, 20.0, 500.0, 4_000.0] {
        for profile_known in [true, false] {
            let machine = serial(1.0, 0.4, t_s);
            let alone = run(&machine, Strategy::HostOnly).total_ns as f64;
            let mut config = machine.config(BATCHES, Strategy::Wrr);
            if !profile_known {
                config.learned = Learned::nothing();
            }
            let total = simulate(&config, &machine).unwrap().total_ns as f64;
            assert!(total <= alone * 1.01, "t_s {t_s}: {total} against {alone}");
        }
    }
}

#[test]
fn a_device_that_dies_costs_no_more_than_its_stall() {
    let machine = Machine { device_dies_at: Some(100), ..serial(1.0, 0.4, 2.0) };
    for strategy in [Strategy::DeviceOnly, DESCENDING, ASCENDING, Strategy::Wrr] {
        let simulated = run(&machine, strategy);
        assert_eq!(simulated.sequence.len(), BATCHES as usize);
        assert_eq!(simulated.summary.device_batches, 100);
        assert!(simulated.summary.stalls >= 1);
        let stall_ns = machine.config(BATCHES, strategy).stall_timeout_ns;
        let by_device = 100 * machine.device_ns;
        let bound = run(&machine, Strategy::HostOnly).total_ns + stall_ns + by_device;
        assert!(simulated.total_ns <= bound, "{strategy:?} took {}", simulated.total_ns);
    }
}

#[test]
fn the_fixed_orders_are_what_they_say() {
    let machine = serial(1.0, 0.4, 2.0);
    let order = |strategy| {
        let simulated = run(&machine, strategy);
        simulated.sequence.iter().map(|(batch, _)| *batch).collect::<Vec<_>>()
    };
    let ascending: Vec<_> = (0..BATCHES).map(BatchIndex).collect();
    for strategy in [Strategy::HostOnly, Strategy::DeviceOnly, ASCENDING] {
        assert_eq!(order(strategy), ascending);
    }
    // n_s = 5000·1/(1+2), to the nearest.
    let mut towards_each_other = ascending;
    towards_each_other[3_333..].reverse();
    assert_eq!(order(DESCENDING), towards_each_other);
}

#[test]
fn a_small_spool_limits_an_equal_finish_and_is_reported() {
    let machine = serial(1.0, 0.4, 2.0);
    for strategy in [DESCENDING, ASCENDING] {
        let mut config = machine.config(BATCHES, strategy);
        config.devices[0].spool_slots = 32;
        let simulated = simulate(&config, &machine).unwrap();
        assert_eq!(simulated.summary.split, Some(32));
        assert!(simulated.summary.split_limited_by_spool);
        let by_device = simulated.sequence.iter().filter(|(_, by)| *by != Source::Host).count();
        assert_eq!(by_device, 32);
    }
}
