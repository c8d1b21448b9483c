//! The result of a run: the content of `report.json`, and its tables and page.
//!
//! Field names carry their units; docs/report-schema.md describes every one. Measured and modelled
//! figures never share a field. In reading order: this file (the data), [`Epoch`] (an epoch and its
//! batches), [`collect`] (measurements of the runtime), [`EmulatedCore`] (what disturbed an
//! emulation), [`uneven`] (repeated and omitted batches), [`predict`] and [`energy`] (results of
//! models), [`table`] (terminal), [`html`] (one self-contained page), [`charts`] (generic charts),
//! [`plots`] (charts of runs), both drawn with [`svg`].

pub mod charts;
pub mod collect;
mod core_use;
mod deviation;
pub mod energy;
mod epoch;
pub mod grid;
pub mod html;
mod legend;
pub mod plan;
pub mod plots;
pub mod predict;
pub mod profile;
pub mod render;
pub mod setup;
pub mod svg;
pub mod table;
pub mod uneven;
pub mod units;
pub mod write;

#[cfg(any(test, feature = "made-up"))]
pub mod made_up;

pub use core_use::{EmulatedCore, because};
pub use energy::{Consumption, MeasuredEnergy, ModelledEnergy};
pub use epoch::{Batch, Displacement, Epoch, Learned, Profile, Quantiles, Source};
pub use meetpoint_host::Notice;
pub use meetpoint_host::stats::{OFF_TARGET_MAX, SpeedLimit};
pub use meetpoint_host::verify::{Fact, Finding};
pub use predict::Form;
pub use setup::{Accelerator, AutoChoice, Choice, DeviceSetup, EnergyMeters, Processor, Spool};
pub use uneven::{Uneven, UnevenKind, UnevenReason};

use meetpoint_diagnose::{Diagnose, Remedy, Surface, printable_lines};
use meetpoint_host::Tune;
use meetpoint_host::explain::Explanation;
use meetpoint_host::stats::{DamageRecord, DeliveryUse, Event};
use meetpoint_scheduler::StrategyOptions;
use serde::{Deserialize, Serialize};

/// Version of the schema; increased when a field is removed or changes its meaning.
pub const VERSION: u32 = 8;

/// Maximum size of a `report.json`, in bytes.
pub const FILE_BYTES_MAX: u64 = 1 << 30;

/// Explains a limit of the emulation that is off its target, with the remedy.
pub const INVALID: &str = "the device was faster or slower than its settings, so its times do not \
    count; batches and guarantees remain valid. Use an idle machine, a core for the device that \
    the host does not use (core, host_cores), and more batches; a latency below that of the \
    machine's own timers and storage cannot be emulated";

/// One invocation of `run` or `demo`: a job with one strategy or several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// Program and version.
    pub tool: String,
    /// When the run ended, seconds since 1970-01-01 UTC.
    pub created_unix_seconds: u64,
    /// The machine.
    pub machine: Machine,
    /// The job.
    pub job: Job,
    /// One entry per strategy, in the order in which they ran.
    pub runs: Vec<Run>,
    /// Requested runs that failed.
    pub failures: Vec<Failure>,
    /// Fallbacks and other notices.
    pub notices: Vec<Notice>,
}

/// A failed strategy, or a failed verification of the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Name of the strategy, or [`VERIFICATION`].
    pub what: String,
    /// Stable identifier of the error.
    pub cause: String,
    /// The error and its causes, in the words of the party that reported it.
    pub error: String,
    /// The remedy; `None` if none is known.
    pub remedy: Option<Remedy>,
}

/// The name under which a failure of the verification is listed.
pub const VERIFICATION: &str = "verification";

/// The machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Processor model.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Main memory.
    pub memory_bytes: u64,
    /// Kernel name and release.
    pub kernel: String,
    /// Instruction set of the kernels.
    pub instruction_set: String,
    /// Energy meters that are read, or why there is none.
    pub energy_meters: EnergyMeters,
}

/// The job, with every default filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Folder.
    pub dataset: String,
    /// Samples in it.
    pub samples: u64,
    /// Canonical form.
    pub recipe_toml: String,
    /// SHA-256 of the canonical form.
    pub recipe_sha256: String,
    /// The columns of a batch, in order.
    pub columns: Vec<Column>,
    /// How pictures of different sizes are combined into a batch: a mode and its options.
    pub collate: String,
    /// Samples in a batch.
    pub batch_size: u32,
    /// Batches in an epoch.
    pub batches: u32,
    /// Epochs under each strategy.
    pub epochs: u32,
    /// Seed of order and augmentation.
    pub seed: u64,
    /// The sampler with its options, such as `shuffled`; lists are shown by their length.
    pub sampler: String,
    /// SHA-256 of the sampler's rule for the dataset.
    pub sampler_sha256: String,
    /// Whether a short last batch is left out.
    pub drop_last: bool,
    /// Background threads of the host; 0: the consumer prepares.
    pub workers: u32,
    /// Batches prepared ahead per worker.
    pub prefetch: u32,
    /// Whether workers and batches ahead adapt, beginning with these numbers.
    #[serde(default)]
    pub tune: Tune,
    /// Most memory of the ring of batches.
    pub memory_budget_bytes: u64,
    /// The options of every strategy.
    pub strategies: StrategyOptions,
    /// Where device batches are stored.
    pub spool: Spool,
    /// The consumer of batches.
    pub accelerator: Accelerator,
    /// The devices; empty without any.
    pub devices: Vec<DeviceSetup>,
    /// Whether every device can prepare every batch, or each holds different parts.
    pub shared: bool,
    /// Consumers that step together.
    pub ranks: u32,
    /// Whether a device that has finished its part of an epoch begins the next.
    pub run_ahead: bool,
    /// Whether device batches are reused in the next epoch.
    pub reuse: bool,
    /// Which batches the devices prepare.
    pub choice: Choice,
}

/// A column of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// `tensor`, `ragged`, `bytes` or `text`.
    pub kind: String,
    /// NumPy's name of the type of its elements; uint8 for bytes and texts.
    pub dtype: String,
    /// Axes of one sample whose length is the same for all samples, outermost first.
    pub shape: Vec<u32>,
}

/// The job with one strategy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Name, with its options if it has any.
    pub strategy: String,
    /// Sums and peaks over the epochs.
    pub totals: Totals,
    /// The epochs.
    pub epochs: Vec<Epoch>,
    /// Consistency levels C0-C6: claimed and verified.
    pub levels: Vec<Level>,
    /// The time predicted by the closed form.
    pub prediction: Prediction,
    /// The part of each device; empty without one.
    pub devices: Vec<Device>,
    /// The part of each rank; empty if there is only one rank.
    pub ranks: Vec<Rank>,
    /// Batches that the ranks together delivered more than once, or not at all.
    #[serde(default)]
    pub uneven: Vec<Uneven>,
    /// The plan compared with the achieved figures; `None` for a job without one.
    #[serde(default)]
    pub plan: Option<plan::PlanComparison>,
    /// Measured energy, never modelled; `None` if no epoch began.
    #[serde(default)]
    pub measured_energy: Option<MeasuredEnergy>,
    /// Modelled energy, never measured.
    pub modelled_energy: Option<ModelledEnergy>,
    /// Bytes moved and written, wear and cost.
    #[serde(default)]
    pub consumption: Option<Consumption>,
    /// Faults and how they were handled.
    pub events: Vec<RunEvent>,
    /// Damaged samples that were left out or replaced, epoch by epoch.
    #[serde(default)]
    pub damage: Vec<DamageRecord>,
    /// What limited the last epoch, by rank 0; `None` if fewer than two batches were consumed.
    #[serde(default)]
    pub explanation: Option<Explanation>,
    /// Statistics of the delivery of batches to a GPU (`--device-out`), for each rank; empty
    /// without a GPU.
    #[serde(default)]
    pub deliveries: Vec<DeliveryUse>,
}

/// An event of one epoch of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    /// Number of the epoch, from 0.
    pub epoch: u32,
    /// What happened, when and at which rank.
    #[serde(flatten)]
    pub event: Event,
}

/// Sums and peaks of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Time of all epochs, without verification.
    pub seconds: f64,
    /// Samples consumed per second.
    pub samples_per_second: f64,
    /// Batches that the host prepared.
    pub host_batches: u64,
    /// Batches that the device prepared.
    pub device_batches: u64,
    /// CPU time of this process, all threads, without that of verification.
    pub host_core_seconds: f64,
    /// CPU time spent on the checksums that verification needs.
    pub verify_core_seconds: f64,
    /// Highest resident memory of this process.
    pub host_peak_memory_bytes: u64,
    /// Bytes of the dataset and of the spool that the host read from storage.
    pub host_bytes_read: u64,
    /// Bytes that the host wrote to storage.
    pub host_bytes_written: u64,
    /// Bytes of the dataset that the device read.
    pub device_bytes_read: u64,
    /// Bytes of slots that the device wrote.
    pub device_bytes_written: u64,
}

/// One consistency level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// `C0` to `C6`.
    pub level: String,
    /// Its verdict.
    pub verdict: Verdict,
    /// How it was verified, where it failed, or why it was not checked.
    pub findings: Vec<Finding>,
}

/// Whether a level holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Claimed by the strategy and verified in this run.
    Verified,
    /// Claimed by the strategy, but violated in this run.
    Failed,
    /// Claimed by the strategy, but not verified in this run.
    NotChecked,
    /// Not claimed by the strategy.
    NotClaimed,
}

/// The closed form compared with the measured time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Predicted time of all epochs; `None` if no form applies.
    pub seconds: Option<f64>,
    /// measured / predicted - 1.
    pub error_ratio: Option<f64>,
    /// The formula and what bounds the epoch, or why none applies.
    pub form: Form,
}

/// A device's part of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Number, from 0.
    pub device: u16,
    /// Batches consumed that it prepared.
    pub batches: u64,
    /// Its batches that were revoked and prepared by the host.
    pub revoked: u64,
    /// Number of stalls: it had work, but reported no progress in time.
    pub stalls: u64,
    /// Whether it was excluded from an epoch.
    pub is_lost: bool,
    /// t_s: mean time of a batch; `None` if it finished none.
    pub t_s_seconds: Option<f64>,
    /// Bytes of the dataset that it read.
    pub bytes_read: u64,
    /// Bytes of slots that it wrote.
    pub bytes_written: u64,
    /// CPU time of its preparing thread.
    pub core_seconds: f64,
    /// Time while it had work.
    pub busy_seconds: f64,
    /// Highest resident memory of its process.
    pub peak_memory_bytes: u64,
    /// The speed limits of the emulation.
    pub knobs: Vec<SpeedLimit>,
    /// How its emulated core was used, and what disturbed it; `None` if it is not emulated.
    pub core_use: Option<EmulatedCore>,
}

/// A rank's part of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rank {
    /// Number, from 0.
    pub rank: u32,
    /// Steps that it took.
    pub steps: u64,
    /// Steps on batches that the host prepared.
    pub host_batches: u64,
    /// Steps on batches that a device prepared.
    pub device_batches: u64,
    /// Mean time that it waited for a batch.
    pub wait_mean_seconds: f64,
    /// Samples that it saw twice so that all ranks take equal steps.
    pub padded_samples: u64,
}

impl Report {
    /// Sentences for everything that failed: strategies, verification, levels.
    pub fn failed(&self) -> Vec<String> {
        let ended = self.failures.iter().map(|failure| match failure.what.as_str() {
            VERIFICATION => format!("verification failed: {}", failure.error),
            strategy => format!("strategy {strategy} failed: {}", failure.error),
        });
        let broken = self.runs.iter().flat_map(|run| {
            let of_run = run.failed_levels().into_iter();
            of_run.map(|level| format!("{} broke {}: {}", run.strategy, level.level, level.how()))
        });
        ended.chain(broken).collect()
    }
}

impl Level {
    /// The findings in one sentence.
    pub fn how(&self) -> String {
        self.findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }
}

impl Report {
    /// The notices as sentences.
    pub fn notice_lines(&self) -> impl Iterator<Item = String> {
        self.notices.iter().map(|notice| notice.in_full(Surface::CommandLine))
    }
}

impl Run {
    /// The events as sentences with their time.
    pub fn event_lines(&self) -> impl Iterator<Item = String> {
        let has_epochs = self.epochs.len() > 1;
        self.events.iter().map(move |RunEvent { epoch, event }| {
            let of_epoch =
                if has_epochs { format!("epoch {epoch}, at ") } else { "at ".to_owned() };
            let at = units::nanoseconds(event.at_ns);
            let of_rank = event.rank.map_or_else(String::new, |rank| format!("rank {rank}: "));
            // A device may send any text as its reason.
            let what = printable_lines(&event.kind.in_full(Surface::CommandLine));
            let what = what.replace('\n', "\\n");
            format!("{of_epoch}{at}: {of_rank}{what}")
        })
    }

    /// A sentence for each speed limit of the emulation that deviates too much from its target,
    /// with the causes.
    pub fn invalid(&self) -> Vec<String> {
        let limits = self
            .devices
            .iter()
            .flat_map(|device| device.knobs.iter().map(move |limit| (device.device, limit)));
        limits
            .filter(|(_, limit)| !limit.is_valid)
            .map(|(device, limit)| {
                let off = limit.off_ratio().abs() * 100.0;
                let of_device = match self.devices.len() {
                    1 => String::new(),
                    _ => format!(" of device {device}"),
                };
                let because = because(limit);
                format!("INVALID: {}{of_device} is {off:.1} % off target{because}", limit.name)
            })
            .collect()
    }

    /// Speed-up over the first `host-only` run.
    pub fn speed_up(&self, report: &Report) -> Option<f64> {
        let base = report.runs.iter().find(|run| run.strategy == "host-only")?;
        Some(base.totals.seconds / self.totals.seconds)
    }

    /// Claimed levels that did not hold.
    pub fn failed_levels(&self) -> Vec<&Level> {
        self.levels.iter().filter(|level| level.verdict == Verdict::Failed).collect()
    }
}
