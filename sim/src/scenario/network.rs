//! The tables of a scenario with many hosts: the hosts, the network between them, the object
//! stores, and the cache of each host.

use serde::Deserialize;

use super::quantity::{Bandwidth, Bytes, Span};

/// The hosts. Each has the workers, cores and bandwidths of `[host]` and `[storage]`, and
/// `ranks.count` ranks.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hosts {
    /// H.
    pub count: u32,
    /// Whether the ranks of all hosts step together, as in one training; otherwise each host is a
    /// training of its own.
    pub together: bool,
    /// Bandwidth at which a host receives: prepared batches from agents, samples from stores.
    pub link_bandwidth: Option<Bandwidth>,
    /// Mean time between failures of a host, exponentially distributed; absent: hosts do not fail.
    pub time_to_failure: Option<Span>,
    /// Time after which a training whose host failed repeats the step.
    pub time_to_restart: Span,
}

impl Default for Hosts {
    fn default() -> Self {
        Self {
            count: 1,
            together: true,
            link_bandwidth: None,
            time_to_failure: None,
            time_to_restart: Span(120_000_000_000),
        }
    }
}

/// What hosts, devices and stores share.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// Bandwidth of the core, which every transfer between hosts, devices and stores crosses.
    pub core_bandwidth: Option<Bandwidth>,
}

/// Object stores or file servers with the samples.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stores {
    /// Number of stores; the batches are spread over them.
    pub count: u32,
    /// Bandwidth of each.
    pub bandwidth: Option<Bandwidth>,
    /// Time from a request to its first byte.
    pub latency: Span,
    /// Requests for the samples of a batch.
    pub requests: u32,
    /// Requests that each store answers in a second; it rejects the others (503), which are sent
    /// again after a backoff.
    pub requests_per_second: Option<u32>,
    /// The first backoff; it doubles with each attempt, and varies by half.
    pub backoff: Span,
    /// The longest backoff.
    pub backoff_max: Span,
}

impl Default for Stores {
    fn default() -> Self {
        Self {
            count: 1,
            bandwidth: None,
            latency: Span(0),
            requests: 1,
            requests_per_second: None,
            backoff: Span(100_000_000),
            backoff_max: Span(5_000_000_000),
        }
    }
}

/// The cache of each host for samples that it read from a store.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cache {
    /// Share of the bytes that it holds from the second epoch on.
    pub hit_rate: Option<f64>,
    /// Instead of `hit_rate`: its size. The hit rate is its share of the bytes of an epoch of all
    /// ranks, at most 1: under a global shuffle, a host reads other samples in each epoch.
    pub bytes: Option<Bytes>,
    /// Share of the bytes that it holds in the first epoch.
    pub first_hit_rate: f64,
    /// Bandwidth of its drive.
    pub bandwidth: Option<Bandwidth>,
}

impl Default for Cache {
    fn default() -> Self {
        Self { hit_rate: None, bytes: None, first_hit_rate: 0.0, bandwidth: None }
    }
}
