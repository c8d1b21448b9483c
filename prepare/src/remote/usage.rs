//! What reading from stores took, for reports.

use meetpoint_format::units::show_bytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Sub};

/// Counts since a dataset was opened, or of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RemoteUse {
    /// Bytes received in answers, those that were discarded included.
    pub fetched_bytes: u64,
    /// Requests sent, retries included.
    pub requests: u64,
    /// Requests that were repeated after a failure.
    pub retries: u64,
    /// Bytes that readers requested.
    pub read_bytes: u64,
    /// Of these, bytes that were in the cache, or on their way, when they were requested.
    pub hit_bytes: u64,
    /// Bytes that were evicted from the cache.
    pub evicted_bytes: u64,
    /// Bytes that were fetched again because their checksum did not match.
    pub refetched_bytes: u64,
}

impl RemoteUse {
    /// The share of requested bytes that were in the cache or on their way; 0 without any.
    pub fn hit_share(&self) -> f64 {
        if self.read_bytes == 0 { 0.0 } else { self.hit_bytes as f64 / self.read_bytes as f64 }
    }

    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn combined(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            fetched_bytes: with(self.fetched_bytes, other.fetched_bytes),
            requests: with(self.requests, other.requests),
            retries: with(self.retries, other.retries),
            read_bytes: with(self.read_bytes, other.read_bytes),
            hit_bytes: with(self.hit_bytes, other.hit_bytes),
            evicted_bytes: with(self.evicted_bytes, other.evicted_bytes),
            refetched_bytes: with(self.refetched_bytes, other.refetched_bytes),
        }
    }
}

impl fmt::Display for RemoteUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "The store sent {} in {} requests, {} of them retries; {:.1} % of the requested bytes \
             were in its cache or on their way, and {} were evicted from it.",
            show_bytes(self.fetched_bytes),
            self.requests,
            self.retries,
            100.0 * self.hit_share(),
            show_bytes(self.evicted_bytes)
        )
    }
}

impl Add for RemoteUse {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.combined(other, u64::saturating_add)
    }
}

impl Sub for RemoteUse {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        self.combined(before, u64::saturating_sub)
    }
}
