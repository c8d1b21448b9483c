//! A source in memory with samples and further columns of many types, and what a source holds.

use super::support::jpeg;
use arrow_array::builder::{Int16Builder, ListBuilder};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float32Array, Int64Array, RecordBatch, StringArray,
    StructArray,
};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use meetpoint_datasets::Error;
use meetpoint_datasets::source::{
    Content, ContentKind, Entry, Finished, Item, SampleOrigin, Size, Source, SourceSchema,
};
use std::sync::Arc;

/// A source in memory.
pub(crate) struct Memory {
    pub(crate) schema: SourceSchema,
    pub(crate) items: std::vec::IntoIter<Item>,
    pub(crate) labels: Vec<String>,
}

impl Source for Memory {
    fn schema(&self) -> &SourceSchema {
        &self.schema
    }

    fn size(&self) -> Size {
        Size::default()
    }

    fn next(&mut self) -> Result<Option<Entry>, Error> {
        Ok(self.items.next().map(|item| Entry::Sample(Box::new(item))))
    }

    fn finish(&mut self) -> Result<Finished, Error> {
        Ok(Finished { labels: self.labels.clone(), ..Finished::default() })
    }
}

/// The samples of `golden/sinks/make.py`: key, content, label.
pub(crate) fn samples(count: usize) -> Vec<(String, Vec<u8>, Option<i32>)> {
    let labels = [0, 1, 127, 128, 255, 256, 65536, i32::MAX];
    let sample = |index: usize| {
        let folder = if index.is_multiple_of(3) { "café" } else { "tea" };
        let bytes = index * 41 % 300;
        let content = (0..bytes).map(|place| ((index * 7 + place) % 251) as u8).collect();
        (format!("{folder}/{index}.jpg"), content, Some(labels[index % 8]))
    };
    (0..count).map(sample).collect()
}

pub(crate) fn memory(
    samples: Vec<(String, Vec<u8>, Option<i32>)>,
    extra: Option<RecordBatch>,
    labels: &[&str],
) -> Memory {
    let schema = extra.as_ref().map_or(Arc::new(Schema::empty()), RecordBatch::schema);
    let extra = extra.map(Arc::new);
    let item = |(row, (key, content, label)): (usize, (String, Vec<u8>, Option<i32>))| Item {
        origin: SampleOrigin { file: format!("memory:{key}"), ..SampleOrigin::default() },
        key,
        content: Content::Bytes(content),
        label,
        extra: extra.clone().map(|batch| (batch, row)),
    };
    let items: Vec<Item> = samples.into_iter().enumerate().map(item).collect();
    Memory {
        schema: SourceSchema {
            kind: ContentKind::Image,
            name: "image".to_owned(),
            extra: schema,
            prepared: None,
        },
        items: items.into_iter(),
        labels: labels.iter().map(|name| (*name).to_owned()).collect(),
    }
}

pub(crate) fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let field = |(name, array): &(&str, ArrayRef)| {
        Field::new(*name, array.data_type().clone(), array.null_count() > 0)
    };
    let fields: Vec<Field> = columns.iter().map(field).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

/// Lists of a given number of numbers.
pub(crate) fn boxes(lengths: impl Iterator<Item = usize>) -> ArrayRef {
    let mut builder = ListBuilder::new(Int16Builder::new());
    for length in lengths {
        (0..length).for_each(|number| builder.values().append_value(number as i16));
        builder.append(true);
    }
    Arc::new(builder.finish())
}

/// The further columns of `golden/sinks/make.py`.
pub(crate) fn golden_columns() -> RecordBatch {
    let rows = 0..8_i64;
    let counts: Int64Array = rows.clone().map(|row| (-10_i64).pow(row as u32)).collect();
    let scores: Float32Array = rows.clone().map(|row| row as f32 / 8.0).collect();
    let names = rows.clone().map(|row| "x".repeat(row as usize * 17));
    let masks: Vec<Vec<u8>> = rows.clone().map(|row| (0..row as u8 * 30).collect()).collect();
    let of: StructArray = {
        let a: ArrayRef = Arc::new(rows.clone().collect::<Int64Array>());
        let b: ArrayRef = Arc::new(Int64Array::from(vec![None; 8]));
        let fields = Fields::from(vec![
            Field::new("a", DataType::Int64, false),
            Field::new("b", DataType::Int64, true),
        ]);
        StructArray::new(fields, vec![a, b], None)
    };
    let maybe: BooleanArray = rows.map(|row| (row % 2 == 0).then_some(true)).collect();
    batch(vec![
        ("count", Arc::new(counts)),
        ("score", Arc::new(scores)),
        ("name", Arc::new(StringArray::from_iter_values(names))),
        ("mask", Arc::new(BinaryArray::from_iter_values(masks))),
        ("boxes", boxes(0..8)),
        ("of", Arc::new(of)),
        ("maybe", Arc::new(maybe)),
    ])
}

/// The content of a source: samples, names of labels, further columns by row.
#[derive(Debug, PartialEq)]
pub(crate) struct SourceContent {
    pub(crate) samples: Vec<(String, Vec<u8>, Option<i32>)>,
    pub(crate) labels: Vec<String>,
    pub(crate) columns: SchemaRef,
    pub(crate) rows: Vec<Vec<String>>,
}

pub(crate) fn held(source: &mut dyn Source) -> SourceContent {
    let mut columns: Vec<_> = source.schema().extra.fields().iter().cloned().collect();
    columns.sort_by(|left, right| left.name().cmp(right.name()));
    let mut held = SourceContent {
        samples: Vec::new(),
        labels: Vec::new(),
        columns: Arc::new(Schema::new(columns.clone())),
        rows: Vec::new(),
    };
    while let Some(entry) = source.next().unwrap() {
        let Entry::Sample(item) = entry else {
            assert!(matches!(entry, Entry::Ignored | Entry::NotASample(_)), "{entry:?}");
            continue;
        };
        let content = match item.content {
            Content::Bytes(bytes) => bytes,
            Content::File { path, .. } => std::fs::read(path.path()).unwrap(),
            Content::Range { file, offset, bytes } => {
                use std::os::unix::fs::FileExt;
                let mut read = vec![0; bytes as usize];
                file.file.read_exact_at(&mut read, offset).unwrap();
                read
            }
        };
        held.samples.push((item.key, content, item.label));
        let cell = |name: &str| {
            let (batch, row) = item.extra.as_ref().unwrap();
            let slice = batch.column_by_name(name).unwrap().slice(*row, 1);
            format!("{slice:?}")
        };
        held.rows.push(columns.iter().map(|field| cell(field.name())).collect());
    }
    held.labels = source.finish().unwrap().labels;
    held
}

/// Columns that every sink can store, with types that can be inferred from the values.
pub(crate) fn plain_columns(rows: usize) -> RecordBatch {
    let numbers = 0..rows as i64;
    batch(vec![
        ("count", Arc::new(numbers.clone().map(|row| row * 1_000_003).collect::<Int64Array>())),
        ("caption", Arc::new(StringArray::from_iter_values(numbers.map(|row| format!("ä{row}"))))),
    ])
}

pub(crate) fn pictures(count: usize) -> Vec<(String, Vec<u8>, Option<i32>)> {
    let picture = |index: usize| {
        let class = if index.is_multiple_of(2) { "cat" } else { "dog" };
        let file = jpeg(8 + index as u16, 9, index as u8);
        (format!("{class}/{index:03}.jpg"), file, Some((index % 2) as i32))
    };
    let mut pictures: Vec<_> = (0..count).map(picture).collect();
    pictures.sort();
    pictures
}
