//! Limits of the reads of preparers and of readers of stored samples.

use std::time::Duration;

/// Maximum number of reads in flight, whatever the engine's depth.
pub const READS_MAX: usize = 64;

/// Maximum time without a completed read; then reading fails.
pub const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// As [`READ_TIMEOUT`], for a dataset in a store, whose requests have shorter deadlines.
pub(crate) const REMOTE_READ_TIMEOUT: Duration = Duration::from_secs(180);

/// Maximum bytes of samples that each preparer or reader has read or is reading ahead; less if
/// little memory is available. A single sample may be longer.
pub const BYTES_AHEAD_MAX: u64 = 64 << 20;
