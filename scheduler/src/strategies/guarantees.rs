//! The guarantees of a strategy: an order of consumption, and the consistency levels that follow.

/// The order of consumption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Any order, whichever is fastest.
    Any,
    /// Reproducible from a small record (C3).
    Replayable,
    /// The order of the host alone (C4).
    Baseline,
}

/// Consistency levels, as defined in README.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Every batch consumed exactly once.
    C0,
    /// Batch content is a function of (dataset, recipe, seed, epoch, batch).
    C1,
    /// Samples are bit-identical on host and device.
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

impl Order {
    /// The names in job files, with their values.
    pub const WORDS: [(&'static str, Self); 3] =
        [("any", Self::Any), ("replayable", Self::Replayable), ("baseline", Self::Baseline)];

    /// The levels that a strategy with this order guarantees, ascending.
    pub fn levels(self) -> &'static [Level] {
        use Level::{C0, C1, C2, C3, C4, C5, C6};
        match self {
            Self::Any => &[C0, C1, C2, C5, C6],
            Self::Replayable => &[C0, C1, C2, C3, C5, C6],
            Self::Baseline => &[C0, C1, C2, C3, C4, C5, C6],
        }
    }
}
