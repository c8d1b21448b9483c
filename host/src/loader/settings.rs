//! Validates a configuration before anything is started, and derives the job from it.

use crate::config::{DeviceSource, LoaderConfig, WORKERS_MAX};
use crate::{ChoiceConflict, Error, ReuseConflict};
use meetpoint_format::batching::{BatchOptions, Batching, RANKS_MAX, Rank};
use meetpoint_format::holders::Holders;
use meetpoint_format::sampler::{AspectRatio, Sampler, Sampling};
use meetpoint_prepare::cache::SampleCache;
use meetpoint_prepare::{
    Dataset, DecodeMemory, Error as PrepareError, Job, RemoteRefusal, is_url, read_recipe_files,
};
use meetpoint_storage::MemoryLimit;
use std::sync::Arc;

/// Maximum number of devices of a loader.
const DEVICES_MAX: usize = 1024;

/// Refuses invalid numbers, each by name.
pub(super) fn check(config: &LoaderConfig) -> Result<(), Error> {
    let refuse = |field, got: u64, expected| Err(Error::Setting { field, got, expected });
    if config.batch_size == 0 {
        return refuse("batch_size", 0, "at least 1");
    }
    if config.workers > WORKERS_MAX {
        return refuse("workers", config.workers.into(), "at most 1024");
    }
    if config.prefetch == 0 {
        return refuse("prefetch", 0, "at least 1");
    }
    if config.stall_timeout.is_zero() {
        return refuse("stall_timeout", 0, "a time above 0");
    }
    if config.host_cores.as_ref().is_some_and(Vec::is_empty) {
        return refuse("host_cores", 0, "at least one core");
    }
    if config.devices.len() > DEVICES_MAX {
        return refuse("number of devices", config.devices.len() as u64, "at most 1024");
    }
    if config.strategy.needs_device() && config.devices.is_empty() {
        return Err(Error::NoDevice { strategy: config.strategy.name() });
    }
    if config.reuse && !config.sampler.is_same_in_every_epoch() {
        return Err(Error::Reuse { conflict: ReuseConflict::Shuffle });
    }
    if config.reuse && !config.recipe.is_deterministic() {
        return Err(Error::Reuse { conflict: ReuseConflict::RandomRecipe });
    }
    if config.reuse && config.run_ahead > 0 {
        return Err(Error::Reuse { conflict: ReuseConflict::RunAhead });
    }
    if config.choose_by_saving && config.run_ahead > 0 {
        return Err(Error::Choice { conflict: ChoiceConflict::RunAhead });
    }
    if config.choose_by_saving && config.replay.is_some() {
        return Err(Error::Choice { conflict: ChoiceConflict::Replay });
    }
    if config.ranks == 0 || config.ranks > RANKS_MAX {
        return refuse("ranks", config.ranks.into(), "1 to 65536");
    }
    if config.shares == 0 {
        return refuse("shares", 0, "at least 1");
    }
    if config.rank >= config.ranks {
        return refuse("rank", config.rank.into(), "a number below ranks");
    }
    if config.ranks > 1 && config.collective.is_none() {
        return refuse("ranks", config.ranks.into(), "1 where no collective joins them");
    }
    if config.rank_timeout.is_zero() {
        return refuse("rank_timeout", 0, "a time above 0");
    }
    check_memory(config, MemoryLimit::of_this_process())
}

/// Refuses a budget that this process can never use.
fn check_memory(config: &LoaderConfig, limit: MemoryLimit) -> Result<(), Error> {
    let budget_bytes = config.memory_budget_bytes;
    if budget_bytes > limit.bytes {
        return Err(Error::BudgetTooLarge { budget_bytes, limit });
    }
    Ok(())
}

/// The host's part of the memory for decoding. A budget of the size of `memory_budget` is divided
/// equally: among the loaders that share it, and in each among the host and the devices on this
/// machine. As all parts are equal, a sample is decoded at every end or at none.
pub(super) fn decode_memory(config: &LoaderConfig, limit: &MemoryLimit) -> Arc<DecodeMemory> {
    let is_here = |source: &&DeviceSource| match source {
        DeviceSource::Spawn(_) | DeviceSource::Connect { .. } => true,
        DeviceSource::Remote(_) | DeviceSource::Lost { .. } => false,
    };
    let devices = if config.uses_devices() { &config.devices[..] } else { &[] };
    let ends = 1 + u32::try_from(devices.iter().filter(is_here).count()).unwrap_or(u32::MAX - 1);
    let shares = config.shares.saturating_mul(ends);
    let threads = config.threads_max().saturating_mul(config.shares) as usize;
    DecodeMemory::of_budget(config.memory_budget_bytes, shares, limit, threads)
}

pub(super) fn open_job(config: &LoaderConfig) -> Result<Job, Error> {
    if config.strategy.uses_devices() && !config.devices.is_empty() {
        let url = config.dataset.as_slice().iter().find(|path| is_url(path)).cloned();
        url.map_or(Ok(()), |url| {
            Err(PrepareError::Remote { url, refusal: RemoteRefusal::AtDevice })
        })?;
    }
    let dataset = Arc::new(Dataset::open_for_samples(&config.dataset)?);
    // One reader more: the thread that prefetches.
    let readers = u64::from(config.workers.max(1)) + 1;
    dataset.check_remote(readers, config.ranks.into())?;
    if dataset.is_empty() {
        return Err(Error::EmptyDataset { dataset: config.dataset.name() });
    }
    read_sizes(config, &dataset)?;
    let sampling = Arc::new(Sampling::of(&config.sampler, &*dataset)?);
    let options = BatchOptions {
        batch_size: config.batch_size,
        drop_last: config.drop_last,
        seed: config.seed,
    };
    check_size(config, &sampling)?;
    let rank = Rank { rank: config.rank, ranks: config.ranks };
    let batching = Batching::new(options, sampling, rank, holders(config, &dataset)?)?;
    let recipe = match config.recipe.files().is_empty() {
        true => Arc::clone(&config.recipe),
        false => Arc::new(read_recipe_files((*config.recipe).clone())?),
    };
    let on_error = config.on_error.clone();
    Ok(Job { dataset, recipe, batching, on_error, columns: config.columns.clone() })
}

/// Reads the sizes of all pictures if the sampler needs them, until the loader is stopped.
fn read_sizes(config: &LoaderConfig, dataset: &Dataset) -> Result<(), Error> {
    if let Sampler::AspectRatio(AspectRatio { columns: None, .. }) = &config.sampler {
        let read = dataset.picture_sizes(&mut |_, _| !config.stop.is_stopped());
        config.stop.check()?;
        read?;
    }
    Ok(())
}

/// The cache of prepared samples, if one is configured.
pub(super) fn open_cache(
    config: &LoaderConfig,
    job: &Job,
) -> Result<Option<Arc<SampleCache>>, Error> {
    let Some(settings) = &config.cache else { return Ok(None) };
    // A default budget reserves nothing beside a cache.
    let default = LoaderConfig::memory_budget_default(&MemoryLimit::of_this_process());
    let is_default = config.memory_budget_bytes == default;
    let others = if is_default { 0 } else { config.memory_budget_bytes };
    let processes = config.ranks > 1 && config.shares == 1;
    Ok(Some(config.cache_slot.open(job, settings, others, processes)?))
}

/// Bytes of the memory budget of one share that the configuration reserves for small samples.
pub(super) fn reserved_for_small_samples(config: &LoaderConfig, job: &Job) -> u64 {
    match config.small_samples_bytes {
        Some(bytes) if config.cache.is_none() => {
            job.dataset.small_samples_bytes_of(bytes / u64::from(config.shares))
        }
        Some(_) | None => 0,
    }
}

/// The memory for small samples of one share, if batches leave `left` bytes of the memory budget.
pub(super) fn small_samples(config: &LoaderConfig, job: &Job, left: u64) -> u64 {
    match config.small_samples_bytes {
        _ if config.cache.is_some() => 0,
        Some(_) => reserved_for_small_samples(config, job),
        None => job.dataset.small_samples_bytes_max(left),
    }
}

/// Which device holds which parts.
fn holders(config: &LoaderConfig, dataset: &Dataset) -> Result<Holders, Error> {
    let devices = config.devices.len();
    if devices < 2 || config.shared_dataset {
        return Ok(Holders::all_alike());
    }
    let parts = dataset.manifest().parts.len();
    let path = || config.dataset.name();
    if parts < devices {
        return Err(Error::TooFewParts { parts, devices, dataset: path() });
    }
    let count = u32::try_from(devices).expect("the number of devices was checked");
    dataset
        .spread(count, &config.part_holders)
        .map_err(|source| Error::Holders { dataset: path(), source })
}

fn check_size(config: &LoaderConfig, sampling: &Sampling) -> Result<(), Error> {
    let (batch_size, samples) = (config.batch_size, sampling.length());
    if u64::from(batch_size) > samples {
        let dataset = config.dataset.name();
        return Err(Error::BatchLargerThanDataset { batch_size, samples, dataset });
    }
    Ok(())
}

pub(super) fn count_batches(job: &Job) -> Result<u32, Error> {
    let batching = &job.batching;
    let batches = batching.batches();
    // The highest index stays unused: counts of batches have 32 bits as well.
    let limit = u32::MAX - 1;
    let counted = u32::try_from(batches).ok().filter(|&batches| batches <= limit);
    let counted = counted.ok_or(Error::TooManyBatches { batches, limit })?;
    let (devices, ranks) = (batching.devices(), batching.rank().ranks);
    for device in 0..u16::try_from(devices).expect("the number of devices was checked") {
        if batching.count(device) == 0 {
            return Err(Error::NoBatchForDevice { device, devices, ranks });
        }
    }
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use meetpoint_format::recipe::Recipe;
    use meetpoint_scheduler::{AnyStrategy, Wrr};

    fn config() -> LoaderConfig {
        let text = "[[operation]]\nname = \"decode\"\n";
        LoaderConfig::new("set", Arc::new(Recipe::from_toml(text).unwrap()), 4)
    }

    fn limit(bytes: u64) -> MemoryLimit {
        MemoryLimit { bytes, available_bytes: 0, file: None }
    }

    #[test]
    fn the_default_budget_fits_what_the_process_may_use_and_limits_decoding() {
        for (bytes, expected) in [(200 << 20, 50 << 20), (2 << 30, 512 << 20), (1 << 40, 512 << 20)]
        {
            let (mut config, limit) = (config(), limit(bytes));
            config.memory_budget_bytes = LoaderConfig::memory_budget_default(&limit);
            assert_eq!(config.memory_budget_bytes, expected);
            assert!(check_memory(&config, limit.clone()).is_ok());
            assert_eq!(decode_memory(&config, &limit).limit(), expected);
            // A budget that takes everything for batches does not let decoding use as much.
            config.memory_budget_bytes = bytes;
            assert_eq!(decode_memory(&config, &limit).limit(), bytes / 2);
        }
    }

    #[test]
    fn the_memory_for_decoding_is_divided_among_host_devices_and_loaders() {
        let (mut config, limit) = (config(), limit(8 << 30));
        config.memory_budget_bytes = 120 << 20;
        config.devices = vec![DeviceSource::Connect { socket: "s".into() }; 2];
        assert_eq!(decode_memory(&config, &limit).limit(), 120 << 20, "it uses no devices");
        config.strategy = AnyStrategy::Wrr(Wrr);
        assert_eq!(decode_memory(&config, &limit).limit(), 40 << 20);
        config.shares = 2;
        assert_eq!(decode_memory(&config, &limit).limit(), 20 << 20);
    }

    #[test]
    fn a_budget_beyond_what_the_process_may_use_is_refused() {
        let (mut config, limit) = (config(), limit(300 << 20));
        config.memory_budget_bytes = 300 << 20;
        assert!(check_memory(&config, limit.clone()).is_ok());
        for beyond in [(300 << 20) + 1, u64::MAX] {
            config.memory_budget_bytes = beyond;
            let refused = check_memory(&config, limit.clone());
            assert!(matches!(
                refused,
                Err(Error::BudgetTooLarge { budget_bytes, .. }) if budget_bytes == beyond
            ));
        }
    }
}
