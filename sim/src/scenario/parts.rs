//! The tables of a scenario: host, devices, storage, accelerator, ranks, and what the scheduler
//! knows of them.

use serde::Deserialize;

use super::distribution::Distribution;
use super::fault::{Fault, RankFault};
use super::quantity::{Bandwidth, Bytes, Span};

/// The host's side of a rank; the ranks share its cores.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// w: background workers of each rank; 0: the consumer prepares between steps.
    #[serde(default)]
    pub workers: u32,
    /// Batches prepared ahead per worker.
    #[serde(default = "two")]
    pub prefetch: u32,
    /// t_p: core time of a batch, reads left aside.
    pub preparation: Distribution,
    /// η: workers of a rank come to workers·η undisturbed ones; a batch takes preparation / η.
    /// Without workers it has no meaning.
    #[serde(default = "whole")]
    pub efficiency: f64,
    /// Cores that all ranks share, fairly; absent: one for each thread that prepares.
    #[serde(default)]
    pub cores: Option<u32>,
    /// t_h: what a step on a host batch takes longer (copy to the accelerator).
    #[serde(default)]
    pub copy: Span,
    /// Share of `preparation` that goes with a batch's size, from 0 to 1.
    #[serde(default)]
    pub by_size: f64,
}

impl Host {
    /// Without workers, whose batches take this.
    pub fn new(preparation: Distribution) -> Self {
        Self {
            workers: 0,
            prefetch: two(),
            preparation,
            efficiency: whole(),
            cores: None,
            copy: Span(0),
            by_size: 0.0,
        }
    }
}

/// Devices of one kind.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// How many of them there are.
    #[serde(default = "one")]
    pub count: u32,
    /// Time of a batch; with bandwidths set, its reads and writes come on top. All of it is t_s.
    pub preparation: Distribution,
    /// Slots of its spool, shared fairly by the ranks that it serves; absent: never limits.
    #[serde(default)]
    pub spool_slots: Option<u32>,
    /// Batches granted ahead, for each rank.
    #[serde(default = "four")]
    pub ahead: u32,
    /// Time of a message to it or from it.
    #[serde(default)]
    pub latency: Span,
    /// Its reads of samples; absent: they take no time of their own.
    #[serde(default)]
    pub read_bandwidth: Option<Bandwidth>,
    /// Its writes of slots.
    #[serde(default)]
    pub write_bandwidth: Option<Bandwidth>,
    /// Its flash as a whole: the device's reads and writes, and the host's reads of samples and
    /// slots, share it. Instead of the bandwidths per leg, here and in `storage`.
    #[serde(default)]
    pub drive_bandwidth: Option<Bandwidth>,
    /// Share of `preparation` that goes with a batch's size, from 0 to 1.
    #[serde(default)]
    pub by_size: f64,
    /// What goes wrong at each of them.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

impl Device {
    /// One device whose batches take this.
    pub fn new(preparation: Distribution) -> Self {
        Self {
            count: one(),
            preparation,
            spool_slots: None,
            ahead: four(),
            latency: Span(0),
            read_bandwidth: None,
            write_bandwidth: None,
            drive_bandwidth: None,
            by_size: 0.0,
            faults: Vec::new(),
        }
    }
}

/// Which device may prepare which batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holders {
    /// Each may prepare all.
    #[default]
    Shared,
    /// Each batch is one device's, in an even pattern.
    Interleaved,
}

/// Which ranks a device works for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Serve {
    /// Each device serves all ranks, a batch of one after a batch of the next.
    #[default]
    AllRanks,
    /// Device d serves rank d mod G, or, with fewer devices than ranks, the ranks r with
    /// r mod D = d.
    OwnRanks,
}

/// Bytes of a batch, and the legs that they go over.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Storage {
    /// Bytes that are read to prepare a batch, by host or device.
    pub read_bytes: Bytes,
    /// Bytes of a prepared batch: written to the spool and read from it.
    pub batch_bytes: Bytes,
    /// The host's reads of samples, all ranks together; absent: they take no time of their own.
    pub host_read_bandwidth: Option<Bandwidth>,
    /// Reads of slots, all ranks and devices together.
    pub spool_read_bandwidth: Option<Bandwidth>,
    /// Time before the first byte of a read by the host.
    pub latency: Span,
    /// Whether reading a batch and preparing it go on at the same time, at host and device; else
    /// one after the other. Writing comes after both.
    pub overlap: bool,
    /// σ of the sizes of batches: exp(N(-σ²/2, σ)), of mean 1. They stretch what `by_size` says.
    pub size_sigma: f64,
}

/// The accelerator of each rank.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accelerator {
    /// t_t: a training step.
    pub step: Distribution,
    /// t_d: what a step on a device batch takes longer.
    #[serde(default)]
    pub direct_read: Span,
    /// Slots that may be fetched, or being fetched, and not consumed; absent: never limits.
    #[serde(default)]
    pub fetch_ahead: Option<u32>,
}

impl Accelerator {
    /// One whose steps take this.
    pub fn new(step: Distribution) -> Self {
        Self { step, direct_read: Span(0), fetch_ahead: None }
    }
}

/// How many accelerators there are, and how they agree.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ranks {
    /// G.
    pub count: u32,
    /// Whether the source of a step is decided for all ranks together; else each decides alone.
    /// Steps end together either way.
    pub collective: bool,
    /// Time of an agreement.
    pub cost: Span,
    /// A rank that keeps the others waiting for so long is named, and the run ends.
    pub timeout: Span,
    /// What goes wrong at ranks.
    pub faults: Vec<RankFault>,
}

impl Default for Ranks {
    fn default() -> Self {
        Self {
            count: 1,
            collective: true,
            cost: Span(0),
            timeout: Span(60_000_000_000),
            faults: Vec::new(),
        }
    }
}

/// What the scheduler knows of the machine before the first epoch: the true means, times a factor
/// each.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Knowledge {
    /// Whether it knows the times; else it measures.
    pub known: bool,
    /// On t_c (and on the host's preparation).
    pub host_factor: f64,
    /// On t_s: 0.5 says twice as fast as it is.
    pub device_factor: f64,
    /// On t_g.
    pub ready_factor: f64,
}

impl Default for Knowledge {
    fn default() -> Self {
        Self { known: true, host_factor: 1.0, device_factor: 1.0, ready_factor: 1.0 }
    }
}

/// Watts that `auto` assumes, for the goals `energy` and `mix`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Drawn as long as the epoch lasts, whatever happens.
    pub base_w: f64,
    /// More than idle, for a core of the host that prepares.
    pub host_core_w: f64,
    /// More than idle, for a device that prepares.
    pub device_w: f64,
}

fn one() -> u32 {
    1
}

fn two() -> u32 {
    2
}

fn four() -> u32 {
    4
}

fn whole() -> f64 {
    1.0
}
