//! The strategies by name, their options and what they guarantee.

/// Batches in a window of [`Strategy::Windowed`] where nobody says.
pub const WINDOW_DEFAULT: u32 = 16;

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
    /// Round robin whose interleave of sources is computed beforehand and waits instead of
    /// switching. Gives C3.
    WrrFrozen,
    /// `mte` whose switch from the host's part to the device's follows what is measured.
    /// Gives C3.
    MteFeedback,
    /// Windows of `window` batches, each worked from both ends and consumed in order. Gives C4.
    Windowed {
        /// W, at least 1.
        window: u32,
    },
    /// Picks one of the others, and takes work back from devices that cost time. In simulation an
    /// epoch is at most 1 % longer than with the host alone, which the tests hold; on a machine the
    /// goal is 2 %, and at most 2.8 % was measured (docs/measurements).
    Auto {
        /// What is to be made small.
        goal: Goal,
        /// What the order must be.
        order: Order,
    },
}

/// How many batches `mte` gives to the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// Both ends finish together: n_s = N·t_c/(t_c+t_s), from [`crate::Config::learned`] when it
    /// is known, else from the first [`crate::Config::profile_batches`] of each source.
    EqualFinish,
    /// The shortest epoch: n_s = N·t_c/(t_s+t_c-t_g), the device works on while its part is
    /// drained. Found as for `EqualFinish`.
    Optimal,
    /// Exactly this many.
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

/// What `auto` makes small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// Time.
    Throughput,
    /// Energy, by [`crate::Config::costs`].
    Energy,
    /// λ·T/T0 + (1-λ)·E/E0, T0 and E0 of the host alone.
    Mix {
        /// λ in millionths.
        time_weight_ppm: u32,
    },
}

/// What the order of consumption must be under `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Whatever is fastest.
    Any,
    /// Reproducible from a small record (C3).
    Replayable,
    /// That of the host alone (C4).
    Baseline,
}

/// Consistency levels; README.md says what each promises.
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
    /// Name in job files and reports: `host-only`, `device-only`, `mte`, `wrr`, `wrr-frozen`,
    /// `mte-feedback`, `windowed`, `auto`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::HostOnly => "host-only",
            Self::DeviceOnly => "device-only",
            Self::Mte { .. } => "mte",
            Self::Wrr => "wrr",
            Self::WrrFrozen => "wrr-frozen",
            Self::MteFeedback => "mte-feedback",
            Self::Windowed { .. } => "windowed",
            Self::Auto { .. } => "auto",
        }
    }

    /// The levels it gives, in order. Those of `auto` are what its order promises, whatever it
    /// picks.
    pub fn levels(&self) -> &'static [Level] {
        use Level::{C0, C1, C2, C3, C4, C5, C6};
        match self {
            Self::HostOnly
            | Self::DeviceOnly
            | Self::Mte { tail: Tail::Ascending, .. }
            | Self::Windowed { .. }
            | Self::Auto { order: Order::Baseline, .. } => &[C0, C1, C2, C3, C4, C5, C6],
            Self::Mte { .. }
            | Self::WrrFrozen
            | Self::MteFeedback
            | Self::Auto { order: Order::Replayable, .. } => &[C0, C1, C2, C3, C5, C6],
            Self::Wrr | Self::Auto { order: Order::Any, .. } => &[C0, C1, C2, C5, C6],
        }
    }

    /// Whether it can use a device at all.
    pub fn uses_devices(&self) -> bool {
        !matches!(self, Self::HostOnly)
    }

    /// Whether it cannot be run without a device. `auto` can: it then picks `host-only`.
    pub fn needs_device(&self) -> bool {
        !matches!(self, Self::HostOnly | Self::Auto { .. })
    }
}
