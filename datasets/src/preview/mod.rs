//! A contact sheet: the results of a recipe for some samples, as the model sees them.
//!
//! Samples are prepared as in training, including operations on batches and targets. Each row of
//! the sheet is a sample: the picture as it is stored, then one result for each epoch, which
//! consists of several pictures where the recipe has views or crops one picture several times.
//! Normalisation is undone; boxes, points and masks are drawn. In reading order: this file
//! (preparing), `tile` (a tensor as a picture), `marks` (targets), `arrangement` (several pictures
//! of a sample), `sheet` (tiles on a canvas).

mod arrangement;
mod error;
mod marks;
mod sheet;
mod tile;

pub use error::PreviewError;

use arrangement::{Arrangement, Block};
use image::RgbImage;
use image::imageops::replace;
use meetpoint_format::batching::{BatchOptions, Batching};
use meetpoint_format::column::{
    BatchLayout, Collate, Column, ColumnBytes, ColumnKind, ColumnNames, Pad,
};
use meetpoint_format::dataset::ContentKind;
use meetpoint_format::recipe::{Layout, Recipe, TensorSpec};
use meetpoint_format::sampler::{Indices, Sampler, Sampling};
use meetpoint_kernels::{Cpu, Interrupt, Picture};
use meetpoint_prepare::{
    CpuPreparer, Dataset, DecodeMemory, Error as PrepareError, Job, OnError, Preparer,
};
use meetpoint_storage::{EngineKind, open_engine};
use sheet::Sheet;
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of samples on a sheet.
pub const SAMPLES_MAX: u32 = 64;
/// Maximum number of results per sample.
pub const DRAWS_MAX: u32 = 32;
/// Width and height of a tile if pictures have different sizes.
const TILE: (u32, u32) = (256, 256);
/// Reads in flight.
const READ_DEPTH: usize = 8;

/// What is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewOptions {
    /// Number of samples, spread over the dataset; fewer if it has fewer.
    pub samples: u32,
    /// Number of results per sample, one per epoch.
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
    /// Index and key of the sample in each row.
    pub rows: Vec<(u64, String)>,
    /// The epoch of each column after the first, which holds the pictures as they are stored.
    pub epochs: Range<u32>,
}

/// Draws a contact sheet of a recipe's results for samples of a dataset.
pub fn preview(
    dataset: &Arc<Dataset>,
    recipe: &Arc<Recipe>,
    options: &PreviewOptions,
) -> Result<Preview, PreviewError> {
    let PreviewOptions { samples, draws, seed, epoch } = *options;
    check(dataset, options)?;
    let chosen = spread(dataset.len(), u64::from(samples));
    let epochs = epoch..epoch + draws;
    // Batches of one sample save memory; operations on batches need all samples at once.
    let batch_size = if recipe.split().1.is_empty() { 1 } else { chosen.len() };
    let mut preparer = preparer(dataset, recipe, (&chosen, batch_size), seed)?;
    let columns = Arc::clone(preparer.columns());
    let results = Results::of(recipe, preparer.spec())?;
    let mut sheet = Sheet::new(chosen.len(), draws as usize, results.first, results.places.size)?;
    let mut memory = Vec::new();
    if !is_variable(recipe) {
        let longest = dataset.value_bytes_max(&columns, (recipe, &[]), &Interrupt::default())?;
        let count = u32::try_from(batch_size).expect("at most SAMPLES_MAX");
        let bytes = BatchLayout::bytes_max(&columns, count, &longest);
        memory.resize(usize::try_from(bytes).map_err(|_| PreviewError::TooLarge)?, 0_u8);
    }
    let (decode_memory, mut rows) = (DecodeMemory::of_this_process(), Vec::new());
    for (row, &sample) in chosen.iter().enumerate() {
        let key = dataset.key(sample)?;
        let (picture, _reserved) = dataset.decode_picture(sample, 1, &decode_memory)?;
        let Picture { width, height, pixels } = picture;
        let stored = image::RgbImage::from_raw(width, height, pixels);
        sheet.put(row, 0, &stored.expect("a picture has three bytes for each pixel"));
        rows.push((sample, key));
    }
    let batches = || (0..).zip((0..chosen.len()).step_by(batch_size));
    let draws = (1..).zip(epochs.clone());
    let all = draws.flat_map(|draw| batches().map(move |batch| (draw, batch)));
    for ((column, epoch), (batch, first)) in all {
        let prepared = preparer.prepare(epoch, batch, &mut memory, &mut |_| true)?;
        let value = |at: usize, row: usize| {
            value_of(&columns.as_slice()[at], (at, &prepared.layout), &memory, row)
                .ok_or(PreviewError::TooLarge)
        };
        let axes = |at: usize| prepared.layout.axes(&columns, at);
        for row in 0..batch_size {
            let (mut pictures, mut targets) = (Vec::new(), Vec::new());
            for (at, declared) in columns.as_slice().iter().enumerate() {
                let bytes = value(at, row)?;
                if declared.source.is_picture() {
                    pictures.push((bytes, axes(at)));
                } else if let Some(target) =
                    recipe.targets().iter().find(|it| it.column == declared.name)
                {
                    targets.push((target, kind_of_batch(&declared.kind, axes(at)), bytes));
                }
            }
            let draw = |picture: &mut RgbImage| {
                for (target, kind, bytes) in &targets {
                    marks::draw(picture, results.scale, (target, kind), bytes);
                }
            };
            sheet.put(first + row, column, &results.draw(&pictures, &draw));
        }
    }
    let (png, size) = sheet.finish()?;
    Ok(Preview { png, size, rows, epochs })
}

/// How the pictures of one sample are drawn.
struct Results {
    /// The columns with pictures: the shape of each picture, and the steps to undo.
    columns: Vec<(TensorSpec, tile::Undo)>,
    /// Integer magnification of a pixel on the sheet.
    scale: u32,
    /// Positions of the pictures in a tile; a picture of variable size is fitted into one tile.
    places: Arrangement,
    /// Width of the tile of the stored picture: that of the largest picture.
    first: u32,
    is_variable: bool,
}

impl Results {
    /// For a recipe whose pictures have the shape `spec`, except for a size that is not fixed.
    fn of(recipe: &Recipe, spec: TensorSpec) -> Result<Self, PreviewError> {
        let mut columns = Vec::new();
        let mut counts = Vec::new();
        let is_variable = is_variable(recipe);
        for images in recipe.images() {
            let of_picture = match is_variable {
                true => TensorSpec { width: TILE.0, height: TILE.1, ..spec },
                false => images.spec().ok_or(PrepareError::NoFixedShape)?,
            };
            let operations = match recipe.views() {
                [] => recipe.operations(),
                _ => &images.operations,
            };
            columns.push((of_picture, tile::Undo::of(operations)));
            counts.push(u32::try_from(images.pictures()).map_err(|_| PreviewError::TooLarge)?);
        }
        let largest = |side: fn(&TensorSpec) -> u32| {
            columns.iter().map(|(spec, _)| side(spec)).max().unwrap_or(1)
        };
        let (width, height) = (largest(|spec| spec.width), largest(|spec| spec.height));
        let scale = sheet::scale(width.max(height));
        let blocks: Option<Vec<Block>> = columns
            .iter()
            .zip(counts)
            .map(|((spec, _), count)| {
                let size = (spec.width.checked_mul(scale)?, spec.height.checked_mul(scale)?);
                Some(Block { count, size })
            })
            .collect();
        let places = blocks.and_then(|blocks| Arrangement::of(&blocks));
        let places = places.ok_or(PreviewError::TooLarge)?;
        Ok(Self { columns, scale, places, first: width.saturating_mul(scale), is_variable })
    }

    /// Draws all pictures of a sample from the bytes and axes of each column; `draw` adds the
    /// targets.
    fn draw(&self, values: &[(&[u8], &[u32])], draw: &dyn Fn(&mut RgbImage)) -> RgbImage {
        if let (true, [(spec, undo)], [(bytes, axes)]) =
            (self.is_variable, &self.columns[..], values)
        {
            let mut picture =
                tile::enlarged(&undo.picture(bytes, &of_batch(*spec, axes)), self.scale);
            draw(&mut picture);
            return picture;
        }
        let pictures = self.columns.iter().zip(values).flat_map(|((spec, undo), (bytes, _))| {
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

/// Whether the pictures of a sample can differ in size.
fn is_variable(recipe: &Recipe) -> bool {
    recipe.gives_one_picture() && recipe.output().is_none()
}

/// The shape of a picture with the axes of a batch.
fn of_batch(spec: TensorSpec, axes: &[u32]) -> TensorSpec {
    let (height, width) = match (spec.layout, axes) {
        (Layout::Nhwc, &[height, width, _]) | (Layout::Nchw, &[_, height, width]) => {
            (height, width)
        }
        (Layout::Nhwc | Layout::Nchw | Layout::Nct | Layout::Nt | Layout::Ntc, _) => {
            (spec.height, spec.width)
        }
    };
    TensorSpec { height, width, ..spec }
}

/// The kind of a column with the axes of a batch, without padding.
fn kind_of_batch(kind: &ColumnKind, axes: &[u32]) -> ColumnKind {
    match kind {
        ColumnKind::Padded { element, .. } => {
            ColumnKind::Tensor { element: *element, shape: axes.to_vec() }
        }
        ColumnKind::PaddedRagged { element, .. } => {
            ColumnKind::Ragged { element: *element, inner: axes.to_vec() }
        }
        ColumnKind::Tensor { .. }
        | ColumnKind::Ragged { .. }
        | ColumnKind::Bytes
        | ColumnKind::Text
        | ColumnKind::Shaped { .. } => kind.clone(),
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

/// `count` evenly spaced samples, or all.
fn spread(samples: u64, count: u64) -> Vec<u64> {
    let count = count.min(samples);
    (0..count)
        .map(|n| {
            u64::try_from(u128::from(n) * u128::from(samples) / u128::from(count))
                .expect("below the number of samples")
        })
        .collect()
}

/// A preparer of these samples, in batches of a given size.
fn preparer(
    dataset: &Arc<Dataset>,
    recipe: &Arc<Recipe>,
    (samples, batch_size): (&[u64], usize),
    seed: u64,
) -> Result<CpuPreparer, PreviewError> {
    let listed = Sampler::Indices(Indices { indices: samples.into(), shuffle: false });
    let sampling = Sampling::of(&listed, &**dataset)?;
    let batch_size = u32::try_from(batch_size).expect("at most SAMPLES_MAX");
    let batching = Batching::alone(BatchOptions { batch_size, drop_last: false, seed }, sampling);
    let mut names: Vec<String> = recipe.images().iter().map(|it| it.column.clone()).collect();
    names.extend(recipe.targets().iter().map(|target| target.column.clone()));
    let collate = match is_variable(recipe) {
        true => Collate::Pad(Pad::default()),
        false => Collate::Stack,
    };
    let job = Job {
        dataset: Arc::clone(dataset),
        recipe: Arc::clone(recipe),
        batching,
        on_error: OnError::default(),
        columns: ColumnNames::from(names).collated(collate),
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
