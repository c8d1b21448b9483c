//! Times learned in one epoch, as initial values for the next.

use crate::types::Profile;

/// Times of one batch, in nanoseconds; 0 if not known. They are a prior: measurements within the
/// epoch replace them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Learned {
    /// t_c: one step on a batch that the host prepares.
    pub host_ns: u64,
    /// t_g: one step on a ready device batch.
    pub ready_ns: u64,
    /// Preparation of one host batch by one worker, begin to end.
    pub preparation_ns: u64,
    /// Preparation of one host batch while no device worked, as `auto` measures it; 0 if not
    /// known.
    pub alone_ns: u64,
    /// Maximum number of unpublished batches of devices under `auto`; 0 if not known.
    pub window: u32,
    /// Number of batches that a host prepared from granting the first batch of a device to
    /// publishing it, under `auto` with several ranks; 0 if not known.
    pub turn: u32,
    /// Number of host batches until the next attempt of `auto` with devices that cost more than
    /// they saved; 0 if it uses the devices.
    pub rest: u32,
    /// The same number after that attempt, if it does not succeed; 0 if not known.
    pub patience: u32,
    /// t_s of each device: the time of one of its batches. The list may be shorter than the number
    /// of devices.
    pub device_ns: Vec<u64>,
    /// Times common to all ranks. `None` with one rank, and if some rank lacks a time.
    pub common: Option<CommonTimes>,
}

/// Among several ranks, the slowest times of one batch in nanoseconds, and the smallest spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommonTimes {
    /// t_c.
    pub host_ns: u64,
    /// t_g.
    pub ready_ns: u64,
    /// t_s of all devices of a rank together.
    pub device_ns: u64,
    /// Preparation of one host batch; 0 if not known.
    pub preparation_ns: u64,
    /// Slots of all spools of a rank.
    pub spool_slots: u32,
    /// Whether some rank prepares while its accelerator works.
    pub background: bool,
}

impl CommonTimes {
    /// A time that is not known; longer than any other.
    const UNKNOWN_NS: u64 = u64::MAX;

    /// The times of a rank that knows nothing.
    pub(crate) const UNKNOWN: Self = Self {
        host_ns: Self::UNKNOWN_NS,
        ready_ns: Self::UNKNOWN_NS,
        device_ns: Self::UNKNOWN_NS,
        preparation_ns: 0,
        spool_slots: u32::MAX,
        background: false,
    };

    /// Replaces times of 0, which are not known.
    pub(crate) fn or_unknown(self) -> Self {
        let known = |time: u64| if time == 0 { Self::UNKNOWN_NS } else { time };
        let (host_ns, ready_ns) = (known(self.host_ns), known(self.ready_ns));
        Self { host_ns, ready_ns, device_ns: known(self.device_ns), ..self }
    }

    /// Combines both.
    pub(crate) fn combine(self, other: Self) -> Self {
        Self {
            host_ns: self.host_ns.max(other.host_ns),
            ready_ns: self.ready_ns.max(other.ready_ns),
            device_ns: self.device_ns.max(other.device_ns),
            preparation_ns: self.preparation_ns.max(other.preparation_ns),
            spool_slots: self.spool_slots.min(other.spool_slots),
            background: self.background || other.background,
        }
    }

    /// Whether every rank knows every time.
    pub(crate) fn is_known(&self) -> bool {
        let times = [self.host_ns, self.ready_ns, self.device_ns];
        times.iter().all(|&time| time != Self::UNKNOWN_NS)
    }

    pub(crate) fn profile(&self) -> Profile {
        let Self { host_ns, device_ns, ready_ns, .. } = *self;
        Profile { host_ns, device_ns, ready_ns }
    }
}

impl Learned {
    /// Nothing known.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// From t_c, t_s of each of `devices` equal devices, and t_g.
    pub fn from_profile(profile: &Profile, devices: usize) -> Self {
        Self {
            host_ns: profile.host_ns,
            ready_ns: profile.ready_ns,
            preparation_ns: 0,
            alone_ns: 0,
            window: 0,
            turn: 0,
            rest: 0,
            patience: 0,
            device_ns: vec![profile.device_ns; devices],
            common: None,
        }
    }

    /// t_s of a device, 0 if not known.
    pub fn device_ns(&self, device: usize) -> u64 {
        self.device_ns.get(device).copied().unwrap_or(0)
    }
}
