//! Measures strategies on a sample of a dataset.
//!
//! Each point is stored in a temporary file, which is removed before the next. The operations
//! before and after the cut are executed by the kernels that every loader uses, and each lossless
//! strategy is checked: its samples must be bit-identical to those prepared from the files.
//!
//! In reading order: [`Options`], [`profile`], `choice` (which samples), `rounds` (which stored
//! forms), `space` (limits of storage and memory), `memory` (of decoding), `offline` (before the
//! cut), `store` (the stored samples), `direct` (cold reads), `online` (after the cut), `gpu` (with
//! a GPU), `runs`, `workers`, `meters`.

mod choice;
mod direct;
mod gpu;
mod memory;
mod meters;
mod offline;
mod online;
mod rounds;
mod runs;
mod space;
mod store;
mod workers;

use crate::Error;
use crate::decide::{Decision, Goal, decide};
use crate::enumerate::{Points, Settings, materialization_points};
use crate::results::{CacheDrop, Measured};
use crate::statistics::extrapolate;
use crate::vocabulary::{Cache, Codec, GpuIndex, Point};
use choice::Choice;
use direct::DirectReader;
use gpu::GpuThreads;
use meetpoint_diagnose::Setting;
use meetpoint_format::recipe::Recipe;
use meetpoint_host::energy::{Machine, Meters};
use meetpoint_kernels::ImageFormat;
use meetpoint_prepare::Dataset;
use offline::Offline;
use online::{Expected, Work};
use rounds::{StoredForm, open_forms, outdated_forms};
use runs::{Run, Runs};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use store::Store;

pub use choice::SAMPLES_MIN;
pub use gpu::ProfiledGpu;
pub use offline::JPEG_QUALITY;

/// Number of samples with which a widening profile begins.
const SAMPLES_FIRST: u64 = 32;
/// Number of samples at which a widening profile ends even if the best is not certain.
const SAMPLES_MOST: u64 = 4096;
/// Maximum number of threads of a strategy.
pub(crate) const THREADS_MOST: usize = 1024;
/// Maximum number of runs.
const RUNS_MOST: u32 = 1000;

/// How many samples are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Samples {
    /// Exactly this number.
    Exactly(u64),
    /// An increasing number, until the best is certain, or until 4,096 or all are measured.
    Widening,
}

/// The options of the measurement.
#[derive(Debug, Clone)]
pub struct Options {
    /// Codecs and numbers of threads.
    pub settings: Settings,
    /// Runs of each strategy.
    pub runs: u32,
    /// How many samples are measured.
    pub samples: Samples,
    /// Seed of the choice of samples, and of random parameters.
    pub seed: u64,
    /// The GPU with which forms that suit it are measured too; `None`: the CPU alone.
    pub gpu: Option<ProfiledGpu>,
    /// Folder for temporary files.
    pub folder: PathBuf,
    /// The goal of the decision.
    pub goal: Goal,
}

/// The measurements and the decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Every strategy, in the order of [`crate::enumerate()`]; with a GPU, only those of stored
    /// forms of which it prepared samples.
    pub results: Vec<Measured>,
    /// The choice among them.
    pub decision: Decision,
    /// The points of the recipe.
    pub points: Points,
    /// Samples of the largest round.
    pub samples: u64,
    /// Number of rounds, each with more samples than the previous one.
    pub rounds: u32,
    /// Why no energy was measured; `None` if it was.
    pub no_meters: Option<String>,
}

/// The progress of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Stored forms that were measured in this round.
    pub done: u64,
    /// Stored forms of this round.
    pub total: u64,
}

/// Measures every strategy of a recipe on a dataset, and chooses.
///
/// `stop` ends it with [`Error::Stopped`]. Temporary files are removed in any case.
pub fn profile(
    dataset: &Arc<Dataset>,
    recipe: &Recipe,
    options: &Options,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Profile, Error> {
    let meters = Meters::find(Machine::this());
    let no_meters = meters.why_none().map(|why| why.to_string());
    let meters = RefCell::new(meters);
    check(dataset, options)?;
    check_pictures(recipe)?;
    let threads = options.settings.threads.iter().copied().max().unwrap_or(1);
    options.gpu.as_ref().map(|gpu| gpu.check(recipe, threads)).transpose()?;
    let mut count = match options.samples {
        Samples::Exactly(count) => count,
        Samples::Widening => SAMPLES_FIRST.min(dataset.len()),
    };
    let most = dataset.len().min(SAMPLES_MOST);
    let points = points(&Choice::new(dataset, count, options.seed)?, recipe)?;
    let legal = stored_forms(&points.legal, &options.settings);
    let mut open = legal.clone();
    let mut results: Vec<Measured> = Vec::new();
    for rounds in 1.. {
        let choice = Choice::new(dataset, count, options.seed)?;
        let round = Round { choice: &choice, recipe, options, meters: &meters, stop };
        let decision = loop {
            replace(&mut results, round.measure(&open, progress)?);
            if let Some(gpu) = options.gpu.as_ref().map(|gpu| gpu.index)
                && results.iter().all(|measured| measured.gpu.is_none())
            {
                return Err(Error::NothingOnGpu { gpu, samples: count });
            }
            let decision = decide(&results, &options.goal)?;
            open = outdated_forms(&legal, &results, &decision, count);
            if open.is_empty() {
                break decision;
            }
        };
        let is_last = match options.samples {
            Samples::Exactly(_) => true,
            Samples::Widening => decision.is_certain || count >= most,
        };
        if is_last {
            return Ok(Profile { results, decision, points, samples: count, rounds, no_meters });
        }
        // Only forms that may still be the best are measured again, together with nothing offline.
        open = open_forms(&legal, &results, &decision);
        count = (2 * count).min(most);
    }
    unreachable!("rounds end at {most} samples");
}

/// Refuses options outside of their ranges.
fn check(dataset: &Dataset, options: &Options) -> Result<(), Error> {
    let number = |name, setting, value, most| match (1..=most).contains(&value) {
        true => Ok(()),
        false => Err(Error::Number { name, setting, value, least: 1, most }),
    };
    number("runs", Setting::Runs, u64::from(options.runs), u64::from(RUNS_MOST))?;
    for &threads in &options.settings.threads {
        number("threads", Setting::Threads, threads as u64, THREADS_MOST as u64)?;
    }
    if options.settings.threads.is_empty() {
        return Err(Error::NoSettings { name: "numbers of threads", setting: Setting::Threads });
    }
    if options.settings.codecs.is_empty() {
        return Err(Error::NoSettings { name: "codecs", setting: Setting::Codecs });
    }
    let (samples, least) = (dataset.len(), SAMPLES_MIN);
    if samples < least {
        return Err(Error::SmallDataset { samples, least });
    }
    match options.samples {
        Samples::Exactly(asked) if !(least..=samples).contains(&asked) => {
            Err(Error::Samples { asked, least, most: samples })
        }
        Samples::Exactly(_) | Samples::Widening => Ok(()),
    }
}

/// Refuses a recipe that produces several pictures per sample.
fn check_pictures(recipe: &Recipe) -> Result<(), Error> {
    let of_view = recipe.views().first().map(|view| format!("the view {:?}", view.column));
    let operations = recipe.operations().iter();
    let mut several = operations.filter(|operation| operation.pictures() > 1);
    let of_operation = || several.next().map(|operation| format!("`{}`", operation.name()));
    match of_view.or_else(of_operation) {
        Some(maker) => Err(Error::SeveralPictures { maker }),
        None => Ok(()),
    }
}

/// The points of the recipe on these samples.
fn points(choice: &Choice, recipe: &Recipe) -> Result<Points, Error> {
    let mut has_jpegs = false;
    for index in 0..choice.len() {
        let file = choice.file(index)?;
        has_jpegs |= ImageFormat::of(&file) == Some(ImageFormat::Jpeg);
    }
    Ok(materialization_points(recipe, has_jpegs))
}

/// The stored forms of strategies at these points.
fn stored_forms(points: &[Point], settings: &Settings) -> Vec<StoredForm> {
    let mut forms: Vec<StoredForm> = Vec::new();
    for strategy in crate::enumerate(points, settings, None) {
        let form = (strategy.point, strategy.codec);
        if forms.last() != Some(&form) {
            forms.push(form);
        }
    }
    forms
}

/// Replaces older measurements of strategies by newer ones.
fn replace(results: &mut Vec<Measured>, newer: Vec<Measured>) {
    for measured in newer {
        let strategy = measured.strategy();
        match results.iter_mut().find(|it| it.strategy() == strategy) {
            Some(older) => *older = measured,
            None => results.push(measured),
        }
    }
}

/// Measurements on one selection of samples.
struct Round<'a> {
    choice: &'a Choice,
    recipe: &'a Recipe,
    options: &'a Options,
    /// Meters of energy, which only one run at a time uses.
    meters: &'a RefCell<Meters>,
    stop: &'a AtomicBool,
}

/// The runs of a row.
struct Figures<'a> {
    cold: &'a Runs,
    /// Runs with the row's cache.
    runs: &'a Runs,
    /// Runs of the CPU alone, whose samples show the error due to the choice of samples.
    sampled: &'a Runs,
    cache_drop: CacheDrop,
    gpu: Option<GpuIndex>,
}

impl Round<'_> {
    /// Measures stored forms with every number of threads and every cache.
    fn measure(
        &self,
        forms: &[StoredForm],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<Measured>, Error> {
        let Options { settings, folder, .. } = self.options;
        let points: Vec<Point> = forms.iter().map(|(point, _)| point.clone()).collect();
        let sizes = space::file_sizes(self.choice)?;
        space::check(self.recipe, &points, &settings.codecs, &sizes, folder)?;
        let work = self.work();
        let threads = self.threads_most();
        let expected = online::expected(work, threads)?;
        let total = forms.len() as u64;
        let mut results = Vec::new();
        for (done, (point, codec)) in (0..).zip(forms) {
            progress(Progress { done, total });
            results.extend(self.measure_form(point, *codec, &expected)?);
        }
        progress(Progress { done: total, total });
        Ok(results)
    }

    fn work(&self) -> Work<'_> {
        let Self { recipe, choice, stop, .. } = *self;
        Work { recipe, choice, seed: self.options.seed, stop }
    }

    fn threads_most(&self) -> usize {
        self.options.settings.threads.iter().copied().max().unwrap_or(1)
    }

    /// Stores a form, and measures it.
    fn measure_form(
        &self,
        point: &Point,
        codec: Codec,
        expected: &[Expected],
    ) -> Result<Vec<Measured>, Error> {
        let threads = self.threads_most();
        // Removed when dropped, in any case.
        let folder = temporary(&self.options.folder)?;
        let path = folder.path();
        let (recipe, choice, stop) = (self.recipe, self.choice, self.stop);
        let offline = offline::materialize(recipe, choice, (point, codec), threads, path, stop)?;
        online::check(self.work(), &offline.store, threads, expected)?;
        let gpu = self.gpu_for(&offline, expected)?;
        let mut results = Vec::new();
        for &threads in &self.options.settings.threads {
            results.extend(self.measure_threads(&offline, threads, gpu)?);
        }
        drop(offline);
        folder.close().map_err(|source| Error::Io {
            action: "remove",
            path: self.options.folder.clone(),
            source,
        })?;
        Ok(results)
    }

    /// The GPU, if it prepares samples of this stored form. Their results are checked.
    fn gpu_for(
        &self,
        offline: &Offline,
        expected: &[Expected],
    ) -> Result<Option<&ProfiledGpu>, Error> {
        let Store { point, codec, .. } = &offline.store;
        let suits = point.form.suits_gpu(*codec);
        let Some(gpu) = self.options.gpu.as_ref().filter(|_| suits) else { return Ok(None) };
        let prepared = gpu::check(self.work(), &offline.store, gpu, expected)?;
        Ok((prepared > 0).then_some(gpu))
    }

    /// Measures a stored form with one number of threads: the strategies with every cache.
    fn measure_threads(
        &self,
        offline: &Offline,
        threads: usize,
        gpu: Option<&ProfiledGpu>,
    ) -> Result<Vec<Measured>, Error> {
        let (store, work) = (&offline.store, self.work());
        let (mut page, mut application) = (Vec::new(), Vec::new());
        let meters = &mut *self.meters.borrow_mut();
        let (cold, cache_drop) =
            self.cold_runs(store, || online::run_cold(work, store, threads, meters))?;
        // Reads every sample, which puts it into the page cache.
        let cached = online::cached(work, store)?;
        for _ in 0..self.options.runs {
            page.push(online::run(work, store, threads, None, meters)?);
            application.push(online::run(work, store, threads, Some(&cached), meters)?);
        }
        let (page, application) = (Runs::of(&page), Runs::of(&application));
        let of_cpu = |cache, runs| {
            let sampled = runs;
            let figures = Figures { cold: &cold, runs, sampled, cache_drop, gpu: None };
            self.row(offline, (threads, cache), &figures)
        };
        let mut rows = vec![
            of_cpu(Cache::Cold, &cold),
            of_cpu(Cache::Page, &page),
            of_cpu(Cache::Application, &application),
        ];
        let Some(gpu) = gpu else { return Ok(rows) };
        drop(cached);
        let sampled = [&cold, &page];
        let all = GpuThreads::warm(work, store, gpu, threads)?;
        let (cold, cache_drop) = self.cold_runs(store, || all.run(Cache::Cold, meters))?;
        let page = (0..self.options.runs).map(|_| all.run(Cache::Page, meters));
        let page = Runs::of(&page.collect::<Result<Vec<_>, Error>>()?);
        let gpu = Some(gpu.index);
        for (cache, runs, sampled) in
            [(Cache::Cold, &cold, sampled[0]), (Cache::Page, &page, sampled[1])]
        {
            let figures = Figures { cold: &cold, runs, sampled, cache_drop, gpu };
            rows.push(self.row(offline, (threads, cache), &figures));
        }
        Ok(rows)
    }

    /// Runs that read from the drive, and how the page cache was bypassed.
    fn cold_runs(
        &self,
        store: &Store,
        mut run: impl FnMut() -> Result<Run, Error>,
    ) -> Result<(Runs, CacheDrop), Error> {
        let is_direct = DirectReader::open(store)?.is_direct()?;
        let mut cache_drop = if is_direct { CacheDrop::Direct } else { CacheDrop::Dropped };
        let mut cold = Vec::new();
        for _ in 0..self.options.runs {
            if !is_direct {
                let dropped = store.drop_cache()?;
                if dropped != CacheDrop::Dropped {
                    cache_drop = dropped;
                }
            }
            cold.push(run()?);
        }
        Ok((Runs::of(&cold), cache_drop))
    }

    /// The measured strategy, extrapolated to the whole dataset.
    fn row(
        &self,
        offline: &Offline,
        (threads, cache): (usize, Cache),
        &Figures { cold, runs, sampled, cache_drop, gpu }: &Figures<'_>,
    ) -> Measured {
        let manifest = self.choice.dataset.manifest();
        let (population, dataset_bytes) = (manifest.samples, manifest.image_bytes);
        let Store { point, codec, records, .. } = &offline.store;
        let total = |bytes: &dyn Fn(usize) -> u64| {
            let source = &self.choice.source_bytes;
            let pairs = source.iter().enumerate().map(|(at, of)| (bytes(at) as f64, *of as f64));
            extrapolate(&pairs.collect::<Vec<_>>(), population, dataset_bytes as f64)
        };
        let stored = total(&|at| records[at].bytes);
        let samples = records.len() as f64;
        // Unchanged files cost nothing offline.
        let is_free = point.is_nothing_offline();
        let offline_seconds =
            if is_free { 0.0 } else { offline.seconds / samples * population as f64 };
        let prepared = runs.prepared;
        Measured {
            form: point.form,
            operations: point.operations,
            operation: point.operation.clone(),
            codec: *codec,
            threads,
            cache,
            dataset_samples: population,
            dataset_bytes,
            samples: records.len() as u64,
            runs: self.options.runs,
            offline_seconds,
            offline_error: offline_seconds * offline.per_sample.relative_error(population),
            process_seconds: offline_seconds * (1.0 - offline.save_share),
            save_seconds: offline_seconds * offline.save_share,
            stored_bytes: stored.value,
            stored_error: stored.error,
            cached_bytes: total(&|at| records[at].raw_bytes).value,
            cold_per_second: cold.per_second.mean(),
            cold_deviation: cold.per_second.deviation(),
            per_second: runs.per_second.mean(),
            per_second_deviation: runs.per_second.deviation(),
            sampling_error: sampled.sampling_error(self.options.runs, population),
            cpu_seconds: runs.cpu_seconds / prepared,
            context_switches: runs.context_switches as f64 / prepared,
            peak_memory_bytes: runs.peak_memory_bytes,
            disk_bytes_per_second: runs.disk_bytes.map(|bytes| bytes as f64 / runs.seconds),
            cache_drop,
            joules: runs.joules.map(|joules| joules / prepared),
            gpu,
            gpu_seconds: runs.gpu_seconds.map(|seconds| seconds / prepared),
            gpu_joules: runs.gpu_joules.map(|joules| joules / prepared),
        }
    }
}

/// A new folder inside another one.
fn temporary(folder: &Path) -> Result<tempfile::TempDir, Error> {
    let made = tempfile::Builder::new().prefix("meetpoint-profile-").tempdir_in(folder);
    made.map_err(|source| Error::Io {
        action: "create a folder in",
        path: folder.to_path_buf(),
        source,
    })
}
