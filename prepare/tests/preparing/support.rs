//! A dataset of small pictures in two parts, and the expected batches.

use meetpoint_format::batching::{BatchOptions, Batching};
use meetpoint_format::dataset::{
    Columns, EntryPointSpacing, EntryPointsStored, Form, MANIFEST_NAME, Manifest, PartEncoder,
    PartEntry, Provenance, Row, Stored, part_name,
};
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::Sampling;
use meetpoint_kernels::{Cpu, SampleId, SamplePreparer, jpeg};
use meetpoint_prepare::{CpuPreparer, Dataset, Job, OnError, Preparer};
use meetpoint_storage::memory::{self, MemoryEngine, MemoryFiles};
use meetpoint_storage::{
    Access, Completion, Counters, Engine, Error as StorageError, FileId, Limits, RefusedRequest,
    Request,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const RECIPE: &str = r#"
[[operation]]
name = "decode"
[[operation]]
name = "random_resized_crop"
size = 16
[[operation]]
name = "random_horizontal_flip"
"#;
pub(crate) const SEED: u64 = 42;
pub(crate) const SAMPLES: u64 = 23;

pub(crate) fn picture(sample: u64) -> Vec<u8> {
    let (width, height) = (20 + sample as u16, 40 - sample as u16);
    let pixels: Vec<u8> = (0..usize::from(width) * usize::from(height) * 3)
        .map(|index| ((index as u64 * 5) ^ (sample * 29)) as u8)
        .collect();
    let mut bytes = Vec::new();
    jpeg_encoder::Encoder::new(&mut bytes, 90)
        .encode(&pixels, width, height, jpeg_encoder::ColorType::Rgb)
        .unwrap();
    bytes
}

/// Writes a dataset of two parts; `change` may damage an image before it is written.
pub(crate) fn write(folder: &Path, change: impl Fn(u64, &mut Vec<u8>)) -> Arc<Dataset> {
    write_labelled(folder, change, (0, |_| None))
}

/// The same, with a given number of labels and the label of each sample.
pub(crate) fn write_labelled(
    folder: &Path,
    change: impl Fn(u64, &mut Vec<u8>),
    (labels, label): (u32, impl Fn(u64) -> Option<i32>),
) -> Arc<Dataset> {
    let mut parts = Vec::new();
    let (mut image_bytes, mut image_bytes_max) = (0, 0);
    let (mut samples, mut entry_points_bytes) = (0, 0);
    for (index, range) in [0..10, 10..SAMPLES].into_iter().enumerate() {
        let mut encoder = PartEncoder::new(Vec::new(), Arc::new(Columns::images())).unwrap();
        for sample in range {
            let mut image = picture(sample);
            let entry_points = jpeg::entry_points(&image, jpeg::Spacing::McuRow).unwrap();
            change(sample, &mut image);
            let entry_points = entry_points.filter(|_| jpeg::form_of(&image).is_none());
            samples += u64::from(entry_points.is_some());
            entry_points_bytes += entry_points.as_ref().map_or(0, |bytes| bytes.len() as u64);
            image_bytes += image.len() as u64;
            image_bytes_max = image_bytes_max.max(image.len() as u64);
            let key = format!("{sample}.jpg");
            let label = label(sample);
            encoder.push(Row { key, image, label, entry_points, extra: None }).unwrap();
        }
        let part = encoder.finish().unwrap();
        std::fs::write(folder.join(part_name(index)), &part.sink).unwrap();
        parts.push(PartEntry {
            file: part_name(index),
            samples: part.samples,
            bytes: part.bytes,
            tail_crc32c: part.tail_crc32c,
            sha256: "0".repeat(64),
        });
    }
    let manifest = Manifest {
        samples: SAMPLES,
        image_bytes,
        image_bytes_max,
        labels: (0..labels).map(|label| label.to_string()).collect(),
        parts,
        stored: Some(Stored {
            // Files are accepted in any form.
            form: Form::Compact,
            entry_points: EntryPointsStored {
                spacing: Some(EntryPointSpacing::McuRow),
                samples,
                bytes: entry_points_bytes,
            },
            ..Stored::default()
        }),
        ..Manifest::new(
            &Columns::images(),
            Provenance {
                tool: "test".into(),
                source: "none".into(),
                skipped: 0,
                options: BTreeMap::new(),
                ..Provenance::default()
            },
        )
    };
    std::fs::write(folder.join(MANIFEST_NAME), manifest.to_json()).unwrap();
    Arc::new(Dataset::open(folder).unwrap())
}

/// Changes a byte of a sample's image on disk, without updating its checksum.
pub(crate) fn damage(dataset: &Dataset, sample: u64) {
    let location = dataset.locate(sample).unwrap();
    let path = dataset.part_path(location.part);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[usize::try_from(location.offset + location.bytes / 2).unwrap()] ^= 4;
    std::fs::write(path, bytes).unwrap();
}

pub(crate) fn job(dataset: &Arc<Dataset>, batch_size: u32) -> Job {
    let recipe = Arc::new(Recipe::from_toml(RECIPE).unwrap());
    let batch_options = BatchOptions { batch_size, drop_last: false, seed: SEED };
    let batching = Batching::alone(batch_options, Sampling::shuffled(SAMPLES));
    // The other columns have tests of their own.
    let columns = vec!["image".to_owned()].into();
    let on_error = OnError::default();
    Job { dataset: Arc::clone(dataset), recipe, batching, on_error, columns }
}

/// The expected batch: each sample prepared alone.
pub(crate) fn expected(job: &Job, epoch: u32, batch: u32) -> Vec<u8> {
    let mut preparer = SamplePreparer::new(&job.recipe, Cpu::Portable);
    let bytes = job.recipe.output().unwrap().bytes();
    let order = job.batching.order(epoch);
    let mut out = Vec::new();
    for sample in job.batching.samples_of(&order, batch) {
        let start = out.len();
        out.resize(start + bytes, 0);
        let id = SampleId { seed: SEED, epoch, sample };
        preparer.prepare((&picture(sample)).into(), id, &mut out[start..], &mut || ()).unwrap();
    }
    out
}

/// The parts of a dataset in memory, under the names that they have on disk.
pub(crate) fn in_memory(dataset: &Dataset) -> MemoryFiles {
    let files = MemoryFiles::default();
    for part in 0..dataset.manifest().parts.len() {
        let path = dataset.part_path(part);
        files.put(&path, std::fs::read(&path).unwrap());
    }
    files
}

pub(crate) fn shuffled(dataset: &Dataset, depth: usize, seed: u64) -> Box<dyn Engine> {
    let direct = seed.is_multiple_of(2);
    Box::new(MemoryEngine::new(in_memory(dataset), depth, direct, memory::Order::Shuffled(seed)))
}

pub(crate) fn prepare_all(job: &Job, engine: Box<dyn Engine>) {
    let mut preparer = CpuPreparer::new(job.clone(), engine, Cpu::detect()).unwrap();
    let bytes = preparer.spec().bytes() * job.batching.batch_size() as usize;
    for epoch in 0..2 {
        for batch in 0..u32::try_from(job.batching.batches()).unwrap() {
            let mut out = vec![0x77; bytes + 5];
            let prepared = preparer.prepare(epoch, batch, &mut out, &mut |_| true).unwrap();
            let expected = expected(job, epoch, batch);
            assert!(out[..expected.len()] == expected, "epoch {epoch} batch {batch} differs");
            assert!(out[expected.len()..].iter().all(|byte| *byte == 0x77), "wrote too far");
            assert_eq!(prepared.stats.samples, job.batching.batch_len(batch));
        }
    }
}

/// An engine that refuses every request.
pub(crate) struct NoRoom;

impl Engine for NoRoom {
    fn name(&self) -> &'static str {
        "no room"
    }
    fn limits(&self) -> Limits {
        Limits { depth: 0 }
    }
    fn open(&mut self, _: &Path, _: Access) -> Result<FileId, StorageError> {
        Ok(FileId(0))
    }
    fn adopt(&mut self, _: std::fs::File, _: &str) -> Result<FileId, StorageError> {
        Ok(FileId(0))
    }
    fn close(&mut self, _: FileId) {}
    fn is_direct(&self, _: FileId) -> bool {
        false
    }
    fn file_bytes(&self, _: FileId) -> Result<u64, StorageError> {
        Ok(0)
    }
    fn submit(&mut self, request: Request) -> Result<(), Box<RefusedRequest>> {
        Err(Box::new(RefusedRequest { request, error: StorageError::QueueFull { depth: 0 } }))
    }
    fn wait(&mut self, _: Duration, _: &mut Vec<Completion>) -> Result<usize, StorageError> {
        Ok(0)
    }
    fn in_flight(&self) -> usize {
        0
    }
    fn counters(&self) -> Counters {
        Counters::default()
    }
}
