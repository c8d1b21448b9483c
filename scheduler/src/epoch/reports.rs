//! What an epoch came to: for the report, for the next epoch, for a replay.

use crate::config::Strategy;
use crate::epoch::Epoch;
use crate::learned::Learned;
use crate::picked::Picked;
use crate::record::{Kind, Record};
use crate::types::DeviceId;

/// What one device came to; valid at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceSummary {
    /// Batches consumed that it prepared.
    pub batches: u32,
    /// Its claims that were taken back.
    pub revoked: u32,
    /// Stalls seen.
    pub stalls: u32,
    /// Whether it was given up.
    pub lost: bool,
    /// t_s, mean over the epoch; 0 where nothing was measured.
    pub batch_ns: u64,
    /// Its generation.
    pub generation: u32,
}

impl Epoch {
    /// What a device came to so far; `None` for one that is not there.
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

    /// What is known now, for the next epoch's [`crate::Config::learned`]: what was measured, and
    /// what was known before where nothing was.
    pub fn learned(&self) -> Learned {
        let board = &self.board;
        let or = |measured: u64, before: u64| if measured > 0 { measured } else { before };
        let before = &board.config.learned;
        let devices = board.devices.iter();
        Learned {
            host_ns: or(board.steps.host().mean_ns(), before.host_ns),
            ready_ns: or(board.steps.device().mean_ns(), before.ready_ns),
            preparation_ns: or(board.steps.preparation().mean_ns(), before.preparation_ns),
            device_ns: devices.map(|d| or(d.batch.mean_ns(), d.learned_ns)).collect(),
        }
    }

    /// What replays the order of this epoch, once it is fixed; `None` where the order follows from
    /// the strategy alone, or from nothing.
    pub fn record(&self) -> Option<Record> {
        match self.board.config.strategy {
            Strategy::Mte { .. } => {
                let split = self.plan.as_ref().split().0?;
                Some(Record::new(Kind::Mte, vec![split.into()]))
            }
            _ => None,
        }
    }

    /// What `auto` picked, and why; `None` under any other strategy.
    pub fn picked(&self) -> Option<Picked> {
        None
    }
}
