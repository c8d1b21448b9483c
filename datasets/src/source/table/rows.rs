//! Reads the rows of a table: CSV, TSV, JSON Lines, each compressed or not.
//!
//! A row has at most [`ROW_BYTES_MAX`] bytes, so that an open quote does not swallow the file.

use super::quotes::{OpenQuote, Quotes};
use super::row::TableRow;
use crate::Error;
use crate::message::Message;
use crate::source::input::{Input, read_up_to};
use crate::source::json;
use crate::source::names::extension;
use crate::store::StorePath;
use meetpoint_diagnose::Setting;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Longest row.
const ROW_BYTES_MAX: u64 = 16 << 20;
/// Bytes that are examined to detect the separator of fields.
const LOOK_BYTES: usize = 64 << 10;
/// Supported separators; a file's name indicates the likely one.
const SEPARATORS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// The format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// RFC 4180, fields separated by this byte.
    Separated(u8),
    /// One JSON object per line.
    JsonLines,
}

impl Format {
    /// The format for the name of a file.
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

/// Reads the rows of a table.
pub(super) struct TableRows {
    from: From,
    shown: String,
    /// Maximum bytes of a row.
    row_bytes_max: u64,
    /// Rows read so far.
    pub(super) count: u64,
}

enum From {
    Separated { reader: csv::Reader<RowLimiter>, columns: Vec<String>, left: Arc<AtomicU64> },
    JsonLines { reader: BufReader<Input>, line: u64 },
}

impl TableRows {
    /// Opens a table.
    pub(super) fn open(path: &StorePath, format: Format) -> Result<Self, Error> {
        Self::open_limited(path, format, ROW_BYTES_MAX)
    }

    /// Opens a table whose rows have at most `row_bytes_max` bytes.
    pub(super) fn open_limited(
        path: &StorePath,
        format: Format,
        row_bytes_max: u64,
    ) -> Result<Self, Error> {
        let shown = path.display().to_string();
        let begin = begin_of(path, &shown)?;
        let input = Input::open(path)?;
        let from = match format {
            Format::JsonLines => From::JsonLines { reader: BufReader::new(input), line: 0 },
            Format::Separated(usual) => {
                let separator = separator_of(&begin, usual);
                let left = Arc::new(AtomicU64::new(row_bytes_max));
                let quotes = Quotes::new(separator);
                let limited = RowLimiter { input, quotes, left: left.clone(), row_bytes_max };
                let mut builder = csv::ReaderBuilder::new();
                let mut reader = builder.delimiter(separator).from_reader(limited);
                let headers = reader.headers().map_err(|error| broken(&shown, 0, &error))?;
                let without_mark = |name: &str| name.trim_start_matches('\u{feff}').to_owned();
                let columns: Vec<String> = headers.iter().map(without_mark).collect();
                From::Separated { reader, columns, left }
            }
        };
        Ok(Self { from, shown, row_bytes_max, count: 0 })
    }

    /// Names of the columns, if the table has a header.
    pub(super) fn columns(&self) -> Option<&[String]> {
        match &self.from {
            From::Separated { columns, .. } => Some(columns),
            From::JsonLines { .. } => None,
        }
    }

    /// The next row.
    pub(super) fn next(&mut self) -> Result<Option<TableRow>, Error> {
        let row = match &mut self.from {
            From::Separated { reader, left, .. } => {
                left.store(self.row_bytes_max, Ordering::Relaxed);
                let mut record = csv::StringRecord::new();
                let is_there = reader.read_record(&mut record);
                let is_there = is_there.map_err(|error| broken(&self.shown, self.count, &error))?;
                is_there.then_some(TableRow::Fields(record))
            }
            From::JsonLines { reader, line } => next_object(reader, line, self.row_bytes_max)
                .map_err(|problem| malformed(&self.shown, format!("line {line}"), problem))?,
        };
        self.count += u64::from(row.is_some());
        Ok(row)
    }
}

/// The first bytes of a table, which must be those of a UTF-8 text.
fn begin_of(path: &StorePath, shown: &str) -> Result<Vec<u8>, Error> {
    let mut input = Input::open(path)?;
    let mut begin = vec![0; LOOK_BYTES];
    let got = read_up_to(&mut input, &mut begin).map_err(|error| input.unreadable(None, &error))?;
    begin.truncate(got);
    let wrong = |problem: Message| Err(malformed(shown, "line 1".to_owned(), problem));
    match begin.as_slice() {
        [] => wrong("the table is empty".into()),
        // The byte order marks of UTF-16; without one, every other byte of ASCII text is zero.
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, ..] | [_, 0, ..] => wrong(
            Message::from("the table is UTF-16")
                .remedy("convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"),
        ),
        _ => Ok(begin),
    }
}

/// The separator of a table that starts with these bytes: `usual`, unless it yields a single field
/// in the first line and exactly one other separator yields several.
fn separator_of(begin: &[u8], usual: u8) -> u8 {
    let fields = |separator: u8| {
        let mut builder = csv::ReaderBuilder::new();
        let builder = builder.delimiter(separator).has_headers(false).flexible(true);
        let first = builder.from_reader(begin).into_byte_records().next();
        first.and_then(Result::ok).map_or(0, |record| record.len())
    };
    if fields(usual) != 1 {
        return usual;
    }
    let mut others = SEPARATORS.into_iter().filter(|other| *other != usual && fields(*other) > 1);
    match (others.next(), others.next()) {
        (Some(only), None) => only,
        _ => usual,
    }
}

/// An error at a row or line.
pub(super) fn malformed(table: &str, place: String, problem: impl Into<Message>) -> Error {
    let origin =
        crate::source::SampleOrigin { file: table.to_owned(), member: Some(place), offset: None };
    Error::Malformed { origin: Box::new(origin), problem: problem.into() }
}

fn broken(shown: &str, count: u64, error: &csv::Error) -> Error {
    let mut line = error.position().map(csv::Position::line);
    let problem: Message = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            Message::from(format!("{len} fields, but the table has {expected_len} columns"))
                .remedy("put fields with a separator in them into double quotes")
        }
        csv::ErrorKind::Utf8 { .. } => Message::from("not UTF-8").remedy("save the table as UTF-8"),
        csv::ErrorKind::Io(error) => {
            let open = error.get_ref().and_then(|inner| inner.downcast_ref::<OpenQuote>());
            line = open.map(|open| open.line).or(line);
            let long = error.get_ref().and_then(|inner| inner.downcast_ref::<RowTooLong>());
            match (open, long) {
                (Some(open), _) => Message::from(open.to_string()).remedy("close or remove it"),
                (None, Some(long)) => long.message(),
                (None, None) => error.to_string().into(),
            }
        }
        _ => error.to_string().into(),
    };
    let place = line.map_or_else(|| format!("row {}", count + 1), |line| format!("line {line}"));
    malformed(shown, place, problem)
}

/// The object of the next line that is not blank.
fn next_object(
    reader: &mut BufReader<Input>,
    line: &mut u64,
    row_bytes_max: u64,
) -> Result<Option<TableRow>, Message> {
    loop {
        let mut text = Vec::new();
        let got = reader.by_ref().take(row_bytes_max + 1).read_until(b'\n', &mut text);
        if got.map_err(|error| error.to_string())? == 0 {
            return Ok(None);
        }
        *line += 1;
        if text.len() as u64 > row_bytes_max {
            return Err(RowTooLong { row_bytes_max }.message());
        }
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&text).trim_ascii();
        if text.is_empty() {
            continue;
        }
        const EXPECTED: &str = "each line must be one JSON object, {\"file_name\": …}";
        return match json::parse(text) {
            Ok(Value::Object(object)) => Ok(Some(TableRow::Object(object))),
            Ok(Value::Array(_)) => Err(format!("a JSON array; {EXPECTED} (jq -c '.[]')").into()),
            Ok(_) => Err(format!("not a JSON object; {EXPECTED}").into()),
            // A pretty-printed JSON array starts with a line that contains only the bracket.
            Err(_) if text == b"[" => Err(format!("a JSON array; {EXPECTED} (jq -c '.[]')").into()),
            Err(error) => {
                // The parser counts lines from this one.
                let place = format!(" at line {} column {}", error.line(), error.column());
                let words = error.to_string();
                let words = words.strip_suffix(&place).unwrap_or(&words);
                let column = error.column();
                Err(format!("invalid JSON at column {column}: {words}; {EXPECTED}").into())
            }
        };
    }
}

/// A row that is longer than the limit.
#[derive(Debug)]
struct RowTooLong {
    row_bytes_max: u64,
}

impl RowTooLong {
    fn message(&self) -> Message {
        let problem = Message::from(format!("a row of more than {} bytes", self.row_bytes_max));
        match self.row_bytes_max < ROW_BYTES_MAX {
            true => {
                (problem + "; ").set_to(Setting::From, "table")
                    + format!(" reads up to {ROW_BYTES_MAX}")
            }
            false => problem,
        }
    }
}

impl std::fmt::Display for RowTooLong {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.message().fmt(to)
    }
}

impl std::error::Error for RowTooLong {}

/// Fails if a row is too long, or the table ends inside a quoted field.
struct RowLimiter {
    input: Input,
    quotes: Quotes,
    left: Arc<AtomicU64>,
    row_bytes_max: u64,
}

impl Read for RowLimiter {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.left.load(Ordering::Relaxed) == 0 {
            return Err(match self.quotes.open() {
                Some(open) => io::Error::other(open),
                None => io::Error::other(RowTooLong { row_bytes_max: self.row_bytes_max }),
            });
        }
        let got = self.input.read(to)?;
        self.quotes.follow(&to[..got]);
        if got == 0
            && !to.is_empty()
            && let Some(open) = self.quotes.open()
        {
            return Err(io::Error::other(open));
        }
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(got as u64), Ordering::Relaxed);
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::separator_of;

    #[test]
    fn fields_are_separated_as_the_first_line_says_where_only_one_separator_fits() {
        for (begin, usual, expected) in [
            ("file_name,label\n", b',', b','),
            ("file_name;label\na.jpg;1,5\n", b',', b';'),
            ("file_name\tlabel\n", b',', b'\t'),
            ("file_name|label\n", b',', b'|'),
            ("file_name,label\n", b'\t', b','),
            ("a;b|c\n", b',', b','),
            ("file_name\na;b.jpg\n", b',', b','),
            ("\"a;b\"\n", b',', b','),
            ("file_name;a,b\n", b',', b','),
        ] {
            assert_eq!(separator_of(begin.as_bytes(), usual), expected, "{begin:?}");
        }
    }
}
