//! Decisions under limits, what amortises when, and what would change them.

use crate::measured;
use meetpoint_planner::decide::{Change, DecideError, Refused, RefusedBecause};
use meetpoint_planner::{Decision, Form, Goal, Measured, decide};

const GOAL: Goal = Goal {
    epochs: 10,
    storage_limit: None,
    memory_limit: None,
    confidence: 0.95,
    allows_loss: false,
};

/// Nothing offline: 10 s an epoch. Packed: 3 s offline, 8 s. Resized: 30 s offline, 2 s, larger.
fn three() -> Vec<Measured> {
    vec![
        measured(Form::Files, 0.0, 100.0, 100.0, 100_000.0),
        measured(Form::Packed, 3.0, 125.0, 125.0, 101_000.0),
        measured(Form::Prepared, 30.0, 500.0, 500.0, 300_000.0),
    ]
}

fn order(decision: &Decision) -> Vec<usize> {
    decision.ranked.iter().map(|it| it.index).collect()
}

#[test]
fn the_strategy_that_finishes_first_wins_and_the_epochs_decide() {
    for (epochs, expected) in [(1, [0, 1, 2]), (2, [1, 0, 2]), (5, [2, 1, 0]), (100, [2, 1, 0])] {
        let decision = decide(&three(), &Goal { epochs, ..GOAL }).unwrap();
        assert_eq!(order(&decision), expected, "{epochs} epochs");
    }
    let decision = decide(&three(), &GOAL).unwrap();
    let seconds: Vec<f64> = decision.ranked.iter().map(|it| it.seconds).collect();
    assert_eq!(seconds, [50.0, 83.0, 100.0]);
    assert_eq!(decision.margin_seconds, Some(33.0));
    assert!(decision.is_certain, "there is no spread");
    assert_eq!(decision.contenders(), [2]);
    // 30 + 2 e < 10 e from e = 4 on; 3 + 8 e < 10 e from e = 2 on.
    let amortized: Vec<_> = decision.ranked.iter().map(|it| it.amortized_after).collect();
    assert_eq!(amortized, [Some(4), Some(2), None]);
}

#[test]
fn what_would_change_the_decision_is_exact() {
    let results = three();
    let decision = decide(&results, &GOAL).unwrap();
    // 3 + 8 e <= 30 + 2 e up to e = 4.5.
    let expected = [
        Change::EpochsAtMost { epochs: 4, index: 1 },
        Change::StorageBelow { bytes: 300_000.0, index: 1 },
    ];
    assert_eq!(decision.changes, expected);
    let goal = Goal { epochs: 3, storage_limit: Some(200_000), ..GOAL };
    let decision = decide(&results, &goal).unwrap();
    assert_eq!(order(&decision), [1, 0]);
    assert_eq!(
        decision.changes,
        [
            Change::EpochsAtMost { epochs: 1, index: 0 },
            Change::StorageBelow { bytes: 101_000.0, index: 0 },
        ],
        "the refused strategy is slower for three epochs"
    );
    // Each change does what it says.
    for epochs in 1..30 {
        let best = decide(&results, &Goal { epochs, ..GOAL }).unwrap();
        for change in &best.changes {
            match *change {
                Change::EpochsAtLeast { epochs, index }
                | Change::EpochsAtMost { epochs, index } => {
                    let then = decide(&results, &Goal { epochs, ..GOAL }).unwrap();
                    assert_eq!(then.best().index, index, "{change:?}");
                }
                Change::StorageBelow { bytes, index } => {
                    let storage_limit = Some(bytes as u64 - 1);
                    let goal = Goal { epochs, storage_limit, ..GOAL };
                    assert_eq!(decide(&results, &goal).unwrap().best().index, index);
                }
                Change::StorageAtLeast { .. } | Change::MemoryAtLeast { .. } => {
                    panic!("there is no limit")
                }
            }
        }
    }
}

#[test]
fn limits_refuse_with_figures_and_say_what_a_higher_one_would_do() {
    let results = three();
    let goal = Goal { storage_limit: Some(200_000), ..GOAL };
    let decision = decide(&results, &goal).unwrap();
    let because = RefusedBecause::Storage { needed: 300_000.0, limit: 200_000 };
    assert_eq!(decision.refused, [Refused { index: 2, because }]);
    assert_eq!(decision.best().index, 1);
    let raised = Change::StorageAtLeast { bytes: 300_000.0, index: 2 };
    assert!(decision.changes.contains(&raised), "{decision:?}");

    let goal = Goal { memory_limit: Some(100_500), ..GOAL };
    let decision = decide(&results, &goal).unwrap();
    assert_eq!(order(&decision), [0], "page caches of the others do not fit");
    let raised = Change::MemoryAtLeast { bytes: 101_000.0, index: 1 };
    assert!(decision.changes.contains(&raised), "{decision:?}");

    let nothing = decide(&results, &Goal { memory_limit: Some(10), ..GOAL });
    assert_eq!(
        nothing,
        Err(DecideError::NothingFits { storage_bytes: 0.0, memory_bytes: 100_000.0 })
    );
}

#[test]
fn a_form_that_loses_detail_wins_only_where_it_is_allowed() {
    let mut results = three();
    results.push(measured(Form::Jpeg, 20.0, 600.0, 600.0, 50_000.0));
    let decision = decide(&results, &GOAL).unwrap();
    let lossy = Refused { index: 3, because: RefusedBecause::Lossy };
    assert_eq!((decision.best().index, &decision.refused[..]), (2, &[lossy][..]));
    let decision = decide(&results, &Goal { allows_loss: true, ..GOAL }).unwrap();
    assert_eq!(decision.best().index, 3);
}

#[test]
fn the_best_is_certain_only_beyond_the_spread() {
    let mut results = three();
    for (deviation, is_certain) in [(0.0, true), (5.0, true), (400.0, false)] {
        results[2].per_second_deviation = deviation;
        let decision = decide(&results, &GOAL).unwrap();
        assert_eq!(decision.is_certain, is_certain, "{deviation}");
    }
    results[2].per_second_deviation = 0.0;
    results[2].sampling_error = 3.0;
    assert!(!decide(&results, &GOAL).unwrap().is_certain);
    // One run gives no spread.
    results[2].sampling_error = 0.0;
    results.iter_mut().for_each(|it| it.runs = 1);
    let decision = decide(&results, &GOAL).unwrap();
    assert!(!decision.is_certain && decision.best().seconds_off.is_none());
    assert_eq!(decision.contenders().len(), 3);
}

#[test]
fn invalid_goals_are_refused() {
    let refused = |goal| decide(&three(), &goal).unwrap_err();
    assert_eq!(refused(Goal { epochs: 0, ..GOAL }), DecideError::NoEpochs);
    for confidence in [0.0, 1.0, -1.0] {
        assert_eq!(refused(Goal { confidence, ..GOAL }), DecideError::Confidence(confidence));
    }
    assert_eq!(decide(&[], &GOAL), Err(DecideError::NoResults));
}
