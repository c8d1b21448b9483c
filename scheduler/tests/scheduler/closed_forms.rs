//! On constant times every strategy meets its closed form, on the driver of the property tests.

use crate::driver::{Faults, Run, Scenario, Slowed, holders, run};
use meetpoint_scheduler::closed_forms::Inputs;
use meetpoint_scheduler::{
    AnyStrategy, Config, DeviceConfig, Holders, HostOnly, Learned, Mte, MteFeedback, Profile,
    Split, Tail, Windowed, Wrr, WrrFrozen,
};

const BATCHES: u32 = 5_000;
const DESCENDING: Tail = Tail::Descending;

/// Times of a serial host in units of a millisecond: t_c, t_g, t_s.
type Times = (f64, f64, f64);

fn ns(units: f64) -> u64 {
    (units * 1e6).round() as u64
}

fn profile((t_c, t_g, t_s): Times) -> Profile {
    Profile { host_ns: ns(t_c), ready_ns: ns(t_g), device_ns: ns(t_s) }
}

fn config(strategy: AnyStrategy, times: Times, devices: usize) -> Config {
    let device = DeviceConfig { ahead: 4, spool_slots: BATCHES, first_generation: 1 };
    let mut learned = Learned::from_profile(&profile(times), devices);
    learned.preparation_ns = ns(times.0 - times.1);
    Config {
        batches: BATCHES,
        strategy,
        host_ahead: 1,
        fetch_ahead: 4,
        devices: vec![device; devices],
        holders: Holders::Shared,
        stall_timeout_ns: ns(100.0 * times.2),
        stalls_max: 3,
        profile_batches: 8,
        learned,
        replay: None,
        ranks: 1,
        costs: None,
    }
}

fn scenario((t_c, t_g, t_s): Times, devices: usize) -> Scenario {
    Scenario {
        seed: 1,
        workers: 0,
        host_ns: ns(t_c - t_g),
        device_ns: vec![ns(t_s); devices],
        step_ns: ns(t_g),
        fetch_ns: 0,
        jitter: false,
        varies: 0,
        faults: vec![Faults::default(); devices],
        kept: Vec::new(),
        run_ahead_ns: 0,
        slowed: Slowed::default(),
    }
}

fn simulated(strategy: AnyStrategy, times: Times) -> Run {
    run(&config(strategy, times, 1), &scenario(times, 1))
}

const CHECKED: [Times; 6] = [
    (0.25, 0.10, 1.0),
    (1.0, 0.375, 2.0),
    (1.0, 0.494, 2.15),
    (0.5, 0.4, 1.0),
    (1.0, 0.2, 3.0),
    (1.0, 0.05, 8.0),
];

fn off(strategy: AnyStrategy, times: Times) -> f64 {
    let inputs = Inputs {
        batches: BATCHES,
        background: false,
        profile: profile(times),
        spool_slots: BATCHES,
    };
    let predicted = strategy.closed_form(&inputs).expect("the form applies").total_ns;
    simulated(strategy, times).ended_ns as f64 / predicted - 1.0
}

#[test]
fn constant_times_meet_the_closed_forms() {
    for times in CHECKED {
        for strategy in [
            AnyStrategy::HostOnly(HostOnly),
            AnyStrategy::Mte(Mte { split: Split::EqualFinish, tail: DESCENDING }),
            AnyStrategy::Mte(Mte { split: Split::EqualFinish, tail: Tail::Ascending }),
            AnyStrategy::Mte(Mte { split: Split::Optimal, tail: DESCENDING }),
            AnyStrategy::MteFeedback(MteFeedback),
            AnyStrategy::WrrFrozen(WrrFrozen),
            AnyStrategy::Wrr(Wrr),
        ] {
            let off = off(strategy, times);
            assert!(off.abs() < 0.001, "{strategy:?} at {times:?} is off by {off}");
        }
    }
}

/// (p, t_t, t_s) with p the period of the workers together.
#[test]
fn workers_in_the_background_meet_the_closed_forms() {
    for (period, step, t_s) in
        [(1.0, 0.3, 4.0), (1.0, 0.9, 4.0), (1.0, 0.3, 2.0), (0.5, 0.3, 2.0), (1.0, 1.2, 4.0)]
    {
        for workers in [1, 4] {
            let times = (f64::max(period, step), step, t_s);
            for strategy in [
                AnyStrategy::HostOnly(HostOnly),
                AnyStrategy::Wrr(Wrr),
                AnyStrategy::WrrFrozen(WrrFrozen),
            ] {
                let config = Config { host_ahead: 3 * workers, ..config(strategy, times, 1) };
                let host_ns = ns(period) * u64::from(workers);
                let scenario = Scenario { workers, host_ns, ..scenario(times, 1) };
                let inputs = Inputs {
                    batches: BATCHES,
                    background: true,
                    profile: profile(times),
                    spool_slots: BATCHES,
                };
                let predicted = strategy.closed_form(&inputs).expect("the form applies").total_ns;
                let off = run(&config, &scenario).ended_ns as f64 / predicted - 1.0;
                let at = (period, step, t_s, workers);
                assert!(off.abs() < 0.004, "{strategy:?} at {at:?} is off by {off}");
            }
        }
    }
}

/// The end of each window costs up to a device batch, so this is a bound and not a closed form.
#[test]
fn windows_come_near_the_optimum() {
    for times in CHECKED {
        let off = off(AnyStrategy::Windowed(Windowed { window: 200 }), times);
        assert!((-0.001..0.02).contains(&off), "windowed at {times:?} is off by {off}");
    }
}

#[test]
fn unknown_times_are_learned_within_an_epoch_and_for_the_next() {
    for times in CHECKED {
        for strategy in [
            AnyStrategy::Mte(Mte { split: Split::Optimal, tail: DESCENDING }),
            AnyStrategy::MteFeedback(MteFeedback),
            AnyStrategy::WrrFrozen(WrrFrozen),
            AnyStrategy::Wrr(Wrr),
        ] {
            let informed = simulated(strategy, times);
            let untold = Config { learned: Learned::nothing(), ..config(strategy, times, 1) };
            let first = run(&untold, &scenario(times, 1));
            let ratio = first.ended_ns as f64 / informed.ended_ns as f64;
            assert!((ratio - 1.0).abs() < 0.002, "{strategy:?} at {times:?}: {ratio}");
            assert_eq!(first.learned.host_ns, ns(times.0), "{strategy:?}");
            assert_eq!(first.learned.ready_ns, ns(times.1), "{strategy:?}");
            assert_eq!(first.learned.device_ns, [ns(times.2)], "{strategy:?}");
            let second = Config { learned: first.learned, ..untold };
            let second = run(&second, &scenario(times, 1));
            let ratio = second.ended_ns as f64 / informed.ended_ns as f64;
            assert!((ratio - 1.0).abs() < 0.001, "{strategy:?} at {times:?}: {ratio}");
        }
    }
}

/// Four devices that are four times as slow equal one, whichever of them holds the batches.
#[test]
fn devices_contribute_the_sum_of_their_rates() {
    for times in [(1.0, 0.375, 2.0), (1.0, 0.2, 3.0)] {
        let slow = (times.0, times.1, 4.0 * times.2);
        for strategy in [
            AnyStrategy::Mte(Mte { split: Split::EqualFinish, tail: DESCENDING }),
            AnyStrategy::Mte(Mte { split: Split::Optimal, tail: DESCENDING }),
            AnyStrategy::MteFeedback(MteFeedback),
            AnyStrategy::WrrFrozen(WrrFrozen),
            AnyStrategy::Wrr(Wrr),
            AnyStrategy::Windowed(Windowed { window: 200 }),
        ] {
            let one = simulated(strategy, times).ended_ns as f64;
            for held in [Holders::Shared, holders::by_turns(BATCHES, 4)] {
                let config = Config { holders: held.clone(), ..config(strategy, slow, 4) };
                let ratio = run(&config, &scenario(slow, 4)).ended_ns as f64 / one;
                let shared = matches!(held, Holders::Shared);
                assert!((0.99..1.01).contains(&ratio), "{strategy:?} shared {shared}: {ratio}");
            }
        }
    }
}
