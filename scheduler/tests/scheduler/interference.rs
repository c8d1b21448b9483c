//! If devices slow down the host, `auto` is at most 2 % slower than the host alone. Devices whose
//! work was reclaimed no longer slow it down.

use meetpoint_scheduler::{
    AnyStrategy, Auto, Config, DeviceConfig, Goal, Holders, HostOnly, Learned, Order, Profile, Wrr,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::driver::{Faults, Run, Scenario, Slowed, run_ranks};

const MS: u64 = 1_000_000;
const BATCHES: u32 = 1_500;

/// In addition to 2 %, an epoch may take the time of this many batches per worker at the largest
/// slowdown, because a window is judged by finished batches.
const BATCHES_MORE: u64 = 4;

#[derive(Debug, Clone)]
struct Case {
    workers: u32,
    host_ns: u64,
    step_ns: u64,
    /// Of each device.
    device_ns: Vec<u64>,
    ahead: u32,
    order: Order,
    is_known: bool,
    /// Of devices.
    jitter: bool,
    /// Of the host, in percent.
    varies: u64,
    slowed: Slowed,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let host = (0_u32..6, 5 * MS..20 * MS, MS..10 * MS);
    let devices = (prop::collection::vec(2 * MS..80 * MS, 1..4), 1_u32..12);
    let order = prop::sample::select(vec![Order::Any, Order::Replayable, Order::Baseline]);
    let slowed = (0_u64..60, 0_u64..300);
    (host, devices, order, slowed, any::<(bool, bool, u64)>()).prop_map(
        |((workers, host_ns, step_ns), (device_ns, ahead), order, slowed, other)| Case {
            workers,
            host_ns,
            step_ns,
            device_ns,
            ahead,
            order,
            is_known: other.0,
            jitter: other.1,
            varies: 0,
            slowed: Slowed { each: slowed.0, most: slowed.1 },
            seed: other.2,
        },
    )
}

fn epoch(case: &Case, strategy: AnyStrategy) -> Run {
    run_ranks(&[one_of(1, case, strategy)]).pop().expect("one rank has one run")
}

/// One of several ranks, with the host and devices of a case.
fn one_of(ranks: u32, case: &Case, strategy: AnyStrategy) -> (Config, Scenario) {
    let period = match u64::from(case.workers) {
        0 => case.host_ns + case.step_ns,
        workers => (case.host_ns / workers).max(case.step_ns),
    };
    let devices = case.device_ns.len();
    let truth = Profile { host_ns: period, device_ns: case.device_ns[0], ready_ns: case.step_ns };
    let learned = Learned {
        preparation_ns: case.host_ns,
        alone_ns: case.host_ns,
        ..Learned::from_profile(&truth, devices)
    };
    let device = DeviceConfig { ahead: case.ahead, spool_slots: 64, first_generation: 0 };
    let config = Config {
        batches: BATCHES,
        strategy,
        host_ahead: (case.workers * 2).max(1),
        fetch_ahead: 4,
        devices: vec![device; devices],
        holders: Holders::Shared,
        stall_timeout_ns: 2_000 * MS,
        stalls_max: 3,
        profile_batches: 4,
        learned: if case.is_known { learned } else { Learned::nothing() },
        replay: None,
        ranks,
        costs: None,
    };
    let scenario = Scenario {
        seed: case.seed,
        workers: case.workers,
        host_ns: case.host_ns,
        device_ns: case.device_ns.clone(),
        step_ns: case.step_ns,
        fetch_ns: MS / 2,
        jitter: false,
        varies: case.varies,
        faults: vec![Faults { jitter: case.jitter, ..Faults::default() }; devices],
        kept: Vec::new(),
        run_ahead_ns: 0,
        slowed: case.slowed,
    };
    (config, scenario)
}

fn auto(order: Order) -> AnyStrategy {
    AnyStrategy::Auto(Auto { goal: Goal::Throughput, order })
}

/// Times of an epoch under `auto` and of the host alone, and the time of the batches that are
/// judged only when they are finished.
fn times(case: &Case) -> (u64, u64, u64) {
    let alone = epoch(case, AnyStrategy::HostOnly(HostOnly)).ended_ns;
    let with = epoch(case, auto(case.order)).ended_ns;
    let longest = case.host_ns * (100 + case.slowed.most) / 100 + case.step_ns;
    (with, alone, BATCHES_MORE * u64::from(case.workers.max(1)) * longest)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_epoch_under_auto_takes_ten_percent_longer(case in case()) {
        let (with, alone, more) = times(&case);
        let bound = alone + alone / 10 + more;
        prop_assert!(
            with <= bound,
            "{:.3} of the host alone, at most {:.3}",
            with as f64 / alone as f64,
            bound as f64 / alone as f64,
        );
    }
}

/// About one random model in a thousand exceeds this limit; the worst of 12,000 by 2.6 % of the
/// epoch.
#[test]
fn almost_every_epoch_under_auto_takes_at_most_two_percent_longer() {
    let mut runner = TestRunner::deterministic();
    let cases = (0..400).map(|_| case().new_tree(&mut runner).expect("a case").current());
    let exceeds = |case: &Case| {
        let (with, alone, more) = times(case);
        with > alone + alone / 50 + more
    };
    let over: Vec<Case> = cases.filter(exceeds).collect();
    assert!(over.len() <= 4, "{} of 400: {over:?}", over.len());
}

/// The time of ranks with the same host and devices. The devices of some ranks slow the host down.
fn together(case: &Case, slowed: &[Slowed], strategy: AnyStrategy) -> u64 {
    let ranks = slowed.len() as u32;
    let of = slowed.iter().zip(1..).map(|(&slowed, at)| {
        let seed = case.seed.wrapping_add(at);
        one_of(ranks, &Case { slowed, seed, ..case.clone() }, strategy)
    });
    let runs = run_ranks(&of.collect::<Vec<_>>());
    runs.iter().map(|run| run.ended_ns).max().expect("there is a rank")
}

/// The mean of all ranks does not show the loss of a single rank. If that exceeds the random
/// variation of the rank, all ranks withdraw their devices.
#[test]
fn one_rank_of_four_that_devices_slow_down_does_not_delay_all() {
    for (each, most) in [(60, 300), (100, 200), (300, 300)] {
        for seed in 0..8 {
            let case = Case {
                workers: 4,
                host_ns: 16 * MS,
                step_ns: MS,
                device_ns: vec![30 * MS],
                ahead: 8,
                order: Order::Any,
                is_known: true,
                jitter: true,
                varies: 0,
                slowed: Slowed::default(),
                seed,
            };
            let slowed = [Slowed::default(), Slowed::default(), Slowed { each, most }];
            let slowed = [&slowed[..], &[Slowed::default()]].concat();
            let alone = together(&case, &slowed, AnyStrategy::HostOnly(HostOnly));
            let with = together(&case, &slowed, auto(Order::Any));
            let more = BATCHES_MORE * 4 * (case.host_ns * (100 + most) / 100 + MS);
            let ratio = with as f64 / alone as f64;
            assert!(with <= alone + alone / 50 + more, "{each} %, at most {most} %: {ratio}");
        }
    }
}

/// Two to four ranks, of which devices slow down some, with a host that varies by up to 35 %.
fn few_ranks() -> impl Strategy<Value = (Case, Vec<Slowed>)> {
    let slowed = (0_u64..60, 0_u64..300).prop_map(|(each, most)| Slowed { each, most });
    let slowed = prop_oneof![Just(Slowed::default()), slowed];
    let varies = prop::sample::select(vec![0, 20, 35]);
    (case(), prop::collection::vec(slowed, 2..=4), varies)
        .prop_map(|(case, slowed, varies)| (Case { varies, ..case }, slowed))
}

/// By how much an epoch under `auto` exceeds 2 % more than the host alone, in host batches at the
/// largest slowdown.
fn excess(case: &Case, slowed: &[Slowed]) -> f64 {
    let alone = together(case, slowed, AnyStrategy::HostOnly(HostOnly)) as f64;
    let with = together(case, slowed, auto(case.order)) as f64;
    let most = slowed.iter().map(|slowed| slowed.most).max().expect("there is a rank");
    (with - alone * 1.02) / (case.host_ns * (100 + most) / 100 + case.step_ns) as f64
}

/// Each step waits for the slowest rank, whose loss the mean of all ranks does not show. About two
/// random models in a hundred exceed this limit, most of them with one worker and a fixed order;
/// the worst of 1,000 by 6 % of the epoch.
#[test]
fn almost_every_epoch_of_few_ranks_takes_at_most_two_percent_and_a_batch_longer() {
    let mut runner = TestRunner::deterministic();
    let cases = (0..200).map(|_| few_ranks().new_tree(&mut runner).expect("a case").current());
    let excesses = cases.map(|(case, slowed)| (excess(&case, &slowed), case, slowed));
    let over: Vec<_> = excesses.filter(|(excess, ..)| *excess > 1.0).collect();
    assert!(over.len() <= 6, "{} of 200: {over:?}", over.len());
}

/// A rank whose devices cost more than they helped must not get the same window again, even if the
/// mean of all ranks gains.
#[test]
fn a_rank_that_demanded_a_withdrawal_refuses_the_same_window() {
    let mut slowed = vec![Slowed::default(); 16];
    slowed[0] = Slowed { each: 54, most: 151 };
    for host_us in (9_000..10_000).step_by(100) {
        let case = Case {
            workers: 1,
            host_ns: host_us * MS / 1_000,
            step_ns: MS,
            device_ns: vec![57 * MS, 54 * MS],
            ahead: 5,
            order: Order::Any,
            is_known: true,
            jitter: false,
            varies: 0,
            slowed: Slowed::default(),
            seed: 0,
        };
        let excess = excess(&case, &slowed);
        assert!(excess < 1.0, "{host_us} µs: {excess} batches");
    }
}

/// Host batches beside which devices worked for a short time do not measure the host alone.
#[test]
fn devices_that_often_have_no_work_do_not_hide_the_time_of_the_host_alone() {
    let case = Case {
        workers: 5,
        host_ns: 17 * MS,
        step_ns: MS / 2,
        device_ns: vec![46 * MS],
        ahead: 1,
        order: Order::Any,
        is_known: false,
        jitter: false,
        varies: 0,
        slowed: Slowed::default(),
        seed: 0,
    };
    let slowed = [(25, 197), (53, 132), (21, 236), (0, 0)];
    let excess = excess(&case, &slowed.map(|(each, most)| Slowed { each, most }));
    assert!(excess < 1.0, "{excess} batches");
}

/// A link that one device batch leaves mostly idle, and eight saturate.
#[test]
fn devices_that_help_only_in_a_small_window_get_one() {
    let case = Case {
        workers: 8,
        host_ns: 40 * MS,
        step_ns: MS,
        device_ns: vec![10 * MS; 2],
        ahead: 16,
        order: Order::Any,
        is_known: true,
        jitter: false,
        varies: 0,
        slowed: Slowed { each: 12, most: 300 },
        seed: 1,
    };
    let alone = epoch(&case, AnyStrategy::HostOnly(HostOnly)).ended_ns as f64;
    let limited = epoch(&case, auto(Order::Any)).ended_ns as f64 / alone;
    let wrr = epoch(&case, AnyStrategy::Wrr(Wrr)).ended_ns as f64 / alone;
    assert!(limited < 0.8, "{limited} of the host alone, {wrr} with all that devices may hold");
    assert!(limited < wrr * 0.9, "{limited} of the host alone, {wrr} without a limit");
}
