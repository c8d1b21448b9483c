//! Values that keys of several tables of a job share.

use super::JobError;
use super::table::Table;
use meetpoint_format::units::{parse_bandwidth, parse_duration};
use std::time::Duration;

/// The values that a key of bytes accepts.
pub(super) const BYTES: &str = "bytes with a unit, such as \"512MiB\"";
/// The same, where none is a choice.
pub(super) const BYTES_OR_NONE: &str = "bytes with a unit, such as \"64MiB\", or \"0\" for none";
/// The values that a key of a bandwidth accepts.
const BANDWIDTH: &str = "bytes a second with a unit, such as \"500MB/s\"";
/// The values that a key of a time accepts.
pub(super) const TIME: &str = "a time with a unit, such as \"100us\", \"20ms\" or \"2s\"";

/// The string of a required key.
pub(super) fn required<'t>(table: &Table<'t>, key: &str, what: &str) -> Result<&'t str, JobError> {
    let text = table.text(key, what)?;
    let text = text.ok_or_else(|| table.missing(key, what))?;
    if text.is_empty() { Err(table.wrong_at(key, what)) } else { Ok(text) }
}

/// The time under a key, which must not be 0.
pub(super) fn positive_time(table: &Table<'_>, key: &str) -> Result<Option<Duration>, JobError> {
    match table.quantity(key, parse_duration, TIME)? {
        Some(Duration::ZERO) => Err(table.wrong_at(key, "a time above 0")),
        time => Ok(time),
    }
}

/// The bandwidth under a key, which must not be 0.
pub(super) fn bandwidth(table: &Table<'_>, key: &str) -> Result<Option<u64>, JobError> {
    match table.quantity(key, parse_bandwidth, BANDWIDTH)? {
        Some(0) => Err(table.wrong_at(key, BANDWIDTH)),
        bandwidth => Ok(bandwidth),
    }
}
