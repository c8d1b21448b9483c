//! What `auto` selects, what ranks agree on, and configurations that are refused.

use meetpoint_scheduler::closed_forms::{BestShare, Inputs, best_share};
use meetpoint_scheduler::{
    AcceleratorDecision, AnyStrategy, Auto, Config, Costs, DeviceConfig, Epoch, Error, Goal,
    Holders, HostOnly, Learned, Mte, MteFeedback, Order, Outcome, Profile, Proposal, Split, Tail,
    VoidReason, Windowed, Wrr, WrrFrozen,
};

use crate::driver::{Random, generate};

const FAST: Profile = Profile { host_ns: 1_000, device_ns: 2_000, ready_ns: 375 };
const USELESS: Profile = Profile { host_ns: 1_000, device_ns: 2_000, ready_ns: 1_000 };

fn config(goal: Goal, order: Order, profile: Option<Profile>) -> Config {
    Config {
        batches: 5_000,
        strategy: AnyStrategy::Auto(Auto { goal, order }),
        host_ahead: 1,
        fetch_ahead: 2,
        devices: vec![DeviceConfig { ahead: 2, spool_slots: 5_000, first_generation: 0 }],
        holders: Holders::Shared,
        stall_timeout_ns: 1_000_000,
        stalls_max: 2,
        profile_batches: 2,
        learned: profile.map_or(Learned::nothing(), |p| Learned::from_profile(&p, 1)),
        replay: None,
        ranks: 1,
        costs: None,
    }
}

fn selection(config: Config) -> (AnyStrategy, String) {
    let selection = Epoch::new(config).expect("it can be run").selection().expect("auto picks");
    (selection.strategy, selection.to_string())
}

#[test]
fn auto_selects_by_the_order_with_a_reason() {
    let fastest = |order, profile| selection(config(Goal::Throughput, order, profile));
    let (strategy, why) = fastest(Order::Any, Some(FAST));
    assert_eq!(strategy, AnyStrategy::Wrr(Wrr));
    assert_eq!(
        why,
        "wrr: expected to take 23.8 % less time than the host alone, by the learned times"
    );
    assert_eq!(fastest(Order::Replayable, Some(FAST)).0, AnyStrategy::MteFeedback(MteFeedback));
    assert!(matches!(
        fastest(Order::Baseline, Some(FAST)).0,
        AnyStrategy::Windowed(Windowed { .. })
    ));
    for order in [Order::Any, Order::Replayable, Order::Baseline] {
        let (strategy, why) = fastest(order, Some(USELESS));
        assert_eq!(strategy, AnyStrategy::HostOnly(HostOnly));
        assert_eq!(why, "host-only: no device is expected to make the epoch shorter");
    }
    let (strategy, why) = fastest(Order::Replayable, None);
    assert_eq!(strategy, AnyStrategy::MteFeedback(MteFeedback));
    assert!(why.contains("not known yet"), "{why}");
    let none = Config { devices: Vec::new(), ..config(Goal::Throughput, Order::Any, None) };
    assert_eq!(
        selection(none),
        (AnyStrategy::HostOnly(HostOnly), "host-only: there is no device".to_owned())
    );
}

#[test]
fn a_small_spool_makes_a_replayable_order_one_of_turns() {
    let mut small = config(Goal::Throughput, Order::Replayable, Some(FAST));
    small.devices[0].spool_slots = 32;
    assert_eq!(selection(small).0, AnyStrategy::WrrFrozen(WrrFrozen));
}

/// The value of every share by brute force, with the same model.
fn by_brute_force(inputs: &Inputs, costs: &Costs, t_p: f64, weight: f64) -> f64 {
    let p = inputs.profile;
    let [t_c, t_s, t_g] = [p.host_ns, p.device_ns, p.ready_ns].map(|time| time as f64);
    let n = f64::from(inputs.batches);
    let [base, core, device] =
        [costs.base_uw, costs.host_core_uw, costs.device_uw].map(|p| p as f64);
    let time = |s: f64| ((n - s) * t_c + s * t_g).max(s * t_s);
    let energy = |s: f64| base * time(s) + core * (n - s) * t_p + device * s * t_s;
    let shares = (0..=inputs.batches).map(f64::from).filter(|&s| time(s) <= n * t_c);
    let values =
        shares.map(|s| weight * time(s) / time(0.0) + (1.0 - weight) * energy(s) / energy(0.0));
    values.fold(f64::INFINITY, f64::min)
}

#[test]
fn the_best_share_is_that_of_brute_force() {
    let mut random = Random::new(7);
    for _ in 0..300 {
        let host_ns = random.between(100, 1_000);
        let profile = Profile {
            host_ns,
            device_ns: random.between(100, 4_000),
            ready_ns: random.between(10, host_ns),
        };
        let costs = Costs {
            base_uw: random.below(100),
            host_core_uw: random.between(1, 100),
            device_uw: random.below(100),
        };
        let inputs = Inputs { batches: 500, background: false, profile, spool_slots: 500 };
        let ppm = random.small(0, 1_000_001);
        let t_p = host_ns - profile.ready_ns;
        let BestShare { value, .. } = best_share(&inputs, &costs, t_p, ppm).unwrap();
        let least = by_brute_force(&inputs, &costs, t_p as f64, f64::from(ppm) / 1e6);
        assert!((value - least).abs() < 0.01, "{inputs:?} {costs:?} {ppm}: {value} {least}");
    }
}

#[test]
fn energy_decides_against_the_clock_where_it_weighs_more() {
    let costs = |base_uw, host_core_uw, device_uw| Some(Costs { base_uw, host_core_uw, device_uw });
    let with = |costs| Config { costs, ..config(Goal::Energy, Order::Any, Some(FAST)) };
    // A device that draws a hundred times the power of a core is not used.
    assert_eq!(selection(with(costs(0, 1_000, 100_000))).0, AnyStrategy::HostOnly(HostOnly));
    // One that draws nothing does as much as it can without making the epoch longer.
    let all = AnyStrategy::Mte(Mte { split: Split::Fixed(2_500), tail: Tail::Descending });
    let (strategy, why) = selection(with(costs(0, 1_000, 0)));
    assert_eq!(strategy, all);
    assert_eq!(why, "mte: the goal is best met with 2500 batches at the devices");
    // Where the whole machine costs most, time is energy.
    assert_eq!(selection(with(costs(1_000_000, 1_000, 500))).0, AnyStrategy::Wrr(Wrr));
}

#[test]
fn proposals_survive_their_transport_and_combine_in_any_order() {
    let mut random = Random::new(3);
    let mut any = || {
        Proposal::from_words(std::array::from_fn(|at| match at {
            1 => random.next() & 0x7f_ffff_ffff,
            6 | 13 => random.next() & u64::from(u32::MAX),
            _ => random.next(),
        }))
    };
    for _ in 0..500 {
        let (a, b, c) = (any(), any(), any());
        assert_eq!(Proposal::from_words(a.to_words()), a);
        assert_eq!(a.combine(b), b.combine(a));
        assert_eq!(a.combine(b).combine(c), a.combine(b.combine(c)));
    }
}

#[test]
fn an_agreement_of_another_step_is_void() {
    let ranks = Config { ranks: 2, ..config(Goal::Throughput, Order::Any, None) };
    let mut epoch = Epoch::new(ranks).expect("it can be run");
    epoch.accelerator_ready(0);
    let AcceleratorDecision::Agree(own) = epoch.accelerator(0) else { panic!("ranks agree") };
    let mut words = own.to_words();
    words[0] = 1 << 32 | 1;
    let late = own.combine(Proposal::from_words(words));
    assert_eq!(epoch.agreed(0, late.agreement()), Outcome::Void(VoidReason::WrongStep));
    assert_eq!(epoch.agreed(0, own.agreement()), Outcome::Accepted);
}

#[test]
fn configurations_that_cannot_run_are_refused_by_name() {
    let mut random = Random::new(1);
    let base = || Config { batches: 10, ..config(Goal::Throughput, Order::Any, None) };
    let refused = |config: Config| Epoch::new(config).expect_err("it cannot be run").to_string();
    let window = Config { strategy: AnyStrategy::Windowed(Windowed { window: 0 }), ..base() };
    assert_eq!(refused(window), "window is 0, must be at least 1");
    let other = Config {
        replay: Some("wrr-frozen:0,1,1,1,0,3".parse().unwrap()),
        strategy: AnyStrategy::MteFeedback(MteFeedback),
        ..base()
    };
    assert!(refused(other).starts_with("record wrr-frozen:0,1,1,1,0,3 cannot be replayed"));
    for record in ["mte:11", "mte:3,4"] {
        let strategy = AnyStrategy::Mte(Mte { split: Split::Optimal, tail: Tail::Descending });
        let config = Config { replay: Some(record.parse().unwrap()), strategy, ..base() };
        assert!(matches!(Epoch::new(config), Err(Error::NotReplayed { .. })), "{record}");
    }
    let held = crate::driver::holders::scattered(&mut random, 9, 1);
    assert_eq!(
        Epoch::new(Config { holders: held, ..base() }).unwrap_err(),
        Error::HeldCount { held: 9, batches: 10 }
    );
    let held = crate::driver::holders::by_turns(10, 2);
    assert_eq!(
        Epoch::new(Config { holders: held, ..base() }).unwrap_err(),
        Error::HoldersCount { holders: 2, devices: 1 }
    );
    // The generator creates only valid configurations.
    for seed in 0..200 {
        Epoch::new(generate::config(&mut Random::new(seed), 2)).expect("it can be run");
    }
}
