//! Plans whose source is not where they expect it.

use super::support::Bench;
use meetpoint_datasets::pack::sharded::{plan_pack, run_pack};
use meetpoint_datasets::shards::{PartRule, PlanFolder, ShardError, ShardOptions, ShardSummary};
use meetpoint_datasets::{Error, PackOptions};
use meetpoint_diagnose::Diagnose;
use std::sync::Arc;

/// Runs the first shard.
fn run(folder: &PlanFolder) -> Result<ShardSummary, Error> {
    let mut options = ShardOptions { threads: 1, stop: Arc::default(), line: &mut |_| () };
    run_pack(folder, 0, &mut options, &mut |_| ())
}

#[test]
fn a_source_that_is_missing_is_named_with_a_remedy_whatever_is_beside_it() {
    let bench = Bench::with_images(&["a.jpg", "b.jpg"]);
    let options = PackOptions { part_rule: PartRule::of(Some(1), None), ..PackOptions::default() };
    let folder = plan_pack(&bench.from(), &bench.to(), &options, 1).unwrap();
    let from = bench.from().canonicalize().unwrap();
    std::fs::rename(&from, bench.path().join("elsewhere")).unwrap();
    std::fs::write(bench.path().join("unrelated.txt"), "text").unwrap();
    let error = run(&folder).unwrap_err();
    let Error::Shards(ShardError::SourceMissing { source }) = &error else { panic!("{error}") };
    assert_eq!(*source, from);
    assert!(error.remedy().is_some());
    std::fs::rename(bench.path().join("elsewhere"), &from).unwrap();
    assert_eq!(run(&folder).unwrap().samples, 2);
}
