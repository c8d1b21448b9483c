//! One epoch of a run in the report: its figures, and the life of every batch.

use crate::AutoChoice;
use meetpoint_host::MemoryKind;
use meetpoint_host::stats::{CacheUse, GpuUse, RemoteUse, TuningUse};
use serde::{Deserialize, Serialize};

/// One epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Number of the epoch, from 0.
    pub epoch: u32,
    /// From the first request for a batch to the end of the last step.
    pub seconds: f64,
    /// Samples consumed.
    pub samples: u64,
    /// CRC-32C over the sequence of batch indices consumed, hexadecimal; equal sequences are equal.
    pub order_hash: String,
    /// Number of batches for the devices, if the strategy fixes one.
    pub split: Option<u32>,
    /// The record that replays this epoch with `--replay`; `None` if the order follows from the
    /// strategy alone, or depends on timing.
    pub record: Option<String>,
    /// The choice of `auto` and its reason; `None` under any other strategy.
    pub picked: Option<AutoChoice>,
    /// The scheduler's estimates at the end, with which the next epoch begins.
    pub learned: Learned,
    /// Device batches that were prepared before the epoch began.
    pub ahead_batches: u32,
    /// Device batches that were reused from an earlier epoch.
    pub reused_batches: u32,
    /// How far batches were moved so that devices prepare those that save the most time; `None` if
    /// none was moved.
    pub displacement: Option<Displacement>,
    /// The use of the cache of prepared samples; `None` without one.
    #[serde(default)]
    pub cache: Option<CacheUse>,
    /// Statistics of reads from stores; `None` if the dataset is on this machine.
    #[serde(default)]
    pub store: Option<RemoteUse>,
    /// The use of a GPU by the host's preparers; `None` without one.
    #[serde(default)]
    pub gpu: Option<GpuUse>,
    /// The changes by a tuner; `None` without one.
    #[serde(default)]
    pub tuning: Option<TuningUse>,
    /// Time that the consumer waited for a batch (with no workers: preparation included).
    pub wait: Quantiles,
    /// Time of the host to prepare a batch.
    pub prepare: Quantiles,
    /// Time within it that was spent waiting for reads.
    pub read: Quantiles,
    /// Time from a device's publish to its batch being ready in host memory.
    pub fetch: Quantiles,
    /// Time of a step of the accelerator.
    pub step: Quantiles,
    /// Mean times of a batch.
    pub profile: Profile,
    /// Every batch in the order of consumption; times are seconds since the epoch began.
    pub batches: Vec<Batch>,
}

/// Times of a batch that the scheduler expects; `None` if not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// t_c: one step on a batch that the host prepares.
    pub t_c_seconds: Option<f64>,
    /// t_g: one step on a batch that a device had ready.
    pub t_g_seconds: Option<f64>,
    /// One batch by one worker of the host.
    pub preparation_seconds: Option<f64>,
    /// t_s of each device.
    pub t_s_seconds: Vec<Option<f64>>,
}

/// The distance of batches from their positions without a choice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Displacement {
    /// Mean over all batches, in batches.
    pub mean_batches: f64,
    /// Largest, in batches.
    pub max_batches: u32,
}

/// Quantiles of a time, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Number of recorded times.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_seconds: f64,
    /// Median.
    pub p50_seconds: f64,
    /// 90th percentile.
    pub p90_seconds: f64,
    /// 99th percentile.
    pub p99_seconds: f64,
    /// Longest.
    pub max_seconds: f64,
}

/// Measured mean times of a batch; `None` if there was no batch of the kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// t_c: one step on a batch that the host prepared; with workers the interval between steps.
    pub t_c_seconds: Option<f64>,
    /// t_g: one step on a batch that the device had ready.
    pub t_g_seconds: Option<f64>,
    /// t_s: one batch at the device.
    pub t_s_seconds: Option<f64>,
}

/// Who prepared a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The host.
    Host,
    /// The device.
    Device,
}

/// The life of one batch; seconds since the epoch began.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// Index in the epoch.
    pub batch: u32,
    /// Who prepared it.
    pub source: Source,
    /// Number of the device, if one did.
    pub device: Option<u16>,
    /// Rank that consumed it.
    pub rank: u32,
    /// Kind of memory in which it was ready.
    pub memory: MemoryKind,
    /// Preparation began.
    pub prepare_start: f64,
    /// Preparation ended (device: its publish was seen).
    pub prepare_end: f64,
    /// It was ready to be consumed.
    pub ready: f64,
    /// Its step began.
    pub consume: f64,
    /// Its step ended.
    pub step_end: f64,
}
