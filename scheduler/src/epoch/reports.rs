//! The result of an epoch: for the report, for the next epoch, for a replay.

use crate::epoch::Epoch;
use crate::epoch::pace::Pace;
use crate::learned::{CommonTimes, Learned};
use crate::record::Record;
use crate::strategies::Selection;
use crate::types::{DeviceId, Profile};

/// The result of an epoch so far; valid at any time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Batches consumed that the host prepared.
    pub host_batches: u32,
    /// Batches consumed that a device prepared.
    pub device_batches: u32,
    /// Device claims that were taken back (losses, stalls, rejected slots, end of the epoch).
    pub revoked: u32,
    /// Reports that had no effect.
    pub void_reports: u32,
    /// Number of stalls.
    pub stalls: u32,
    /// Whether a device was declared lost.
    pub device_lost: bool,
    /// The total share n_s of all devices, once it is fixed.
    pub split: Option<u32>,
    /// Whether that share would have been larger with more spool slots.
    pub split_limited_by_spool: bool,
    /// Measured times; t_s is that of the first device.
    pub measured: Profile,
    /// Highest generation used so far.
    pub last_generation: u32,
}

/// The result of one device so far; valid at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceSummary {
    /// Batches consumed that it prepared.
    pub batches: u32,
    /// Its claims that were taken back.
    pub revoked: u32,
    /// Number of stalls.
    pub stalls: u32,
    /// Whether it was declared lost.
    pub lost: bool,
    /// t_s, mean over the epoch; 0 without measurements.
    pub batch_ns: u64,
    /// Its generation.
    pub generation: u32,
}

impl Epoch {
    /// The result of the epoch so far.
    pub fn summary(&self) -> Summary {
        let board = &self.board;
        let (split, split_limited_by_spool) = self.plan.split();
        let generation = board.devices.iter().map(|device| device.generation.0).max();
        Summary {
            host_batches: board.ledger.consumed_by_host(),
            device_batches: board.ledger.consumed_by_device(),
            revoked: board.revoked,
            void_reports: board.void_reports,
            stalls: board.devices.iter().map(|device| device.stalls).sum(),
            device_lost: board.devices.iter().any(|device| device.lost.is_some()),
            split,
            split_limited_by_spool,
            measured: board.measured(),
            last_generation: generation.unwrap_or(0),
        }
    }

    /// Whether batches are unfinished: claimed by the host or a device, or being fetched. A wait
    /// for any of these ends, because each has its own time limit.
    pub fn is_at_work(&self) -> bool {
        let ledger = &self.board.ledger;
        ledger.host_working() + ledger.device_claimed() + self.board.fetching > 0
    }

    /// The result of a device so far; `None` if the index is out of range.
    pub fn device_summary(&self, device: DeviceId) -> Option<DeviceSummary> {
        let device = self.board.devices.get(usize::from(device.0))?;
        Some(DeviceSummary {
            batches: device.consumed,
            revoked: device.revoked,
            stalls: device.stalls,
            lost: device.lost.is_some(),
            batch_ns: device.batch.mean_ns(),
            generation: device.generation.0,
        })
    }

    /// The times for the next epoch's [`crate::Config::learned`]: the measured times, and the
    /// earlier ones if nothing was measured.
    pub fn learned(&self) -> Learned {
        let board = &self.board;
        let or = |measured: u64, before: u64| if measured > 0 { measured } else { before };
        let before = &board.terms.learned;
        let devices = board.devices.iter();
        let (rest, patience) = self.pace.as_ref().map_or((0, 0), Pace::learned_rest);
        Learned {
            host_ns: or(board.steps.host().mean_ns(), before.host_ns),
            ready_ns: or(board.steps.device().mean_ns(), before.ready_ns),
            preparation_ns: or(board.steps.preparation().mean_ns(), before.preparation_ns),
            alone_ns: or(self.pace.as_ref().map_or(0, Pace::alone_ns), before.alone_ns),
            window: self.pace.as_ref().map_or(0, Pace::learned_window),
            turn: self.pace.as_ref().map_or(0, Pace::learned_turn),
            rest,
            patience,
            device_ns: devices.map(|d| or(d.batch.mean_ns(), d.learned_ns)).collect(),
            common: self.ranks.known.or(before.common).filter(CommonTimes::is_known),
        }
    }

    /// The record that replays the order of this epoch, once it is fixed; `None` if the strategy
    /// alone determines the order, or the order depends on timing.
    pub fn record(&self) -> Option<Record> {
        self.plan.record().map(|numbers| Record::new(self.decides, numbers))
    }

    /// The selection of `auto`, and its reason; `None` under any other strategy.
    pub fn selection(&self) -> Option<Selection> {
        self.selection
    }
}
