//! Errors of invalid configurations.

use crate::strategy_name::StrategyName;

/// A configuration that was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No batches.
    #[error("an epoch needs at least one batch")]
    NoBatches,
    /// More devices than this version supports.
    #[error("{asked} devices requested, at most {limit} supported")]
    TooManyDevices {
        /// Requested.
        asked: usize,
        /// Supported.
        limit: usize,
    },
    /// Holders for a different number of devices.
    #[error("batches are held by {holders} devices, and {devices} are configured")]
    HoldersCount {
        /// According to the holders.
        holders: usize,
        /// According to the configuration.
        devices: usize,
    },
    /// Holders of a different number of batches.
    #[error("the devices hold {held} batches together, the epoch has {batches}")]
    HeldCount {
        /// According to the holders.
        held: u64,
        /// N.
        batches: u32,
    },
    /// A record that does not match the configuration.
    #[error(
        "record {record} cannot be replayed with strategy {strategy}, {batches} batches and these \
         devices; use the job that it was recorded with"
    )]
    NotReplayed {
        /// The given value.
        record: String,
        /// The strategy.
        strategy: StrategyName,
        /// N.
        batches: u32,
    },
    /// A strategy that needs a device, without a device.
    #[error("strategy {strategy} needs a device")]
    NeedsDevice {
        /// Its name.
        strategy: StrategyName,
    },
    /// A limit that must be at least `least`.
    #[error("{field} is {got}, must be at least {least}")]
    TooSmall {
        /// Its name.
        field: &'static str,
        /// The given value.
        got: u64,
        /// The minimum.
        least: u64,
    },
    /// An option asks for more batches than the epoch has.
    #[error(transparent)]
    OptionTooLarge(#[from] OptionTooLarge),
}

/// An option that requires more batches than an epoch has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{strategy}.{option} is {asked}, more than the {batches} batches of the epoch")]
pub struct OptionTooLarge {
    /// The strategy.
    pub strategy: StrategyName,
    /// Its option.
    pub option: &'static str,
    /// The given value.
    pub asked: u32,
    /// N.
    pub batches: u32,
}

/// Refuses 0.
pub(crate) fn at_least_one(field: &'static str, got: impl Into<u64>) -> Result<(), Error> {
    let got = got.into();
    if got == 0 { Err(Error::TooSmall { field, got, least: 1 }) } else { Ok(()) }
}
