//! Enumerates the plans to consider, from the measurements of a profile. It reads no files.

use super::gpu::gpus_of;
use super::{GpuPin, PlanError, Request};
use crate::results::Measured;
use crate::vocabulary::{Cache, Codec, Form, GpuIndex, Point};
use meetpoint_prepare::cache;
use meetpoint_scheduler::StrategyName;

/// Batches prepared ahead per worker, unless another number is faster in a simulation.
pub(crate) const PREFETCH: u32 = 2;
/// The strategies that are considered besides `host-only`, starting with the one that preserves the
/// order.
const WITH_DEVICE: [StrategyName; 5] = [
    StrategyName::Windowed,
    StrategyName::Mte,
    StrategyName::MteFeedback,
    StrategyName::Wrr,
    StrategyName::DeviceOnly,
];

/// An application cache.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CacheChoice {
    /// The operations whose result is cached.
    pub point: Point,
    /// Its budget in bytes.
    pub bytes: u64,
    /// Bytes that all samples need.
    pub needed_bytes: u64,
    /// Share of the samples of an epoch after the first that are in it.
    pub hit_share: f64,
}

/// A plan that is considered.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Alternative {
    /// The stored form.
    pub point: Point,
    /// Compression of each stored sample.
    pub codec: Codec,
    /// Whether the dataset is used unchanged.
    pub is_as_it_is: bool,
    /// The application cache; `None` without one.
    pub cache: Option<CacheChoice>,
    /// GPU that prepares a share of each batch of the host; `None`: the CPU alone.
    #[serde(serialize_with = "crate::vocabulary::gpu_name::serialize")]
    pub gpu: Option<GpuIndex>,
    /// Background threads of the host.
    pub workers: u32,
    /// Batches prepared ahead per worker.
    pub prefetch: u32,
    /// The strategy.
    #[serde(serialize_with = "name")]
    pub strategy: StrategyName,
}

fn name<S: serde::Serializer>(name: &StrategyName, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(name.as_str())
}

impl Alternative {
    /// Bytes that it stores besides the dataset.
    pub fn storage_bytes(&self, results: &[Measured]) -> f64 {
        let stored = row(results, &self.point, self.codec, Cache::Cold);
        if self.is_as_it_is { 0.0 } else { stored.map_or(0.0, |row| row.stored_bytes) }
    }

    /// Bytes of memory for batches prepared ahead and for the cache.
    pub fn memory_bytes(&self, batch_bytes: u64) -> f64 {
        let ahead = match self.workers {
            0 => 1,
            workers => workers.saturating_mul(self.prefetch).max(workers + 1),
        };
        // In addition, the consumer holds two batches.
        let batches = (f64::from(ahead) + 2.0) * batch_bytes as f64;
        batches + self.cache.as_ref().map_or(0.0, |cache| cache.bytes as f64)
    }
}

/// The first row with a stored form and cache.
pub(super) fn row<'r>(
    results: &'r [Measured],
    point: &Point,
    codec: Codec,
    cache: Cache,
) -> Option<&'r Measured> {
    results.iter().find(|it| it.point() == *point && it.codec == codec && it.cache == cache)
}

/// The stored forms that a plan can use, each with whether it is the unchanged dataset.
fn stored_forms(results: &[Measured], request: &Request) -> Vec<(Point, Codec, bool)> {
    let mut forms: Vec<(Point, Codec, bool)> = Vec::new();
    for row in results {
        let (point, codec) = (row.point(), row.codec);
        let is_plain = codec == Codec::None;
        let is_as_it_is = point.form == request.stored_as && point.operations == 0 && is_plain;
        let can_be_made = match point.form {
            // Stored forms are never converted back to files.
            Form::Files => false,
            // Packing stores files unchanged or in a coefficient form, without a codec.
            Form::Packed | Form::CoefficientsFast | Form::CoefficientsCompact => is_plain,
            Form::Prepared => true,
            Form::Jpeg => is_plain,
        };
        let form = (point, codec, is_as_it_is);
        if (is_as_it_is || can_be_made) && !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// The points whose result can be cached for a stored form.
fn cached_points(results: &[Measured], stored: &Point) -> Vec<(Point, u64)> {
    let is_later = |it: &&Measured| {
        it.form == Form::Prepared
            && it.codec == Codec::None
            && it.cache == Cache::Application
            && it.operations >= stored.operations.max(1)
    };
    // A picture that was re-encoded as JPEG differs from the recipe's result.
    let is_lossy = !stored.form.is_exact();
    let mut points: Vec<(Point, u64)> = Vec::new();
    for row in results.iter().filter(is_later).filter(|_| !is_lossy) {
        if points.iter().all(|(point, _)| *point != row.point()) {
            let bytes = cache::bytes_for(row.cached_bytes, row.dataset_samples);
            points.push((row.point(), bytes));
        }
    }
    points
}

/// Every combination that is considered; of equally good ones, the first is preferred.
pub fn alternatives(
    results: &[Measured],
    request: &Request,
) -> Result<Vec<Alternative>, PlanError> {
    let pins = &request.pins;
    let forms = stored_forms(results, request);
    let chosen: Vec<_> = forms
        .iter()
        .filter(|(point, codec, _)| {
            pins.stored.as_ref().is_none_or(|name| *name == point.to_string())
                && pins.codec.is_none_or(|pinned| pinned == *codec)
        })
        .collect();
    if chosen.is_empty() {
        let name = |(point, codec, _): &(Point, Codec, bool)| format!("{point} {}", codec.name());
        let stored = pins.stored.as_deref().unwrap_or("any form");
        let what = match pins.codec {
            Some(codec) => format!("{stored} with the codec {}", codec.name()),
            None => stored.to_owned(),
        };
        return Err(PlanError::NotMeasured { what, measured: forms.iter().map(name).collect() });
    }
    let strategies = strategies(request)?;
    let mut all = Vec::new();
    for (point, codec, is_as_it_is) in chosen {
        for cache in caches(results, request, point) {
            for gpu in gpus(results, request, (point, *codec), cache.as_ref()) {
                // A plan without the device precedes one with it, regardless of their workers.
                for &strategy in &strategies {
                    for workers in workers(results, request) {
                        all.push(Alternative {
                            point: point.clone(),
                            codec: *codec,
                            is_as_it_is: *is_as_it_is,
                            cache: cache.clone(),
                            gpu,
                            workers,
                            prefetch: pins.prefetch.unwrap_or(PREFETCH),
                            strategy,
                        });
                    }
                }
            }
        }
    }
    if all.is_empty() {
        return Err(match pins.gpu {
            Some(GpuPin::Gpu(gpu)) => no_gpu(request, gpu),
            Some(GpuPin::None) | None => no_cache(results, request, &forms),
        });
    }
    Ok(all)
}

/// The CPU alone, and each GPU with which a form was measured. No GPU prepares cached samples.
fn gpus(
    results: &[Measured],
    request: &Request,
    (point, codec): (&Point, Codec),
    cache: Option<&CacheChoice>,
) -> Vec<Option<GpuIndex>> {
    let mut gpus = match cache {
        Some(_) => Vec::new(),
        None => gpus_of(results, |row| row.point() == *point && row.codec == codec),
    };
    match request.pins.gpu {
        Some(GpuPin::None) => vec![None],
        Some(GpuPin::Gpu(pinned)) => {
            gpus.retain(|gpu| *gpu == pinned);
            gpus.into_iter().map(Some).collect()
        }
        None => std::iter::once(None).chain(gpus.into_iter().map(Some)).collect(),
    }
}

/// Why no stored form can be prepared with the fixed GPU.
fn no_gpu(request: &Request, gpu: GpuIndex) -> PlanError {
    match request.pins.cache {
        Some(bytes) if bytes > 0 => PlanError::GpuWithCache { gpu },
        Some(_) | None => {
            let what = request.pins.stored.clone().unwrap_or_else(|| "any form".to_owned());
            PlanError::GpuNotMeasured { gpu, what }
        }
    }
}

/// Why no form can have the fixed cache.
fn no_cache(results: &[Measured], request: &Request, forms: &[(Point, Codec, bool)]) -> PlanError {
    let bytes = request.pins.cache.unwrap_or(0);
    let points = forms.iter().flat_map(|(point, ..)| cached_points(results, point));
    match points.map(|(_, needed)| needed).min() {
        Some(needed_bytes) if bytes < needed_bytes => PlanError::SmallCache { bytes, needed_bytes },
        Some(_) | None => PlanError::NothingToCache { bytes },
    }
}

fn strategies(request: &Request) -> Result<Vec<StrategyName>, PlanError> {
    let has_device = request.device.is_some();
    match request.pins.strategy {
        Some(pinned) if pinned.needs_device() && !has_device => {
            Err(PlanError::NeedsDevice { strategy: pinned.as_str().to_owned() })
        }
        Some(pinned) => Ok(vec![pinned]),
        None => {
            let mut all = vec![StrategyName::HostOnly];
            all.extend(WITH_DEVICE.into_iter().filter(|_| has_device));
            Ok(all)
        }
    }
}

/// Numbers of background threads: none, and those that were measured, in ascending order.
fn workers(results: &[Measured], request: &Request) -> Vec<u32> {
    if let Some(pinned) = request.pins.workers {
        return vec![pinned];
    }
    let measured = results.iter().filter_map(|row| u32::try_from(row.threads).ok());
    let mut all: Vec<u32> = measured.filter(|threads| *threads <= request.cores).collect();
    all.push(0);
    all.push(1);
    all.sort_unstable();
    all.dedup();
    all
}

/// No cache, and one for each point whose result can be cached, as large as the limit allows. Empty
/// for a form that cannot have the fixed cache.
fn caches(results: &[Measured], request: &Request, stored: &Point) -> Vec<Option<CacheChoice>> {
    let points = cached_points(results, stored);
    let samples = results.first().map_or(0, |row| row.dataset_samples);
    let of_size = |point: &Point, needed: u64, bytes: u64| {
        let share = (bytes as f64 / needed.max(1) as f64).min(1.0);
        let hit_share = cache::hit_share(share, samples);
        let (point, bytes) = (point.clone(), bytes.min(needed));
        (hit_share > 0.0).then_some(CacheChoice { point, bytes, needed_bytes: needed, hit_share })
    };
    match request.pins.cache {
        Some(0) => return vec![None],
        Some(bytes) => {
            let of_point = |(point, needed): &(Point, u64)| of_size(point, *needed, bytes);
            return points.iter().filter_map(of_point).map(Some).collect();
        }
        None => {}
    }
    let mut all = vec![None];
    for (point, needed) in &points {
        // A quarter is left for batches and for the rest of the process.
        let most = request.memory_limit.map_or(u64::MAX, |limit| limit - limit / 4);
        all.extend(of_size(point, *needed, (*needed).min(most)).map(Some));
    }
    all
}
