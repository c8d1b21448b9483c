//! The memory of small samples: a part of the memory budget that a job can set.

use crate::support::{config, consume, dataset};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_host::{Error, Loader, LoaderConfig};

/// The least that a slot of the ring takes: a huge page.
const SLOT_BYTES: u64 = 2 << 20;

fn with(small_samples_bytes: Option<u64>) -> (tempfile::TempDir, LoaderConfig) {
    let folder = dataset(40);
    let mut config = config(folder.path());
    config.small_samples_bytes = small_samples_bytes;
    (folder, config)
}

#[test]
fn small_samples_are_read_once_unless_the_job_grants_no_memory() {
    let mut epochs = Vec::new();
    for (granted, is_read_again) in [(None, false), (Some(1 << 20), false), (Some(0), true)] {
        let (_folder, config) = with(granted);
        let mut loader = Loader::open(config).unwrap();
        let (first, stats) = consume(loader.start_epoch(0).unwrap());
        assert!(stats.host_bytes_read > 0);
        let (second, stats) = consume(loader.start_epoch(1).unwrap());
        assert_eq!(stats.host_bytes_read > 0, is_read_again, "{granted:?}");
        epochs.push((first, second));
    }
    assert!(epochs.iter().all(|epoch| *epoch == epochs[0]));
}

#[test]
fn the_memory_of_small_samples_is_a_part_of_the_memory_budget() {
    let (_folder, mut config) = with(Some(1 << 20));
    // Two batches fit, and nothing else.
    config.memory_budget_bytes = 2 * SLOT_BYTES;
    let refused = Loader::open(config.clone()).map(|_| ()).unwrap_err();
    let Error::BudgetTooSmall { small_samples_bytes, least: 2, .. } = refused else {
        panic!("{refused}")
    };
    // No more is reserved than the samples take.
    assert!((1..1 << 20).contains(&small_samples_bytes), "{small_samples_bytes}");
    let remedy = refused.remedy().unwrap().spelled(Surface::CommandLine);
    assert!(remedy.contains("memory_budget") && remedy.contains("small_samples"), "{remedy}");
    // Without a size, batches come first.
    for (granted, is_read_again) in [(Some(0), true), (None, true)] {
        config.small_samples_bytes = granted;
        let mut loader = Loader::open(config.clone()).unwrap();
        consume(loader.start_epoch(0).unwrap());
        let (_, stats) = consume(loader.start_epoch(1).unwrap());
        assert_eq!(stats.host_bytes_read > 0, is_read_again, "{granted:?}");
    }
}
