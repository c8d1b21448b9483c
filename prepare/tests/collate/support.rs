//! Datasets of pictures of different sizes with targets, their jobs, and their first batches.

use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, FixedSizeListArray, ListArray, RecordBatch};
use arrow_buffer::OffsetBuffer;
use arrow_schema::Field;
use meetpoint_format::batching::{BatchOptions, Batching};
use meetpoint_format::column::{BatchLayout, Collate, Column, ColumnBytes, ColumnNames, Pad};
use meetpoint_format::dataset::{
    Columns, MANIFEST_NAME, Manifest, PartEncoder, PartEntry, Provenance, Row, Stored, part_name,
};
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::Sampling;
use meetpoint_kernels::{Cpu, Interrupt, SampleId, Tensor};
use meetpoint_prepare::{CpuPreparer, Dataset, Error, Job, OnError, OnePreparer, Preparer};
use meetpoint_storage::{EngineKind, open_engine};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const SAMPLES: u64 = 12;
pub(crate) const SEED: u64 = 3;

/// Every picture has a result of a different size.
pub(crate) const OPERATIONS: &str = "
    [[operation]]
    name = 'decode'
    [[operation]]
    name = 'random_shortest_size'
    min_size = [10, 13, 17]
    max_size = 25
    [[operation]]
    name = 'random_horizontal_flip'
";

pub(crate) const TARGETS: &str = "
    [targets.boxes]
    kind = 'boxes'
    format = 'xyxy'
    [targets.mask]
    kind = 'mask'
    fill = 255
";

/// A PNG for each object.
pub(crate) const OBJECTS: &str = "
    [targets.objects]
    kind = 'mask'
    fill = 255
";

pub(crate) const MASKS: &str = "
    [targets.masks]
    kind = 'mask'
    fill = 7
";

/// A dataset of pictures.
pub(crate) struct TestDataset {
    pub(crate) folder: tempfile::TempDir,
    /// Whether all pictures have the same size; then there is a column with a mask for each object.
    pub(crate) is_uniform: bool,
    /// A picture that cannot be decoded.
    pub(crate) damaged: Option<u64>,
    /// A target of sample 4 that does not fit its picture.
    pub(crate) misfit: Option<Misfit>,
    /// Whether samples have labels.
    pub(crate) labels: bool,
}

/// What does not fit a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// A box outside of it.
    Box,
    /// A mask of another size.
    Mask,
    /// A mask of an object with another size.
    Object,
    /// A mask that is null.
    Null,
}

impl TestDataset {
    pub(crate) fn new(is_uniform: bool, damaged: Option<u64>) -> (Self, Arc<Dataset>) {
        Self { is_uniform, damaged, ..Self::empty() }.written()
    }

    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, is_uniform: false, damaged: None, misfit: None, labels: false }
    }

    pub(crate) fn written(self) -> (Self, Arc<Dataset>) {
        let dataset = self.write();
        (self, dataset)
    }

    /// Rows and columns of a picture.
    pub(crate) fn size(&self, sample: u64) -> (u32, u32) {
        let n = if self.is_uniform { 4 } else { sample as u32 };
        (8 + n * 7 % 11, 8 + n * 5 % 13)
    }

    /// The elements of a mask, row by row.
    pub(crate) fn mask(&self, sample: u64) -> Vec<u8> {
        let (height, width) = self.size(sample);
        (0..width * height).map(|at| (at % 200 + sample as u32) as u8).collect()
    }

    /// A grey PNG.
    pub(crate) fn png(&self, sample: u64) -> Vec<u8> {
        self.png_of(sample, &self.mask(sample))
    }

    pub(crate) fn png_of(&self, sample: u64, elements: &[u8]) -> Vec<u8> {
        let (height, width) = self.size(sample);
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header().unwrap().write_image_data(elements).unwrap();
        bytes
    }

    /// A PNG of the mask of an object: that of the picture, with 20 more for each object before.
    pub(crate) fn object(&self, sample: u64, at: u64) -> Vec<u8> {
        let elements: Vec<u8> =
            self.mask(sample).iter().map(|element| element + 20 * at as u8).collect();
        // The mask of another sample has another size.
        let of = if self.misfit == Some(Misfit::Object) && sample == 4 { 5 } else { sample };
        if of != sample { self.png(of) } else { self.png_of(sample, &elements) }
    }

    /// The further columns of all samples.
    pub(crate) fn further(&self) -> RecordBatch {
        let all = || 0..SAMPLES;
        let of = |sample: u64, misfit| sample == 4 && self.misfit == Some(misfit);
        // The mask of another sample has another size.
        let mask = |sample| self.png(if of(sample, Misfit::Mask) { 5 } else { sample });
        let pngs: Vec<Vec<u8>> = all().map(mask).collect();
        let masks = all().zip(&pngs).map(|(it, png)| (!of(it, Misfit::Null)).then_some(png));
        let corners = all().flat_map(|sample| {
            let count = sample % 3;
            let left = if of(sample, Misfit::Box) { 100.0 } else { 0.0 };
            (0..count).flat_map(move |at| [left + at as f64, 1.0, left + at as f64 + 3.0, 5.0])
        });
        let numbers = arrow_array::PrimitiveArray::<Float64Type>::from_iter_values(corners);
        let boxes = lists(grouped(Arc::new(numbers), 4), all().map(|sample| sample % 3));
        let labels = all().map(|it| Some((0..it % 3).map(|at| Some(at.cast_signed()))));
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            ("boxes", boxes),
            ("mask", Arc::new(BinaryArray::from_iter(masks))),
            ("labels", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(labels))),
        ];
        let objects = all().map(|sample| (0..sample % 3).map(move |at| self.object(sample, at)));
        columns.push(("objects", files(objects.map(Iterator::collect))));
        if self.is_uniform {
            let (height, width) = self.size(0);
            let objects =
                all().flat_map(|sample| (0..sample % 3).flat_map(move |_| self.mask(sample)));
            let elements: ArrayRef = Arc::new(arrow_array::UInt8Array::from_iter_values(objects));
            let masks = grouped(grouped(elements, width as i32), height as i32);
            columns.push(("masks", lists(masks, all().map(|sample| sample % 3))));
        }
        let columns = columns.into_iter().map(|(name, values)| (name, values, true));
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    }

    pub(crate) fn write(&self) -> Arc<Dataset> {
        let further = Arc::new(self.further());
        let columns = Arc::new(Columns { extra: further.schema(), ..Columns::images() });
        let mut encoder = PartEncoder::new(Vec::new(), Arc::clone(&columns)).unwrap();
        let mut longest = 0;
        for sample in 0..SAMPLES {
            let mut image = self.png(sample);
            if self.damaged == Some(sample) {
                image.truncate(20);
            }
            longest = longest.max(image.len() as u64);
            let extra = Some((Arc::clone(&further), sample as usize));
            let key = format!("{sample}.png");
            let label = self.labels.then_some((sample % 3) as i32);
            encoder.push(Row { key, image, label, entry_points: None, extra }).unwrap();
        }
        let made = encoder.finish().unwrap();
        let folder = self.folder.path();
        std::fs::write(folder.join(part_name(0)), &made.sink).unwrap();
        let part = PartEntry {
            file: part_name(0),
            samples: made.samples,
            bytes: made.bytes,
            tail_crc32c: made.tail_crc32c,
            sha256: Sha256::digest(&made.sink).iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        let provenance = Provenance {
            tool: "test".into(),
            source: "none".into(),
            skipped: 0,
            options: BTreeMap::new(),
            ..Provenance::default()
        };
        let manifest = Manifest {
            samples: SAMPLES,
            image_bytes: SAMPLES * longest,
            image_bytes_max: longest,
            labels: ["a", "b", "c"]
                .into_iter()
                .take(3 * usize::from(self.labels))
                .map(str::to_owned)
                .collect(),
            parts: vec![part],
            stored: Some(Stored::default()),
            ..Manifest::new(&columns, provenance)
        };
        std::fs::write(folder.join(MANIFEST_NAME), manifest.to_json()).unwrap();
        Arc::new(Dataset::open(folder).unwrap())
    }
}

/// A list for each sample, of values of fixed shapes, one after another.
pub(crate) fn lists(values: ArrayRef, lengths: impl Iterator<Item = u64>) -> ArrayRef {
    let item = Field::new("item", values.data_type().clone(), true);
    let lengths = OffsetBuffer::from_lengths(lengths.map(|it| it as usize));
    Arc::new(ListArray::new(Arc::new(item), lengths, values, None))
}

/// A list of files for each sample.
pub(crate) fn files(samples: impl Iterator<Item = Vec<Vec<u8>>>) -> ArrayRef {
    let samples: Vec<Vec<Vec<u8>>> = samples.collect();
    let all: ArrayRef = Arc::new(BinaryArray::from_iter_values(samples.iter().flatten()));
    lists(all, samples.iter().map(|files| files.len() as u64))
}

/// Values of `length` inner ones each.
pub(crate) fn grouped(values: ArrayRef, length: i32) -> ArrayRef {
    let item = Field::new("item", values.data_type().clone(), true);
    Arc::new(FixedSizeListArray::new(Arc::new(item), length, values, None))
}

pub(crate) fn job(dataset: &Arc<Dataset>, recipe: &str, columns: &[&str], collate: Collate) -> Job {
    let batch_options = BatchOptions { batch_size: SAMPLES as u32, drop_last: false, seed: SEED };
    let names: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    Job {
        dataset: Arc::clone(dataset),
        recipe: Arc::new(Recipe::from_toml(recipe).unwrap()),
        batching: Batching::alone(batch_options, Sampling::shuffled(SAMPLES)),
        on_error: OnError::default(),
        columns: ColumnNames::from(names).collated(collate),
    }
}

pub(crate) fn preparer(job: &Job) -> Result<CpuPreparer, Error> {
    let engine = open_engine(EngineKind::Threads, 4).unwrap().engine;
    CpuPreparer::new(job.clone(), engine, Cpu::detect())
}

/// Memory of as many bytes as a batch of a job takes at most.
pub(crate) fn memory(job: &Job) -> Vec<u8> {
    let columns = job.batch_columns().unwrap();
    let longest = job.value_bytes_max(&columns, &Interrupt::default()).unwrap();
    vec![0xA5; BatchLayout::bytes_max(&columns, SAMPLES as u32, &longest) as usize]
}

/// The first batch of a job.
pub(crate) struct First {
    pub(crate) samples: Vec<u64>,
    pub(crate) columns: Vec<Column>,
    pub(crate) layout: BatchLayout,
    pub(crate) job: Job,
    pub(crate) memory: Vec<u8>,
}

impl First {
    pub(crate) fn of(job: Job) -> Self {
        let mut memory = memory(&job);
        let reserved = memory.len();
        let prepared = preparer(&job).unwrap().prepare(0, 0, &mut memory, &mut |_| true).unwrap();
        assert_eq!(memory.len(), reserved, "what is reserved is enough");
        let columns = job.batch_columns().unwrap().as_slice().to_vec();
        Self { samples: prepared.samples, columns, layout: prepared.layout, job, memory }
    }

    pub(crate) fn column(&self, name: &str) -> ColumnBytes<'_> {
        let index = self.columns.iter().position(|column| column.name == name).unwrap();
        let bytes = ColumnBytes::new(&self.columns[index], index, &self.layout, &self.memory);
        bytes.unwrap().check().unwrap();
        bytes.unwrap()
    }

    pub(crate) fn axes(&self, name: &str) -> Vec<u32> {
        let columns = self.job.batch_columns().unwrap();
        self.layout.axes(&columns, columns.position(name).unwrap()).to_vec()
    }

    /// Each sample alone, as `meetpoint show` prepares it.
    pub(crate) fn alone(&self) -> Vec<Tensor> {
        let Job { dataset, recipe, .. } = &self.job;
        let mut one = OnePreparer::new(dataset, recipe, Cpu::detect()).unwrap();
        let id = |sample| SampleId { seed: SEED, epoch: 0, sample };
        self.samples.iter().map(|&sample| one.prepare(sample, id(sample)).unwrap()).collect()
    }
}

pub(crate) fn pad(multiple_of: u32, fill: f64) -> Collate {
    Collate::Pad(Pad { multiple_of, fill, max_size: None })
}

/// A row-major tensor, padded by a simple computation.
pub(crate) fn padded(data: &[u8], from: &[usize], to: &[usize], fill: &[u8]) -> Vec<u8> {
    let element = fill.len();
    let mut out = Vec::new();
    let total: usize = to.iter().product();
    for at in 0..total {
        let mut rest = at;
        let mut own = 0;
        let mut is_inside = true;
        let mut stride = from.iter().product::<usize>();
        let mut padded = total;
        for (length, limit) in from.iter().zip(to) {
            padded /= limit;
            stride /= length.max(&1);
            let index = rest / padded;
            rest %= padded;
            is_inside &= index < *length;
            own += index * stride;
        }
        let source = is_inside.then(|| &data[own * element..][..element]);
        out.extend_from_slice(source.unwrap_or(fill));
    }
    out
}

pub(crate) fn lengths(axes: &[u32]) -> Vec<usize> {
    axes.iter().map(|length| *length as usize).collect()
}
