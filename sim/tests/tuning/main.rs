//! The tuner on modelled machines, in virtual time: it finds useful changes, undoes others, and
//! costs next to nothing where nothing helps.

mod machine;

use machine::{Machine, Run};
use meetpoint_scheduler::{Budget, Concurrency, Tuned, TuningChange, Verdict};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// One worker that prepares two batches ahead.
const ONE: Concurrency = Concurrency { workers: 1, ahead: 2 };

fn machine(cores: u32, prepare_ns: u64, step_ns: u64) -> Machine {
    Machine { cores, compute_ns: prepare_ns, step_ns, ..Machine::default() }
}

fn budget(cores: u32) -> Budget {
    Budget { cores, ahead_max: 64 }
}

/// Time of a tuned run as a share of an untuned one.
fn ratio(tuned: &Run, fixed: &Run) -> f64 {
    tuned.duration_ns as f64 / fixed.duration_ns as f64
}

#[test]
fn workers_are_added_while_cores_are_idle_and_the_consumer_waits() {
    let machine = machine(8, 40 * MS, 5 * MS);
    let (fixed, tuned) = (machine.fixed(ONE, 3000), machine.tuned(ONE, budget(8), 3000));
    assert!(ratio(&tuned, &fixed) < 0.2, "{}", ratio(&tuned, &fixed));
    let end = tuned.concurrency;
    assert!((7..=8).contains(&end.workers), "{end:?}");
    assert_eq!(tuned.order, fixed.order);
}

#[test]
fn nothing_is_tried_while_the_consumer_hardly_waits() {
    let machine = machine(8, 10 * MS, 20 * MS);
    let tuned = machine.tuned(ONE, budget(8), 2000);
    assert_eq!((tuned.concurrency, tuned.decisions), (ONE, vec![]));
}

#[test]
fn a_move_that_does_not_help_is_undone_and_tried_ever_more_rarely() {
    // A drive that serves one batch at a time: workers only queue at it.
    let machine = Machine { cores: 8, serial_ns: 20 * MS, ..Machine::default() };
    let (fixed, tuned) = (machine.fixed(ONE, 20_000), machine.tuned(ONE, budget(8), 20_000));
    assert_eq!(tuned.concurrency, ONE);
    let is_tried = |it: &&Tuned| matches!(it.verdict, Verdict::Tried { .. });
    let tried = tuned.decisions.iter().filter(is_tried).count();
    assert!((1..=16).contains(&tried), "{:?}", tuned.decisions);
    assert!(ratio(&tuned, &fixed) <= 1.02, "{}", ratio(&tuned, &fixed));
}

#[test]
fn room_for_more_batches_is_given_where_times_vary_and_workers_wait_for_room() {
    // One batch in sixteen takes as long as all the others together.
    let machine = Machine {
        cores: 2,
        compute_ns: 3 * MS,
        straggler_every: 16,
        straggler_ns: 75 * MS,
        step_ns: 10 * MS,
        ..Machine::default()
    };
    let (fixed, tuned) = (machine.fixed(ONE, 4000), machine.tuned(ONE, budget(1), 4000));
    let is_kept = |it: &Tuned| matches!(it.verdict, Verdict::Kept { .. });
    let mut of_ahead = tuned.decisions.iter().filter(|it| it.tried == TuningChange::RaiseAhead);
    assert!(of_ahead.any(is_kept), "{:?}", tuned.decisions);
    assert!(
        tuned.concurrency.ahead > 2 && ratio(&tuned, &fixed) < 0.9,
        "{}",
        ratio(&tuned, &fixed)
    );
}

#[test]
fn workers_beyond_the_cores_are_removed_where_they_hinder_each_other() {
    let machine = Machine { contention: 0.08, ..machine(2, 10 * MS, MS) };
    let start = Concurrency { workers: 8, ahead: 16 };
    let (fixed, tuned) = (machine.fixed(start, 12_000), machine.tuned(start, budget(2), 12_000));
    assert!(tuned.concurrency.workers < 8, "{:?}", tuned.concurrency);
    assert!(ratio(&tuned, &fixed) < 0.9, "{}", ratio(&tuned, &fixed));
}

#[test]
fn a_move_that_the_host_refuses_is_undone_for_good() {
    let machine = Machine { workers_limit: 2, ..machine(8, 40 * MS, 5 * MS) };
    let tuned = machine.tuned(ONE, budget(8), 3000);
    assert_eq!(tuned.concurrency.workers, 2);
    let refused = tuned.decisions.iter().filter(|it| it.verdict == Verdict::Refused);
    assert_eq!(refused.count(), 1);
}

prop_compose! {
    fn any_machine()(
        cores in 1_u32..=8,
        compute_ns in 0..40 * MS,
        serial_ns in prop_oneof![Just(0), 0..20 * MS],
        wait_ns in prop_oneof![Just(0), 0..20 * MS],
        step_ns in prop_oneof![Just(0), 0..40 * MS],
        is_step_on_cpu in any::<bool>(),
        contention in 0.0..0.1_f64,
        // Without variation, workers on shared cores synchronise in one of several stable patterns.
        jitter in 0.1..0.5_f64,
        straggler_every in prop_oneof![Just(0_u32), 3..32_u32],
        straggler_ns in 0..100 * MS,
        seed in any::<u64>(),
    ) -> Machine {
        Machine {
            cores,
            // Something takes time.
            compute_ns: compute_ns + MS,
            serial_ns,
            wait_ns,
            step_ns,
            is_step_on_cpu,
            contention,
            jitter,
            straggler_every,
            straggler_ns,
            seed,
            workers_limit: u32::MAX,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_tuned_run_is_never_slower_than_the_default_by_more_than_two_percent(
        machine in any_machine(),
        workers in 1_u32..=6,
        prefetch in 1_u32..=4,
    ) {
        let ahead = (workers * prefetch).max(workers + 1);
        let start = Concurrency { workers, ahead };
        let fixed = machine.fixed(start, 3000);
        let tuned = machine.tuned(start, budget(machine.cores), 3000);
        let ratio = ratio(&tuned, &fixed);
        prop_assert!(ratio <= 1.02, "{ratio}: {:?}", tuned.decisions);
        prop_assert_eq!(&tuned.order, &fixed.order, "the order is that of the sampler");
    }

    #[test]
    fn the_budget_is_never_exceeded(
        machine in any_machine(),
        workers in 1_u32..=12,
        ahead in 2_u32..=24,
        ahead_max in 1_u32..=48,
    ) {
        let start = Concurrency { workers, ahead };
        let budget = Budget { cores: machine.cores, ahead_max };
        let tuned = machine.tuned(start, budget, 1000);
        prop_assert!(tuned.workers_most <= workers.max(machine.cores));
        prop_assert!(tuned.ahead_most <= ahead.max(ahead_max));
        for decision in &tuned.decisions {
            let is_undone = matches!(
                decision.verdict,
                Verdict::RolledBack { .. } | Verdict::Refused
            );
            prop_assert_eq!(is_undone, decision.before == decision.now);
        }
    }
}
