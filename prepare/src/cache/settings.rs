//! The settings of an application cache, and how the loaders of a process share it.

use super::{CacheError, SampleCache};
use crate::job::Job;
use meetpoint_storage::MemoryLimit;
use std::sync::{Arc, Mutex, PoisonError};

/// The settings of an application cache in a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSettings {
    /// The budget: maximum bytes of memory, over all ranks, index included.
    pub bytes: u64,
    /// Operations after which samples are cached; `None`: all operations whose result is the same
    /// in every epoch.
    pub operations: Option<usize>,
}

/// The cache of a configuration. Clones share it, so ranks that are threads of one process share
/// the cache.
#[derive(Debug, Clone, Default)]
pub struct CacheSlot(Arc<Mutex<Option<Arc<SampleCache>>>>);

impl CacheSlot {
    /// The cache, which the first call opens. `others_bytes` of the memory of this process are
    /// reserved for other purposes; `processes`: whether ranks are processes that share the cache.
    pub fn open(
        &self,
        job: &Job,
        settings: &CacheSettings,
        others_bytes: u64,
        processes: bool,
    ) -> Result<Arc<SampleCache>, CacheError> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = &*slot {
            return Ok(Arc::clone(open));
        }
        settings.check(&MemoryLimit::of_this_process(), others_bytes)?;
        let operations = settings.operations_of(job)?;
        let cache = Arc::new(SampleCache::open(job, operations, settings, processes)?);
        *slot = Some(Arc::clone(&cache));
        Ok(cache)
    }
}

impl CacheSettings {
    /// Refuses a budget that, together with `others_bytes`, exceeds the memory of this process.
    pub fn check(&self, limit: &MemoryLimit, others_bytes: u64) -> Result<(), CacheError> {
        if self.bytes.saturating_add(others_bytes) > limit.bytes {
            let (bytes, limit) = (self.bytes, limit.clone());
            return Err(CacheError::TooLarge { bytes, others_bytes, limit });
        }
        Ok(())
    }

    /// Operations of the recipe that are executed before a sample is cached.
    fn operations_of(&self, job: &Job) -> Result<usize, CacheError> {
        let recipe = &job.recipe;
        let all = recipe.operations().len();
        let done = job.dataset.manifest().prepared().map_or(0, |it| it.operations as usize);
        let least = done.max(1);
        let Some(asked) = self.operations else {
            let legal = (least..=all).rev().find(|count| recipe.refusal_of_cut(*count).is_none());
            return legal.ok_or_else(|| {
                let because = recipe.refusal_of_cut(least.min(all).max(1));
                CacheError::NothingToCache { because }
            });
        };
        if !(least..=all).contains(&asked) {
            return Err(CacheError::Operations { asked, least, most: all });
        }
        match recipe.refusal_of_cut(asked) {
            Some(because) => Err(CacheError::Refused { asked, because }),
            None => Ok(asked),
        }
    }
}
