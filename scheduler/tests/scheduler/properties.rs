//! Every strategy under random configurations, delays and faults: coverage, order, quotas, ends.
//!
//! A scenario is a seed; `FAILED_ONCE` lists seeds that failed once.

use crate::driver::generate::{self, fit};
use crate::driver::oracle;
use crate::driver::{Faults, Random, Run, run, run_ranks};
use meetpoint_scheduler::{
    AnyStrategy, Auto, Config, Epoch, Learned, Level, Mte, MteFeedback, Order, Record, RecordKind,
    Split, StrategyName, Windowed, Wrr, WrrFrozen,
};

/// Scenarios of one rank.
const SCENARIOS: u64 = 8_000;

/// Seeds of scenarios that failed once.
const FAILED_ONCE: [u64; 5] = [10, 24, 74, 203, 265];

const RANKS_FAILED_ONCE: [u64; 5] = [6, 1_452, 1_461, 3_793, 49_727];

/// Runs a test on seeds, and names the one that fails.
fn for_seeds(seeds: impl Iterator<Item = u64>, test: impl Fn(u64, &mut Random)) {
    for seed in seeds {
        let said = Named(seed);
        test(seed, &mut Random::new(seed.wrapping_mul(0x5851_f42d_4c95_7f2d) ^ 0x1405));
        std::mem::forget(said);
    }
}

struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        eprintln!("the seed is {}", self.0);
    }
}

fn promises_baseline(strategy: AnyStrategy) -> bool {
    strategy.levels().contains(&Level::C4)
}

fn check_order(config: &Config, run: &Run) {
    if promises_baseline(config.strategy) {
        assert_eq!(run.sequence, (0..config.batches).collect::<Vec<u32>>(), "C4");
    } else if let Some(record) = &run.record {
        let order = oracle::order(record, config);
        assert_eq!(run.sequence, order, "C3: the order of {record}");
    }
}

fn devices(random: &mut Random) -> usize {
    [1, 1, 1, 2, 2, 3, 4, 0][random.below(8) as usize]
}

fn one_scenario(_seed: u64, random: &mut Random) {
    let count = devices(random);
    let config = generate::config(random, count);
    let scenario = generate::scenario(random, &config);
    let config = fit(config, &scenario);
    let run = run(&config, &scenario);
    check_order(&config, &run);
}

/// The driver checks coverage (C0), quotas, invariants, termination and useless waits at every
/// step.
#[test]
fn every_epoch_ends_with_every_batch_consumed_once_and_in_the_promised_order() {
    for_seeds(FAILED_ONCE.into_iter().chain(0..SCENARIOS), one_scenario);
}

/// Iterates over the list, so that new strategies are covered.
#[test]
fn every_strategy_with_its_defaults_consumes_every_batch_in_the_promised_order() {
    for name in StrategyName::ALL {
        for_seeds(0..250, |_, random| {
            let count = devices(random).max(1);
            let drawn = generate::config(random, count);
            let config = Config { strategy: name.with_defaults(), ..drawn };
            let scenario = generate::scenario(random, &config);
            let config = fit(config, &scenario);
            let run = run(&config, &scenario);
            check_order(&config, &run);
            let has_record = run.record.is_some();
            let kind = name.record();
            assert!(
                !has_record || kind != RecordKind::None || config.strategy.is_selector(),
                "{name}"
            );
        });
    }
}

#[test]
fn a_record_replays_the_sequence_under_other_delays_and_faults() {
    for_seeds(0..1_500, |_, random| {
        let count = devices(random).max(1);
        let mut config = generate::config(random, count);
        config.strategy = match random.below(5) {
            0 => AnyStrategy::Mte(Mte { split: Split::EqualFinish, tail: generate::tail(random) }),
            1 => AnyStrategy::Mte(Mte { split: Split::Optimal, tail: generate::tail(random) }),
            2 => AnyStrategy::MteFeedback(MteFeedback),
            3 => AnyStrategy::WrrFrozen(WrrFrozen),
            _ => AnyStrategy::Auto(Auto {
                goal: meetpoint_scheduler::Goal::Throughput,
                order: Order::Replayable,
            }),
        };
        let first = generate::scenario(random, &config);
        let recorded = run(&fit(config.clone(), &first), &first);
        let mut second = generate::scenario(random, &config);
        second.kept.clear();
        let Some(record) = recorded.record else {
            let picked_host = config.strategy.is_selector();
            assert!(picked_host, "an order that can be replayed has a record");
            return;
        };
        let record: Record = record.to_string().parse().expect("it was written as a record");
        let replay = Config { replay: Some(record), learned: Learned::nothing(), ..config };
        let replayed = run(&fit(replay, &second), &second);
        assert_eq!(replayed.sequence, recorded.sequence, "C3");
    });
}

#[test]
fn a_device_that_dies_leaves_an_epoch_that_the_host_completes() {
    for_seeds(0..500, |_, random| {
        let config = generate::config(random, 1);
        let mut scenario = generate::scenario(random, &config);
        scenario.kept.clear();
        let after = random.small(0, 6);
        scenario.faults = vec![Faults { dies_after: Some(after), ..Faults::default() }];
        let config = fit(config, &scenario);
        let run = run(&config, &scenario);
        assert!(run.summary.device_batches <= after);
        assert_eq!(run.summary.host_batches, config.batches - run.summary.device_batches);
    });
}

/// Makes every device lose its link once, at the beginning or later, and return.
fn with_returns(random: &mut Random, faults: &mut [Faults]) {
    for faults in faults {
        faults.absent = random.percent(50);
        faults.dies_after = (!faults.absent).then(|| random.small(0, 6));
        faults.returns_after_ns = Some(random.below(100 * generate::MS));
    }
}

#[test]
fn devices_that_return_after_a_loss_leave_an_epoch_in_the_promised_order() {
    for_seeds(0..4_000, |_, random| {
        let count = devices(random).max(1);
        let config = generate::config(random, count);
        let mut scenario = generate::scenario(random, &config);
        with_returns(random, &mut scenario.faults);
        let config = fit(config, &scenario);
        check_order(&config, &run(&config, &scenario));
    });
}

#[test]
fn a_device_that_is_absent_at_first_gets_work_once_it_has_a_link() {
    let mut batches = 0;
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let mut config = generate::config(random, 1);
        config.strategy = AnyStrategy::Wrr(Wrr);
        let mut scenario = generate::scenario(random, &config);
        scenario.faults = vec![Faults {
            absent: true,
            returns_after_ns: Some(generate::MS),
            ..Faults::default()
        }];
        let config = fit(config, &scenario);
        batches += run(&config, &scenario).summary.device_batches;
    }
    assert!(batches > 200, "{batches} batches");
}

#[test]
fn ranks_whose_devices_return_take_the_same_kind_of_source_in_each_step() {
    for_seeds(0..1_500, |_, random| agreeing_ranks_with(random, None, with_returns));
}

#[test]
fn the_same_scenario_gives_the_same_run() {
    for_seeds(0..500, |_, random| {
        let count = devices(random);
        let config = generate::config(random, count);
        let scenario = generate::scenario(random, &config);
        let config = fit(config, &scenario);
        let (once, again) = (run(&config, &scenario), run(&config, &scenario));
        assert_eq!(once.sequence, again.sequence);
        assert_eq!(once.summary, again.summary);
        assert_eq!(once.ended_ns, again.ended_ns);
        assert_eq!(once.record, again.record);
        assert_eq!(once.learned, again.learned);
    });
}

fn agreeing_ranks(random: &mut Random, strategy: Option<AnyStrategy>) {
    agreeing_ranks_with(random, strategy, |_, _| {});
}

fn agreeing_ranks_with(
    random: &mut Random,
    strategy: Option<AnyStrategy>,
    change: impl Fn(&mut Random, &mut [Faults]),
) {
    let ranks = random.small(2, 5);
    let count = devices(random).max(1);
    let first = generate::config(random, count);
    let (batches, strategy) = (first.batches, strategy.unwrap_or(first.strategy));
    let configs = (0..ranks).map(|_| {
        let count = devices(random).max(1);
        let mut config = generate::config(random, count);
        while config.batches != batches {
            config = generate::config(random, count);
        }
        let mut scenario = generate::scenario(random, &config);
        scenario.kept.clear();
        change(random, &mut scenario.faults);
        (fit(Config { strategy, ranks, ..config }, &scenario), scenario)
    });
    let ranks: Vec<_> = configs.collect();
    let runs = run_ranks(&ranks);
    for (run, (config, _)) in runs.iter().zip(&ranks) {
        assert_eq!(run.from_device, runs[0].from_device, "C5");
        check_order(config, run);
    }
}

/// C5: equal steps from the same kind of source, whatever the ranks' devices do.
#[test]
fn ranks_take_the_same_kind_of_source_in_each_step() {
    let seeds = RANKS_FAILED_ONCE.into_iter().chain(0..1_500);
    for_seeds(seeds, |_, random| agreeing_ranks(random, None));
}

/// Each rank learns its own times, but all select the same strategy for the next epoch.
#[test]
fn ranks_under_auto_select_the_same_strategy_in_the_next_epoch() {
    let mut by_times = 0;
    for seed in 0..200 {
        let random = &mut Random::new(seed ^ 0x9a7c);
        let (ranks, devices) = (random.small(2, 5), devices(random).max(1));
        let strategy = generate::auto(random);
        let mut first = generate::config(random, devices);
        (first.batches, first.holders) = (40, meetpoint_scheduler::Holders::Shared);
        let configs: Vec<_> = (0..ranks)
            .map(|_| {
                let mut scenario = generate::scenario(random, &first);
                scenario.kept.clear();
                (fit(Config { strategy, ranks, ..first.clone() }, &scenario), scenario)
            })
            .collect();
        let runs = run_ranks(&configs);
        let selections: Vec<_> = runs
            .iter()
            .zip(&configs)
            .map(|(run, (config, _))| {
                let next = Config { learned: run.learned.clone(), ..config.clone() };
                Epoch::new(next).expect("it can be run").selection().expect("auto picks")
            })
            .collect();
        assert!(selections.iter().all(|it| *it == selections[0]), "seed {seed}: {selections:?}");
        by_times += u32::from(selections[0].why != meetpoint_scheduler::Reason::Adapts);
    }
    assert!(by_times > 50, "{by_times} selected by learned times");
}

#[test]
fn ranks_that_work_in_windows_take_the_same_kind_of_source_in_each_step() {
    for_seeds(0..1_500, |_, random| {
        let window = random.small(1, 20);
        agreeing_ranks(random, Some(AnyStrategy::Windowed(Windowed { window })));
    });
}
