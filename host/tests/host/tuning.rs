//! Loaders whose numbers of workers and of batches ahead adapt: batches, order and budget.

use crate::support::{config, consume, dataset};
use meetpoint_host::explain::{RunContext, explain};
use meetpoint_host::{Loader, LoaderConfig, Tune};

#[test]
fn a_tuned_loader_gives_the_same_batches_in_the_same_order() {
    let folder = dataset(60);
    let config = LoaderConfig { batch_size: 1, ..config(folder.path()) };
    let mut plain = Loader::open(config.clone()).unwrap();
    for workers in [0, 1, 3] {
        let tuned = LoaderConfig { workers, tune: Tune::Auto, ..config.clone() };
        let mut loader = Loader::open(tuned).unwrap();
        for epoch in 0..4 {
            let (expected, _) = consume(plain.start_epoch(epoch).unwrap());
            let (batches, stats) = consume(loader.start_epoch(epoch).unwrap());
            assert_eq!(batches, expected);
            let used = stats.tuning.unwrap();
            assert!(used.end.workers >= 1 && used.end.workers <= workers.max(used.budget.cores));
            assert!(used.end.ahead <= used.budget.ahead_max);
            let explained = explain(&stats, &RunContext::default()).unwrap();
            assert_eq!(explained.tuning, Some(used));
            assert_eq!(explained.workers, used.end.workers);
        }
    }
}

#[test]
fn without_tuning_it_is_not_reported() {
    let folder = dataset(8);
    let mut loader = Loader::open(config(folder.path())).unwrap();
    let (_, stats) = consume(loader.start_epoch(0).unwrap());
    assert_eq!(stats.tuning, None);
}

#[test]
fn a_small_memory_budget_leaves_no_room_to_raise() {
    let folder = dataset(8);
    // A slot of the ring has at least 2 MiB, so the budget holds four batches, two of which the
    // consumer uses.
    let config = LoaderConfig {
        memory_budget_bytes: 8 << 20,
        workers: 1,
        tune: Tune::Auto,
        ..config(folder.path())
    };
    let mut loader = Loader::open(config).unwrap();
    let (_, stats) = consume(loader.start_epoch(0).unwrap());
    assert_eq!(stats.tuning.unwrap().budget.ahead_max, 2);
}
