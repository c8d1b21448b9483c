//! Configurations that cannot be run.

/// A configuration that was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No batches.
    #[error("an epoch needs at least one batch")]
    NoBatches,
    /// More devices than this version drives.
    #[error("{asked} devices asked for, this version drives at most {limit}")]
    TooManyDevices {
        /// Asked for.
        asked: usize,
        /// Driven.
        limit: usize,
    },
    /// Holders for another number of devices.
    #[error("batches are held by {holders} devices, and {devices} are configured")]
    HoldersCount {
        /// As the holders say.
        holders: usize,
        /// As configured.
        devices: usize,
    },
    /// Holders of another number of batches.
    #[error("the devices hold {held} batches together, the epoch has {batches}")]
    HeldCount {
        /// As the holders say.
        held: u64,
        /// N.
        batches: u32,
    },
    /// A record that does not fit.
    #[error(
        "record {record} does not replay strategy {strategy} over {batches} batches and these \
         devices; give it the job that it was recorded with"
    )]
    NotReplayed {
        /// As given.
        record: String,
        /// The strategy.
        strategy: &'static str,
        /// N.
        batches: u32,
    },
    /// A strategy that needs a device, without one.
    #[error("strategy {strategy} needs a device")]
    NeedsDevice {
        /// Its name.
        strategy: &'static str,
    },
    /// A limit that must be at least `least`.
    #[error("{field} is {got}, must be at least {least}")]
    TooSmall {
        /// Its name.
        field: &'static str,
        /// As given.
        got: u64,
        /// Least value.
        least: u64,
    },
    /// The fixed split is larger than the epoch.
    #[error("a split of {split} device batches does not fit an epoch of {batches}")]
    SplitTooLarge {
        /// As given.
        split: u32,
        /// N.
        batches: u32,
    },
}
