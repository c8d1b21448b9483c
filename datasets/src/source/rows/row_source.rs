//! Turns the rows of a table into samples.

use super::hugging_face::Features;
use super::roles::{self, KeyRole, Roles};
use super::table::{Batch, ContentColumn, Contents, RowContent, Table, read_at};
use crate::message::Message;
use crate::source::{
    Content, ContentKind, Entry, Finished, Item, SampleOrigin, Size, Source, SourceOptions,
    SourceSchema,
};
use crate::{Error, LeftOut};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{DataType, Schema};
use meetpoint_diagnose::{Change, Remedy, Setting};
use std::collections::HashMap;
use std::sync::Arc;

/// Longest key in bytes.
const KEY_BYTES_MAX: usize = 4096;
/// Minimum number of digits of a row number, so that names sort like rows.
const NUMBER_DIGITS_MIN: usize = 6;
/// Maximum number of named labels: a column with more is not a label.
const LABELS_MAX: usize = 1 << 24;

/// Options of all sources that are tables.
pub(crate) const TABLE_OPTIONS: [Setting; 5] =
    [Setting::Content, Setting::Kind, Setting::Label, Setting::Key, Setting::Columns];

/// A table as a source.
pub(crate) struct RowSource<T> {
    table: T,
    schema: SourceSchema,
    roles: Roles,
    /// Whether the path is the last extra column.
    with_path: bool,
    current: Option<Current>,
    labels: Labels,
    /// Number of returned rows, over all files.
    given: u64,
}

struct Current {
    batch: Batch,
    row: usize,
    keys: Option<ArrayRef>,
    labels: Option<ArrayRef>,
    bytes: Option<ArrayRef>,
    paths: Option<ArrayRef>,
    extra: Option<Arc<RecordBatch>>,
}

impl Current {
    /// For a batch of one row, whose content may be very long, drops the duplicate references to
    /// columns, so that the content is passed on without a copy.
    fn keep_content_alone(&mut self) {
        let row = RecordBatchOptions::new().with_row_count(Some(1));
        let none = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &row);
        self.batch.columns = none.expect("a batch without columns has the given number of rows");
        if let Contents::Placed { places, .. } = &self.batch.contents
            && places[0].is_some()
        {
            self.bytes = None;
        }
    }
}

#[derive(Default)]
struct Labels {
    names: Vec<String>,
    indices: HashMap<String, i32>,
}

impl<T: Table> RowSource<T> {
    /// Determines the roles of the columns; `file` is named in errors.
    pub(crate) fn open(mut table: T, options: &SourceOptions, file: &str) -> Result<Self, Error> {
        let schema = Arc::clone(table.schema());
        let features: Features = table.features().clone();
        let mut roles = roles::choose(&schema, &features, options, file)?;
        let first = match roles.content {
            Some(content) => table.first_bytes(content)?,
            None => Vec::new(),
        };
        let kind = roles::kind_of(&schema, roles.content, &features, options, &first);
        let mut with_path = false;
        if let (Some(content), KeyRole::Number) = (roles.content, &roles.key)
            && content.path.is_some()
        {
            if options.key.is_none() && table.are_paths_unique(content)? {
                roles.key = KeyRole::Path;
            } else {
                with_path = options.columns.is_none();
            }
        }
        let name = roles::content_name(&schema, roles.content);
        let path_name = with_path.then(|| format!("{name}_path"));
        let extra = roles::extra_schema(&schema, &roles, &features, path_name.as_deref());
        table.start(roles.content)?;
        let labels = Labels {
            names: roles.label_names.clone().unwrap_or_default(),
            indices: HashMap::new(),
        };
        let schema = SourceSchema { kind, name, extra, prepared: None };
        Ok(Self { table, schema, roles, with_path, current: None, labels, given: 0 })
    }

    fn enter(&mut self, batch: Batch) -> Result<Current, Error> {
        let column = |index: usize| Arc::clone(batch.columns.column(index));
        let child = |content: ContentColumn, index: usize| {
            let parent = column(content.column);
            flat_child(parent.as_struct(), index)
        };
        let content = self.roles.content;
        let bytes = content.map(|content| match content.bytes {
            None => column(content.column),
            Some(index) => child(content, index),
        });
        let paths = content.and_then(|content| content.path.map(|index| child(content, index)));
        let paths = paths.map(|paths| as_text(&batch, &paths)).transpose()?;
        let keys = match self.roles.key {
            KeyRole::Column(index) => Some(as_text(&batch, &column(index))?),
            KeyRole::Path => paths.clone(),
            KeyRole::Number => None,
        };
        let labels = match self.roles.label.map(column) {
            Some(labels) if labels.data_type().is_integer() => {
                Some(cast(&batch, &labels, &DataType::Int64)?)
            }
            Some(labels) => Some(as_text(&batch, &labels)?),
            None => None,
        };
        let extra = if self.schema.extra.fields().is_empty() {
            None
        } else {
            let mut columns: Vec<ArrayRef> = self.roles.extra.iter().map(|&i| column(i)).collect();
            if let (true, Some(paths)) = (self.with_path, &paths) {
                columns.push(Arc::clone(paths));
            }
            let rows = RecordBatchOptions::new().with_row_count(Some(batch.columns.num_rows()));
            let schema = Arc::clone(&self.schema.extra);
            let extra = RecordBatch::try_new_with_options(schema, columns, &rows)
                .map_err(|error| fault(&batch, 0, error.to_string()))?;
            Some(Arc::new(extra))
        };
        let mut current = Current { batch, row: 0, keys, labels, bytes, paths, extra };
        if current.batch.columns.num_rows() == 1 {
            current.keep_content_alone();
        }
        Ok(current)
    }

    fn item(&mut self, current: &mut Current) -> Result<Entry, Error> {
        let row = current.row;
        let origin = origin(&current.batch, row);
        let content = match self.roles.content {
            None => RowContent::Here(Content::Bytes(Vec::new())),
            Some(_) => content_of(current, row),
        };
        let number = self.given;
        self.given += 1;
        let key = match &current.keys {
            None => Ok(self.number_key(number, &content)?),
            Some(keys) if keys.is_null(row) => Err("it has no key".to_owned()),
            Some(keys) => match keys.as_string::<i32>().value(row) {
                "" => Err("its key is empty".to_owned()),
                key if key.len() > KEY_BYTES_MAX => {
                    Err(format!("its key has {} bytes, the limit is {KEY_BYTES_MAX}", key.len()))
                }
                key => Ok(key.to_owned()),
            },
        };
        let key = match key {
            Ok(key) => key,
            Err(reason) => return Ok(left_out(origin.to_string(), reason)),
        };
        let content = match content {
            RowContent::Here(content) => content,
            RowContent::Missing => {
                return Ok(left_out(key, format!("{origin}: the content is null")));
            }
            RowContent::Unreadable(reason) => {
                return Ok(left_out(key, format!("{origin}: {reason}")));
            }
        };
        let label = match &current.labels {
            None => None,
            Some(labels) => match self.label(labels, row) {
                Ok(label) => label,
                Err(reason) => return Ok(left_out(key, format!("{origin}: {reason}"))),
            },
        };
        let extra = current.extra.as_ref().map(|extra| (Arc::clone(extra), row));
        Ok(Entry::Sample(Box::new(Item { key, origin, content, label, extra })))
    }

    /// The number of a row as its key, with the extension of its picture or sound.
    fn number_key(&self, number: u64, content: &RowContent) -> Result<String, Error> {
        let digits = self.table.rows().map_or(NUMBER_DIGITS_MIN, |rows| {
            rows.saturating_sub(1).to_string().len().max(NUMBER_DIGITS_MIN)
        });
        let mut key = format!("{number:0digits$}");
        if let (ContentKind::Image | ContentKind::Audio, RowContent::Here(content)) =
            (self.schema.kind, content)
        {
            let mut first = [0; 12];
            let extension = match content {
                Content::Bytes(bytes) => roles::extension_of(bytes),
                Content::Range { file, offset, bytes } if *bytes >= 12 => {
                    read_at(file, &mut first, *offset)?;
                    roles::extension_of(&first)
                }
                Content::Range { .. } | Content::File { .. } => None,
            };
            if let Some(extension) = extension {
                key.push('.');
                key.push_str(extension);
            }
        }
        Ok(key)
    }

    fn label(&mut self, labels: &ArrayRef, row: usize) -> Result<Option<i32>, Message> {
        if labels.is_null(row) {
            return Ok(None);
        }
        if let Some(numbers) = labels.as_primitive_opt::<arrow_array::types::Int64Type>() {
            let number = numbers.value(row);
            let names = self.roles.label_names.as_ref().map(Vec::len);
            return match (i32::try_from(number), names) {
                // Hugging Face uses the class label -1 if a test set hides the label.
                (Ok(-1), Some(_)) => Ok(None),
                (Ok(label), Some(names)) if (0..names as i64).contains(&number) => Ok(Some(label)),
                (_, Some(names)) => {
                    Err(format!("label {number}, but the file names {names} labels from 0").into())
                }
                (Ok(label @ 0..), None) => Ok(Some(label)),
                (_, None) => {
                    Err(Message::from(format!("label {number}, but labels are 0 to {}", i32::MAX))
                        .remedy(Remedy::by("name another column", Setting::Label, Change::Other)))
                }
            };
        }
        let name = labels.as_string::<i32>().value(row);
        if let Some(index) = self.labels.indices.get(name) {
            return Ok(Some(*index));
        }
        if self.labels.names.len() >= LABELS_MAX {
            return Err(Message::from(format!("more than {LABELS_MAX} different labels"))
                .remedy(Remedy::by("name another column", Setting::Label, Change::Other)));
        }
        let index = i32::try_from(self.labels.names.len()).expect("at most LABELS_MAX");
        self.labels.names.push(name.to_owned());
        self.labels.indices.insert(name.to_owned(), index);
        Ok(Some(index))
    }
}

impl<T: Table> Source for RowSource<T> {
    fn schema(&self) -> &SourceSchema {
        &self.schema
    }

    fn size(&self) -> Size {
        Size { samples: self.table.rows(), bytes: self.table.bytes() }
    }

    fn next(&mut self) -> Result<Option<Entry>, Error> {
        loop {
            let mut current = match self.current.take() {
                Some(current) => current,
                None => match self.table.next()? {
                    Some(batch) => self.enter(batch)?,
                    None => return Ok(None),
                },
            };
            if current.row < current.batch.columns.num_rows() {
                let entry = self.item(&mut current)?;
                current.row += 1;
                self.current = Some(current);
                return Ok(Some(entry));
            }
        }
    }

    fn finish(&mut self) -> Result<Finished, Error> {
        self.table.end()?;
        Ok(Finished {
            labels: std::mem::take(&mut self.labels.names),
            unused_labels: std::mem::take(&mut self.roles.unused_labels),
        })
    }
}

fn origin(batch: &Batch, row: usize) -> SampleOrigin {
    let number = batch.first_row + row as u64;
    SampleOrigin {
        file: batch.file.clone(),
        member: Some(format!("{} {number}", batch.noun)),
        offset: None,
    }
}

fn fault(batch: &Batch, row: usize, problem: impl Into<Message>) -> Error {
    Error::Malformed { origin: Box::new(origin(batch, row)), problem: problem.into() }
}

fn left_out(path: String, reason: impl Into<Message>) -> Entry {
    Entry::Unreadable(LeftOut { path, reason: reason.into() })
}

fn cast(batch: &Batch, array: &ArrayRef, to: &DataType) -> Result<ArrayRef, Error> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    let options = arrow_cast::CastOptions { safe: false, ..arrow_cast::CastOptions::default() };
    arrow_cast::cast_with_options(array, to, &options)
        .map_err(|error| fault(batch, 0, format!("in the rows from here on: {error}")))
}

fn as_text(batch: &Batch, array: &ArrayRef) -> Result<ArrayRef, Error> {
    cast(batch, array, &DataType::Utf8)
}

/// A child of a struct; also null wherever the struct is null.
fn flat_child(parent: &StructArray, index: usize) -> ArrayRef {
    let child = parent.column(index);
    let nulls = arrow_buffer::NullBuffer::union(parent.nulls(), child.nulls());
    let data = child.to_data().into_builder().nulls(nulls);
    match data.build() {
        Ok(data) => arrow_array::make_array(data),
        // The child passed the same checks with its own nulls.
        Err(_) => Arc::clone(child),
    }
}

fn content_of(current: &mut Current, row: usize) -> RowContent {
    if let Contents::Beside(contents) = &current.batch.contents {
        return contents[row].clone();
    }
    if let Contents::Placed { file, places } = &current.batch.contents
        && let Some((offset, bytes)) = places[row]
    {
        return RowContent::Here(Content::Range { file: Arc::clone(file), offset, bytes });
    }
    let Some(array) = &current.bytes else { return RowContent::Missing };
    if array.is_null(row) {
        if current.paths.as_ref().is_none_or(|paths| paths.is_null(row)) {
            return RowContent::Missing;
        }
        let problem = Message::from("its bytes are not in the file, only a path to them");
        return RowContent::Unreadable(problem.remedy("embed them with the program that made it"));
    }
    if let Contents::At { file, base } = &current.batch.contents
        && let Some((start, end)) = offsets(array, row)
    {
        return RowContent::Here(Content::Range {
            file: Arc::clone(file),
            offset: base + start,
            bytes: end - start,
        });
    }
    if current.batch.columns.num_rows() == 1
        && let Some(bytes) = current.bytes.take_if(|array| array.as_binary_opt::<i32>().is_some())
    {
        return RowContent::Here(Content::Bytes(taken(bytes)));
    }
    let Some(array) = &current.bytes else { return RowContent::Missing };
    match bytes_at(array, row) {
        Some(bytes) => RowContent::Here(Content::Bytes(bytes.to_vec())),
        None => RowContent::Unreadable(format!("a content of type {}", array.data_type()).into()),
    }
}

/// The bytes of the only row of a column, without a copy unless they are shared.
fn taken(array: ArrayRef) -> Vec<u8> {
    let binary = array.as_binary::<i32>().clone();
    drop(array);
    let (offsets, values, _) = binary.into_parts();
    let range = offsets[0] as usize..offsets[1] as usize;
    if range != (0..values.len()) {
        return values[range].to_vec();
    }
    values.into_vec().unwrap_or_else(|shared| shared.to_vec())
}

/// Start and end of a row's bytes among those of a column.
pub(crate) fn offsets(array: &ArrayRef, row: usize) -> Option<(u64, u64)> {
    if let Some(array) = array.as_binary_opt::<i32>() {
        let offsets = array.value_offsets();
        let of = |index: usize| u64::try_from(offsets[index]).ok();
        return Some((of(row)?, of(row + 1)?));
    }
    let array = array.as_binary_opt::<i64>()?;
    let offsets = array.value_offsets();
    let of = |index: usize| u64::try_from(offsets[index]).ok();
    Some((of(row)?, of(row + 1)?))
}

/// The bytes of a row of a column of bytes or text.
pub(crate) fn bytes_at(array: &ArrayRef, row: usize) -> Option<&[u8]> {
    Some(match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().value(row),
        DataType::LargeBinary => array.as_binary::<i64>().value(row),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(row),
        DataType::Utf8 => array.as_string::<i32>().value(row).as_bytes(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).as_bytes(),
        _ => return None,
    })
}
