//! Job files: one run, described in TOML. `docs/jobs.md` lists every key.
//!
//! In reading order: this file (the data), `read` (TOML to data), `recipe`, `table`, `marks`,
//! `check` (the job against dataset and machine), `error`.

mod check;
mod error;
mod marks;
mod read;
mod recipe;
mod table;

pub(crate) use check::free_bytes;
pub use error::JobError;

use crate::config::{DeviceSource, LoaderConfig, SpoolConfig};
use crate::{Error, StopHandle};
use meetpoint_format::recipe::Recipe;
use meetpoint_scheduler::{Split, Strategy, Tail};
use meetpoint_storage::EngineKind;
use meetpoint_storage::files::read_text;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A job: what to run and how. Paths are as the process finds them, relative ones having started
/// at the job file's folder.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFile {
    /// Where it was read from.
    pub path: PathBuf,
    /// Folder of the dataset.
    pub dataset: PathBuf,
    /// What is done to every sample.
    pub recipe: Arc<Recipe>,
    /// Samples in a batch.
    pub batch_size: u32,
    /// Epochs to run. Default: 1.
    pub epochs: u32,
    /// Seed of order and augmentation. Default: 0.
    pub seed: u64,
    /// Whether each epoch is shuffled. Default: true.
    pub shuffle: bool,
    /// Whether a last batch that is not full is left out. Default: false.
    pub drop_last: bool,
    /// Who decides. Default: `wrr` with a device, else `host-only`.
    pub strategy: Strategy,
    /// How the device's share is found under `mte`. Default: `equal-finish`.
    pub mte_split: Split,
    /// Order of the device's part under `mte`. Default: descending.
    pub mte_tail: Tail,
    /// Background threads. Default: 0.
    pub workers: u32,
    /// Batches prepared ahead per worker. Default: 2.
    pub prefetch: u32,
    /// Most memory of the ring of batches. Default: 512 MiB.
    pub memory_budget_bytes: u64,
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
    /// Whether every sample is checked against a preparation by the host alone. Default: true.
    pub verify: bool,
    /// The device. Default: none.
    pub device: DeviceJob,
    /// Where device batches land. Default: memory, 256 MiB.
    pub spool: SpoolConfig,
    /// What consumes batches. Default: nothing.
    pub accelerator: AcceleratorJob,
    /// Where each value stands in the file.
    marks: marks::Marks,
}

/// Where the device of a job comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum DeviceJob {
    /// There is none.
    None,
    /// A process of its own for each strategy.
    Emulated(EmulatedDevice),
    /// One that somebody started.
    Connect {
        /// Its socket.
        socket: PathBuf,
    },
}

/// The knobs of an emulated device; `None` where not limited.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EmulatedDevice {
    /// Share of a core, above 0 and at most 1.
    pub cpu_ratio: Option<f64>,
    /// Bandwidth of reads.
    pub read_bytes_per_second: Option<u64>,
    /// Bandwidth of writes.
    pub write_bytes_per_second: Option<u64>,
    /// Latency of a command.
    pub latency: Option<Duration>,
    /// Core that it is bound to.
    pub core: Option<usize>,
    /// Whether it may share its core.
    pub allow_shared: bool,
    /// Faults on demand, as `meetpoint device serve --fault` takes them.
    pub faults: Vec<String>,
}

/// What consumes the batches of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceleratorJob {
    /// Nothing: what is measured is the loader alone.
    Null,
    /// Steps that take this long and no CPU.
    Emulated {
        /// One step.
        step: Duration,
    },
}

/// The strategies, by the names that job files and reports use.
pub const STRATEGIES: [&str; 4] = ["host-only", "device-only", "mte", "wrr"];

impl JobFile {
    /// Reads a job file and the recipe that it names.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = read_text(path).map_err(|error| JobError {
            file: path.to_path_buf(),
            place: None,
            problem: format!("failed to read the job: {error}"),
            remedy: "name a TOML file that can be read".to_owned(),
        })?;
        Ok(Self::parse(&text, path)?)
    }

    /// Reads a job from the text of the file at `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Self, JobError> {
        read::read(text, path)
    }

    /// The strategy with this name, with the job's options for it.
    pub fn strategy_named(&self, name: &str) -> Option<Strategy> {
        match name {
            "host-only" => Some(Strategy::HostOnly),
            "device-only" => Some(Strategy::DeviceOnly),
            "mte" => Some(Strategy::Mte { split: self.mte_split, tail: self.mte_tail }),
            "wrr" => Some(Strategy::Wrr),
            _ => None,
        }
    }

    /// A loader's configuration for one strategy of this job; `devices` is where the job's devices
    /// come from.
    pub fn loader_config(
        &self,
        strategy: Strategy,
        devices: Vec<DeviceSource>,
        stop: StopHandle,
    ) -> LoaderConfig {
        LoaderConfig {
            drop_last: self.drop_last,
            shuffle: self.shuffle,
            seed: self.seed,
            strategy,
            workers: self.workers,
            prefetch: self.prefetch,
            memory_budget_bytes: self.memory_budget_bytes,
            engine: self.engine,
            read_depth: self.read_depth,
            devices,
            spool: self.spool.clone(),
            stall_timeout: self.stall_timeout,
            profile_batches: self.profile_batches,
            host_cores: self.host_cores.clone(),
            verify_samples: self.verify,
            stop,
            ..LoaderConfig::new(&self.dataset, Arc::clone(&self.recipe), self.batch_size)
        }
    }
}
