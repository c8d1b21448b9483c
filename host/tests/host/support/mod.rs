//! A tiny dataset of seeded JPEGs, and functions that run epochs over it.

pub(crate) mod device;
pub(crate) mod relay;

use arrow_array::RecordBatch;
use jpeg_encoder::{ColorType, Encoder};
use meetpoint_format::dataset::{
    Columns, MANIFEST_NAME, Manifest, PartEncoder, PartEntry, Provenance, Row, Stored, part_name,
};
use meetpoint_format::recipe::Recipe;
use meetpoint_host::stats::{EpochStats, EventKind};
use meetpoint_host::{Batch, Epoch, LoaderConfig};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// The content of a batch, copied before its memory is returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BatchCopy {
    pub(crate) index: u32,
    pub(crate) shape: Vec<u32>,
    pub(crate) samples: Vec<u64>,
    pub(crate) labels: Vec<Option<i32>>,
    pub(crate) bytes: Vec<u8>,
    /// The values of each column, by sample.
    pub(crate) columns: Vec<(String, Vec<Vec<u8>>)>,
}

impl From<&Batch> for BatchCopy {
    fn from(batch: &Batch) -> Self {
        Self {
            index: batch.index(),
            shape: batch.shape().to_vec(),
            samples: batch.samples().to_vec(),
            labels: batch.labels().to_vec(),
            bytes: batch.bytes().to_vec(),
            columns: batch.columns().iter().map(|column| values(batch, &column.name)).collect(),
        }
    }
}

fn values(batch: &Batch, name: &str) -> (String, Vec<Vec<u8>>) {
    let column = batch.column(name).unwrap();
    let values = (0..column.samples()).map(|sample| column.value(sample).unwrap().to_vec());
    (name.to_owned(), values.collect())
}

/// Crops and flips at random, to 16 by 16.
pub(crate) fn recipe() -> Arc<Recipe> {
    let text = "[[operation]]\nname = \"decode\"\n\
                [[operation]]\nname = \"random_resized_crop\"\nsize = 16\n\
                [[operation]]\nname = \"random_horizontal_flip\"\n";
    Arc::new(Recipe::from_toml(text).unwrap())
}

/// Views of different sizes in two columns, of a whole picture.
pub(crate) fn views() -> Arc<Recipe> {
    let text = "operation = [{name = 'decode'}, {name = 'resize', size = [20, 22]}]
        [[views]]
        column = 'global'
        operations = [{name = 'random_resized_crop', size = 14}, {name = 'random_solarize', \
        threshold = 128}]
        [[views]]
        column = 'local'
        count = 3
        operations = [{name = 'random_crop', size = 7}, {name = 'random_horizontal_flip'}]";
    Arc::new(Recipe::from_toml(text).unwrap())
}

/// A folder with a dataset of `samples` pictures in two parts and two labels.
pub(crate) fn dataset(samples: u32) -> tempfile::TempDir {
    dataset_in_parts(samples, 2)
}

/// The same in a given number of parts, whose sizes differ by at most one.
pub(crate) fn dataset_in_parts(samples: u32, parts: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    pack_in_parts(folder.path(), (0..samples).map(picture).collect(), parts);
    folder
}

/// A configuration over a dataset, batches of 4.
pub(crate) fn config(dataset: &Path) -> LoaderConfig {
    let mut config = LoaderConfig::new(dataset, recipe(), 4);
    config.seed = 11;
    config.memory_budget_bytes = 64 << 20;
    config.verify_samples = true;
    config
}

/// Consumes the rest of an epoch.
pub(crate) fn consume(mut epoch: Epoch<'_>) -> (Vec<BatchCopy>, EpochStats) {
    let mut seen = Vec::new();
    while let Some(batch) = epoch.next_batch().unwrap() {
        seen.push(BatchCopy::from(&batch));
    }
    (seen, epoch.finish())
}

/// In the order of their indices.
pub(crate) fn sorted(mut seen: Vec<BatchCopy>) -> Vec<BatchCopy> {
    seen.sort_by_key(|batch| batch.index);
    seen
}

/// A JPEG with stripes whose direction and colour depend on the number.
pub(crate) fn picture(number: u32) -> Vec<u8> {
    let (width, height) = (24 + number % 17, 20 + number % 11);
    let pixel = |x: u32, y: u32| {
        let phase = x * (number % 5 + 1) + y * (number % 3 + 1) + number;
        [phase * 7, phase * 3 + 40, number * 29].map(|channel| (channel % 256) as u8)
    };
    let pixels: Vec<u8> =
        (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y))).collect();
    let mut encoded = Vec::new();
    let size = [width, height].map(|side| u16::try_from(side).unwrap());
    Encoder::new(&mut encoded, 90).encode(&pixels, size[0], size[1], ColorType::Rgb).unwrap();
    encoded
}

/// A dataset of baseline JPEGs, of which every third is progressive, and one is damaged.
pub(crate) fn mixed() -> tempfile::TempDir {
    let progressive = |number: u32| {
        let mut encoded = Vec::new();
        let mut encoder = Encoder::new(&mut encoded, 90);
        encoder.set_progressive(true);
        let pixels: Vec<u8> = (0..24 * 20 * 3).map(|at| (at * (number + 3)) as u8).collect();
        encoder.encode(&pixels, 24, 20, ColorType::Rgb).unwrap();
        encoded
    };
    let image = |number| match number % 3 {
        2 => progressive(number),
        _ => picture(number),
    };
    let mut images: Vec<Vec<u8>> = (0..16).map(image).collect();
    // Its headers are sound, so a GPU takes it.
    let half = images[4].len() / 2;
    // Ones alone are not a Huffman code.
    images[4][half..half + 32].fill(0xfe);
    let folder = tempfile::tempdir().unwrap();
    pack(folder.path(), images);
    folder
}

/// Writes a dataset of these images in two parts.
pub(crate) fn pack(folder: &Path, images: Vec<Vec<u8>>) {
    pack_in_parts(folder, images, 2);
}

fn pack_in_parts(folder: &Path, images: Vec<Vec<u8>>, part_count: usize) {
    pack_with(folder, images, part_count, None);
}

/// Writes a dataset whose samples have the rows of `further` as further columns.
pub(crate) fn pack_with(
    folder: &Path,
    images: Vec<Vec<u8>>,
    part_count: usize,
    further: Option<&Arc<RecordBatch>>,
) {
    let columns = further.map_or_else(Columns::images, |further| Columns {
        extra: further.schema(),
        ..Columns::images()
    });
    let columns = Arc::new(columns);
    let samples = images.len();
    let end_of = |part: usize| (samples * part).div_ceil(part_count);
    let mut parts = Vec::new();
    let (mut image_bytes, mut image_bytes_max) = (0, 0);
    let mut numbered = images.into_iter().enumerate();
    for part in 0..part_count {
        let count = end_of(part + 1) - end_of(part);
        if count == 0 {
            continue;
        }
        let mut encoder = PartEncoder::new(Vec::new(), Arc::clone(&columns)).unwrap();
        for (number, image) in numbered.by_ref().take(count) {
            image_bytes += image.len() as u64;
            image_bytes_max = image_bytes_max.max(image.len() as u64);
            let label = i32::try_from(number % 2).unwrap();
            let (key, label) = (format!("{number}.jpg"), Some(label));
            let extra = further.map(|further| (Arc::clone(further), number));
            encoder.push(Row { key, image, label, entry_points: None, extra }).unwrap();
        }
        let part_written = encoder.finish().unwrap();
        let bytes = part_written.sink;
        let sha256 = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut file = std::fs::File::create(folder.join(part_name(part))).unwrap();
        file.write_all(&bytes).unwrap();
        // As after `pack`: direct reads need not wait until pages are written back.
        file.sync_data().unwrap();
        parts.push(PartEntry {
            file: part_name(part),
            samples: part_written.samples,
            bytes: part_written.bytes,
            tail_crc32c: part_written.tail_crc32c,
            sha256,
        });
    }
    let manifest = Manifest {
        samples: samples as u64,
        image_bytes,
        image_bytes_max,
        labels: vec!["even".to_owned(), "odd".to_owned()],
        parts,
        stored: Some(Stored::default()),
        ..Manifest::new(
            &columns,
            Provenance {
                tool: "tests".to_owned(),
                source: "seeded stripes".to_owned(),
                skipped: 0,
                options: BTreeMap::new(),
                ..Provenance::default()
            },
        )
    };
    std::fs::write(folder.join(MANIFEST_NAME), manifest.to_json()).unwrap();
}

/// The faults of an epoch. On a slow machine, the host may prepare the device's last batches
/// sooner; that is not a fault.
pub(crate) fn events_of(stats: &EpochStats) -> Vec<EventKind> {
    let kinds = stats.events.iter().map(|event| event.kind.clone());
    kinds.filter(|it| !matches!(it, EventKind::BatchesReclaimed { silent_ns: None, .. })).collect()
}
