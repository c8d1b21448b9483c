//! Pictures of different sizes in a batch: padded or listed, with the masks that move with them.

#![expect(clippy::unwrap_used, reason = "a helper fails its test by panicking")]

use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, FixedSizeListArray, ListArray, RecordBatch};
use arrow_buffer::OffsetBuffer;
use arrow_schema::Field;
use meetpoint_diagnose::Diagnose;
use meetpoint_format::batching::{Batching, Cut};
use meetpoint_format::column::{
    BatchLayout, Collate, Column, ColumnBytes, ColumnError, ColumnNames, List, Pad,
};
use meetpoint_format::dataset::{
    Columns, MANIFEST_NAME, Manifest, PartEncoder, PartEntry, Provenance, Row, Stored, part_name,
};
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::{AspectRatio, Sampler, Sampling};
use meetpoint_kernels::{Cpu, Error as PictureError, Interrupt, SampleId, TargetProblem, Tensor};
use meetpoint_prepare::cache::{CacheSettings, CacheSlot};
use meetpoint_prepare::{
    Action, BatchMemory, CpuPreparer, Dataset, Error, Job, MemoryKind, OnError, OnePreparer,
    Preparer,
};
use meetpoint_storage::{EngineKind, open_engine};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;

const SAMPLES: u64 = 12;
const SEED: u64 = 3;

/// Every picture becomes one of a size of its own.
const OPERATIONS: &str = "
    [[operation]]
    name = 'decode'
    [[operation]]
    name = 'random_shortest_size'
    min_size = [10, 13, 17]
    max_size = 25
    [[operation]]
    name = 'random_horizontal_flip'
";

const TARGETS: &str = "
    [targets.boxes]
    kind = 'boxes'
    format = 'xyxy'
    [targets.mask]
    kind = 'mask'
    fill = 255
";

/// A PNG for each object.
const OBJECTS: &str = "
    [targets.objects]
    kind = 'mask'
    fill = 255
";

const MASKS: &str = "
    [targets.masks]
    kind = 'mask'
    fill = 7
";

/// A dataset of pictures.
struct Made {
    folder: tempfile::TempDir,
    /// Whether all pictures have the same size; then there is a column with a mask for each object.
    is_uniform: bool,
    /// A picture that cannot be decoded.
    damaged: Option<u64>,
    /// A target of sample 4 that does not fit its picture.
    misfit: Option<Misfit>,
    /// Whether samples have labels.
    labels: bool,
}

/// What does not fit a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Misfit {
    /// A box outside of it.
    Box,
    /// A mask of another size.
    Mask,
    /// A mask of an object with another size.
    Object,
    /// A mask that is null.
    Null,
}

impl Made {
    fn new(is_uniform: bool, damaged: Option<u64>) -> (Self, Arc<Dataset>) {
        Self { is_uniform, damaged, ..Self::empty() }.written()
    }

    fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, is_uniform: false, damaged: None, misfit: None, labels: false }
    }

    fn written(self) -> (Self, Arc<Dataset>) {
        let dataset = self.write();
        (self, dataset)
    }

    /// Rows and columns of a picture.
    fn size(&self, sample: u64) -> (u32, u32) {
        let n = if self.is_uniform { 4 } else { sample as u32 };
        (8 + n * 7 % 11, 8 + n * 5 % 13)
    }

    /// The elements of a mask, row by row.
    fn mask(&self, sample: u64) -> Vec<u8> {
        let (height, width) = self.size(sample);
        (0..width * height).map(|at| (at % 200 + sample as u32) as u8).collect()
    }

    /// A grey PNG.
    fn png(&self, sample: u64) -> Vec<u8> {
        self.png_of(sample, &self.mask(sample))
    }

    fn png_of(&self, sample: u64, elements: &[u8]) -> Vec<u8> {
        let (height, width) = self.size(sample);
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header().unwrap().write_image_data(elements).unwrap();
        bytes
    }

    /// A PNG of the mask of an object: that of the picture, with 20 more for each object before.
    fn object(&self, sample: u64, at: u64) -> Vec<u8> {
        let elements: Vec<u8> =
            self.mask(sample).iter().map(|element| element + 20 * at as u8).collect();
        // That of another sample has another size.
        let of = if self.misfit == Some(Misfit::Object) && sample == 4 { 5 } else { sample };
        if of != sample { self.png(of) } else { self.png_of(sample, &elements) }
    }

    /// The further columns of all samples.
    fn further(&self) -> RecordBatch {
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

    fn write(&self) -> Arc<Dataset> {
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
fn lists(values: ArrayRef, lengths: impl Iterator<Item = u64>) -> ArrayRef {
    let item = Field::new("item", values.data_type().clone(), true);
    let lengths = OffsetBuffer::from_lengths(lengths.map(|it| it as usize));
    Arc::new(ListArray::new(Arc::new(item), lengths, values, None))
}

/// A list of files for each sample.
fn files(samples: impl Iterator<Item = Vec<Vec<u8>>>) -> ArrayRef {
    let samples: Vec<Vec<Vec<u8>>> = samples.collect();
    let all: ArrayRef = Arc::new(BinaryArray::from_iter_values(samples.iter().flatten()));
    lists(all, samples.iter().map(|files| files.len() as u64))
}

/// Values of `length` inner ones each.
fn grouped(values: ArrayRef, length: i32) -> ArrayRef {
    let item = Field::new("item", values.data_type().clone(), true);
    Arc::new(FixedSizeListArray::new(Arc::new(item), length, values, None))
}

fn job(dataset: &Arc<Dataset>, recipe: &str, columns: &[&str], collate: Collate) -> Job {
    let cut = Cut { batch_size: SAMPLES as u32, drop_last: false, seed: SEED };
    let names: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    Job {
        dataset: Arc::clone(dataset),
        recipe: Arc::new(Recipe::from_toml(recipe).unwrap()),
        batching: Batching::alone(cut, Sampling::shuffled(SAMPLES)),
        on_error: OnError::default(),
        columns: ColumnNames::from(names).collated(collate),
    }
}

fn preparer(job: &Job) -> Result<CpuPreparer, Error> {
    let engine = open_engine(EngineKind::Threads, 4).unwrap().engine;
    CpuPreparer::new(job.clone(), engine, Cpu::detect())
}

/// Memory of as many bytes as a batch of a job takes at most.
fn memory(job: &Job) -> Vec<u8> {
    let columns = job.batch_columns().unwrap();
    let longest = job.value_bytes_max(&columns, &Interrupt::default()).unwrap();
    vec![0xA5; BatchLayout::bytes_max(&columns, SAMPLES as u32, &longest) as usize]
}

/// The first batch of a job.
struct First {
    samples: Vec<u64>,
    columns: Vec<Column>,
    layout: BatchLayout,
    job: Job,
    memory: Vec<u8>,
}

impl First {
    fn of(job: Job) -> Self {
        let mut memory = memory(&job);
        let reserved = memory.len();
        let prepared = preparer(&job).unwrap().prepare(0, 0, &mut memory, &mut |_| true).unwrap();
        assert_eq!(memory.len(), reserved, "what is reserved is enough");
        let columns = job.batch_columns().unwrap().as_slice().to_vec();
        Self { samples: prepared.samples, columns, layout: prepared.layout, job, memory }
    }

    fn column(&self, name: &str) -> ColumnBytes<'_> {
        let index = self.columns.iter().position(|column| column.name == name).unwrap();
        let bytes = ColumnBytes::new(&self.columns[index], index, &self.layout, &self.memory);
        bytes.unwrap().check().unwrap();
        bytes.unwrap()
    }

    fn axes(&self, name: &str) -> Vec<u32> {
        let columns = self.job.batch_columns().unwrap();
        self.layout.axes(&columns, columns.position(name).unwrap()).to_vec()
    }

    /// Each sample alone, as `meetpoint show` prepares it.
    fn alone(&self) -> Vec<Tensor> {
        let Job { dataset, recipe, .. } = &self.job;
        let mut one = OnePreparer::new(dataset, recipe, Cpu::detect()).unwrap();
        let id = |sample| SampleId { seed: SEED, epoch: 0, sample };
        self.samples.iter().map(|&sample| one.prepare(sample, id(sample)).unwrap()).collect()
    }
}

fn pad(multiple_of: u32, fill: f64) -> Collate {
    Collate::Pad(Pad { multiple_of, fill, max_size: None })
}

/// What a plain computation pads a row-major tensor to.
fn padded(data: &[u8], from: &[usize], to: &[usize], fill: &[u8]) -> Vec<u8> {
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

fn lengths(axes: &[u32]) -> Vec<usize> {
    axes.iter().map(|length| *length as usize).collect()
}

#[test]
fn pictures_are_padded_below_and_to_the_right_to_the_largest_of_the_batch() {
    let (_made, dataset) = Made::new(false, None);
    let more = "[[operation]]\nname = 'to_dtype'\ndtype = 'float32'\n\
                [[operation]]\nname = 'layout'\nlayout = 'NCHW'\n";
    for (more, fill, bytes) in
        [("", 114.0, vec![114]), (more, -1.5, (-1.5_f32).to_le_bytes().to_vec())]
    {
        for multiple in [1, 8] {
            let recipe = format!("{OPERATIONS}{more}");
            let names = ["image", "image_size", "padding_mask"];
            let first = First::of(job(&dataset, &recipe, &names, pad(multiple, fill)));
            let alone = first.alone();
            let most = |side: fn(&Tensor) -> u32| alone.iter().map(side).max().unwrap();
            let height = most(|it| it.spec.height).next_multiple_of(multiple);
            let width = most(|it| it.spec.width).next_multiple_of(multiple);
            let is_planar = !more.is_empty();
            let axes = if is_planar { vec![3, height, width] } else { vec![height, width, 3] };
            assert_eq!(first.axes("image"), axes);
            for (at, tensor) in alone.iter().enumerate() {
                let from = tensor.spec.axes();
                let expected = padded(&tensor.data, &lengths(&from), &lengths(&axes), &bytes);
                assert_eq!(first.column("image").value(at).unwrap(), expected, "{at}");
                let (high, wide) = (tensor.spec.height, tensor.spec.width);
                let size = [high, wide].map(|side| i64::from(side).to_le_bytes()).concat();
                assert_eq!(first.column("image_size").value(at).unwrap(), size);
                let own = vec![0; (high * wide) as usize];
                let sides = (lengths(&[high, wide]), lengths(&[height, width]));
                let mask = padded(&own, &sides.0, &sides.1, &[1]);
                assert_eq!(first.column("padding_mask").value(at).unwrap(), mask);
            }
            let sizes: std::collections::HashSet<_> =
                alone.iter().map(|it| (it.spec.height, it.spec.width)).collect();
            assert!(sizes.len() > 3, "{sizes:?}");
        }
    }
}

#[test]
fn pictures_in_a_list_have_the_values_and_shapes_that_they_have_alone() {
    let (_made, dataset) = Made::new(false, None);
    let list = Collate::List(List::default());
    let first = First::of(job(&dataset, OPERATIONS, &["image", "image_size", "key"], list));
    for (at, tensor) in first.alone().iter().enumerate() {
        let images = first.column("image");
        let shape = tensor.spec.axes();
        assert_eq!(images.value(at).unwrap(), tensor.data);
        let shape: Vec<i64> = shape.into_iter().map(i64::from).collect();
        assert_eq!(images.shape(at).unwrap(), shape);
    }
}

#[test]
fn masks_are_padded_with_their_own_fill_and_boxes_are_not() {
    let (made, dataset) = Made::new(true, None);
    let recipe = format!("{OPERATIONS}{TARGETS}{MASKS}");
    let names = ["image", "boxes", "labels", "mask", "masks", "image_size"];
    let of = |collate| First::of(job(&dataset, &recipe, &names, collate));
    let (padded_batch, listed) = (of(pad(4, 0.0)), of(Collate::List(List::default())));
    assert_eq!(padded_batch.samples, listed.samples);
    let axes = padded_batch.axes("mask");
    assert_eq!(padded_batch.axes("masks"), axes);
    assert_eq!(padded_batch.axes("image")[..2], axes[..]);
    let mut sizes = std::collections::HashSet::new();
    for (at, &sample) in listed.samples.iter().enumerate() {
        for same in ["boxes", "labels", "image_size"] {
            let values = [&padded_batch, &listed].map(|it| it.column(same).value(at).unwrap());
            assert_eq!(values[0], values[1], "{same}");
        }
        assert_eq!(listed.column("boxes").value(at).unwrap().len() as u64, sample % 3 * 16);
        let shape = listed.column("mask").shape(at).unwrap();
        sizes.insert(shape.clone());
        let from: Vec<usize> = shape.iter().map(|side| *side as usize).collect();
        let mask = listed.column("mask").value(at).unwrap();
        let expected = padded(mask, &from, &lengths(&axes), &[255]);
        assert_eq!(padded_batch.column("mask").value(at).unwrap(), expected);
        // The nearest pixel of the mask as it is stored, mirrored or not.
        let stored = made.mask(sample);
        assert!(mask.iter().all(|element| stored.contains(element)));
        let [count, ..] = listed.column("masks").shape(at).unwrap()[..] else { panic!() };
        assert_eq!(count as u64, sample % 3);
        let each = listed.column("masks").value(at).unwrap().chunks_exact(mask.len());
        let all = each.flat_map(|own| padded(own, &from, &lengths(&axes), &[7]));
        assert_eq!(padded_batch.column("masks").value(at).unwrap(), all.collect::<Vec<u8>>());
    }
    assert!(sizes.len() > 1, "{sizes:?}");
}

#[test]
fn masks_of_pictures_of_different_sizes_are_stored_as_png() {
    let (_made, dataset) = Made::new(false, None);
    let recipe = format!("{OPERATIONS}{TARGETS}");
    let first = First::of(job(&dataset, &recipe, &["image", "mask"], pad(1, 0.0)));
    let axes = lengths(&first.axes("mask"));
    assert_eq!(first.column("mask").value(0).unwrap().len(), axes[0] * axes[1]);
}

#[test]
fn a_file_for_each_object_moves_with_pictures_of_any_size() {
    let (_made, dataset) = Made::new(false, None);
    let recipe = format!("{OPERATIONS}{TARGETS}{OBJECTS}");
    let names = ["image", "mask", "objects"];
    let of = |collate| First::of(job(&dataset, &recipe, &names, collate));
    let (padded_batch, listed) = (of(pad(4, 0.0)), of(Collate::List(List::default())));
    let axes = lengths(&padded_batch.axes("objects"));
    assert_eq!(axes, lengths(&padded_batch.axes("mask")));
    for (at, &sample) in listed.samples.iter().enumerate() {
        let mask = listed.column("mask").value(at).unwrap();
        let sides = listed.column("mask").shape(at).unwrap();
        let count = (sample % 3).cast_signed();
        let shape = [&[count], &sides[..]].concat();
        assert_eq!(listed.column("objects").shape(at).unwrap(), shape);
        let objects = (0..count).flat_map(|n| mask.iter().map(move |it| it + 20 * n as u8));
        let objects: Vec<u8> = objects.collect();
        assert_eq!(listed.column("objects").value(at).unwrap(), objects);
        let from: Vec<usize> = sides.iter().map(|side| *side as usize).collect();
        let each = objects.chunks_exact(mask.len());
        let all: Vec<u8> = each.flat_map(|own| padded(own, &from, &axes, &[255])).collect();
        assert_eq!(padded_batch.column("objects").value(at).unwrap(), all);
    }
    // Pictures of one size need neither.
    let crop = format!(
        "[[operation]]\nname = 'decode'\n[[operation]]\nname = 'center_crop'\nsize = 6\n\
         {TARGETS}{OBJECTS}"
    );
    let stacked = First::of(job(&dataset, &crop, &names, Collate::Stack));
    for (at, sample) in stacked.samples.iter().enumerate() {
        let value = stacked.column("objects").value(at).unwrap();
        assert_eq!(value.len() as u64, sample % 3 * 36);
        let first = value.get(..36).unwrap_or(&[]);
        assert_eq!(first, &stacked.column("mask").value(at).unwrap()[..first.len()]);
    }
    // As an ordinary column, byte strings in lists have no form.
    let error = job(&dataset, OPERATIONS, &["image", "objects"], pad(1, 0.0)).batch_columns();
    let Err(Error::Columns { source, .. }) = error else { panic!("{error:?}") };
    assert_eq!(source.column(), Some("objects"));
}

/// Views of sizes of their own, one of which has two pictures.
const VIEWS: &str = "
    operation = [{ name = 'decode' }]
    [[views]]
    column = 'large'
    operations = [{ name = 'random_shortest_size', min_size = [10, 13, 17] }]
    [[views]]
    column = 'small'
    count = 2
    operations = [
        { name = 'random_shortest_size', min_size = [4, 6, 7, 9] },
        { name = 'to_dtype', dtype = 'float32' },
        { name = 'layout', layout = 'NCHW' },
    ]
";

#[test]
fn each_view_is_padded_to_its_own_largest_size() {
    let (_made, dataset) = Made::new(false, None);
    let names =
        ["large", "large_size", "small", "small_size", "small_padding_mask", "large_padding_mask"];
    let first = First::of(job(&dataset, VIEWS, &names, pad(4, 9.0)));
    let Job { dataset, recipe, .. } = &first.job;
    let mut one = OnePreparer::new(dataset, recipe, Cpu::detect()).unwrap();
    let id = |sample| SampleId { seed: SEED, epoch: 0, sample };
    let alone: Vec<Vec<Vec<Tensor>>> =
        first.samples.iter().map(|&sample| one.prepare_all(sample, id(sample)).unwrap()).collect();
    let nine = 9.0_f32.to_le_bytes();
    for (index, name, fill) in [(0, "large", &[9][..]), (1, "small", &nine[..])] {
        let all = || alone.iter().flat_map(|views| &views[index]);
        let most = |side: fn(&Tensor) -> u32| all().map(side).max().unwrap().next_multiple_of(4);
        let (height, width) = (most(|it| it.spec.height), most(|it| it.spec.width));
        let of_one = if index == 0 { vec![height, width, 3] } else { vec![3, height, width] };
        let outer = if index == 0 { vec![] } else { vec![2] };
        assert_eq!(first.axes(name), [outer.clone(), of_one.clone()].concat());
        let mask = format!("{name}_padding_mask");
        assert_eq!(first.axes(&mask), [outer, vec![height, width]].concat());
        let sizes: std::collections::HashSet<_> =
            all().map(|it| (it.spec.height, it.spec.width)).collect();
        assert!(sizes.len() > 3, "{sizes:?}");
        for (at, views) in alone.iter().enumerate() {
            let (mut pixels, mut padding, mut sides) = (Vec::new(), Vec::new(), Vec::new());
            for tensor in &views[index] {
                let from = lengths(&tensor.spec.axes());
                pixels.extend(padded(&tensor.data, &from, &lengths(&of_one), fill));
                let (high, wide) = (tensor.spec.height, tensor.spec.width);
                let inside = vec![0; (high * wide) as usize];
                let to = lengths(&[height, width]);
                padding.extend(padded(&inside, &lengths(&[high, wide]), &to, &[1]));
                sides.extend([high, wide].map(|side| i64::from(side).to_le_bytes()).concat());
            }
            assert_eq!(first.column(name).value(at).unwrap(), pixels, "{name} {at}");
            assert_eq!(first.column(&mask).value(at).unwrap(), padding, "{name} {at}");
            let size = format!("{name}_size");
            assert_eq!(first.column(&size).value(at).unwrap(), sides, "{name} {at}");
        }
    }
    // A list has the shapes of views with one picture each.
    let list = Collate::List(List::default());
    let single = VIEWS.replace("count = 2", "count = 1");
    let listed = First::of(job(dataset, &single, &["small", "large"], list));
    for (at, views) in alone.iter().enumerate() {
        for (name, tensor) in [("large", &views[0][0]), ("small", &views[1][0])] {
            let shape: Vec<i64> = tensor.spec.axes().into_iter().map(i64::from).collect();
            assert_eq!(listed.column(name).shape(at).unwrap(), shape);
            assert_eq!(listed.column(name).value(at).unwrap(), tensor.data);
        }
    }
    let refused = |columns: &[&str], collate| {
        job(dataset, VIEWS, columns, collate).batch_columns().unwrap_err()
    };
    let several = refused(&["large"], list);
    let Error::CollateViews { mode: "list", column } = several else { panic!("{several}") };
    assert_eq!(column, "small");
    let without = refused(&["large", "small_size"], pad(1, 0.0));
    let Error::Columns { source, .. } = without else { panic!("{without}") };
    let (name, image) = ("small_size".to_owned(), "small".to_owned());
    assert_eq!(source, ColumnError::SizeWithoutImage { name, image });
}

#[test]
fn labels_become_rows_beside_pictures_of_different_sizes() {
    let (_made, dataset) = Made { labels: true, ..Made::empty() }.written();
    let one_hot = "[[operation]]\nname = 'one_hot'\nnum_classes = 3\nlabel_smoothing = 0.3\n";
    let sometimes = "[[operation]]\nname = 'random_apply'\np = 0.5\n\
                     operations = [{ name = 'one_hot', num_classes = 3, label_smoothing = 0.3 }]\n";
    for on_batches in [one_hot, sometimes] {
        for collate in [pad(1, 0.0), Collate::List(List::default())] {
            let recipe = format!("{OPERATIONS}{on_batches}");
            let first = First::of(job(&dataset, &recipe, &["image", "label"], collate));
            let plain = First::of(job(&dataset, OPERATIONS, &["image"], collate));
            for (at, sample) in first.samples.iter().enumerate() {
                let (off, on) = (0.3_f32 / 3.0, 1.0 - 0.3_f32 + 0.3 / 3.0);
                let row = (0..3).map(|class| if class == sample % 3 { on } else { off });
                let values = first.column("label").value(at).unwrap().chunks_exact(4);
                for (value, expected) in values.zip(row) {
                    let value = f32::from_le_bytes(value.try_into().unwrap());
                    assert!((value - expected).abs() < 1e-6, "{value} {expected}");
                }
                assert_eq!(first.column("image").value(at), plain.column("image").value(at));
            }
        }
    }
}

#[test]
fn a_cache_holds_pictures_of_different_sizes() {
    let (_made, dataset) = Made::new(false, None);
    let recipe = format!("{OPERATIONS}{TARGETS}{OBJECTS}");
    let names = ["image", "mask", "objects", "boxes"];
    for (recipe, names) in [(&recipe[..], &names[..]), (OPERATIONS, &["image", "key"])] {
        for collate in [pad(4, 3.0), Collate::List(List::default())] {
            let job = job(&dataset, recipe, names, collate);
            let settings = CacheSettings { bytes: 4 << 20, operations: None };
            let cache = CacheSlot::default().open(&job, &settings, 0, false).unwrap();
            let (mut plain, mut caching) = (preparer(&job).unwrap(), preparer(&job).unwrap());
            caching.set_cache(cache);
            for epoch in 0..3 {
                let (mut expected, mut got) = (memory(&job), memory(&job));
                let of = plain.prepare(epoch, 0, &mut expected, &mut |_| true).unwrap();
                let prepared = caching.prepare(epoch, 0, &mut got, &mut |_| true).unwrap();
                let bytes = of.layout.bytes() as usize;
                assert_eq!(prepared.layout, of.layout);
                assert!(got[..bytes] == expected[..bytes], "epoch {epoch}");
                let hits = if epoch == 0 { 0 } else { SAMPLES as u32 };
                assert_eq!(prepared.stats.cached, hits);
            }
        }
    }
}

#[test]
fn a_sample_without_a_target_leaves_the_pictures_before_it_as_they_are() {
    let (_made, dataset) = Made { misfit: Some(Misfit::Null), ..Made::empty() }.written();
    let recipe = format!("{OPERATIONS}{TARGETS}");
    let job = job(&dataset, &recipe, &["image", "mask", "sample"], pad(1, 0.0));
    let skipping = Job { on_error: OnError::Always(Action::Skip), ..job };
    let first = First::of(skipping);
    assert_eq!(first.samples.len() as u64, SAMPLES - 1);
    let alone = first.alone();
    let axes = lengths(&first.axes("image"));
    for (at, tensor) in alone.iter().enumerate() {
        let expected = padded(&tensor.data, &lengths(&tensor.spec.axes()), &axes, &[0]);
        assert_eq!(first.column("image").value(at).unwrap(), expected);
    }
}

/// Memory that keeps its size, such as a slot.
struct Fixed(Vec<u8>);

impl BatchMemory for Fixed {
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

#[test]
fn a_batch_that_is_larger_than_reserved_makes_its_memory_longer_or_is_refused() {
    let (_made, dataset) = Made::new(false, None);
    let whole = First::of(job(&dataset, OPERATIONS, &["image", "key"], pad(1, 0.0)));
    let small = Pad { max_size: Some((4, 4)), ..Pad::default() };
    let job = job(&dataset, OPERATIONS, &["image", "key"], Collate::Pad(small));
    let mut short = memory(&job);
    assert!(short.len() < whole.memory.len());
    let mut preparer = preparer(&job).unwrap();
    let mut fixed = Fixed(short.clone());
    let error = preparer.prepare(0, 0, &mut fixed, &mut |_| true).unwrap_err();
    assert!(matches!(error, Error::BatchTooLarge { .. }) && !error.is_damage());
    assert!(error.remedy().is_some());
    let prepared = preparer.prepare(0, 0, &mut short, &mut |_| true).unwrap();
    let bytes = prepared.layout.bytes() as usize;
    assert_eq!(short[..bytes], whole.memory[..bytes]);
}

#[test]
fn damaged_pictures_leave_no_gap() {
    let (_made, dataset) = Made::new(false, Some(7));
    let names = ["image", "image_size", "sample"];
    let job = job(&dataset, OPERATIONS, &names, pad(1, 0.0));
    let mut memory = memory(&job);
    let outcome = preparer(&job).unwrap().prepare(0, 0, &mut memory, &mut |_| true);
    assert!(outcome.unwrap_err().is_damage());
    for action in [Action::Skip, Action::Replace] {
        let first = First::of(Job { on_error: OnError::Always(action), ..job.clone() });
        let left = if action == Action::Skip { SAMPLES - 1 } else { SAMPLES };
        assert_eq!(first.samples.len() as u64, left);
        assert!(!first.samples.contains(&7));
        assert_eq!(u64::from(first.layout.samples()), left);
        let largest = (0..left as usize).map(|at| {
            let (sides, _) = first.column("image_size").value(at).unwrap().as_chunks();
            [i64::from_le_bytes(sides[0]), i64::from_le_bytes(sides[1])]
        });
        let largest = largest.reduce(|a, b| [a[0].max(b[0]), a[1].max(b[1])]).unwrap();
        assert_eq!(first.axes("image")[..2], largest.map(|side| side as u32));
    }
}

#[test]
fn recipes_and_columns_that_have_no_such_form_are_refused_by_name() {
    let (_made, dataset) = Made::new(false, None);
    let refused = |recipe: &str, columns: &[&str], collate| {
        job(&dataset, recipe, columns, collate).batch_columns().unwrap_err()
    };
    let error = refused(OPERATIONS, &["image"], Collate::Stack);
    assert!(matches!(error, Error::NoFixedShape));
    let remedy = error.remedy().unwrap().spelled(meetpoint_diagnose::Surface::Python);
    assert!(remedy.contains("set collate to pad"), "{remedy}");
    let list = Collate::List(List::default());
    let crops = format!("{OPERATIONS}[[operation]]\nname = 'five_crop'\nsize = 4\n");
    let error = refused(&crops, &["image"], list);
    assert!(matches!(error, Error::CollateViews { mode: "list", .. }));
    let mixed = "[[operation]]\nname = 'decode'\n[[operation]]\nname = 'center_crop'\nsize = 4\n\
                 [[operation]]\nname = 'mix_up'\nnum_classes = 3\n";
    let error = refused(mixed, &["image"], pad(1, 0.0));
    assert!(matches!(error, Error::CollateOnBatches { operation: "mix_up", .. }));
    let inner = "[[operation]]\nname = 'random_choice'\noperations = [\
                 { name = 'one_hot', num_classes = 3 }, { name = 'cut_mix', num_classes = 3 }]\n";
    let error = refused(&format!("{OPERATIONS}{inner}"), &["image"], list);
    assert!(matches!(error, Error::CollateOnBatches { operation: "cut_mix", .. }), "{error}");
    let error = refused(OPERATIONS, &["image"], pad(1, 300.0));
    assert!(matches!(error, Error::Collate(_)), "{error}");
    let column = |error| match error {
        Error::Columns { source, .. } => source,
        other => panic!("{other}"),
    };
    let without = column(refused(OPERATIONS, &["image_size"], pad(1, 0.0)));
    let (name, image) = ("image_size".to_owned(), "image".to_owned());
    assert_eq!(without, ColumnError::SizeWithoutImage { name, image });
    // Nothing is padded in a list, and every picture has one size otherwise.
    assert_eq!(
        column(refused(OPERATIONS, &["image", "padding_mask"], list)).column(),
        Some("padding_mask")
    );
}

#[test]
fn targets_that_do_not_fit_their_picture_name_sample_column_and_remedy() {
    let recipe = format!("{OPERATIONS}{TARGETS}{OBJECTS}");
    let misfits = [(Misfit::Box, "boxes"), (Misfit::Mask, "mask"), (Misfit::Object, "objects")];
    for (misfit, wanted) in misfits {
        let (_made, dataset) = Made { misfit: Some(misfit), ..Made::empty() }.written();
        let names = ["image", "boxes", "mask", "objects"];
        let job = job(&dataset, &recipe, &names, pad(1, 0.0));
        let outcome = preparer(&job).unwrap().prepare(0, 0, &mut memory(&job), &mut |_| true);
        let error = outcome.unwrap_err();
        assert!(error.is_damage() && error.remedy().is_some());
        let Error::Sample { key, source, .. } = error else { panic!("{error}") };
        assert_eq!(key, "4.png");
        let PictureError::Target { column, problem } = source else { panic!("{source}") };
        assert_eq!(column, wanted);
        match (misfit, *problem) {
            (Misfit::Box, TargetProblem::BoxOutside { index: 0, .. })
            | (Misfit::Mask | Misfit::Object, TargetProblem::MaskSize { .. }) => {}
            (_, problem) => panic!("{problem}"),
        }
        // One damaged sample, which may be left out.
        let skipping = Job { on_error: OnError::Always(Action::Skip), ..job };
        assert_eq!(First::of(skipping).samples.len() as u64, SAMPLES - 1);
    }
}

#[test]
fn target_columns_that_are_missing_or_of_another_type_are_refused_by_name() {
    let (_made, dataset) = Made::new(false, None);
    let refused = |column: &str, kind: &str| {
        let target = format!("[targets.{column}]\n{kind}");
        let recipe = format!("{OPERATIONS}{target}");
        let columns = ["image", column];
        let error = job(&dataset, &recipe, &columns, pad(1, 0.0)).batch_columns().unwrap_err();
        assert!(error.remedy().is_some(), "{error}");
        match error {
            Error::Columns { source, .. } => source,
            other => panic!("{other}"),
        }
    };
    let boxes = "kind = 'boxes'\nformat = 'xyxy'\n";
    let error = refused("boxen", boxes);
    let ColumnError::Unknown { name, nearest, .. } = error else { panic!("{error}") };
    assert_eq!((&name[..], nearest.as_deref()), ("boxen", Some("boxes")));
    for (column, kind) in [("labels", boxes), ("mask", boxes), ("boxes", "kind = 'mask'\n")] {
        let error = refused(column, kind);
        let ColumnError::Target { name, .. } = error else { panic!("{error}") };
        assert_eq!(name, column);
    }
}

#[test]
fn sizes_are_those_in_the_files_and_damaged_ones_have_none() {
    let (made, dataset) = Made::new(false, Some(7));
    let mut calls = 0;
    let mut watch = |_, of| {
        assert_eq!(of, SAMPLES);
        calls += 1;
        true
    };
    let sizes = dataset.picture_sizes(&mut watch).unwrap();
    assert!(calls > 0);
    for sample in 0..SAMPLES {
        let expected = (sample != 7).then(|| made.size(sample));
        assert_eq!(sizes.of(sample), expected);
    }
    assert_eq!(sizes.of(SAMPLES), None);
    let (_other, other) = Made::new(false, None);
    assert!(matches!(other.picture_sizes(&mut |_, _| false), Err(Error::Interrupted)));
}

#[test]
fn batches_of_similar_aspect_ratios_waste_less_padding() {
    let (_made, dataset) = Made::new(false, None);
    let elements = |sampler: Sampler| {
        let cut = Cut { batch_size: 3, drop_last: false, seed: SEED };
        let sampling = Sampling::of(&sampler, &*dataset).unwrap();
        let recipe = "[[operation]]\nname = 'decode'\n";
        let job = job(&dataset, recipe, &["image"], pad(1, 0.0));
        let job = Job { batching: Batching::alone(cut, sampling), ..job };
        let (mut preparer, mut memory) = (preparer(&job).unwrap(), memory(&job));
        let batches = 0..u32::try_from(job.batching.batches()).unwrap();
        let bytes = batches.map(|batch| {
            preparer.prepare(0, batch, &mut memory, &mut |_| true).unwrap().layout.bytes()
        });
        bytes.sum::<u64>()
    };
    let grouped = AspectRatio { factor: 1, columns: None, shuffle: false };
    let sequential = meetpoint_format::sampler::Sequential;
    assert!(elements(grouped.into()) < elements(sequential.into()));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(40))]

    /// No picture is larger, or smaller, than the recipe says before it is decoded.
    #[test]
    fn pictures_are_within_the_sizes_of_their_recipe(
        height in 1..60_u32, width in 1..60_u32, seed: u64, which in 0..9_usize,
    ) {
        let operations = [
            "name = 'random_shortest_size'\nmin_size = [5, 9]",
            "name = 'random_shortest_size'\nmin_size = [5, 9]\nmax_size = 12",
            "name = 'random_resize'\nmin_size = 4\nmax_size = 9",
            "name = 'scale_jitter'\ntarget_size = [20, 10]",
            "name = 'random_zoom_out'\nside_range = [1.0, 2.5]",
            "name = 'random_rotation'\ndegrees = 60\nexpand = true",
            "name = 'pad'\npadding = [1, 2, 3, 4]",
            "name = 'resize'\nsize = 8\nmax_size = 15",
            "name = 'random_choice'\n\
             operations = [{ name = 'pad', padding = 2 }, { name = 'center_crop', size = 7 }]",
            "name = 'random_apply'\nprobability_is_default = 0",
        ];
        let operation = operations[which];
        let second = "[[operation]]\nname = 'random_shortest_size'\nmin_size = [6]\n";
        for rest in ["", second] {
            let first = "[[operation]]\nname = 'decode'\n";
            let text = format!("{first}[[operation]]\n{operation}\n{rest}");
            let Ok(recipe) = Recipe::from_toml(&text) else { continue };
            let mut bytes = Vec::new();
            let mut encoder = png::Encoder::new(&mut bytes, width, height);
            encoder.set_color(png::ColorType::Grayscale);
            encoder.set_depth(png::BitDepth::Eight);
            let pixels = vec![9; (width * height) as usize];
            encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
            let mut preparer = meetpoint_kernels::SamplePreparer::new(&recipe, Cpu::detect());
            let id = SampleId { seed, epoch: 0, sample: 1 };
            // Some pictures get no pixels, or too many.
            let Ok(tensor) = preparer.prepare_tensor((&bytes[..]).into(), id) else { continue };
            let sizes = recipe.sizes(Some((height, width)));
            let (high, wide) = (tensor.spec.height, tensor.spec.width);
            let (heights, widths) =
                (sizes.least.0..=sizes.most.0, sizes.least.1..=sizes.most.1);
            proptest::prop_assert!(heights.contains(&high), "{sizes:?} {high}");
            proptest::prop_assert!(widths.contains(&wide), "{sizes:?} {wide}");
            let without = recipe.sizes(None);
            proptest::prop_assert!(high <= without.most.0 && wide <= without.most.1);
        }
    }
}
