//! A row of a table, as read.

use serde_json::{Map, Value};

/// A row.
#[derive(Debug)]
pub(super) enum TableRow {
    /// Its fields, one per column.
    Fields(csv::StringRecord),
    Object(Map<String, Value>),
}
