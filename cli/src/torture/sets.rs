//! The datasets of a campaign: small generated pictures, packed in different ways.

use super::choices::Choices;
use crate::surface::Stop;
use crate::surface::failure::Interrupted;
use anyhow::Context;
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use meetpoint_datasets::{Error, JpegOptions, PackOptions, pack};
use meetpoint_format::dataset::Form;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Samples of each dataset.
pub(super) const SAMPLES: u32 = 36;
/// Bytes after which a part of the dataset with many parts ends.
const PART_BYTES: u64 = 24 << 10;
/// Class folders.
const CLASSES: [&str; 3] = ["alder", "birch", "cedar"];

/// One of the datasets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SetName {
    /// JPEG files in one part.
    OnePart,
    /// JPEG files in at least six parts.
    ManyParts,
    /// Coefficients in one part.
    Coefficients,
}

impl SetName {
    const ALL: [Self; 3] = [Self::OnePart, Self::ManyParts, Self::Coefficients];

    fn as_str(self) -> &'static str {
        match self {
            Self::OnePart => "one",
            Self::ManyParts => "many",
            Self::Coefficients => "coefficients",
        }
    }

    /// Its folder, below that of all sets.
    pub(super) fn folder(self, sets: &Path) -> PathBuf {
        sets.join(format!("{}.set", self.as_str()))
    }
}

/// Generates the pictures of a seed and packs them into `folder/sets`, which is returned.
pub(super) fn make(folder: &Path, seed: u64, stop: &Stop) -> anyhow::Result<PathBuf> {
    let pictures = folder.join("pictures");
    for number in 0..SAMPLES {
        stop.check()?;
        let class = pictures.join(CLASSES[number as usize % CLASSES.len()]);
        let path = class.join(format!("{number:03}.jpg"));
        let made = std::fs::create_dir_all(&class);
        made.and_then(|()| std::fs::write(&path, picture(seed, number)))
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    let sets = folder.join("sets");
    std::fs::create_dir_all(&sets).context("failed to create the folder of the datasets")?;
    for name in SetName::ALL {
        let mut options = PackOptions { threads: 1, stop: stop.flag(), ..PackOptions::default() };
        match name {
            SetName::OnePart => {}
            SetName::ManyParts => options.part_bytes_target = PART_BYTES,
            SetName::Coefficients => {
                options.jpeg = JpegOptions { form: Form::Fast, ..options.jpeg };
            }
        }
        pack(&pictures, &name.folder(&sets), &options, &mut |_| {}).map_err(
            |error| -> anyhow::Error {
                match error {
                    Error::Interrupted => Interrupted.into(),
                    error => error.into(),
                }
            },
        )?;
    }
    Ok(sets)
}

/// A small picture with structure and noise; a function of its arguments.
fn picture(seed: u64, number: u32) -> Vec<u8> {
    let mut choices = Choices::new(seed, u64::from(number) | 1 << 40);
    let (width, height) = (choices.small(64, 150), choices.small(64, 150));
    let tint = [choices.small(1, 7), choices.small(1, 7), choices.small(1, 7)];
    let (mut pixels, mut noise) = (Vec::new(), choices.between(1, u64::MAX));
    for y in 0..height {
        for x in 0..width {
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            let grain = (noise >> 60) as u32;
            let shades = [x * tint[0], y * tint[1], (x + y) * tint[2]];
            pixels.extend(shades.map(|shade| ((shade & 0xe0) | grain) as u8));
        }
    }
    let mut jpeg = Vec::new();
    let mut encoder = Encoder::new(&mut jpeg, 90);
    if choices.is_one_of_100(30) {
        encoder.set_sampling_factor(SamplingFactor::F_2_2);
    }
    let (width, height) = (width as u16, height as u16);
    encoder.encode(&pixels, width, height, ColorType::Rgb).expect("a small picture encodes");
    jpeg
}

/// Copies the files of a dataset into a new folder, which the job may damage.
pub(super) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let copied = || -> std::io::Result<()> {
        std::fs::create_dir_all(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
        Ok(())
    };
    copied().with_context(|| format!("failed to copy {} to {}", from.display(), to.display()))
}

/// The parts of a dataset, in order.
pub(super) fn parts(set: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(set);
    let entries = entries.with_context(|| format!("failed to list {}", set.display()))?;
    let mut parts: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    parts.retain(|path| path.extension().is_some_and(|extension| extension == "arrow"));
    parts.sort();
    Ok(parts)
}
