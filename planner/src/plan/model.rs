//! Predicts the results of an alternative: runs the real scheduler in virtual time, with measured
//! times.
//!
//! All results are modelled from inputs that a profile measured.

use super::alternatives::{Alternative, row};
use super::gpu::{self, GpuEnergy};
use super::{PlanError, Request};
use crate::results::Measured;
use crate::vocabulary::{Cache, Codec, GpuIndex, Point};
use meetpoint_scheduler::StrategyName;
use meetpoint_sim::power::Activity;
use meetpoint_sim::scenario::{Bandwidth, Bytes, Device, Distribution, Scenario, Span};
use meetpoint_sim::{EpochOutcome, run};

/// Maximum number of batches that are simulated; longer epochs are scaled.
const BATCHES_MAX: u32 = 2048;
/// Number of samples that a device reads concurrently.
const DEVICE_READS: f64 = 32.0;
/// Maximum seconds of a simulated batch or step; longer ones are scaled, because the scheduler has
/// work in every second.
const SECONDS_MAX: f64 = 100.0;
/// Seed of a simulation; times are constant, so only ties depend on it.
const SEED: u64 = 0;

/// The predicted results of one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct EpochPrediction {
    /// Its duration.
    pub seconds: f64,
    /// Processor seconds of the host.
    pub host_core_seconds: f64,
    /// Seconds that the device is busy.
    pub device_seconds: f64,
    /// Seconds that the GPU of the plan has samples to prepare.
    pub gpu_seconds: f64,
    /// Joules of the GPU for preparing them, from the measured joules per sample; `None` without a
    /// GPU, or if they are modelled.
    pub gpu_joules: Option<f64>,
    /// Bytes that host and device read from storage.
    pub read_bytes: f64,
    /// Seconds that threads of the host wait for reads, summed over the threads.
    pub read_wait_seconds: f64,
    /// Batches that the host prepares.
    pub host_batches: f64,
    /// Batches that the device prepares.
    pub device_batches: f64,
}

/// The predicted results of an alternative.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Prediction {
    /// Seconds to prepare and store, before the first epoch.
    pub offline_seconds: f64,
    /// Bytes stored besides the dataset.
    pub storage_bytes: f64,
    /// Bytes of memory for batches and cache.
    pub memory_bytes: f64,
    /// The first epoch, in which nothing is cached.
    pub first: EpochPrediction,
    /// Each later epoch.
    pub later: EpochPrediction,
    /// Relative error of the epochs at the requested confidence; `None` after a single run.
    pub relative_off: Option<f64>,
    /// Joules of offline part, first and later epoch, by the power model; those of a GPU for
    /// preparing samples may be measured ([`GpuEnergy`]).
    pub joules: [f64; 3],
}

impl Prediction {
    /// Seconds until `epochs` epochs have ended.
    pub fn seconds(&self, epochs: u32) -> f64 {
        let later = f64::from(epochs.saturating_sub(1));
        self.offline_seconds + self.first.seconds + later * self.later.seconds
    }

    /// Joules until then, by the power model; those of a GPU may be measured.
    pub fn joules(&self, epochs: u32) -> f64 {
        let [offline, first, each] = self.joules;
        offline + first + f64::from(epochs.saturating_sub(1)) * each
    }
}

/// Samples per second and processor seconds per sample of a stored form with a given number of
/// threads.
#[derive(Debug, Clone, Copy)]
struct Rate {
    per_second: f64,
    cpu_seconds: f64,
    /// Busy time of the GPU for each sample; 0 without one.
    gpu_seconds: f64,
    /// Measured joules of the GPU for each sample; 0 without one, or if they were not measured.
    gpu_joules: f64,
}

/// A way of preparing samples: from which form and codec, with which cache and GPU.
type Prepared<'a> = (&'a Point, Codec, Cache, Option<GpuIndex>);

impl Rate {
    /// The measured rate, which a GPU limits: it cannot be busy for longer than samples take.
    fn of(row: &Measured, cache: Cache) -> Self {
        let per_second = match cache {
            Cache::Cold => row.cold_per_second,
            Cache::Page | Cache::Application => row.per_second,
        };
        let gpu_seconds = row.gpu_seconds.unwrap_or_default();
        Self {
            // Without a GPU, the limit is infinite.
            per_second: per_second.min(1.0 / gpu_seconds),
            cpu_seconds: row.cpu_seconds,
            gpu_seconds,
            gpu_joules: row.gpu_joules.unwrap_or_default(),
        }
    }

    /// Share of the time in which the GPU is busy.
    fn gpu_share(&self) -> f64 {
        self.per_second * self.gpu_seconds
    }
}

/// The rate with a given number of threads: interpolated between measured numbers, and that of the
/// nearest one outside of their range.
fn rate(
    results: &[Measured],
    (point, codec, cache, gpu): Prepared<'_>,
    threads: u32,
) -> Option<Rate> {
    let of_form = |it: &&Measured| {
        it.point() == *point && it.codec == codec && it.cache == cache && it.gpu == gpu
    };
    let mut rows: Vec<&Measured> = results.iter().filter(of_form).collect();
    rows.sort_by_key(|row| row.threads);
    let of = |row: &Measured| Rate::of(row, cache);
    let threads = threads.max(1) as usize;
    let after = rows.iter().position(|row| row.threads >= threads);
    match after {
        None => rows.last().map(|row| of(row)),
        Some(0) => {
            // With fewer threads than were measured, the rate is assumed to be proportional.
            let first = of(rows[0]);
            let share = threads as f64 / rows[0].threads as f64;
            Some(Rate { per_second: first.per_second * share, ..first })
        }
        Some(at) => {
            let (low, high) = (rows[at - 1], rows[at]);
            let share = (threads - low.threads) as f64 / (high.threads - low.threads) as f64;
            let mix = |low: f64, high: f64| low + share * (high - low);
            let (low, high) = (of(low), of(high));
            let per_second = mix(low.per_second, high.per_second);
            Some(Rate {
                per_second,
                cpu_seconds: mix(low.cpu_seconds, high.cpu_seconds),
                // Not between the seconds of both, which could exceed the time of a sample.
                gpu_seconds: mix(low.gpu_share(), high.gpu_share()) / per_second,
                gpu_joules: mix(low.gpu_joules, high.gpu_joules),
            })
        }
    }
}

/// The rates of the first epoch, and of each later one.
fn rates(results: &[Measured], alternative: &Alternative) -> Option<(Rate, Rate)> {
    let Alternative { point, codec, workers, cache, gpu, .. } = alternative;
    let stored = rate(results, (point, *codec, Cache::Cold, *gpu), *workers)?;
    let Some(cache) = cache else { return Some((stored, stored)) };
    // With a cache, no GPU prepares.
    let of_cache = (&cache.point, Codec::None, Cache::Application, None);
    let cached = rate(results, of_cache, *workers)?;
    let hits = cache.hit_share;
    let misses = 1.0 - hits;
    let later = Rate {
        per_second: 1.0 / (hits / cached.per_second + misses / stored.per_second),
        cpu_seconds: hits * cached.cpu_seconds + misses * stored.cpu_seconds,
        ..stored
    };
    // To fill the cache, the operations before the cached point are executed completely, and the
    // others on their result, while a recipe as a whole may decode less.
    let filled = row(results, &cache.point, Codec::None, Cache::Cold)?;
    let samples = filled.dataset_samples as f64;
    let most = rate(results, (point, *codec, Cache::Cold, None), u32::MAX)?;
    let slower = most.per_second / stored.per_second;
    let fill_seconds = filled.process_seconds / samples * slower + 1.0 / cached.per_second;
    let is_resumed = point.operations > 0;
    let longer = if is_resumed { 1.0 } else { (fill_seconds * stored.per_second).max(1.0) };
    let share = (cache.bytes as f64 / cache.needed_bytes.max(1) as f64).min(1.0);
    let longer = 1.0 + share * (longer - 1.0);
    let first = Rate {
        per_second: stored.per_second / longer,
        cpu_seconds: stored.cpu_seconds * longer,
        ..stored
    };
    Some((first, later))
}

/// The predicted results of an alternative.
pub fn predict(
    results: &[Measured],
    request: &Request,
    alternative: &Alternative,
) -> Result<Prediction, PlanError> {
    let Alternative { point, codec, is_as_it_is, cache, .. } = alternative;
    let stored = row(results, point, *codec, Cache::Cold);
    let (Some(stored), Some((first, later))) = (stored, rates(results, alternative)) else {
        return Err(not_measured(results, alternative));
    };
    let bytes = stored.stored_bytes / stored.dataset_samples as f64;
    let hits = cache.as_ref().map_or(0.0, |cache| cache.hit_share);
    let samples = stored.dataset_samples;
    let plain = first;
    let device = rate(results, (point, *codec, Cache::Cold, None), 1).unwrap_or(plain);
    refuse_slow_device(request, alternative, samples, (plain, device, bytes))?;
    let mut first = epoch(request, alternative, samples, (first, first, bytes))?;
    let mut later = epoch(request, alternative, samples, (later, device, bytes))?;
    let of_host = later.host_batches / (later.host_batches + later.device_batches).max(1.0);
    later.read_bytes *= 1.0 - hits * of_host;
    let thread_seconds = f64::from(alternative.workers.max(1)) / plain.per_second;
    let of_misses = later.host_batches * samples_of_batch(request, samples) * (1.0 - hits);
    later.read_wait_seconds = of_misses * thread_seconds * wait_share(results, alternative);
    let offline_seconds = if *is_as_it_is { 0.0 } else { stored.offline_seconds };
    let off = stored.cold_off(request.confidence);
    let energy = Energy::new(results, request);
    if GpuEnergy::of(results) == Some(GpuEnergy::Measured) {
        let samples = samples_of_batch(request, samples);
        for epoch in [&mut first, &mut later] {
            let joules = epoch.host_batches * samples * plain.gpu_joules;
            epoch.gpu_joules = alternative.gpu.map(|_| joules);
        }
    }
    Ok(Prediction {
        offline_seconds,
        storage_bytes: alternative.storage_bytes(results),
        memory_bytes: alternative.memory_bytes(request.batch_bytes),
        first,
        later,
        relative_off: off.is_finite().then_some(off),
        joules: [
            energy.offline(offline_seconds, stored.threads),
            energy.epoch(samples, &first),
            energy.epoch(samples, &later),
        ],
    })
}

/// Why there is no rate of an alternative.
fn not_measured(results: &[Measured], alternative: &Alternative) -> PlanError {
    let Alternative { point, codec, .. } = alternative;
    let cold = |it: &&Measured| it.cache == Cache::Cold;
    let mut of_form = results.iter().filter(|it| it.point() == *point && it.codec == *codec);
    if alternative.gpu.is_none()
        && let Some(gpu) = of_form.clone().filter(cold).find_map(|it| it.gpu)
        && !of_form.any(|it| it.cache == Cache::Cold && it.gpu.is_none())
    {
        return PlanError::CpuNotMeasured { what: point.to_string(), gpu };
    }
    let mut measured: Vec<String> = Vec::new();
    for name in results.iter().filter(cold).map(|it| it.point().to_string()) {
        if name != point.to_string() && !measured.contains(&name) {
            measured.push(name);
        }
    }
    PlanError::NotMeasured { what: format!("{point} with the cache cold"), measured }
}

/// Refuses a device that takes longer for a batch than the host alone for an epoch: no epoch would
/// end earlier, and most of the simulation would be its progress messages.
fn refuse_slow_device(
    request: &Request,
    alternative: &Alternative,
    samples: u64,
    (host, device, bytes): (Rate, Rate, f64),
) -> Result<(), PlanError> {
    let Some(model) = request.device.filter(|_| alternative.strategy.needs_device()) else {
        return Ok(());
    };
    let of_batch = samples_of_batch(request, samples);
    let share = |bytes: f64, per_second: Option<u64>| {
        per_second.map_or(0.0, |per_second| bytes / per_second.max(1) as f64)
    };
    let batch_seconds = (device.cpu_seconds * of_batch / model.cpu_ratio)
        .max(model.latency_ns as f64 * 1e-9)
        .max(share(bytes * of_batch, model.read_bytes_per_second))
        .max(share(request.batch_bytes as f64, model.write_bytes_per_second));
    let steps = samples as f64 / of_batch * request.step_ns as f64 * 1e-9;
    let epoch_seconds = steps.max(samples as f64 / host.per_second);
    if batch_seconds > epoch_seconds {
        return Err(PlanError::SlowDevice { batch_seconds, epoch_seconds });
    }
    Ok(())
}

/// Share of a thread's time that it waits for reads, from cold runs compared with runs from the
/// page cache.
fn wait_share(results: &[Measured], alternative: &Alternative) -> f64 {
    let Alternative { point, codec, workers, gpu, .. } = alternative;
    let of =
        |cache| rate(results, (point, *codec, cache, *gpu), *workers).map(|rate| rate.per_second);
    let (cold, page) = (of(Cache::Cold), of(Cache::Page));
    cold.zip(page).map_or(0.0, |(cold, page)| (1.0 - cold / page).clamp(0.0, 1.0))
}

/// Computes joules by the power model of a request.
struct Energy<'a> {
    request: &'a Request,
    accelerators: u32,
}

impl<'a> Energy<'a> {
    fn new(results: &[Measured], request: &'a Request) -> Self {
        Self { request, accelerators: gpu::accelerators(results, request) }
    }

    fn joules(&self, activity: Activity) -> f64 {
        let activity = Activity {
            host_cores: self.request.cores,
            devices: u32::from(self.request.device.is_some()),
            accelerators: self.accelerators,
            ..activity
        };
        self.request.power.energy(&activity).total_j
    }

    fn offline(&self, seconds: f64, threads: usize) -> f64 {
        self.joules(Activity {
            duration_s: seconds,
            host_busy_core_s: seconds * threads as f64,
            ..Activity::default()
        })
    }

    fn epoch(&self, samples: u64, epoch: &EpochPrediction) -> f64 {
        let batches = samples.div_ceil(self.request.batch_size.into()) as f64;
        let steps = batches * self.request.step_ns as f64 * 1e-9;
        // Measured joules replace those of the model.
        let of_gpu = if epoch.gpu_joules.is_some() { 0.0 } else { epoch.gpu_seconds };
        let modelled = self.joules(Activity {
            duration_s: epoch.seconds,
            host_busy_core_s: epoch.host_core_seconds,
            device_busy_s: epoch.device_seconds,
            accelerator_busy_s: steps + of_gpu,
            ..Activity::default()
        });
        modelled + epoch.gpu_joules.unwrap_or_default()
    }
}

/// One epoch with these rates of host and device, and these stored bytes per sample.
fn epoch(
    request: &Request,
    alternative: &Alternative,
    samples: u64,
    (host, device, bytes): (Rate, Rate, f64),
) -> Result<EpochPrediction, PlanError> {
    let size = f64::from(request.batch_size);
    let batches = samples.div_ceil(request.batch_size.into()).max(1);
    let simulated = u32::try_from(batches).unwrap_or(u32::MAX).min(BATCHES_MAX);
    let scale = batches as f64 / f64::from(simulated);
    // The last batch may be short.
    let full = samples as f64 / (batches as f64 * size);
    let threads = f64::from(alternative.workers.max(1));
    let uses_device = alternative.strategy != StrategyName::HostOnly;
    let stretched = match request.device.filter(|_| uses_device) {
        Some(model) if model.shares_cores => {
            let left = (f64::from(request.cores) - model.cpu_ratio.min(1.0)).max(0.1);
            (threads / left).max(1.0)
        }
        _ => 1.0,
    };
    let preparation = threads * size * full / host.per_second * stretched;
    // Kernels that prepare and kernels that train are assumed never to overlap, so each step waits
    // for the preparation of one batch. The simulation applies this delay to batches of a device
    // too.
    let delay = match gpu::competes(request, alternative.gpu) {
        true => host.gpu_seconds * size * full,
        false => 0.0,
    };
    let step = request.step_ns as f64 * 1e-9 + delay;
    let of_device = request.device.filter(|_| uses_device).map(|model| {
        let reads = (size / DEVICE_READS).ceil() + 1.0;
        let latency = model.latency_ns as f64 * 1e-9 * reads;
        (model, device.cpu_seconds * size * full / model.cpu_ratio + latency)
    });
    let longest = of_device.map_or(0.0, |(_, seconds)| seconds).max(preparation).max(step);
    // Seconds of this machine in a simulated second.
    let unit = (longest / SECONDS_MAX).max(1.0);
    let span = |seconds: f64| Span((seconds / unit * 1e9).round().max(1.0) as u64);
    let constant = |seconds: f64| Distribution::Constant(span(seconds));
    let bandwidth = |per_second: u64| Bandwidth((per_second as f64 * unit) as u64);
    let mut scenario = Scenario::new(simulated, constant(preparation), constant(step));
    scenario.strategy = alternative.strategy;
    scenario.host.workers = alternative.workers;
    scenario.host.prefetch = alternative.prefetch;
    if let Some((model, seconds)) = of_device {
        let mut simulated = Device::new(constant(seconds));
        simulated.spool_slots = Some(model.spool_slots.max(1));
        simulated.read_bandwidth = model.read_bytes_per_second.map(bandwidth);
        simulated.write_bandwidth = model.write_bytes_per_second.map(bandwidth);
        scenario.devices.push(simulated);
    }
    scenario.storage.read_bytes = Bytes((bytes * size * full).round() as u64);
    scenario.storage.batch_bytes = Bytes(request.batch_bytes);
    scenario.storage.overlap = true;
    let outcome = run(&scenario, SEED).map_err(|error| PlanError::Simulation(error.to_string()))?;
    let simulated = outcome.epochs.first();
    let simulated = simulated.ok_or_else(|| PlanError::Simulation("it has no epoch".to_owned()))?;
    Ok(in_full(simulated, (scale, unit), (host, size * full, bytes)))
}

fn in_full(
    epoch: &EpochOutcome,
    (scale, unit): (f64, f64),
    (host, samples, bytes): (Rate, f64, f64),
) -> EpochPrediction {
    let seconds = |nanoseconds: u64| nanoseconds as f64 * 1e-9 * unit * scale;
    let sum = |of: fn(&meetpoint_sim::RankOutcome) -> u32| {
        epoch.ranks.iter().map(|rank| f64::from(of(rank))).sum::<f64>() * scale
    };
    let (host_batches, device_batches) = (sum(|it| it.host_batches), sum(|it| it.device_batches));
    EpochPrediction {
        seconds: seconds(epoch.total_ns),
        host_core_seconds: host_batches * samples * host.cpu_seconds,
        device_seconds: seconds(epoch.devices.iter().map(|it| it.busy_ns).sum()),
        gpu_seconds: host_batches * samples * host.gpu_seconds,
        gpu_joules: None,
        read_bytes: (host_batches + device_batches) * samples * bytes,
        read_wait_seconds: 0.0,
        host_batches,
        device_batches,
    }
}

/// Mean number of samples in a batch.
fn samples_of_batch(request: &Request, samples: u64) -> f64 {
    samples as f64 / samples.div_ceil(request.batch_size.into()).max(1) as f64
}
