//! The configuration of an epoch: its strategy and its terms.

use crate::learned::Learned;
use crate::record::Record;
use crate::strategies::AnyStrategy;
use crate::terms::{Costs, DeviceConfig, Holders, Terms};

mod check;

/// An epoch's parameters. Times are nanoseconds.
#[derive(Debug, Clone)]
pub struct Config {
    /// N, at least 1.
    pub batches: u32,
    /// The strategy.
    pub strategy: AnyStrategy,
    /// Maximum number of host batches claimed and not consumed: workers + prefetch; 1 without
    /// workers.
    pub host_ahead: u32,
    /// Maximum number of published batches that are being fetched or ready in host memory, and not
    /// consumed.
    pub fetch_ahead: u32,
    /// The devices; empty: none.
    pub devices: Vec<DeviceConfig>,
    /// Which device may prepare which batch.
    pub holders: Holders,
    /// A device with work that reports nothing for this long is fenced off.
    pub stall_timeout_ns: u64,
    /// After this many stalls a device gets no more work in the epoch.
    pub stalls_max: u32,
    /// Batches of each source that are measured if a strategy needs unknown times.
    pub profile_batches: u32,
    /// Times from earlier epochs.
    pub learned: Learned,
    /// Replays a recorded epoch; the record must be one of the strategy.
    pub replay: Option<Record>,
    /// Number of ranks. With more than one, all ranks agree on the source of each step (C5).
    pub ranks: u32,
    /// Power consumption, for [`crate::Auto`] with a goal other than throughput.
    pub costs: Option<Costs>,
}

impl Config {
    /// Everything except the strategy.
    pub(crate) fn terms(&self) -> Terms {
        Terms {
            batches: self.batches,
            host_ahead: self.host_ahead,
            fetch_ahead: self.fetch_ahead,
            devices: self.devices.clone(),
            holders: self.holders.clone(),
            stall_timeout_ns: self.stall_timeout_ns,
            stalls_max: self.stalls_max,
            profile_batches: self.profile_batches,
            learned: self.learned.clone(),
            replay: self.replay.as_ref().map(|record| record.numbers().to_vec()),
            ranks: self.ranks,
            costs: self.costs,
        }
    }
}
