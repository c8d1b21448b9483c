//! Parquet files with pictures as Hugging Face stores them: a struct of `bytes` and `path`.
//!
//! The path is the key. Contents are stored with plain encoding, so that the file contains the
//! bytes of a picture unchanged. The names of the labels are in the metadata of each file and known
//! only at the end, so all footers are written at the end.

use super::files::Output;
use super::huggingface as features;
use super::{Closed, KEY, LABEL, OutSample, Refusal, Shards, Sink, SinkKind, Tally};
use super::{content_name, one_row};
use crate::Error;
use crate::source::{ContentKind, SourceSchema};
use ::parquet::arrow::arrow_writer::ArrowWriterOptions;
use ::parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowWriter, encode_arrow_schema};
use ::parquet::basic::Compression;
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::schema::types::ColumnPath;
use arrow_array::builder::{BinaryBuilder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Default bytes of a file, as recommended by the Hub.
const FILE_BYTES: u64 = 512 << 20;
/// Bytes after which a row group ends; they determine the memory use.
const ROW_GROUP_BYTES: u64 = 32 << 20;
/// Samples after which a row group ends.
const ROW_GROUP_SAMPLES: u64 = 1000;
/// Values after which a writer checks the length of its page.
const VALUES_PER_LOOK: usize = 16;

/// Writes `data-NNNNN.parquet`.
pub(super) struct Parquet {
    folder: PathBuf,
    shards: Shards,
    kind: ContentKind,
    content: String,
    extra: SchemaRef,
    schema: SchemaRef,
    properties: WriterProperties,
    rows: RowBuffer,
    /// Files without footers; the last one is written to.
    open: Vec<ArrowWriter<Output>>,
    /// Bytes and samples of the last file, including buffered rows.
    bytes: u64,
    samples: u64,
    notes: Vec<String>,
}

/// Buffered rows.
#[derive(Default)]
struct RowBuffer {
    keys: StringBuilder,
    contents: BinaryBuilder,
    labels: Int64Builder,
    extra: Vec<RecordBatch>,
    bytes: u64,
    samples: u64,
}

impl Parquet {
    pub(super) fn create(
        folder: PathBuf,
        schema: &SourceSchema,
        shards: Shards,
    ) -> Result<Self, Error> {
        let content = content_name(schema).to_owned();
        let is_struct = has_struct(schema.kind);
        // All columns are nullable: the `datasets` library applies the feature in the metadata only
        // if the column is declared as the library itself declares it.
        let mut fields: Vec<Arc<Field>> = Vec::new();
        if !is_struct {
            fields.push(Arc::new(Field::new(KEY, DataType::Utf8, true)));
        }
        if schema.kind != ContentKind::None {
            let data_type = match schema.kind {
                ContentKind::Text => DataType::Utf8,
                ContentKind::Bytes => DataType::Binary,
                _ => DataType::Struct(struct_fields()),
            };
            fields.push(Arc::new(Field::new(&content, data_type, true)));
        }
        fields.push(Arc::new(Field::new(LABEL, DataType::Int64, true)));
        fields.extend(schema.extra.fields().iter().cloned());
        let path =
            if is_struct { vec![content.clone(), "bytes".into()] } else { vec![content.clone()] };
        let path = ColumnPath::from(path);
        let properties = WriterProperties::builder()
            .set_compression(Compression::UNCOMPRESSED)
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_statistics_enabled(path, EnabledStatistics::None)
            .set_write_batch_size(VALUES_PER_LOOK)
            .set_created_by(concat!("meetpoint ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let unknown =
            schema.extra.fields().iter().filter(|field| features::feature(field).is_none());
        let notes = unknown.map(|field| {
            format!(
                "column `{}` ({}) has a type without a feature in Hugging Face's library; the \
                 files are written without its metadata, so names of labels and which columns are \
                 pictures are not recorded",
                field.name(),
                field.data_type()
            )
        });
        Ok(Self {
            folder,
            shards,
            kind: schema.kind,
            content,
            extra: Arc::clone(&schema.extra),
            schema: Arc::new(Schema::new(fields)),
            properties,
            rows: RowBuffer::default(),
            open: Vec::new(),
            bytes: 0,
            samples: 0,
            notes: notes.collect(),
        })
    }

    /// Writes the buffered rows as a row group.
    fn end_row_group(&mut self) -> Result<(), Error> {
        if self.rows.samples == 0 {
            return Ok(());
        }
        let batch = self.gathered().map_err(|error| failed(&self.folder, error.into()))?;
        if self.open.is_empty() || self.samples == self.rows.samples {
            self.begin_file()?;
        }
        self.rows.bytes = 0;
        self.rows.samples = 0;
        let writer = self.open.last_mut().expect("a file was begun");
        let written = writer.write(&batch).and_then(|()| writer.flush());
        written.map_err(|error| failed(writer.inner().path(), error))
    }

    fn begin_file(&mut self) -> Result<(), Error> {
        let path = self.folder.join(SinkKind::Parquet.shard_name(self.open.len()));
        let output = Output::create(path.clone())?;
        let schema = Arc::clone(&self.schema);
        // The schema is written with the footer, when the names of the labels are known; readers
        // take the metadata of columns only from there.
        let options = ArrowWriterOptions::new()
            .with_properties(self.properties.clone())
            .with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(output, schema, options);
        self.open.push(writer.map_err(|error| failed(&path, error))?);
        Ok(())
    }

    /// The buffered rows as a record batch.
    fn gathered(&mut self) -> Result<RecordBatch, arrow_schema::ArrowError> {
        let keys: ArrayRef = Arc::new(self.rows.keys.finish());
        let contents: ArrayRef = Arc::new(self.rows.contents.finish());
        let labels: ArrayRef = Arc::new(self.rows.labels.finish());
        let mut columns = match self.kind {
            ContentKind::None => vec![keys],
            ContentKind::Text => vec![keys, arrow_cast::cast(&contents, &DataType::Utf8)?],
            ContentKind::Bytes => vec![keys, contents],
            ContentKind::Image | ContentKind::Audio => {
                let both = StructArray::try_new(struct_fields(), vec![contents, keys], None)?;
                vec![Arc::new(both) as ArrayRef]
            }
        };
        columns.push(labels);
        if !self.extra.fields().is_empty() {
            let extra = concat_batches(&self.extra, &self.rows.extra)?;
            self.rows.extra.clear();
            columns.extend(extra.columns().iter().cloned());
        }
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }

    /// Ends the current file, except for its footer.
    fn end_file(&mut self) -> Result<(), Error> {
        self.end_row_group()?;
        self.samples = 0;
        self.bytes = 0;
        match self.open.last_mut() {
            Some(writer) => writer.inner_mut().park(),
            None => Ok(()),
        }
    }

    /// The metadata for Hugging Face's library; `None` if it knows no feature for a column.
    fn features(&self, labels: &[String]) -> Option<String> {
        let mut all = serde_json::Map::new();
        for field in self.schema.fields() {
            let name = field.name();
            let feature = if *name == self.content {
                features::content(self.kind)
            } else if name == LABEL && !labels.is_empty() {
                features::class_label(labels)
            } else {
                features::feature(field)?
            };
            all.insert(name.clone(), feature);
        }
        Some(serde_json::json!({"info": {"features": all}}).to_string())
    }
}

/// An error of writing a file.
fn failed(path: &Path, error: ParquetError) -> Error {
    let source = match error {
        ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
            Ok(source) => *source,
            Err(cause) => std::io::Error::other(cause),
        },
        error => std::io::Error::other(error),
    };
    Error::Write { path: path.to_path_buf(), source }
}

/// Whether the content is stored in a struct with a path.
fn has_struct(kind: ContentKind) -> bool {
    matches!(kind, ContentKind::Image | ContentKind::Audio)
}

fn struct_fields() -> Fields {
    Fields::from(vec![
        Field::new("bytes", DataType::Binary, true),
        Field::new("path", DataType::Utf8, true),
    ])
}

impl Sink for Parquet {
    fn root(&self) -> Option<Arc<super::Root>> {
        None
    }

    fn put(&mut self, sample: &OutSample<'_>, is_kept: bool) -> Result<(), Refusal> {
        if self.kind == ContentKind::Text && std::str::from_utf8(sample.file).is_err() {
            return Err(Refusal::Sample("it is not valid UTF-8".to_owned()));
        }
        let extra = match sample.extra {
            _ if self.extra.fields().is_empty() => None,
            Some((batch, row)) => Some(one_row(batch, row)),
            None => return Err(Refusal::Sample("its further columns are missing".to_owned())),
        };
        if !is_kept {
            return Ok(());
        }
        let more = sample.file.len() as u64 + sample.key.len() as u64 + 16;
        if self.shards.is_full(self.bytes, self.samples, more, FILE_BYTES) {
            self.end_file()?;
        }
        if self.rows.samples > 0 && self.rows.bytes + more > ROW_GROUP_BYTES
            || self.rows.samples >= ROW_GROUP_SAMPLES
        {
            self.end_row_group()?;
        }
        self.rows.keys.append_value(sample.key);
        self.rows.contents.append_value(sample.file);
        self.rows.labels.append_option(sample.label.map(i64::from));
        self.rows.extra.extend(extra);
        self.rows.bytes += more;
        self.rows.samples += 1;
        self.bytes += more;
        self.samples += 1;
        Ok(())
    }

    fn finish(mut self: Box<Self>, labels: &[String]) -> Result<Closed, Error> {
        self.end_file()?;
        let features = self.features(labels);
        let mut tally = Tally::default();
        let metadata =
            features.iter().map(|text| (features::METADATA_KEY.to_owned(), text.clone()));
        let schema =
            self.schema.as_ref().clone().with_metadata(metadata.collect::<BTreeMap<_, _>>());
        let encoded = encode_arrow_schema(&schema);
        for mut writer in std::mem::take(&mut self.open) {
            let key = ARROW_SCHEMA_META_KEY.to_owned();
            writer.append_key_value_metadata(KeyValue::new(key, encoded.clone()));
            if let Some(features) = &features {
                let key = features::METADATA_KEY.to_owned();
                writer.append_key_value_metadata(KeyValue::new(key, features.clone()));
            }
            let path = writer.inner().path().to_path_buf();
            let output = writer.into_inner().map_err(|error| failed(&path, error))?;
            output.finish(&mut tally)?;
        }
        Ok(Closed { tally, notes: self.notes })
    }
}
