//! What an epoch is to be run with.

use crate::error::Error;
use crate::types::Profile;

/// Which strategy decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Baseline: the host prepares everything. Gives C4.
    HostOnly,
    /// The device prepares everything, in ascending order. Gives C4.
    DeviceOnly,
    /// Moving towards each other: a fixed split, the host's part first, then the device's.
    /// Gives C3 (C4 with an ascending tail).
    Mte {
        /// How the device's share is found.
        split: Split,
        /// Order in which the device's part is consumed.
        tail: Tail,
    },
    /// Weighted round robin: a device batch if one is ready, else a host batch. Gives C0-C2.
    Wrr,
}

/// How many batches `mte` gives to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// Both ends finish together: n_s = N·t_c/(t_c+t_s), from [`Config::profile`] when it is
    /// known, else from the first [`Config::profile_batches`] of each source in this epoch.
    EqualFinish,
    /// Exactly this many: replays a recorded epoch.
    Fixed(u32),
}

/// Order of the device's part under `mte`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// As produced, from the back: N-1, N-2, …; consuming may overlap producing.
    Descending,
    /// n_c, n_c+1, …: the order of the host alone (C4).
    Ascending,
}

/// Consistency levels, DESIGN §3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Every batch consumed exactly once.
    C0,
    /// Batch content is a function of (dataset, recipe, seed, epoch, batch).
    C1,
    /// Samples are bit-identical whoever prepared them.
    C2,
    /// The sequence is reproducible from (seed, epoch, recorded split).
    C3,
    /// The sequence is 0..N-1.
    C4,
    /// All ranks take equal steps from the same kind of source.
    C5,
    /// Nothing prepared for one epoch is used in another.
    C6,
}

impl Strategy {
    /// Name in job files and reports: `host-only`, `device-only`, `mte`, `wrr`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::HostOnly => "host-only",
            Self::DeviceOnly => "device-only",
            Self::Mte { .. } => "mte",
            Self::Wrr => "wrr",
        }
    }

    /// The levels it gives, in order.
    pub fn levels(&self) -> &'static [Level] {
        use Level::{C0, C1, C2, C3, C4, C5, C6};
        match self {
            Self::HostOnly | Self::DeviceOnly | Self::Mte { tail: Tail::Ascending, .. } => {
                &[C0, C1, C2, C3, C4, C5, C6]
            }
            Self::Mte { .. } => &[C0, C1, C2, C3, C5, C6],
            Self::Wrr => &[C0, C1, C2, C5, C6],
        }
    }
}

/// An epoch's parameters. Times are nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// N, at least 1.
    pub batches: u32,
    /// Who decides.
    pub strategy: Strategy,
    /// Most host batches claimed and not consumed: workers + prefetch; 1 without workers.
    pub host_ahead: u32,
    /// Devices: 0 or 1 today. More is [`crate::Error::TooManyDevices`].
    pub devices: u16,
    /// Most batches granted to a device and not published.
    pub device_ahead: u32,
    /// Slots of the spool: most device batches claimed, published or ready and not consumed.
    pub spool_slots: u32,
    /// Most published batches being fetched or ready in host memory and not consumed.
    pub fetch_ahead: u32,
    /// A device with work that says nothing for this long is fenced off.
    pub stall_timeout_ns: u64,
    /// After this many stalls a device gets no more work in the epoch.
    pub stalls_max: u32,
    /// Batches of each source that `mte` measures when it has no profile.
    pub profile_batches: u32,
    /// What is known from before.
    pub profile: Option<Profile>,
    /// Number of the first generation; higher than any used before on the link.
    pub first_generation: u32,
}

/// Devices that this version drives.
const DEVICES_MAX: u16 = 1;

impl Config {
    /// Whether an epoch can be run with it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.batches == 0 {
            return Err(Error::NoBatches);
        }
        if self.devices > DEVICES_MAX {
            return Err(Error::TooManyDevices { asked: self.devices, limit: DEVICES_MAX });
        }
        at_least_one("host_ahead", self.host_ahead)?;
        if self.strategy == Strategy::HostOnly {
            return Ok(());
        }
        if self.devices == 0 {
            return Err(Error::NeedsDevice { strategy: self.strategy.name() });
        }
        at_least_one("device_ahead", self.device_ahead)?;
        at_least_one("spool_slots", self.spool_slots)?;
        at_least_one("fetch_ahead", self.fetch_ahead)?;
        at_least_one("stall_timeout_ns", self.stall_timeout_ns)?;
        at_least_one("stalls_max", self.stalls_max)?;
        match self.strategy {
            Strategy::Mte { split: Split::Fixed(split), .. } if split > self.batches => {
                Err(Error::SplitTooLarge { split, batches: self.batches })
            }
            Strategy::Mte { split: Split::EqualFinish, .. } if !self.profile_known() => {
                at_least_one("profile_batches", self.profile_batches)
            }
            _ => Ok(()),
        }
    }

    fn profile_known(&self) -> bool {
        self.profile.is_some_and(|profile| profile.host_ns > 0 && profile.device_ns > 0)
    }
}

fn at_least_one(field: &'static str, got: impl Into<u64>) -> Result<(), Error> {
    let got = got.into();
    if got == 0 { Err(Error::TooSmall { field, got, least: 1 }) } else { Ok(()) }
}
