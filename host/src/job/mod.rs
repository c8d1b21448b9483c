//! Job files: one run, described in TOML. `docs/jobs.md` lists every key.
//!
//! In reading order: this file (the data), `strategy` (strategy, options, replay), `devices`,
//! `gpu`, `plan` (what a plan adds to a job), `read` (TOML to data), `recipe`, `sampler`, `values`,
//! `table`, `marks`, `check` (the job against dataset and machine).

mod check;
mod collate;
mod devices;
mod gpu;
mod marks;
mod plan;
mod read;
mod recipe;
mod sampler;
mod strategy;
mod table;
mod values;

pub use crate::job_error::JobError;
pub(crate) use check::free_bytes;
pub use devices::{DEVICES_MAX, DeviceJob, DeviceKind};
pub use plan::{OfflinePlan, PLAN_VERSION, Plan, Predicted, operations_in_words};

use crate::config::{DeviceSource, LoaderConfig, SpoolConfig, Tune};
use crate::gpu_decode::GpuDecode;
use crate::{Error, StopHandle};
use meetpoint_diagnose::Remedy;
use meetpoint_format::column::{Collate, ColumnNames};
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::Sampler;
use meetpoint_prepare::cache::CacheSettings;
use meetpoint_prepare::{Action, DatasetPaths, OnError};
use meetpoint_scheduler::{AnyStrategy, Record, StrategyName, StrategyOptions};
use meetpoint_storage::files::read_text;
use meetpoint_storage::{EngineKind, open_files_limit};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How datasets in stores are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreSettings {
    /// Folder of the cache; `None`: that of the user.
    pub cache_dir: Option<PathBuf>,
    /// Maximum bytes of the cache of a dataset; `None`: the default.
    pub cache_bytes: Option<u64>,
    /// Send requests without credentials.
    pub anonymous: bool,
}

/// Values that replace those of a job file, which may leave out their keys.
#[derive(Debug, Clone, Default)]
pub struct Replacements {
    /// The devices; if empty, those of the file are used.
    pub devices: Vec<DeviceKind>,
    /// Whether other strategies than that of the file run. Then, as with replaced devices, the file
    /// needs no device even if its own strategy needs one.
    pub has_strategies: bool,
    /// The recipe, which also determines the default columns.
    pub recipe: Option<Arc<Recipe>>,
    /// The dataset.
    pub dataset: Option<DatasetPaths>,
}

/// A job: what to run and how. Relative paths of the file have been resolved against its folder.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFile {
    /// The path of the file.
    pub path: PathBuf,
    /// Folder of the dataset, or several that are served as one.
    pub dataset: DatasetPaths,
    /// How datasets in stores are read; the caller opens them with it.
    pub store: StoreSettings,
    /// The operations on every sample.
    pub recipe: Arc<Recipe>,
    /// The columns of a batch, in order, and how pictures of different sizes are combined. Default:
    /// `image`, or the views of the recipe, and `label`; pictures of one size.
    pub columns: ColumnNames,
    /// Samples in a batch.
    pub batch_size: u32,
    /// Epochs to run. Default: 1.
    pub epochs: u32,
    /// Seed of order and augmentation. Default: 0.
    pub seed: u64,
    /// Which samples an epoch has, and in which order. Default: `shuffled`.
    pub sampler: Sampler,
    /// Whether a last batch that is not full is dropped. Default: false.
    pub drop_last: bool,
    /// The strategy. Default: `wrr` with a device, else `host-only`.
    pub strategy: StrategyName,
    /// Recorded epochs to replay: none, one for all epochs, or one for each.
    pub replay: Vec<Record>,
    /// The options of every strategy.
    pub options: StrategyOptions,
    /// G: number of consumers that step together. Default: 1.
    pub ranks: u32,
    /// Whether a device that has finished its part of an epoch begins the next. Default: false.
    pub run_ahead: bool,
    /// Whether device batches are retained for the next epoch. Default: false.
    pub reuse: bool,
    /// Which batches the device gets. Default: those at the end of the order.
    pub choice: Choice,
    /// Background threads. Default: 0.
    pub workers: u32,
    /// Batches prepared ahead per worker. Default: 2.
    pub prefetch: u32,
    /// Whether workers and batches ahead adapt. Default: off.
    pub tune: Tune,
    /// Maximum memory of the ring of batches. Default: [`LoaderConfig::memory_budget_default`].
    pub memory_budget_bytes: u64,
    /// Maximum memory for the stored bytes of small samples, a part of the memory budget; 0 for
    /// none. Default: what batches leave of it, at most 256 MiB.
    pub small_samples_bytes: Option<u64>,
    /// Prepared samples in memory. Default: none.
    pub cache: Option<CacheSettings>,
    /// A GPU that prepares a share of the host's batches. Default: none.
    pub gpu_decode: Option<GpuDecode>,
    /// How blocks are read. Default: `auto`.
    pub engine: EngineKind,
    /// Reads in flight per worker. Default: 32.
    pub read_depth: usize,
    /// How long a device with work may be silent. Default: 2 s.
    pub stall_timeout: Duration,
    /// Batches of each source that `mte` measures first. Default: 3.
    pub profile_batches: u32,
    /// Cores for the threads of the host. Default: all.
    pub host_cores: Option<Vec<usize>>,
    /// How to handle samples that cannot be read or decoded. Default: `raise`.
    pub on_error: Action,
    /// Maximum number of damaged samples in an epoch. Default: any number.
    pub errors_max: Option<u64>,
    /// File to which damaged samples are appended. Default: none.
    pub quarantine: Option<PathBuf>,
    /// Whether every sample is compared with a preparation by the host alone. Default: true.
    pub verify: bool,
    /// The devices. Default: none.
    pub devices: Vec<DeviceJob>,
    /// Whether every device can prepare every batch. Default: true for several devices on other
    /// machines for which no parts are given; otherwise, devices hold different parts.
    pub shared: bool,
    /// The spool for device batches. Default: [`SpoolConfig::default`].
    pub spool: SpoolConfig,
    /// The consumer of batches. Default: none.
    pub accelerator: AcceleratorJob,
    /// The plan of this job; `None` for a job that a user wrote.
    pub plan: Option<Plan>,
    /// The location of each value in the file.
    marks: marks::Marks,
}

/// Which batches the device gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Those at the end of the epoch's order, regardless of their cost.
    Tail,
    /// Those that save the most host time per second of device time.
    Saving,
}

/// The consumer of the batches of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceleratorJob {
    /// None: only the loader is measured.
    Null,
    /// Steps that take this long and no CPU.
    Emulated {
        /// One step.
        step: Duration,
    },
}

impl JobFile {
    /// Reads a job file and the recipe that it names.
    pub fn load(path: &Path) -> Result<Self, Error> {
        Self::load_for(path, Replacements::default())
    }

    /// Reads a job file, whose replaced keys may be missing.
    pub fn load_for(path: &Path, replacements: Replacements) -> Result<Self, Error> {
        let text = read_text(path).map_err(|error| JobError {
            file: path.to_path_buf(),
            place: None,
            cause: crate::job_error::CAUSE,
            problem: format!("failed to read the job: {error}"),
            remedy: open_files_limit(&error)
                .map_or_else(|| "name a TOML file that can be read".into(), Remedy::from),
        })?;
        Ok(read::read(&text, path, replacements)?)
    }

    /// Reads a job from the text of the file at `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Self, JobError> {
        read::read(text, path, Replacements::default())
    }

    /// A strategy with the job's options for it.
    pub fn strategy(&self, name: StrategyName) -> AnyStrategy {
        self.options.strategy(name)
    }

    /// Replaces the columns of a batch; errors about them then have no location in the file.
    pub fn replace_columns(&mut self, columns: ColumnNames) {
        self.columns = columns.collated(self.columns.collate());
        self.marks.forget("columns");
    }

    /// Replaces how pictures of different sizes are combined; errors about it then have no location
    /// in the file.
    pub fn replace_collate(&mut self, collate: Collate) {
        let had_default =
            self.columns == ColumnNames::of_collated(&self.recipe, self.columns.collate());
        self.columns = match had_default {
            true => ColumnNames::of_collated(&self.recipe, collate),
            false => self.columns.clone().collated(collate),
        };
        self.marks.forget("collate");
    }

    /// Replaces the sampler; errors about it then have no location in the file.
    pub fn replace_sampler(&mut self, sampler: Sampler) {
        self.sampler = sampler;
        self.marks.forget("sampler");
    }

    /// Replaces the GPU; errors about it then have no location in the file.
    pub fn replace_gpu_decode(&mut self, gpu_decode: Option<GpuDecode>) {
        self.gpu_decode = gpu_decode;
        for key in ["gpu_decode", "gpu_share", "gpu_memory"] {
            self.marks.forget(key);
        }
    }

    /// Replaces the dataset; errors about it then have no location in the file.
    pub fn replace_dataset(&mut self, dataset: DatasetPaths) {
        self.dataset = dataset;
        self.marks.forget("dataset");
    }

    /// Applies replacements; errors about them then have no location in the file.
    fn apply(&mut self, replacements: Replacements) {
        let Replacements { devices, has_strategies: _, recipe, dataset } = replacements;
        if !devices.is_empty() {
            self.replace_devices(devices);
        }
        if let Some(recipe) = recipe {
            self.recipe = recipe;
            self.marks.forget("recipe");
        }
        if let Some(dataset) = dataset {
            self.replace_dataset(dataset);
        }
    }

    /// Replaces the devices by running ones; errors about them then have no location in the file.
    fn replace_devices(&mut self, devices: Vec<DeviceKind>) {
        let device =
            |(number, kind)| DeviceJob { table: format!("device[{number}]"), kind, parts: None };
        self.devices = (0..).zip(devices).map(|it: (usize, _)| device(it)).collect();
        self.shared |= devices::have_copies(&self.devices);
        self.marks.forget("device");
    }

    /// A loader's configuration for one strategy of this job; `devices` says how to reach the job's
    /// devices.
    pub fn loader_config(
        &self,
        strategy: StrategyName,
        devices: Vec<DeviceSource>,
        stop: StopHandle,
    ) -> LoaderConfig {
        LoaderConfig {
            columns: self.columns.clone(),
            drop_last: self.drop_last,
            sampler: self.sampler.clone(),
            seed: self.seed,
            strategy: self.strategy(strategy),
            workers: self.workers,
            prefetch: self.prefetch,
            tune: self.tune,
            memory_budget_bytes: self.memory_budget_bytes,
            small_samples_bytes: self.small_samples_bytes,
            cache: self.cache.clone(),
            gpu_decode: self.gpu_decode,
            engine: self.engine,
            read_depth: self.read_depth,
            devices,
            run_ahead: if self.run_ahead { self.epochs } else { 0 },
            reuse: self.reuse,
            choose_by_saving: self.choice == Choice::Saving,
            ranks: self.ranks,
            shared_dataset: self.shared,
            part_holders: self.part_holders(),
            replay: self.replay_of(strategy, 0),
            spool: self.spool.clone(),
            stall_timeout: self.stall_timeout,
            profile_batches: self.profile_batches,
            host_cores: self.host_cores.clone(),
            on_error: OnError::Always(self.on_error),
            errors_max: self.errors_max,
            quarantine: self.quarantine.clone(),
            verify_samples: self.verify,
            stop,
            ..LoaderConfig::new(&self.dataset, Arc::clone(&self.recipe), self.batch_size)
        }
    }

    /// The record that an epoch of a strategy replays; `None` if the strategy decides.
    pub fn replay_of(&self, strategy: StrategyName, epoch: u32) -> Option<Record> {
        let record = match &self.replay[..] {
            [one] => Some(one),
            several => several.get(epoch as usize),
        };
        record.filter(|record| record.strategy() == strategy).cloned()
    }

    /// The device that holds each part, by the part's number; empty for the default distribution.
    fn part_holders(&self) -> Vec<u32> {
        let parts = |device: &DeviceJob| device.parts.clone().unwrap_or_default();
        let named: BTreeMap<u32, u32> = (0..)
            .zip(&self.devices)
            .flat_map(|(number, device)| parts(device).into_iter().map(move |part| (part, number)))
            .collect();
        // `check` refuses a job that leaves a part out.
        named.into_values().collect()
    }
}
