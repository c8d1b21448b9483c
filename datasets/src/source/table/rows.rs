//! The rows of a table, one after the other: CSV, TSV, JSON Lines, each compressed or not.
//!
//! A row has at most [`ROW_BYTES_MAX`] bytes, so that an open quote does not swallow the file.

use crate::Error;
use crate::source::input::Input;
use crate::source::names::extension;
use serde_json::{Map, Value};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Longest row.
const ROW_BYTES_MAX: u64 = 16 << 20;

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// RFC 4180, fields separated by this byte.
    Separated(u8),
    /// One JSON object a line.
    JsonLines,
}

impl Format {
    /// By the name of a file.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
        match extension(name) {
            "csv" => Some(Self::Separated(b',')),
            "tsv" | "tab" => Some(Self::Separated(b'\t')),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            _ => None,
        }
    }
}

/// A row.
#[derive(Debug)]
pub(super) enum Row {
    /// Its fields, as many as there are columns.
    Fields(csv::StringRecord),
    Object(Map<String, Value>),
}

/// Rows of a table, from the first.
pub(super) struct Rows {
    from: From,
    shown: String,
    /// Rows that were read.
    pub(super) count: u64,
}

enum From {
    Separated { reader: csv::Reader<Limited>, columns: Vec<String>, left: Arc<AtomicU64> },
    JsonLines { reader: BufReader<Input>, line: u64 },
}

impl Rows {
    /// Opens a table.
    pub(super) fn open(path: &Path, format: Format) -> Result<Self, Error> {
        let input = Input::open(path)?;
        let shown = path.display().to_string();
        let from = match format {
            Format::JsonLines => From::JsonLines { reader: BufReader::new(input), line: 0 },
            Format::Separated(separator) => {
                let left = Arc::new(AtomicU64::new(ROW_BYTES_MAX));
                let limited = Limited { input, left: left.clone() };
                let mut builder = csv::ReaderBuilder::new();
                let mut reader = builder.delimiter(separator).from_reader(limited);
                let headers = reader.headers().map_err(|error| broken(&shown, 0, &error))?;
                let without_mark = |name: &str| name.trim_start_matches('\u{feff}').to_owned();
                let columns: Vec<String> = headers.iter().map(without_mark).collect();
                From::Separated { reader, columns, left }
            }
        };
        Ok(Self { from, shown, count: 0 })
    }

    /// Names of the columns, where the table names them once.
    pub(super) fn columns(&self) -> Option<&[String]> {
        match &self.from {
            From::Separated { columns, .. } => Some(columns),
            From::JsonLines { .. } => None,
        }
    }

    /// The next row.
    pub(super) fn next(&mut self) -> Result<Option<Row>, Error> {
        let row = match &mut self.from {
            From::Separated { reader, left, .. } => {
                left.store(ROW_BYTES_MAX, Ordering::Relaxed);
                let mut record = csv::StringRecord::new();
                let is_there = reader.read_record(&mut record);
                let is_there = is_there.map_err(|error| broken(&self.shown, self.count, &error))?;
                is_there.then_some(Row::Fields(record))
            }
            From::JsonLines { reader, line } => next_object(reader, line)
                .map_err(|problem| malformed(&self.shown, format!("line {line}"), &problem))?,
        };
        self.count += u64::from(row.is_some());
        Ok(row)
    }
}

/// An error at a row or line.
pub(super) fn malformed(table: &str, place: String, problem: &str) -> Error {
    let whence =
        crate::source::Whence { file: table.to_owned(), member: Some(place), offset: None };
    Error::Malformed { whence: Box::new(whence), problem: problem.to_owned() }
}

fn broken(shown: &str, count: u64, error: &csv::Error) -> Error {
    let line = error.position().map(csv::Position::line);
    let place = line.map_or_else(|| format!("row {}", count + 1), |line| format!("line {line}"));
    let problem = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => format!(
            "{len} fields, but the table has {expected_len} columns; put fields with a separator \
             in them into double quotes"
        ),
        csv::ErrorKind::Utf8 { .. } => "not UTF-8; save the table as UTF-8".to_owned(),
        csv::ErrorKind::Io(error) => error.to_string(),
        _ => error.to_string(),
    };
    malformed(shown, place, &problem)
}

/// The object of the next line that is not blank.
fn next_object(reader: &mut BufReader<Input>, line: &mut u64) -> Result<Option<Row>, String> {
    loop {
        let mut text = Vec::new();
        let got = reader.by_ref().take(ROW_BYTES_MAX + 1).read_until(b'\n', &mut text);
        if got.map_err(|error| error.to_string())? == 0 {
            return Ok(None);
        }
        *line += 1;
        if text.len() as u64 > ROW_BYTES_MAX {
            return Err(too_long());
        }
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&text);
        if text.trim_ascii().is_empty() {
            continue;
        }
        return match serde_json::from_slice(text) {
            Ok(Value::Object(object)) => Ok(Some(Row::Object(object))),
            Ok(_) => Err("no JSON object; each line is one, {\"file_name\": …}".to_owned()),
            Err(error) => Err(format!("no JSON: {error}")),
        };
    }
}

fn too_long() -> String {
    format!("a row of more than {ROW_BYTES_MAX} bytes; a double quote may be left open")
}

/// Fails when a row goes on for too long.
struct Limited {
    input: Input,
    left: Arc<AtomicU64>,
}

impl Read for Limited {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.left.load(Ordering::Relaxed) == 0 {
            return Err(io::Error::other(too_long()));
        }
        let got = self.input.read(to)?;
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(got as u64), Ordering::Relaxed);
        Ok(got)
    }
}
