//! Decoding a photograph-like JPEG, and reading a sample of a dataset.

use anyhow::Context;
use meetpoint_format::dataset::{
    Columns, MANIFEST_NAME, Manifest, PartEncoder, PartEntry, Provenance, Row, Stored, part_name,
};
use meetpoint_format::recipe::Recipe;
use meetpoint_kernels::decode::{Decoder, Encoded};
use meetpoint_kernels::{Cpu, Picture, SampleId, SamplePreparer};
use meetpoint_prepare::{Dataset, MappedDataset};
use std::path::Path;
use std::sync::Arc;

const RECIPE: &str = "
    [[operation]]
    name = \"decode\"
    [[operation]]
    name = \"random_resized_crop\"
    size = 224
    [[operation]]
    name = \"random_horizontal_flip\"
    [[operation]]
    name = \"to_dtype\"
    dtype = \"float32\"
    [[operation]]
    name = \"normalize\"
    mean = [0.485, 0.456, 0.406]
    std = [0.229, 0.224, 0.225]
";

/// Samples of the dataset that is read.
const SAMPLES: u64 = 64;

/// A picture of 500 x 375 pixels with gradients, edges and grain, 4:2:0, quality 90.
fn photograph() -> anyhow::Result<Vec<u8>> {
    let (width, height) = (500_u16, 375_u16);
    let mut state = 1_u32;
    let mut pixels = Vec::with_capacity(usize::from(width) * usize::from(height) * 3);
    for y in 0..u32::from(height) {
        for x in 0..u32::from(width) {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            let grain = state >> 29;
            let edge = if (x / 60 + y / 45) % 2 == 0 { 40 } else { 0 };
            for slope in [1, 2, 3] {
                pixels.push((60 + edge + (x * slope + y) / 12 % 128 + grain) as u8);
            }
        }
    }
    let mut bytes = Vec::new();
    let mut encoder = jpeg_encoder::Encoder::new(&mut bytes, 90);
    encoder.set_sampling_factor(jpeg_encoder::SamplingFactor::F_2_2);
    encoder.encode(&pixels, width, height, jpeg_encoder::ColorType::Rgb)?;
    Ok(bytes)
}

/// Decodes the whole photograph `times` times; returns the name of the instruction set in use.
pub fn decode(times: u64) -> anyhow::Result<&'static str> {
    let (file, cpu) = (photograph()?, Cpu::detect());
    let mut decoder = Decoder::new(cpu);
    let mut picture = Picture::default();
    for _ in 0..times {
        decoder.decode_into((&file).into(), None, &mut picture)?;
    }
    Ok(cpu.name())
}

/// Decodes, crops, resizes, flips and normalises the photograph `times` times.
pub fn prepare(times: u64) -> anyhow::Result<()> {
    let file = photograph()?;
    let mut preparer = SamplePreparer::new(&Recipe::from_toml(RECIPE)?, Cpu::detect());
    // Each has different random parameters, which are the same in every run.
    for sample in 0..times {
        preparer.prepare_tensor(Encoded::from(&file), SampleId { seed: 1, epoch: 0, sample })?;
    }
    Ok(())
}

/// Reads `times` samples of a mapped dataset and verifies their checksums.
pub fn read(times: u64) -> anyhow::Result<()> {
    let folder = tempfile::tempdir().context("failed to make a folder for the dataset")?;
    let file = photograph()?;
    write_dataset(folder.path(), SAMPLES, &|_| file.clone())?;
    let mapped = MappedDataset::new(Arc::new(Dataset::open(folder.path())?), true)?;
    for number in 0..times {
        mapped.sample(number * 7 % SAMPLES)?;
    }
    Ok(())
}

/// Writes a dataset of one part with some files.
pub(crate) fn write_dataset(
    folder: &Path,
    samples: u64,
    file: &dyn Fn(u64) -> Vec<u8>,
) -> anyhow::Result<()> {
    let mut encoder = PartEncoder::new(Vec::new(), Arc::new(Columns::images()))?;
    let (mut image_bytes, mut image_bytes_max) = (0, 0);
    for number in 0..samples {
        let (key, image) = (format!("{number:05}.jpg"), file(number));
        image_bytes += image.len() as u64;
        image_bytes_max = image_bytes_max.max(image.len() as u64);
        encoder.push(Row { key, image, label: None, entry_points: None, extra: None })?;
    }
    let part = encoder.finish()?;
    std::fs::write(folder.join(part_name(0)), &part.sink)?;
    let entry = PartEntry {
        file: part_name(0),
        samples: part.samples,
        bytes: part.bytes,
        tail_crc32c: part.tail_crc32c,
        sha256: "0".repeat(64),
    };
    let provenance = Provenance {
        tool: "instructions".to_owned(),
        source: "drawn".to_owned(),
        ..Provenance::default()
    };
    let manifest = Manifest {
        samples,
        image_bytes,
        image_bytes_max,
        parts: vec![entry],
        stored: Some(Stored::default()),
        ..Manifest::new(&Columns::images(), provenance)
    };
    std::fs::write(folder.join(MANIFEST_NAME), manifest.to_json())?;
    Ok(())
}
