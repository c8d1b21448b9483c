//! Compares closed forms with values checked by hand, and tests where they do not apply.

use meetpoint_scheduler::closed_forms::{Inputs, NotApplicable, Prediction, Regime};
use meetpoint_scheduler::{DeviceOnly, Mte, Profile, Split, Strategy, StrategyName, Tail, Wrr};

fn equal_finish(tail: Tail) -> Mte {
    Mte { split: Split::EqualFinish, tail }
}

fn inputs(t_c: f64, t_g: f64, t_s: f64, background: bool) -> Inputs {
    let ns = |units: f64| (units * 1e9).round() as u64;
    let profile = Profile { host_ns: ns(t_c), device_ns: ns(t_s), ready_ns: ns(t_g) };
    Inputs { batches: 5_000, background, profile, spool_slots: 5_000 }
}

fn saving(prediction: Prediction, t_c: f64) -> f64 {
    1.0 - prediction.total_ns / (5_000.0 * t_c * 1e9)
}

#[test]
fn mte_and_wrr_without_workers_give_the_checked_savings() {
    for (t_c, t_g, t_s, mte, wrr_saves) in [
        (0.25, 0.10, 1.0, 0.1200, 0.1304),
        (1.0, 0.375, 2.0, 0.2083, 0.2381),
        (1.0, 0.494, 2.15, 0.1606, 0.1905),
        (0.5, 0.4, 1.0, 0.0667, 0.0909),
        (1.0, 0.2, 3.0, 0.2000, 0.2105),
        (1.0, 0.05, 8.0, 0.1056, 0.1061),
    ] {
        let given = inputs(t_c, t_g, t_s, false);
        for tail in [Tail::Descending, Tail::Ascending] {
            let found = saving(equal_finish(tail).closed_form(&given).unwrap(), t_c);
            assert!((found - mte).abs() < 6e-5, "mte {t_c} {t_g} {t_s}: {found}");
        }
        let found = saving(Wrr.closed_form(&given).unwrap(), t_c);
        assert!((found - wrr_saves).abs() < 6e-5, "wrr {t_c} {t_g} {t_s}: {found}");
    }
}

#[test]
fn wrr_with_workers_gives_the_checked_times_per_batch() {
    for (p, t_t, t_s, per_batch, mte) in [
        (1.0, 0.3, 4.0, 0.8000, Some(0.8600)),
        (1.0, 0.9, 4.0, 0.9000, Some(0.9800)),
        (1.0, 0.3, 2.0, 0.6667, Some(0.7667)),
        (0.5, 0.3, 2.0, 0.4000, Some(0.4600)),
        (1.0, 1.2, 4.0, 1.2000, None),
    ] {
        let given = inputs(f64::max(p, t_t), t_t, t_s, true);
        let found = Wrr.closed_form(&given).unwrap().total_ns / 5_000.0 / 1e9;
        assert!((found - per_batch).abs() < 6e-5, "wrr {p} {t_t} {t_s}: {found}");
        if let Some(mte) = mte {
            let found = equal_finish(Tail::Descending).closed_form(&given).unwrap();
            assert!((found.total_ns / 5_000.0 / 1e9 - mte).abs() < 6e-5);
        }
    }
}

#[test]
fn a_form_that_does_not_apply_has_a_reason() {
    assert_eq!(Wrr.closed_form(&inputs(0.5, 0.6, 1.0, false)), Err(NotApplicable::NoGainPerBatch));
    assert_eq!(Wrr.closed_form(&inputs(0.5, 0.0, 1.0, false)), Err(NotApplicable::Unknown("t_g")));
    assert_eq!(
        DeviceOnly.closed_form(&inputs(1.0, 1.0, 0.0, false)),
        Err(NotApplicable::Unknown("t_s"))
    );
    let small = Inputs { spool_slots: 9, ..inputs(1.0, 0.5, 2.0, false) };
    assert_eq!(
        Mte { split: Split::Fixed(10), tail: Tail::Descending }.closed_form(&small),
        Err(NotApplicable::SpoolTooSmall { part: 10, slots: 9 })
    );
    assert_eq!(
        equal_finish(Tail::Descending).closed_form(&small).unwrap().regime,
        Regime::WaitsForHost
    );
}

#[test]
fn a_device_faster_than_the_accelerator_does_everything() {
    let found = Wrr.closed_form(&inputs(1.0, 0.5, 0.4, false)).unwrap();
    assert_eq!((found.regime, found.total_ns), (Regime::DeviceAlone, 5_000.0 * 0.5e9));
}

#[test]
fn every_strategy_except_auto_has_a_form_that_names_itself() {
    for name in StrategyName::ALL {
        let strategy = name.with_defaults();
        let found = strategy.closed_form(&inputs(1.0, 0.5, 2.0, false));
        match found {
            Ok(found) => assert!(found.formula.starts_with("T = "), "{name}: {}", found.formula),
            Err(NotApplicable::NoForm { strategy: of }) => {
                assert!(strategy.is_selector() && of == name.as_str(), "{name} has no form");
            }
            Err(other) => panic!("{name}: {other}"),
        }
    }
}
