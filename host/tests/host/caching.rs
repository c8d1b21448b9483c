//! Loaders with a cache of prepared samples: hits, ranks that share it, and what is refused.

use crate::support::{config, consume, dataset};
use meetpoint_host::explain::{RunContext, explain};
use meetpoint_host::group::{self, GroupCallbacks, Progress};
use meetpoint_host::stats::CacheUse;
use meetpoint_host::{Accelerator, Error, Loader, LoaderConfig, Null};
use meetpoint_prepare::cache::{CacheError, CacheSettings};

fn cached(samples: u32) -> (tempfile::TempDir, LoaderConfig) {
    let folder = dataset(samples);
    let mut config = config(folder.path());
    config.cache = Some(CacheSettings { bytes: 32 << 20, operations: Some(1) });
    config.workers = 2;
    (folder, config)
}

#[test]
fn every_sample_of_later_epochs_comes_from_the_cache_and_the_epochs_are_the_same() {
    let (_folder, config) = cached(40);
    let mut plain = Loader::open(LoaderConfig { cache: None, ..config.clone() }).unwrap();
    let mut loader = Loader::open(config).unwrap();
    for epoch in 0..3 {
        let (expected, _) = consume(plain.start_epoch(epoch).unwrap());
        let (batches, stats) = consume(loader.start_epoch(epoch).unwrap());
        assert_eq!(batches, expected);
        let cache = stats.cache.unwrap();
        let all = if epoch == 0 { (0, 40) } else { (40, 0) };
        assert_eq!((cache.hits, cache.misses), all);
        assert_eq!((cache.added, cache.evicted), (40, 0));
        let context = RunContext { workers: 2, cores: 2, ..RunContext::default() };
        assert_eq!(explain(&stats, &context).unwrap().cache, Some(cache));
    }
}

#[test]
fn a_cache_beyond_the_memory_of_the_process_is_refused() {
    let (_folder, mut config) = cached(4);
    config.cache = Some(CacheSettings { bytes: u64::MAX / 2, operations: None });
    let refused = Loader::open(config).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::Cache(CacheError::TooLarge { .. })), "{refused}");
}

struct Ranks;

impl GroupCallbacks for Ranks {
    fn accelerator(&self, _: &Loader) -> Box<dyn Accelerator> {
        Box::new(Null)
    }

    fn before_epoch(&self, _: &mut Loader, _: u32) {}

    fn consumed(&self, _: Progress) {}
}

#[test]
fn ranks_of_a_process_share_the_cache() {
    let (_folder, mut config) = cached(40);
    config.ranks = 2;
    config.batch_size = 4;
    let ranks = group::run(&config, 3, &Ranks).unwrap();
    for epoch in 0..3 {
        let of_rank = |rank: &group::RankOutcome| rank.epochs[epoch].cache.unwrap();
        let uses: Vec<_> = ranks.iter().map(of_rank).collect();
        let sum = |of: fn(&CacheUse) -> u64| -> u64 { uses.iter().map(of).sum() };
        let (hits, misses) = (sum(|cache| cache.hits), sum(|cache| cache.misses));
        assert_eq!(hits + misses, 40, "epoch {epoch}");
        // Which rank prepares a sample differs from epoch to epoch. A rank may begin the second one
        // while the other still prepares batches of the first, whose samples it then caches for it;
        // all have ended that by the third.
        if epoch == 2 {
            assert_eq!(hits, 40);
        }
    }
}
