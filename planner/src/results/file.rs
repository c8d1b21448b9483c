//! Reads and writes files of results: CSV, and the document of `meetpoint profile --json`.

use super::{CacheDrop, Measured};
use crate::vocabulary::{Cache, Codec, Form, GpuIndex};
use csv::StringRecord;
use meetpoint_diagnose::{Command, Diagnose, Remedy};
use serde::Deserialize;
use serde::de::value::{BorrowedStrDeserializer, Error as ValueError, MapDeserializer};
use serde_json::{Map, Value};
use std::cell::Cell;
use std::{fmt, iter};

/// The position of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowPosition {
    /// Line of a CSV file, counted from 1.
    Line(u64),
    /// Entry of a JSON document's `results`, counted from 1.
    Result(u64),
}

impl fmt::Display for RowPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Result(number) => write!(f, "result {number}"),
        }
    }
}

/// Why a file of results cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// It is neither CSV nor JSON with the columns of [`Measured`].
    #[error("not a file of results: {reason}")]
    Csv {
        /// The parser's message, with the row.
        reason: String,
    },
    /// A value is not of its column's type.
    #[error("{at}: `{column}` is {value}: {reason}")]
    Value {
        /// The row.
        at: RowPosition,
        /// Column.
        column: String,
        /// The value as it is written.
        value: String,
        /// The parser's message.
        reason: String,
    },
    /// The columns of the operations do not fit the stored form.
    #[error(
        "{at}: `form` is {}, but `operations` is {operations} and `operation` is {operation:?}",
        form.name()
    )]
    Operations {
        /// The row.
        at: RowPosition,
        /// The stored form.
        form: Form,
        /// Number of operations.
        operations: usize,
        /// Name of the last one.
        operation: String,
    },
    /// It has no rows.
    #[error("no results: the file has only a header")]
    Empty,
    /// A value is outside of its range.
    #[error("{at}: `{column}` is {value:?}, which is not {range}")]
    Range {
        /// The row.
        at: RowPosition,
        /// Column.
        column: &'static str,
        /// Its value.
        value: f64,
        /// The permitted range in words.
        range: &'static str,
    },
    /// Rows belong to different datasets.
    #[error("{at}: the dataset has {got} samples, but that of the first row has {expected}")]
    Dataset {
        /// The row.
        at: RowPosition,
        /// Samples of its dataset.
        got: u64,
        /// Samples of the first row's dataset.
        expected: u64,
    },
    /// A row without a GPU has a figure of a GPU.
    #[error("{at}: `{column}` has a value, but `gpu` is empty")]
    WithoutGpu {
        /// The row.
        at: RowPosition,
        /// The figure.
        column: &'static str,
    },
    /// A row with a GPU lacks the busy time of the GPU.
    #[error("{at}: `gpu` is {gpu}, but `gpu_seconds` is missing")]
    NoGpuSeconds {
        /// The row.
        at: RowPosition,
        /// The GPU.
        gpu: GpuIndex,
    },
    /// A row with a GPU is of samples that no GPU prepares.
    #[error("{at}: `gpu` is {gpu}, but no GPU prepares {what}")]
    NotOnGpu {
        /// The row.
        at: RowPosition,
        /// The GPU.
        gpu: GpuIndex,
        /// Stored form, codec and cache.
        what: String,
    },
}

impl Diagnose for CsvError {
    fn cause(&self) -> &'static str {
        match self {
            Self::Csv { .. } => "results_csv",
            Self::Value { .. } => "results_value",
            Self::Operations { .. } => "results_operations",
            Self::Empty => "results_empty",
            Self::Range { .. } => "results_range",
            Self::Dataset { .. } => "results_dataset",
            Self::WithoutGpu { .. } | Self::NoGpuSeconds { .. } | Self::NotOnGpu { .. } => {
                "results_gpu"
            }
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::Csv { .. } | Self::Empty => Remedy::run(Command::ProfileResults),
            Self::Value { column, .. } => {
                Remedy::from(format!("correct `{column}`")).or_run(Command::ProfileResults)
            }
            Self::Operations { form: Form::Prepared | Form::Jpeg, .. } => {
                Remedy::from("set both to the operations that are executed offline")
                    .or_run(Command::ProfileResults)
            }
            Self::Operations { .. } => {
                Remedy::from("set `operations` to 0 and leave the other empty")
                    .or_run(Command::ProfileResults)
            }
            Self::WithoutGpu { .. } | Self::NoGpuSeconds { .. } | Self::NotOnGpu { .. } => {
                Remedy::from("correct the row").or_run(Command::ProfileResults)
            }
            Self::Range { range, .. } => format!("set it to a number {range}").into(),
            Self::Dataset { .. } => "compare strategies on one dataset only".into(),
        })
    }
}

impl From<csv::Error> for CsvError {
    fn from(error: csv::Error) -> Self {
        Self::Csv { reason: error.to_string() }
    }
}

/// Results as CSV with a heading. Numbers have the fewest digits that parse to the same value.
pub fn write_csv(results: &[Measured]) -> Result<String, CsvError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in results {
        writer.serialize(row)?;
    }
    let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8(bytes).expect("names and numbers are UTF-8"))
}

/// Results from the document that `meetpoint profile --json` prints.
pub fn read_json(text: &str) -> Result<Vec<Measured>, CsvError> {
    #[derive(Deserialize)]
    struct Document {
        results: Vec<Map<String, Value>>,
    }
    let document: Document =
        serde_json::from_str(text).map_err(|error| CsvError::Csv { reason: error.to_string() })?;
    let rows = (1..).map(RowPosition::Result).zip(&document.results);
    let rows = rows.map(|(at, row)| from_object(at, row).map(|row| (at, row)));
    checked(rows.collect::<Result<_, _>>()?)
}

/// A row of a JSON document.
fn from_object(at: RowPosition, row: &Map<String, Value>) -> Result<Measured, CsvError> {
    // The entry whose value is parsed; `None` after the last.
    let current = Cell::new(None);
    let end = iter::from_fn(|| {
        current.set(None);
        None
    });
    let entries = row.iter().inspect(|entry| current.set(Some(*entry))).chain(end);
    let entries = entries.map(|(column, value)| (column.as_str(), value));
    Measured::deserialize(MapDeserializer::new(entries)).map_err(|error| {
        let reason = error.to_string();
        match current.get() {
            Some((column, value)) => {
                CsvError::Value { at, column: column.clone(), value: value.to_string(), reason }
            }
            None => CsvError::Csv { reason: format!("{at}: {reason}") },
        }
    })
}

/// Results from [`write_csv`].
pub fn read_csv(text: &str) -> Result<Vec<Measured>, CsvError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let heading = reader.headers()?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record?;
        let at = RowPosition::Line(record.position().map_or(0, csv::Position::line));
        let row = record.deserialize(Some(&heading));
        rows.push((at, row.map_err(|error| in_record(at, &error, &heading, &record))?));
    }
    checked(rows)
}

/// Names the column of a value that cannot be parsed.
fn in_record(
    at: RowPosition,
    error: &csv::Error,
    heading: &StringRecord,
    record: &StringRecord,
) -> CsvError {
    let csv::ErrorKind::Deserialize { err, .. } = error.kind() else {
        return CsvError::Csv { reason: error.to_string() };
    };
    let reason = err.kind().to_string();
    let number = err.field().and_then(|field| usize::try_from(field).ok());
    // The parser does not report the position of an unknown name.
    let index = number.or_else(|| {
        heading.iter().zip(record).position(|(column, text)| is_unknown_name(column, text))
    });
    match index.and_then(|index| heading.get(index).zip(record.get(index))) {
        Some((column, text)) => {
            CsvError::Value { at, column: column.to_owned(), value: format!("{text:?}"), reason }
        }
        None => CsvError::Csv { reason: format!("{at}: {reason}") },
    }
}

/// Whether a column has names, and this is none of them.
fn is_unknown_name(column: &str, text: &str) -> bool {
    fn is_none_of<'a, T: Deserialize<'a>>(text: &'a str) -> bool {
        T::deserialize(BorrowedStrDeserializer::<ValueError>::new(text)).is_err()
    }
    match column {
        "form" => is_none_of::<Form>(text),
        "codec" => is_none_of::<Codec>(text),
        "cache" => is_none_of::<Cache>(text),
        "cache_drop" => is_none_of::<CacheDrop>(text),
        "gpu" => !text.is_empty() && text.parse::<GpuIndex>().is_err(),
        _ => false,
    }
}

/// Refuses values outside of their ranges, and results of several datasets.
fn checked(rows: Vec<(RowPosition, Measured)>) -> Result<Vec<Measured>, CsvError> {
    let expected = rows.first().ok_or(CsvError::Empty)?.1.dataset_samples;
    let check = |(at, row): (RowPosition, Measured)| {
        if row.has_wrong_operations() {
            let Measured { form, operations, operation, .. } = row;
            return Err(CsvError::Operations { at, form, operations, operation });
        }
        if let Some(problem) = row.range_problem(at).or_else(|| row.gpu_problem(at)) {
            return Err(problem);
        }
        match row.dataset_samples {
            got if got != expected => Err(CsvError::Dataset { at, got, expected }),
            _ => Ok(row),
        }
    };
    rows.into_iter().map(check).collect()
}
