//! Limits of the reads of a preparer and of a reader of stored samples.

use std::time::Duration;

/// Maximum number of reads in flight, whatever the engine's depth.
pub const READS_MAX: usize = 64;

/// Time without a completed read after which reading fails.
pub const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The same for a dataset in a store, whose requests have shorter deadlines.
pub(crate) const REMOTE_READ_TIMEOUT: Duration = Duration::from_secs(180);

/// Maximum bytes of samples that are read or wait to be passed on, by each preparer and reader,
/// less in little memory; a single sample may be longer.
pub const BYTES_AHEAD_MAX: u64 = 64 << 20;
