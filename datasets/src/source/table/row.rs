//! A row of a table, as it was read.

use serde_json::{Map, Value};

/// A row.
#[derive(Debug)]
pub(super) enum TableRow {
    /// Its fields, as many as there are columns.
    Fields(csv::StringRecord),
    Object(Map<String, Value>),
}
