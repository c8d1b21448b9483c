//! A contact sheet: what a recipe makes of some samples, as the model will see them.
//!
//! Samples are prepared as in a run, operations on batches and targets included. Each row of the
//! sheet is a sample: the picture as it is stored, then one result for each epoch, which consists of
//! several pictures where the recipe has views or crops one picture several times. Normalisation is
//! undone; boxes, points and masks are drawn. In reading order: this file (preparing), `tile` (a
//! tensor as a picture), `marks` (targets), `arrangement` (several pictures of a sample), `sheet`
//! (tiles on a canvas).

mod arrangement;
mod error;
mod marks;
mod sheet;
mod tile;

pub use error::PreviewError;

use arrangement::{Arrangement, Block};
use image::RgbImage;
use image::imageops::replace;
use meetpoint_format::batching::{Batching, Cut};
use meetpoint_format::column::{BatchLayout, Column, ColumnBytes};
use meetpoint_format::dataset::ContentKind;
use meetpoint_format::recipe::{Images, Recipe, TensorSpec};
use meetpoint_format::sampler::{Indices, Sampler, Sampling};
use meetpoint_kernels::{Cpu, Interrupt, Picture, decode_into};
use meetpoint_prepare::{CpuPreparer, Dataset, Error as PrepareError, Job, OnError, Preparer};
use meetpoint_storage::{EngineKind, open_engine};
use sheet::Sheet;
use std::ops::Range;
use std::sync::Arc;

/// Most samples of a sheet.
pub const SAMPLES_MAX: u32 = 64;
/// Most results of a sample.
pub const DRAWS_MAX: u32 = 32;
/// Reads in flight.
const READ_DEPTH: usize = 8;

/// What is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewOptions {
    /// Samples, spread over the dataset; fewer where it has fewer.
    pub samples: u32,
    /// Results of each sample: one for each epoch.
    pub draws: u32,
    /// Seed of the random parameters.
    pub seed: u64,
    /// Epoch of the first result.
    pub epoch: u32,
}

impl Default for PreviewOptions {
    fn default() -> Self {
        Self { samples: 8, draws: 4, seed: 0, epoch: 0 }
    }
}

/// A contact sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The file, a PNG.
    pub png: Vec<u8>,
    /// Its width and height in pixels.
    pub size: (u32, u32),
    /// Number and key of the sample in each row.
    pub rows: Vec<(u64, String)>,
    /// The epoch of each column after the first, which holds the pictures as they are stored.
    pub epochs: Range<u32>,
}

/// Draws what a recipe makes of samples of a dataset.
pub fn preview(
    dataset: &Arc<Dataset>,
    recipe: &Arc<Recipe>,
    options: &PreviewOptions,
) -> Result<Preview, PreviewError> {
    let PreviewOptions { samples, draws, seed, epoch } = *options;
    check(dataset, options)?;
    let chosen = spread(dataset.len(), u64::from(samples));
    let epochs = epoch..epoch + draws;
    let mut preparer = preparer(dataset, recipe, &chosen, seed)?;
    let columns = Arc::clone(preparer.columns());
    let longest = dataset.value_bytes_max(&columns, (recipe, None), &Interrupt::default())?;
    let count = u32::try_from(chosen.len()).expect("at most SAMPLES_MAX");
    let bytes = BatchLayout::bytes_max(&columns, count, &longest);
    let bytes = usize::try_from(bytes).map_err(|_| PreviewError::TooLarge)?;
    let mut memory = vec![0_u8; bytes];
    let results = Results::of(recipe)?;
    let mut sheet = Sheet::new(chosen.len(), draws as usize, results.first, results.places.size);
    let mut rows = Vec::new();
    for (row, &sample) in chosen.iter().enumerate() {
        let key = dataset.key(sample)?;
        let mut stored = Picture::default();
        decode_into(&dataset.read_file(sample)?, None, &mut stored).map_err(|source| {
            PreviewError::Decode { sample, key: key.clone(), source: Box::new(source) }
        })?;
        let stored = image::RgbImage::from_raw(stored.width, stored.height, stored.pixels);
        sheet.put(row, 0, &stored.expect("a picture has three bytes for each pixel"));
        rows.push((sample, key));
    }
    for (column, epoch) in (1..).zip(epochs.clone()) {
        let prepared = preparer.prepare(epoch, 0, &mut memory, &mut |_| true)?;
        let value = |at: usize, row: usize| {
            value_of(&columns.as_slice()[at], (at, &prepared.layout), &memory, row)
                .ok_or(PreviewError::TooLarge)
        };
        for row in 0..chosen.len() {
            let (mut pictures, mut targets) = (Vec::new(), Vec::new());
            for (at, declared) in columns.as_slice().iter().enumerate() {
                let bytes = value(at, row)?;
                if declared.source.is_picture() {
                    pictures.push(bytes);
                } else if let Some(target) =
                    recipe.targets().iter().find(|it| it.column == declared.name)
                {
                    targets.push(((target, &declared.kind), bytes));
                }
            }
            let draw = |picture: &mut RgbImage| {
                for (target, bytes) in &targets {
                    marks::draw(picture, results.scale, *target, bytes);
                }
            };
            sheet.put(row, column, &results.draw(&pictures, &draw));
        }
    }
    let (png, size) = sheet.finish()?;
    Ok(Preview { png, size, rows, epochs })
}

/// How the pictures of one sample are drawn.
struct Results<'r> {
    /// The columns with pictures: their declarations, and what is undone.
    columns: Vec<(&'r Images, TensorSpec, tile::Undo)>,
    /// How many pixels of the sheet a pixel has in each direction.
    scale: u32,
    places: Arrangement,
    /// Width of the stored picture's place: that of the largest picture.
    first: u32,
}

impl<'r> Results<'r> {
    fn of(recipe: &'r Recipe) -> Result<Self, PreviewError> {
        let mut columns = Vec::new();
        for images in recipe.images() {
            let spec = images.spec().ok_or(PrepareError::NoFixedShape)?;
            let operations = match recipe.views() {
                [] => recipe.operations(),
                _ => &images.operations,
            };
            columns.push((images, spec, tile::Undo::of(operations)));
        }
        let largest = |side: fn(&TensorSpec) -> u32| {
            columns.iter().map(|(_, spec, _)| side(spec)).max().unwrap_or(1)
        };
        let (width, height) = (largest(|spec| spec.width), largest(|spec| spec.height));
        let scale = sheet::scale(width.max(height));
        let blocks: Option<Vec<Block>> = columns
            .iter()
            .map(|(images, spec, _)| {
                let size = (spec.width.checked_mul(scale)?, spec.height.checked_mul(scale)?);
                Some(Block { count: u32::try_from(images.pictures()).ok()?, size })
            })
            .collect();
        let places = blocks.and_then(|blocks| Arrangement::of(&blocks));
        let places = places.ok_or(PreviewError::TooLarge)?;
        Ok(Self { columns, scale, places, first: width.saturating_mul(scale) })
    }

    /// All pictures of a sample, from the bytes of each column; `draw` adds the targets.
    fn draw(&self, values: &[&[u8]], draw: &dyn Fn(&mut RgbImage)) -> RgbImage {
        let pictures = self.columns.iter().zip(values).flat_map(|((_, spec, undo), bytes)| {
            bytes.chunks_exact(spec.bytes()).map(move |bytes| undo.picture(bytes, spec))
        });
        let (width, height) = self.places.size;
        let mut tile = RgbImage::from_pixel(width, height, sheet::BACKGROUND);
        for (picture, (x, y)) in pictures.zip(&self.places.places) {
            let mut picture = tile::enlarged(&picture, self.scale);
            draw(&mut picture);
            replace(&mut tile, &picture, i64::from(*x), i64::from(*y));
        }
        tile
    }
}

/// The bytes of a sample's value in a column of a batch.
fn value_of<'m>(
    column: &'m Column,
    (index, layout): (usize, &BatchLayout),
    memory: &'m [u8],
    row: usize,
) -> Option<&'m [u8]> {
    ColumnBytes::new(column, index, layout, memory)?.value(row)
}

fn check(dataset: &Dataset, options: &PreviewOptions) -> Result<(), PreviewError> {
    let kind = dataset.columns().kind;
    if kind != ContentKind::Image {
        let path = dataset.path().to_path_buf();
        return Err(PreviewError::NotImages { path, kind: kind.name() });
    }
    if dataset.is_empty() {
        return Err(PreviewError::NoSamples { path: dataset.path().to_path_buf() });
    }
    for (what, value, most) in
        [("samples", options.samples, SAMPLES_MAX), ("draws", options.draws, DRAWS_MAX)]
    {
        if !(1..=most).contains(&value) {
            return Err(PreviewError::Range { what, value, most });
        }
    }
    if options.epoch.checked_add(options.draws).is_none() {
        let most = u32::MAX - options.draws;
        return Err(PreviewError::Range { what: "epoch", value: options.epoch, most });
    }
    Ok(())
}

/// `count` samples at equal distances, or all.
fn spread(samples: u64, count: u64) -> Vec<u64> {
    let count = count.min(samples);
    (0..count)
        .map(|n| {
            u64::try_from(u128::from(n) * u128::from(samples) / u128::from(count))
                .expect("below the number of samples")
        })
        .collect()
}

/// A preparer whose first batch is these samples.
fn preparer(
    dataset: &Arc<Dataset>,
    recipe: &Arc<Recipe>,
    samples: &[u64],
    seed: u64,
) -> Result<CpuPreparer, PreviewError> {
    let listed = Sampler::Indices(Indices { indices: samples.into(), shuffle: false });
    let sampling = Sampling::of(&listed, &**dataset)?;
    let batch_size = u32::try_from(samples.len()).expect("at most SAMPLES_MAX");
    let batching = Batching::alone(Cut { batch_size, drop_last: false, seed }, sampling);
    let mut names: Vec<String> = recipe.images().iter().map(|it| it.column.clone()).collect();
    names.extend(recipe.targets().iter().map(|target| target.column.clone()));
    let job = Job {
        dataset: Arc::clone(dataset),
        recipe: Arc::clone(recipe),
        batching,
        on_error: OnError::default(),
        columns: names.into(),
    };
    let engine = open_engine(EngineKind::Auto, READ_DEPTH).map_err(PrepareError::Storage)?;
    Ok(CpuPreparer::new(job, engine.engine, Cpu::detect())?)
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn samples_are_spread_over_the_dataset() {
        assert_eq!(spread(10, 4), [0, 2, 5, 7]);
        assert_eq!(spread(3, 8), [0, 1, 2]);
        assert_eq!(spread(u64::MAX, 2), [0, u64::MAX / 2]);
    }
}
