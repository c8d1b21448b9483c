//! The measured experiments on a bench that returns synthetic reports.

use meetpoint_lab::Error;
use meetpoint_lab::bench::{Bench, JobParameters, Material, PHOTOGRAPHS, Pictures};
use meetpoint_lab::reproduce::measured::{self as reproduced, Size};
use meetpoint_lab::validate::{self, Document, measured};
use meetpoint_report::grid::Style;
use meetpoint_report::{Failure, Report, made_up};
use meetpoint_scheduler::StrategyName;
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// The bench below fails on purpose.
#[derive(Debug)]
struct Failed;

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        panic!("no experiment fails by itself: {error}")
    }
}

#[derive(Default)]
struct MadeUp {
    runs: Cell<usize>,
    runs_max: Option<usize>,
    failure: Option<&'static str>,
    failed: RefCell<Vec<String>>,
}

impl Bench for MadeUp {
    type Error = Failed;

    fn material(
        &self,
        name: &str,
        _: Pictures,
        _: u32,
        batch_size: u32,
        recipe: &str,
    ) -> Result<Material, Failed> {
        let (name, recipe) = (name.to_owned(), recipe.to_owned());
        Ok(Material { name, recipe, batch_size, prepare: Duration::from_millis(60) })
    }

    fn with_recipe(&self, material: &Material, recipe: &str) -> Result<Material, Failed> {
        Ok(Material { recipe: recipe.to_owned(), ..material.clone() })
    }

    fn run(
        &self,
        _: &Material,
        _: JobParameters,
        wanted: &[StrategyName],
    ) -> Result<Report, Failed> {
        self.runs.set(self.runs.get() + 1);
        if self.runs_max.is_some_and(|max| self.runs.get() > max) {
            return Err(Failed);
        }
        let mut report = made_up::report(100);
        report.runs.retain(|run| wanted.iter().any(|name| name.as_str() == run.strategy));
        report.failures.extend(self.failure.map(|error| Failure {
            what: "mte".to_owned(),
            cause: "failed".to_owned(),
            error: error.to_owned(),
            remedy: None,
        }));
        Ok(report)
    }

    fn failed(&self, failure: &str) {
        self.failed.borrow_mut().push(failure.to_owned());
    }
}

fn photographs(bench: &MadeUp) -> Material {
    bench
        .material("photos.set", Pictures::Photographs, 64, 8, PHOTOGRAPHS)
        .expect("it always gives material")
}

#[test]
fn every_point_is_measured_and_a_run_off_target_does_not_count() {
    let bench = MadeUp::default();
    let points = measured::points(true);
    let mut steps = Vec::new();
    let rows = measured::rows(&bench, &photographs(&bench), &points, &mut |done, total| {
        steps.push((done, total));
    });
    let (rows, replays) = rows.unwrap();
    assert_eq!(steps, [(0, 2), (1, 2)]);
    assert_eq!((rows.len(), replays.len()), (2 * 3, 2 * 3));
    for row in &rows {
        // Its emulated device read 8 % too fast.
        assert_eq!(row.verdict.starts_with("INVALID"), row.strategy == "wrr", "{row:?}");
    }
    // Without workers, the host alone takes the sum of the times of its batches.
    let alone = &rows[0];
    assert_eq!((alone.workers, alone.strategy.as_str()), (0, "host-only"));
    assert!(alone.off_ratio.unwrap().abs() < 0.01, "{alone:?}");
    let document = Document::new(Vec::new(), (rows, replays));
    let text = validate::text(&document, Style::Plain);
    assert!(text.contains(" 2 INVALID "), "{text}");
}

#[test]
fn a_strategy_that_fails_is_reported_and_the_others_are_measured() {
    let bench = MadeUp { failure: Some("no device"), ..MadeUp::default() };
    let points = measured::points(true);
    measured::rows(&bench, &photographs(&bench), &points, &mut |_, _| {}).unwrap();
    assert_eq!(*bench.failed.borrow(), ["mte failed: no device"; 2]);
    let size = Size { batches: 8, quick: true };
    let outcome = reproduced::run(&bench, &photographs(&bench), size, &mut |_, _| {}).unwrap();
    assert_eq!(outcome.failures, ["ImageNet-like, mte: no device"]);
    assert_eq!(bench.failed.borrow().last(), outcome.failures.last());
}

#[test]
fn a_bench_that_fails_ends_the_experiment() {
    let bench = MadeUp { runs_max: Some(1), ..MadeUp::default() };
    let points = measured::points(true);
    let ended = measured::rows(&bench, &photographs(&bench), &points, &mut |_, _| {});
    assert!(matches!(ended, Err(Failed)));
    assert_eq!(bench.runs.get(), 2);
}

#[test]
fn a_reproduction_compares_each_run_with_the_host_alone() {
    let bench = MadeUp::default();
    let size = Size { batches: 8, quick: false };
    let photographs = reproduced::photographs(&bench, size).unwrap();
    let outcome = reproduced::run(&bench, &photographs, size, &mut |_, _| {}).unwrap();
    // Six settings, each warmed up once.
    assert_eq!((bench.runs.get(), outcome.rows.len()), (12, 18));
    for row in &outcome.rows {
        let is_alone = row.strategy == "host-only";
        assert_eq!(row.time_ratio == Some(1.0), is_alone, "{row:?}");
        assert_eq!(row.host_cpu_less == Some(0.0), is_alone, "{row:?}");
    }
    let mte = outcome.rows.iter().find(|row| row.strategy == "mte").unwrap();
    assert!((mte.device_share - 0.4).abs() < 1e-9 && mte.invalid.is_empty(), "{mte:?}");
}
