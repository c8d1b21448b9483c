//! Tables of record-based formats, which may or may not declare column types.
//!
//! Undeclared types are inferred from the first records, up to 1,024 of them or 32 MiB; a later
//! record that does not match is an error that names it.

use super::build::{self, Misfit};
use super::hugging_face::Features;
use super::table::{Batch, Contents, RowContent};
use super::value::{FIELDS_MAX, Kind, Value};
use super::{ContentColumn, Table};
use crate::Error;
use crate::message::Message;
use crate::source::budget::Reservation;
use crate::source::{Content, OpenFile, SampleOrigin};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{Schema, SchemaRef};
use meetpoint_diagnose::{Change, Remedy, Setting};
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of records examined to infer types.
const LOOK_RECORDS: usize = 1024;
/// Maximum bytes of these records.
const LOOK_BYTES: usize = 32 << 20;
/// Maximum number of records of a batch.
const BATCH_RECORDS: usize = 256;
/// Target bytes of a batch.
const BATCH_BYTES: usize = 8 << 20;

/// A record.
#[derive(Debug)]
pub(crate) struct Record {
    /// File, as a user would name it.
    pub(crate) file_name: Arc<str>,
    /// The file that contains [`Value::Bytes`].
    pub(crate) file: Option<Arc<OpenFile>>,
    /// Index of the record in its file.
    pub(crate) number: u64,
    /// Values by name; names are unique.
    pub(crate) fields: Vec<(String, Value)>,
    /// Approximate bytes in memory.
    pub(crate) bytes: usize,
    /// Memory reserved from the source's budget.
    pub(crate) _held: Reservation,
}

impl Record {
    /// Its location, for an error.
    pub(crate) fn origin(&self, noun: &str) -> SampleOrigin {
        let member = Some(format!("{noun} {}", self.number));
        SampleOrigin { file: self.file_name.to_string(), member, offset: None }
    }
}

/// Reads records one by one.
pub(crate) trait Records: Send {
    /// The next record; `None` at the end.
    fn next(&mut self) -> Result<Option<Record>, Error>;

    /// The columns that the format declares, with the type [`Kind::Null`] if it is undeclared. If
    /// empty, columns are inferred from the first records.
    fn declared(&self) -> Vec<(String, Kind)>;

    /// Features of columns beyond their type.
    fn features(&self) -> Features {
        Features::default()
    }

    /// The noun for a record in an error.
    fn noun(&self) -> &'static str;

    /// Number of all records, if known.
    fn rows(&self) -> Option<u64>;

    /// Bytes to read.
    fn bytes(&self) -> Option<u64>;

    /// Final checks after the last record.
    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// Records as a table.
pub(crate) struct RecordTable<R> {
    records: R,
    /// Records that were examined but not yet returned.
    ahead: VecDeque<Record>,
    columns: Vec<(String, Kind)>,
    schema: SchemaRef,
    features: Features,
    content: Option<usize>,
    /// Whether fields without a column are ignored, because the user chose the columns.
    passes_over: bool,
}

impl<R: Records> RecordTable<R> {
    /// Examines the first records; `passes_over` is set if the user chose the columns, so that
    /// other fields are ignored.
    pub(crate) fn open(mut records: R, passes_over: bool) -> Result<Self, Error> {
        let mut ahead = VecDeque::new();
        let mut bytes = 0;
        let mut columns = records.declared();
        let is_declared =
            !columns.is_empty() && columns.iter().all(|(_, kind)| *kind != Kind::Null);
        while ahead.len() < LOOK_RECORDS && bytes < LOOK_BYTES {
            let Some(record) = records.next()? else { break };
            bytes += record.bytes;
            ahead.push_back(record);
            if is_declared {
                break;
            }
        }
        if !is_declared {
            infer(&mut columns, &ahead, records.noun())?;
        }
        if let Some(record) = ahead.front().filter(|_| columns.len() > FIELDS_MAX) {
            return Err(fault(record, records.noun(), too_many(columns.len())));
        }
        let fields = columns.iter().map(|(name, kind)| kind.field(name)).collect::<Vec<_>>();
        let schema = Arc::new(Schema::new(fields));
        let features = records.features();
        Ok(Self { records, ahead, columns, schema, features, content: None, passes_over })
    }

    fn collect(&mut self) -> Result<Vec<Record>, Error> {
        let mut records: Vec<Record> = Vec::new();
        let mut bytes = 0;
        while records.len() < BATCH_RECORDS && bytes < BATCH_BYTES {
            if self.ahead.is_empty() {
                self.ahead.extend(self.records.next()?);
            }
            let Some(next) = self.ahead.front() else { break };
            if records.last().is_some_and(|last| {
                last.file_name != next.file_name || last.number + 1 != next.number
            }) {
                break;
            }
            bytes += next.bytes;
            records.extend(self.ahead.pop_front());
        }
        Ok(records)
    }

    fn column(&self, index: usize, records: &[Record]) -> Result<ArrayRef, Error> {
        let (name, kind) = &self.columns[index];
        let values: Vec<&Value> = records.iter().map(|record| value_of(record, name)).collect();
        build::column(kind, &values).map_err(|Misfit { index, problem }| {
            let record = records.get(index).unwrap_or(&records[0]);
            fault(record, self.records.noun(), Message::from(format!("{name:?} is ")) + problem)
        })
    }

    fn content(&self, record: &mut Record, name: &str) -> RowContent {
        let value = record.fields.iter_mut().find(|(field, _)| field == name);
        match value.map(|(_, value)| std::mem::replace(value, Value::Null)) {
            None | Some(Value::Null) => RowContent::Missing,
            Some(Value::Bytes { bytes, at }) => RowContent::Here(match (&record.file, at) {
                (Some(file), Some(offset)) => {
                    Content::Range { file: Arc::clone(file), offset, bytes: bytes.len() as u64 }
                }
                _ => Content::Bytes(bytes),
            }),
            Some(Value::Text(text)) => RowContent::Here(Content::Bytes(text.into_bytes())),
            Some(other) => {
                let words = Kind::of(&other).map_or_else(|text| text, |kind| kind.words());
                RowContent::Unreadable(
                    format!("the content is {words}, not bytes or a text").into(),
                )
            }
        }
    }

    fn check_fields(&self, record: &Record) -> Result<(), Error> {
        let is_known = |name: &String| self.columns.iter().any(|(known, _)| known == name);
        match record.fields.iter().find(|(name, _)| !is_known(name)) {
            Some((name, _)) if !self.passes_over => Err(fault(
                record,
                self.records.noun(),
                Message::from(format!(
                    "has a field {name:?}, which none of the first records has, and those define \
                     the columns"
                ))
                .remedy(Remedy::by(
                    "ignore it by choosing columns",
                    Setting::Columns,
                    Change::Other,
                )),
            )),
            _ => Ok(()),
        }
    }
}

fn value_of<'a>(record: &'a Record, name: &str) -> &'a Value {
    record.fields.iter().find(|(field, _)| field == name).map_or(&Value::Null, |(_, value)| value)
}

fn fault(record: &Record, noun: &str, problem: impl Into<Message>) -> Error {
    Error::Malformed { origin: Box::new(record.origin(noun)), problem: problem.into() }
}

fn too_many(columns: usize) -> String {
    format!("{columns} columns or more, the limit is {FIELDS_MAX}")
}

/// The columns of the records: the known ones, then the others in order of appearance.
fn infer(
    columns: &mut Vec<(String, Kind)>,
    records: &VecDeque<Record>,
    noun: &str,
) -> Result<(), Error> {
    for record in records {
        for (name, value) in &record.fields {
            let conflict = |text: String| fault(record, noun, format!("{name:?}: {text}"));
            let kind = Kind::of(value).map_err(conflict)?;
            let is_full = columns.len() == FIELDS_MAX;
            match columns.iter_mut().find(|(known, _)| known == name) {
                None if is_full => return Err(fault(record, noun, too_many(FIELDS_MAX + 1))),
                None => columns.push((name.clone(), kind)),
                Some((_, known)) => {
                    let old = std::mem::replace(known, Kind::Null);
                    *known = old.join(kind).map_err(conflict)?;
                }
            }
        }
    }
    Ok(())
}

impl<R: Records> Table for RecordTable<R> {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn features(&self) -> &Features {
        &self.features
    }

    fn rows(&self) -> Option<u64> {
        self.records.rows()
    }

    fn bytes(&self) -> Option<u64> {
        self.records.bytes()
    }

    fn first_bytes(&mut self, content: ContentColumn) -> Result<Vec<u8>, Error> {
        let name = &self.columns[content.column].0;
        let first = self.ahead.iter().find_map(|record| match value_of(record, name) {
            Value::Bytes { bytes, .. } => Some(bytes.iter().take(16).copied().collect()),
            _ => None,
        });
        Ok(first.unwrap_or_default())
    }

    fn are_paths_unique(&mut self, _content: ContentColumn) -> Result<bool, Error> {
        Ok(false)
    }

    fn start(&mut self, content: Option<ContentColumn>) -> Result<(), Error> {
        self.content = content.map(|content| content.column);
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Batch>, Error> {
        let mut records = self.collect()?;
        let Some(first) = records.first() else { return Ok(None) };
        let (file, first_row) = (first.file_name.to_string(), first.number);
        for record in &records {
            self.check_fields(record)?;
        }
        let mut arrays = Vec::with_capacity(self.columns.len());
        for index in 0..self.columns.len() {
            arrays.push(if self.content == Some(index) {
                new_null_array(self.schema.field(index).data_type(), records.len())
            } else {
                self.column(index, &records)?
            });
        }
        let contents = match self.content {
            None => Contents::Inside,
            Some(index) => {
                let name = &self.columns[index].0;
                let contents = records.iter_mut().map(|record| self.content(record, name));
                Contents::Beside(contents.collect())
            }
        };
        let rows = RecordBatchOptions::new().with_row_count(Some(records.len()));
        let columns = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &rows)
            .map_err(|error| fault(&records[0], self.records.noun(), error.to_string()))?;
        let noun = self.records.noun();
        Ok(Some(Batch { file, first_row, columns, contents, noun }))
    }

    fn end(&mut self) -> Result<(), Error> {
        self.records.end()
    }
}
