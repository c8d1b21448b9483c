//! A recipe applied to a sample.
//!
//! In reading order: `stage` (which operations go together), [`SamplePreparer`], `canvas` (where a
//! stage's rows go), `turn` (Exif orientation).

mod canvas;
mod stage;
#[cfg(test)]
mod tests;
mod turn;

use crate::decode::{Decoder, Encoded, ImageInfo, Region, decode_bytes, on_damage, probe};
use crate::planes::{Planes, Stripe};
use crate::resize::Resizer;
use crate::tensor::TensorWriter;
use crate::{Cpu, Error, Interrupt};
use canvas::{Canvas, Target};
use meetpoint_format::random::{DrawKey, Draws};
use meetpoint_format::recipe::{Decode, Operation, Recipe, TensorSpec};
use meetpoint_jpeg::{DecodeOptions, DecodeScale};
use stage::{Lying, Stage};
use turn::Turn;

/// Which sample, for the random draws: equal ids give equal tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleId {
    /// Seed of the job.
    pub seed: u64,
    /// Epoch, from 0.
    pub epoch: u32,
    /// Index in the dataset.
    pub sample: u64,
}

impl SampleId {
    /// The stream of draws of an operation.
    fn draws(self, operation: usize) -> Draws {
        let operation = u32::try_from(operation).expect("a recipe has at most 255 operations");
        let Self { seed, epoch, sample } = self;
        Draws::new(DrawKey { seed, epoch, sample, operation })
    }
}

/// A tensor of a sample whose shape may depend on the picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Shape, type and layout.
    pub spec: TensorSpec,
    /// `spec.bytes()` bytes, little-endian elements.
    pub data: Vec<u8>,
}

/// Applies one recipe to samples, one after another, reusing its scratch memory.
///
/// Crop, resize, padding and flip are one stream: only the region that is needed is decoded, its
/// rows go through a resizer as they come, and each row of the result is written straight into the
/// tensor. A recipe with several resizes runs as several such streams with pictures between them.
/// In steady state only the decoders allocate. Besides what they take, the memory is that of the
/// resizer ([`crate::resize`] says how much), some rows, and two such pictures at most.
#[derive(Debug)]
pub struct SamplePreparer {
    recipe: Recipe,
    output: Option<TensorSpec>,
    decoder: Decoder,
    interrupt: Interrupt,
    /// How the recipe decodes.
    decode: Decode,
    /// How the sample in hand is decoded and, if it is, turned.
    options: DecodeOptions,
    turn: Option<(Turn, ImageInfo)>,
    /// The stages of the sample in hand.
    stages: Vec<Stage>,
    resizer: Resizer,
    canvas: Canvas,
    writer: TensorWriter,
    /// The result of the stage before, and where that of the next one is made.
    picture: Planes,
    next: Planes,
    /// A stripe mirrored.
    mirrored: Planes,
}

/// Rows of a stripe of a picture between two stages.
const STRIPE_ROWS: usize = 16;

impl SamplePreparer {
    /// A preparer for a recipe. Panics when this machine lacks `cpu`.
    pub fn new(recipe: &Recipe, cpu: Cpu) -> Self {
        let decode = match recipe.operations().first() {
            Some(Operation::Decode(decode)) => *decode,
            _ => Decode::EXACT,
        };
        Self {
            output: recipe.output(),
            decode,
            options: DecodeOptions::default(),
            turn: None,
            decoder: Decoder::new(cpu),
            interrupt: Interrupt::default(),
            stages: Vec::new(),
            resizer: Resizer::new(cpu),
            canvas: Canvas::default(),
            writer: TensorWriter::new(recipe.operations(), cpu),
            recipe: recipe.clone(),
            picture: Planes::default(),
            next: Planes::default(),
            mirrored: Planes::default(),
        }
    }

    /// Stops preparing with [`Error::Interrupted`] when it is raised.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.decoder.set_interrupt(interrupt.clone());
        self.resizer.set_interrupt(interrupt.clone());
        self.interrupt = interrupt;
    }

    /// Most bytes of memory that preparing a sample takes for whole pictures and coefficients, by
    /// its headers. The result and some rows are not counted.
    pub fn memory_bytes(&self, encoded: &[u8]) -> Result<u64, Error> {
        let turned = match self.decode.orient {
            true => {
                let info = probe(encoded)?;
                3 * u64::from(info.width) * u64::from(info.height)
            }
            false => 0,
        };
        Ok(decode_bytes(encoded, self.decode.on_error)? + turned)
    }

    /// Frees the memory for whole pictures, which is otherwise reused.
    pub fn free_pictures(&mut self) {
        self.decoder.free_pictures();
        (self.picture, self.next) = Default::default();
    }

    /// Prepares a sample into `out`, whose length must be the recipe's output size. After an error
    /// the content of `out` is open.
    ///
    /// `after_stage` is called on the way (after each stripe of decoded rows, and every fraction of
    /// a millisecond of resizing), so that an emulated device can slow itself down; hosts pass
    /// `&mut || ()`.
    pub fn prepare(
        &mut self,
        encoded: Encoded<'_>,
        id: SampleId,
        out: &mut [u8],
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        let checked = |spec: TensorSpec, out: &[u8]| {
            let expected = spec.bytes();
            let got = out.len();
            if got == expected { Ok(()) } else { Err(Error::OutputSize { got, expected }) }
        };
        // Before anything is read, where the size is known without.
        self.output.map_or(Ok(()), |spec| checked(spec, out))?;
        let spec = self.plan(encoded, id)?;
        checked(spec, out)?;
        self.run(encoded, out, after_stage)
    }

    /// Prepares a sample into a tensor of its own, for recipes whose output shape may vary.
    pub fn prepare_tensor(&mut self, encoded: Encoded<'_>, id: SampleId) -> Result<Tensor, Error> {
        let spec = self.plan(encoded, id)?;
        let mut data = vec![0; spec.bytes()];
        self.run(encoded, &mut data, &mut || ())?;
        Ok(Tensor { spec, data })
    }

    /// Whether the last sample was a damaged JPEG, filled in as the recipe allows.
    pub fn is_filled_in(&self) -> bool {
        self.decoder.is_filled_in()
    }

    /// Finds the stages of a sample by its size and its random draws.
    fn plan(&mut self, encoded: Encoded<'_>, id: SampleId) -> Result<TensorSpec, Error> {
        let info = self.decoder.open(encoded, on_damage(self.decode.on_error))?;
        self.turn = match self.decode.orient {
            true => {
                let orientation = self.decoder.opened_orientation(encoded.bytes)?;
                Turn::of(orientation).map(|turn| (turn, info))
            }
            false => None,
        };
        let size = (info.width, info.height);
        let (width, height) = self.turn.map_or(size, |(turn, _)| turn.size(size));
        let mut picture = Lying { width, height, mirrored: false };
        self.stages.clear();
        let mut next = 0;
        let operations = self.recipe.operations();
        while next < operations.len() {
            let stage = Stage::plan(picture, operations, &mut next, id)?;
            self.stages.push(stage);
            picture = stage.canvas;
        }
        self.options =
            DecodeOptions { scale: DecodeScale::Eight, on_damage: on_damage(self.decode.on_error) };
        // A picture that is turned is decoded whole before.
        if self.decode.scaled
            && self.turn.is_none()
            && info.format.has_stripes()
            && let Some(first) = self.stages.first_mut()
        {
            self.options.scale = first.scale_down(size);
        }
        Ok(TensorSpec {
            height: picture.height,
            width: picture.width,
            channels: 3,
            dtype: self.writer.dtype(),
            layout: self.writer.layout(),
        })
    }

    /// Runs the stages that have been found.
    fn run(
        &mut self,
        encoded: Encoded<'_>,
        out: &mut [u8],
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        if let Some((turn, info)) = self.turn {
            self.decode_turned(encoded, turn, info, after_stage)?;
        }
        for index in 0..self.stages.len() {
            let stage = self.stages[index];
            let region = stage.region(self.resizer.begin(&stage.work()));
            let is_last = index + 1 == self.stages.len();
            let target = if is_last {
                Target::Tensor(&mut self.writer, out)
            } else {
                Target::Picture(&mut self.next)
            };
            let (resizer, mirrored) = (&mut self.resizer, &mut self.mirrored);
            let mut canvas = self.canvas.begin(&stage, target);
            let mut take = |stripe: Stripe<'_>| {
                let stripe = if stage.crop_mirrored { mirror(stripe, mirrored) } else { stripe };
                resizer.feed(stripe, after_stage, &mut |y, row| canvas.put(y, row));
                after_stage();
            };
            if index == 0 && self.turn.is_none() {
                self.decoder.decode_opened(encoded, region, &self.options, &mut take)?;
            } else {
                let (x, y) = (region.x as usize, region.y as usize);
                let (width, height) = (region.width as usize, region.height as usize);
                for first in (0..height).step_by(STRIPE_ROWS) {
                    self.interrupt.check()?;
                    let rows = STRIPE_ROWS.min(height - first);
                    take(self.picture.stripe((x, y + first), width, rows));
                }
            }
            if self.resizer.is_interrupted() {
                return Err(Error::Interrupted);
            }
            canvas.finish();
            std::mem::swap(&mut self.picture, &mut self.next);
        }
        Ok(())
    }

    /// Decodes all of a picture and turns it.
    fn decode_turned(
        &mut self,
        encoded: Encoded<'_>,
        turn: Turn,
        info: ImageInfo,
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        let (width, height) = (info.width, info.height);
        let turned = turn.size((width, height));
        let picture = &mut self.picture;
        picture.set_size(turned.0 as usize, turned.1 as usize);
        let whole = Region { x: 0, y: 0, width, height };
        let mut first = 0;
        self.decoder.decode_opened(encoded, whole, &self.options, &mut |stripe| {
            turn.put(stripe, first, (width as usize, height as usize), picture);
            first += stripe.rows;
            after_stage();
        })
    }
}

/// A stripe mirrored left to right.
fn mirror<'a>(stripe: Stripe<'_>, to: &'a mut Planes) -> Stripe<'a> {
    to.set_size(stripe.width, stripe.rows);
    for plane in 0..3 {
        for y in 0..stripe.rows {
            let from = &stripe.row(plane, y)[..stripe.width];
            let out = to.row_mut(plane, y);
            out.copy_from_slice(from);
            out.reverse();
        }
    }
    to.stripe((0, 0), stripe.width, stripe.rows)
}
