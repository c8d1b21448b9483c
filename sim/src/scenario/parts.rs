//! The tables of a scenario: host, devices, storage, accelerator, ranks, and what the scheduler
//! knows about them.

use serde::Deserialize;

use super::distribution::Distribution;
use super::fault::{Fault, RankFault};
use super::quantity::{Bandwidth, Bytes, Span};

/// The host's side of a rank; the ranks of a host share its cores.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// w: background workers of each rank; 0: the consumer prepares between steps.
    #[serde(default)]
    pub workers: u32,
    /// Batches prepared ahead per worker.
    #[serde(default = "two")]
    pub prefetch: u32,
    /// t_p: core time of a batch, without reads.
    pub preparation: Distribution,
    /// η: the workers of a rank are equivalent to workers·η independent ones; a batch takes
    /// preparation / η. Ignored without workers.
    #[serde(default = "whole")]
    pub efficiency: f64,
    /// Cores that the ranks of a host share, fairly; absent: one for each thread that prepares.
    #[serde(default)]
    pub cores: Option<u32>,
    /// t_h: additional time of a step on a host batch (copy to the accelerator).
    #[serde(default)]
    pub copy: Span,
    /// Share of `preparation` that goes with a batch's size, from 0 to 1.
    #[serde(default)]
    pub by_size: f64,
}

impl Host {
    /// A host without workers and with this preparation time.
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
    /// Number of these devices.
    #[serde(default = "one")]
    pub count: u32,
    /// Core time of a batch; if bandwidths are set, its reads and writes are added. The sum is
    /// t_s.
    pub preparation: Distribution,
    /// Cores, each of which prepares a batch at a time.
    #[serde(default = "one")]
    pub cores: u32,
    /// Bandwidth at which it sends prepared batches to hosts, and at which it receives samples
    /// from stores.
    #[serde(default)]
    pub link_bandwidth: Option<Bandwidth>,
    /// Mean time between failures, exponentially distributed; absent: it fails only by `faults`.
    #[serde(default)]
    pub time_to_failure: Option<Span>,
    /// Time after which a failed device can be used again, from the next epoch on.
    #[serde(default = "ten_seconds")]
    pub time_to_restart: Span,
    /// Slots of its spool, shared fairly by the ranks that it serves; absent: never limits.
    #[serde(default)]
    pub spool_slots: Option<u32>,
    /// Batches granted ahead, for each rank.
    #[serde(default = "four")]
    pub ahead: u32,
    /// Time of a message to or from it.
    #[serde(default)]
    pub latency: Span,
    /// Bandwidth of its reads of samples; absent: they take no additional time.
    #[serde(default)]
    pub read_bandwidth: Option<Bandwidth>,
    /// Bandwidth of its writes of slots.
    #[serde(default)]
    pub write_bandwidth: Option<Bandwidth>,
    /// Total bandwidth of its flash, which the device's reads and writes and the host's reads of
    /// samples and slots share. Instead of the bandwidths per leg, here and in `storage`.
    #[serde(default)]
    pub drive_bandwidth: Option<Bandwidth>,
    /// Share of `preparation` that goes with a batch's size, from 0 to 1.
    #[serde(default)]
    pub by_size: f64,
    /// The faults of each of these devices.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

impl Device {
    /// One device with this preparation time.
    pub fn new(preparation: Distribution) -> Self {
        Self {
            count: one(),
            preparation,
            cores: one(),
            link_bandwidth: None,
            time_to_failure: None,
            time_to_restart: ten_seconds(),
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
    /// Each batch belongs to one device, in a regular pattern.
    Interleaved,
}

/// Which ranks a device works for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Serve {
    /// Each device serves the ranks of all hosts in turn, one batch each.
    #[default]
    AllRanks,
    /// Device d serves rank d mod G, or, with fewer devices than ranks, the ranks r with
    /// r mod D = d.
    OwnRanks,
}

/// Bytes of a batch, and the bandwidths of their transfers.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Storage {
    /// Bytes that are read to prepare a batch, by host or device.
    pub read_bytes: Bytes,
    /// Bytes of a prepared batch: written to the spool and read from it.
    pub batch_bytes: Bytes,
    /// Bandwidth of a host's reads of samples, all its ranks together; absent: they take no
    /// additional time.
    pub host_read_bandwidth: Option<Bandwidth>,
    /// Bandwidth of a host's reads of slots, all its ranks and devices together.
    pub spool_read_bandwidth: Option<Bandwidth>,
    /// Time before the first byte of a read by the host.
    pub latency: Span,
    /// Whether reading and preparing a batch overlap, at host and device; otherwise they are
    /// sequential. Writing follows both.
    pub overlap: bool,
    /// σ of the sizes of batches: exp(N(-σ²/2, σ)), of mean 1. They scale the share of times that
    /// `by_size` sets.
    pub size_sigma: f64,
}

/// The accelerator of each rank.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accelerator {
    /// t_t: a training step.
    pub step: Distribution,
    /// t_d: additional time of a step on a device batch.
    #[serde(default)]
    pub direct_read: Span,
    /// Slots that may be fetched, or being fetched, and not consumed; absent: never limits.
    #[serde(default)]
    pub fetch_ahead: Option<u32>,
}

impl Accelerator {
    /// An accelerator with this step time.
    pub fn new(step: Distribution) -> Self {
        Self { step, direct_read: Span(0), fetch_ahead: None }
    }
}

/// How many accelerators each host has, and how they agree.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ranks {
    /// G, of each host.
    pub count: u32,
    /// Whether all ranks decide together on the source of a step; otherwise each decides alone. In
    /// both cases, steps end together.
    pub collective: bool,
    /// Time of an agreement.
    pub cost: Span,
    /// If the others wait this long for a rank, the run ends and names the rank.
    pub timeout: Span,
    /// Faults of ranks.
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

/// What the scheduler knows of the machine before the first epoch: the true means, each multiplied
/// by a factor.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Knowledge {
    /// Whether it knows the times; otherwise it measures them.
    pub known: bool,
    /// Factor on t_c and on the host's preparation.
    pub host_factor: f64,
    /// Factor on t_s: with 0.5, the device appears twice as fast as it is.
    pub device_factor: f64,
    /// Factor on t_g.
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
    /// Constant power during the epoch, in watts.
    pub base_w: f64,
    /// Additional power of a core of the host that prepares, in watts.
    pub host_core_w: f64,
    /// Additional power of a device that prepares, in watts.
    pub device_w: f64,
}

fn one() -> u32 {
    1
}

fn two() -> u32 {
    2
}

fn ten_seconds() -> Span {
    Span(10_000_000_000)
}

fn four() -> u32 {
    4
}

fn whole() -> f64 {
    1.0
}
