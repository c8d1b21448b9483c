//! The terms of an epoch: the configuration that every strategy uses.

use std::fmt::Debug;
use std::sync::Arc;

use crate::learned::Learned;
use crate::types::{BatchIndex, DeviceId};

/// A [`crate::Config`] without its strategy. Times are nanoseconds.
#[derive(Debug, Clone)]
pub struct Terms {
    /// N, at least 1.
    pub batches: u32,
    /// Maximum number of host batches claimed and not consumed.
    pub host_ahead: u32,
    /// Maximum number of published batches that are being fetched or ready in host memory, and not
    /// consumed.
    pub fetch_ahead: u32,
    /// The devices; empty: none.
    pub devices: Vec<DeviceConfig>,
    /// Which device may prepare which batch.
    pub holders: Holders,
    /// A device with work that sends no message for this long is fenced off.
    pub stall_timeout_ns: u64,
    /// After this many stalls a device gets no more work in the epoch.
    pub stalls_max: u32,
    /// Batches of each source that are measured if unknown times are needed.
    pub profile_batches: u32,
    /// Times from earlier epochs.
    pub learned: Learned,
    /// The numbers of the record that the epoch replays.
    pub replay: Option<Vec<u64>>,
    /// Ranks that agree on the source of each step.
    pub ranks: u32,
    /// Power consumption.
    pub costs: Option<Costs>,
}

/// One device. Times are nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Maximum number of batches granted to it and not published.
    pub ahead: u32,
    /// Slots of its spool: the maximum number of its batches claimed, published or ready, and not
    /// consumed.
    pub spool_slots: u32,
    /// Its first generation; higher than any used before on its link.
    pub first_generation: u32,
}

/// Which device may prepare which batch.
#[derive(Debug, Clone, Default)]
pub enum Holders {
    /// Every device can prepare every batch: they share one back pointer.
    #[default]
    Shared,
    /// Each batch is held by one device, and each device has its own back pointer over the batches
    /// it holds. A [`crate::WorkRun`] then always has one batch.
    Interleaved(Arc<dyn Interleave>),
}

/// A fixed assignment of batches to devices. Methods are pure and take at most O(devices) time.
pub trait Interleave: Debug + Send + Sync {
    /// Number of devices that hold batches.
    fn devices(&self) -> u16;
    /// Number of batches that a device holds. The sum over all devices is
    /// [`crate::Config::batches`].
    fn count(&self, device: DeviceId) -> u32;
    /// The holder of a batch, and the batch's ordinal among those of its holder, from 0.
    fn holder(&self, batch: BatchIndex) -> (DeviceId, u32);
    /// The n-th batch that a device holds, ascending with n: the inverse of `holder`.
    fn nth(&self, device: DeviceId, n: u32) -> BatchIndex;
}

/// Power in microwatts, from which energy is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Costs {
    /// Base power during the epoch: the idle power of all components.
    pub base_uw: u64,
    /// Power above idle of a host core that prepares.
    pub host_core_uw: u64,
    /// Power above idle of a device that prepares.
    pub device_uw: u64,
}

impl Holders {
    /// Number of parts of the epoch that are prepared from both ends: one, or one for each device.
    pub(crate) fn parts(&self) -> usize {
        match self {
            Self::Shared => 1,
            Self::Interleaved(interleave) => usize::from(interleave.devices()),
        }
    }
}

impl Terms {
    /// Whether host batches are prepared while the accelerator works.
    pub(crate) fn background(&self) -> bool {
        self.host_ahead > 1
    }

    /// Slots of all spools.
    pub(crate) fn spool_slots(&self) -> u32 {
        self.devices.iter().fold(0, |sum, device| sum.saturating_add(device.spool_slots))
    }

    /// Whether the times of both ends are known in advance.
    pub(crate) fn times_known(&self) -> bool {
        let learned = &self.learned;
        learned.host_ns > 0 && (0..self.devices.len()).all(|at| learned.device_ns(at) > 0)
    }
}
