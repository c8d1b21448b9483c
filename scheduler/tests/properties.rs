//! Every strategy under random configurations, delays and faults: coverage, order, quotas, ends.

mod driver;

use driver::{Faults, Scenario, run};
use meetpoint_scheduler::{Config, DeviceConfig, Holders, Learned, Profile, Split, Strategy, Tail};
use proptest::prelude::*;
use proptest::strategy::Strategy as _;

const MS: u64 = 1_000_000;

fn tails() -> impl proptest::strategy::Strategy<Value = Tail> {
    prop_oneof![Just(Tail::Descending), Just(Tail::Ascending)]
}

fn strategies() -> impl proptest::strategy::Strategy<Value = Strategy> {
    prop_oneof![
        1 => Just(Strategy::HostOnly),
        1 => Just(Strategy::DeviceOnly),
        3 => tails().prop_map(|tail| Strategy::Mte { split: Split::EqualFinish, tail }),
        // Brought into the epoch's range below.
        3 => (tails(), any::<u32>())
            .prop_map(|(tail, part)| Strategy::Mte { split: Split::Fixed(part), tail }),
        3 => Just(Strategy::Wrr),
    ]
}

fn profiles() -> impl proptest::strategy::Strategy<Value = Learned> {
    let times = (0..20 * MS, 0..20 * MS, 0..20 * MS);
    proptest::option::of(times).prop_map(|known| {
        known.map_or(Learned::nothing(), |(host_ns, device_ns, ready_ns)| {
            Learned::from_profile(&Profile { host_ns, device_ns, ready_ns }, 1)
        })
    })
}

prop_compose! {
    fn configs()(
        batches in 1_u32..48,
        strategy in strategies(),
        (host_ahead, device_ahead) in (1_u32..8, 1_u32..6),
        (spool_slots, fetch_ahead) in (1_u32..12, 1_u32..5),
        stall_timeout_ns in 5 * MS..60 * MS,
        stalls_max in 1_u32..4,
        profile_batches in 1_u32..5,
        learned in profiles(),
        first_generation in 0_u32..100,
    ) -> Config {
        let strategy = match strategy {
            Strategy::Mte { split: Split::Fixed(part), tail } => {
                Strategy::Mte { split: Split::Fixed(part % (batches + 1)), tail }
            }
            other => other,
        };
        Config {
            batches, strategy, host_ahead, fetch_ahead,
            devices: vec![DeviceConfig { ahead: device_ahead, spool_slots, first_generation }],
            holders: Holders::Shared,
            stall_timeout_ns, stalls_max, profile_batches, learned,
            replay: None, ranks: 1, costs: None,
        }
    }
}

prop_compose! {
    fn faults()(
        on in any::<bool>(),
        (fails, torn, duplicated, late) in (0_u64..40, 0_u64..40, 0_u64..40, 0_u64..40),
        (stalls, lies, nonsense) in (0_u64..30, 0_u64..100, 0_u64..40),
        dies_after in proptest::option::weighted(0.3, 0_u32..30),
    ) -> Faults {
        if on {
            Faults { fails, torn, duplicated, late, stalls, lies, nonsense, dies_after }
        } else {
            Faults::default()
        }
    }
}

prop_compose! {
    fn scenarios()(
        seed in any::<u64>(),
        workers in 0_u32..4,
        (host_ns, device_ns) in (MS / 10..20 * MS, MS / 10..20 * MS),
        (step_ns, fetch_ns) in (0..10 * MS, 0..2 * MS),
        faults in faults(),
    ) -> Scenario {
        Scenario { seed, workers, host_ns, device_ns, step_ns, fetch_ns, faults }
    }
}

/// Without workers the consumer holds one batch at a time.
fn fit(mut config: Config, scenario: &Scenario) -> Config {
    if scenario.workers == 0 {
        config.host_ahead = 1;
    }
    config
}

/// The order that a strategy promises, `None` if it promises none.
fn promised(config: &Config, split: Option<u32>) -> Option<Vec<u32>> {
    let batches = config.batches;
    match config.strategy {
        Strategy::HostOnly | Strategy::DeviceOnly | Strategy::Mte { tail: Tail::Ascending, .. } => {
            Some((0..batches).collect())
        }
        Strategy::Mte { tail: Tail::Descending, .. } => {
            let host_part = batches - split.expect("the split is fixed by the end of the epoch");
            Some((0..host_part).chain((host_part..batches).rev()).collect())
        }
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    /// Coverage (C0), quotas, invariants and an end are checked by the driver at every step.
    #[test]
    fn every_epoch_ends_with_every_batch_consumed_once_and_in_the_promised_order(
        config in configs(), scenario in scenarios(),
    ) {
        let config = fit(config, &scenario);
        let run = run(&config, &scenario);
        if let Some(order) = promised(&config, run.summary.split) {
            prop_assert_eq!(run.sequence, order);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, ..ProptestConfig::default() })]

    #[test]
    fn a_recorded_split_replays_the_sequence_under_other_delays_and_faults(
        config in configs(), tail in tails(), first in scenarios(), second in scenarios(),
    ) {
        let equal = Strategy::Mte { split: Split::EqualFinish, tail };
        let config = fit(Config { strategy: equal, ..config }, &first);
        let recorded = run(&config, &first);
        let split = recorded.summary.split.expect("fixed by the end of the epoch");
        let fixed = Strategy::Mte { split: Split::Fixed(split), tail };
        let replay = fit(Config { strategy: fixed, ..config }, &second);
        prop_assert_eq!(run(&replay, &second).sequence, recorded.sequence);
    }

    #[test]
    fn a_device_that_dies_leaves_an_epoch_that_the_host_completes(
        config in configs(), scenario in scenarios(), after in 0_u32..6,
    ) {
        let faults = Faults { dies_after: Some(after), ..Faults::default() };
        let scenario = Scenario { faults, ..scenario };
        let config = fit(config, &scenario);
        let run = run(&config, &scenario);
        prop_assert!(run.summary.device_batches <= after);
        prop_assert_eq!(run.summary.host_batches, config.batches - run.summary.device_batches);
    }

    #[test]
    fn the_same_scenario_gives_the_same_run(config in configs(), scenario in scenarios()) {
        let config = fit(config, &scenario);
        let (once, again) = (run(&config, &scenario), run(&config, &scenario));
        prop_assert_eq!(once.sequence, again.sequence);
        prop_assert_eq!(once.summary, again.summary);
        prop_assert_eq!(once.ended_ns, again.ended_ns);
    }
}
