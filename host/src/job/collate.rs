//! How the pictures of a job are combined into a batch: a word, or a table with a mode and options.

use super::JobError;
use super::table::Table;
use meetpoint_diagnose::{Diagnose, Remedy};
use meetpoint_format::column::{Collate, CollateError};
use toml::Spanned;
use toml::de::DeValue;

/// The values that the key accepts.
const REMEDY: &str =
    "\"stack\", \"pad\" or \"list\", or a table: [collate] with `mode` and options";

/// Upper bound of a number of the table before its range is checked.
const NUMBER_MAX: u64 = u32::MAX as u64;

/// Reads `collate`. Default: pictures of one size.
pub(super) fn read(table: &Table<'_>) -> Result<Collate, JobError> {
    match table.value("collate").map(Spanned::get_ref) {
        None => Ok(Collate::Stack),
        Some(DeValue::String(mode)) => Collate::read(mode, None, None, None)
            .map_err(|error| table.fault_at("collate", error.to_string(), remedy(&error))),
        Some(DeValue::Table(_)) => of_table(&table.table("collate")?.expect("it is a table")),
        Some(
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_),
        ) => Err(table.wrong_at("collate", REMEDY)),
    }
}

fn of_table(table: &Table<'_>) -> Result<Collate, JobError> {
    table.allow(&["mode", "multiple_of", "fill", "max_size"])?;
    let what = "\"stack\", \"pad\" or \"list\"";
    let mode = table.text("mode", what)?.ok_or_else(|| table.missing("mode", what))?;
    let multiple_of = table.whole("multiple_of", 0..=NUMBER_MAX)?;
    let fill = table.number("fill", f64::MIN..=f64::MAX)?;
    let size = "height and width in pixels, such as [800, 1333]";
    let max_size = match table.wholes("max_size", size)? {
        None => None,
        Some(sides) => match sides[..] {
            [height, width] => Some([height, width].map(|side| side as u64)),
            _ => return Err(table.wrong_at("max_size", size)),
        },
    };
    Collate::read(mode, multiple_of, fill, max_size).map_err(|error: CollateError| {
        table.fault_at(error.option(), error.to_string(), remedy(&error))
    })
}

fn remedy(error: &CollateError) -> Remedy {
    Diagnose::remedy(error).expect("every one has a remedy")
}
