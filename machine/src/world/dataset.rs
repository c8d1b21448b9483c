//! The dataset of all trainings, and the expected bytes of every prepared sample.

use super::sizes::{EPOCHS_MAX, JOB_SEEDS, SAMPLES};
use anyhow::Context;
use jpeg_encoder::{ColorType, Encoder};
use meetpoint_format::batching::{BatchOptions, Batching};
use meetpoint_format::column::ColumnNames;
use meetpoint_format::dataset::{
    Columns, MANIFEST_NAME, Manifest, PartEncoder, PartEntry, Provenance, Row, Stored, part_name,
};
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::Sampling;
use meetpoint_kernels::Cpu;
use meetpoint_prepare::{CpuPreparer, Dataset, Job, OnError, Preparer};
use meetpoint_storage::{EngineKind, open_engine};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Its parts.
const PARTS: usize = 6;

/// Crops and flips at random, to 8 by 8.
const RECIPE: &str = "[[operation]]\nname = \"decode\"\n\
                      [[operation]]\nname = \"random_resized_crop\"\nsize = 8\n\
                      [[operation]]\nname = \"random_horizontal_flip\"\n";

/// Created before the first simulation, and the same for all simulations.
pub(crate) struct Fixture {
    /// Folder of the dataset; the folder of each simulation is beside it.
    pub(crate) dataset: PathBuf,
    pub(crate) recipe: Arc<Recipe>,
    /// The bytes of each sample, by job seed, epoch and sample.
    samples: HashMap<(u64, u32, u64), Vec<u8>>,
}

impl Fixture {
    /// Writes the dataset into a folder, and prepares all its samples, alone and without faults.
    pub(crate) fn new(folder: &Path) -> anyhow::Result<Self> {
        let dataset = folder.join("data");
        std::fs::create_dir(&dataset).context("failed to create the folder of the dataset")?;
        write_dataset(&dataset)?;
        let recipe = Arc::new(Recipe::from_toml(RECIPE).context("the recipe is invalid")?);
        let mut fixture = Self { dataset, recipe, samples: HashMap::new() };
        let opened = Arc::new(Dataset::open_all(&[&fixture.dataset])?);
        for seed in 0..JOB_SEEDS {
            fixture.prepare(&opened, seed)?;
        }
        Ok(fixture)
    }

    /// Prepares each sample as a batch, so that its position in a batch has no effect.
    fn prepare(&mut self, dataset: &Arc<Dataset>, seed: u64) -> anyhow::Result<()> {
        let options = BatchOptions { batch_size: 1, drop_last: false, seed };
        let job = Job {
            dataset: Arc::clone(dataset),
            recipe: Arc::clone(&self.recipe),
            batching: Batching::alone(options, Sampling::shuffled(SAMPLES)),
            on_error: OnError::default(),
            columns: ColumnNames::of(&self.recipe),
        };
        let engine = open_engine(EngineKind::Threads, 1)?.engine;
        let mut preparer = CpuPreparer::new(job.clone(), engine, Cpu::detect())?;
        for epoch in 0..=EPOCHS_MAX {
            for batch in 0..u32::try_from(job.batching.batches())? {
                let mut memory = vec![0; 4096];
                let prepared = preparer.prepare(epoch, batch, &mut memory, &mut |_| true)?;
                let image = prepared.layout.extent(0);
                let begin = usize::try_from(image.offset)?;
                let bytes = memory[begin..begin + usize::try_from(image.bytes)?].to_vec();
                self.samples.insert((seed, epoch, prepared.samples[0]), bytes);
            }
        }
        Ok(())
    }

    /// The expected bytes of a prepared sample.
    pub(crate) fn sample(&self, job_seed: u64, epoch: u32, sample: u64) -> Option<&[u8]> {
        self.samples.get(&(job_seed, epoch, sample)).map(Vec::as_slice)
    }
}

/// Stripes whose direction and colour depend on the number.
fn picture(number: u32) -> anyhow::Result<Vec<u8>> {
    let (width, height) = (12 + number % 7, 10 + number % 5);
    let pixel = |x: u32, y: u32| {
        let phase = x * (number % 5 + 1) + y * (number % 3 + 1) + number;
        [phase * 7, phase * 3 + 40, number * 29].map(|channel| (channel % 256) as u8)
    };
    let pixels: Vec<u8> =
        (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y))).collect();
    let mut encoded = Vec::new();
    let (width, height) = (u16::try_from(width)?, u16::try_from(height)?);
    Encoder::new(&mut encoded, 90).encode(&pixels, width, height, ColorType::Rgb)?;
    Ok(encoded)
}

fn write_dataset(folder: &Path) -> anyhow::Result<()> {
    let columns = Arc::new(Columns::images());
    let count = usize::try_from(SAMPLES)?;
    let end_of = |part: usize| (count * part).div_ceil(PARTS);
    let (mut parts, mut image_bytes, mut image_bytes_max) = (Vec::new(), 0, 0);
    for part in 0..PARTS {
        let mut encoder = PartEncoder::new(Vec::new(), Arc::clone(&columns))?;
        for number in end_of(part)..end_of(part + 1) {
            let image = picture(u32::try_from(number)?)?;
            image_bytes += image.len() as u64;
            image_bytes_max = image_bytes_max.max(image.len() as u64);
            let (key, label) = (format!("{number}.jpg"), Some(i32::try_from(number % 2)?));
            encoder.push(Row { key, image, label, entry_points: None, extra: None })?;
        }
        let written = encoder.finish()?;
        let digest = Sha256::digest(&written.sink);
        std::fs::write(folder.join(part_name(part)), &written.sink)?;
        parts.push(PartEntry {
            file: part_name(part),
            samples: written.samples,
            bytes: written.bytes,
            tail_crc32c: written.tail_crc32c,
            sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        });
    }
    let provenance = Provenance {
        tool: "meetpoint-machine".to_owned(),
        source: "stripes".to_owned(),
        skipped: 0,
        options: BTreeMap::new(),
        ..Provenance::default()
    };
    let manifest = Manifest {
        samples: SAMPLES,
        image_bytes,
        image_bytes_max,
        labels: vec!["even".to_owned(), "odd".to_owned()],
        parts,
        stored: Some(Stored::default()),
        ..Manifest::new(&columns, provenance)
    };
    std::fs::write(folder.join(MANIFEST_NAME), manifest.to_json())?;
    Ok(())
}
