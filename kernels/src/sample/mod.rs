//! A recipe applied to a sample.

#[cfg(test)]
mod tests;

use crate::crop::{self, CenterSpan};
use crate::decode::{Decoder, PIXELS_MAX};
use crate::resize::{Filter, Resize, Resizer};
use crate::tensor::TensorWriter;
use crate::view::View;
use crate::{Cpu, Error, Picture, Region};
use meetpoint_format::random::{DrawKey, Draws};
use meetpoint_format::recipe::{Operation, Recipe, TensorSpec};

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
/// Crops and flips move no bytes of their own: they narrow and mirror the view that the next resize
/// or the final write takes. In steady state only the decoders allocate.
#[derive(Debug)]
pub struct SamplePreparer {
    recipe: Recipe,
    output: Option<TensorSpec>,
    decoder: Decoder,
    resizer: Resizer,
    writer: TensorWriter,
    /// The picture as it is after the operations so far.
    picture: Picture,
    /// Where the next one is made.
    next: Picture,
}

/// The part of the picture that the operations so far have left, and how it lies.
#[derive(Debug, Clone, Copy)]
struct Current {
    region: Region,
    mirrored: bool,
}

impl Current {
    fn whole(picture: &Picture) -> Self {
        let region = Region { x: 0, y: 0, width: picture.width, height: picture.height };
        Self { region, mirrored: false }
    }

    /// A region of what is current, as it lies in the picture.
    fn inner(self, inside: Region) -> Self {
        let x = if self.mirrored { self.region.width - inside.x - inside.width } else { inside.x };
        let region = Region { x: self.region.x + x, y: self.region.y + inside.y, ..inside };
        Self { region, ..self }
    }
}

impl SamplePreparer {
    /// A preparer for a recipe. Panics when this machine lacks `cpu`.
    pub fn new(recipe: &Recipe, cpu: Cpu) -> Self {
        Self {
            output: recipe.output(),
            decoder: Decoder::default(),
            resizer: Resizer::new(cpu),
            writer: TensorWriter::new(recipe.operations()),
            recipe: recipe.clone(),
            picture: Picture::default(),
            next: Picture::default(),
        }
    }

    /// Prepares a sample into `out`, whose length must be the recipe's output size.
    ///
    /// `after_stage` is called between stages (after decoding, after each later operation, and
    /// every fraction of a millisecond inside a long resize), so that an emulated device can slow
    /// itself down; hosts pass `&mut || ()`. Operations on elements are one stage: they are done in
    /// one pass.
    pub fn prepare(
        &mut self,
        encoded: &[u8],
        id: SampleId,
        out: &mut [u8],
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        let checked = |spec: TensorSpec, out: &[u8]| {
            let expected = spec.bytes();
            let got = out.len();
            if got == expected { Ok(()) } else { Err(Error::OutputSize { got, expected }) }
        };
        // Before the work, where the size is known before it.
        self.output.map_or(Ok(()), |spec| checked(spec, out))?;
        let current = self.pixels(encoded, id, after_stage)?;
        checked(self.spec(current), out)?;
        self.writer.write(View::new(&self.picture, current.region), current.mirrored, out);
        after_stage();
        Ok(())
    }

    /// Prepares a sample into a tensor of its own, for recipes whose output shape may vary.
    pub fn prepare_tensor(&mut self, encoded: &[u8], id: SampleId) -> Result<Tensor, Error> {
        let current = self.pixels(encoded, id, &mut || ())?;
        let spec = self.spec(current);
        let mut data = vec![0; spec.bytes()];
        self.writer.write(View::new(&self.picture, current.region), current.mirrored, &mut data);
        Ok(Tensor { spec, data })
    }

    fn spec(&self, current: Current) -> TensorSpec {
        TensorSpec {
            height: current.region.height,
            width: current.region.width,
            channels: 3,
            dtype: self.writer.dtype(),
            layout: self.writer.layout(),
        }
    }

    /// Decodes and applies the operations on pixels.
    fn pixels(
        &mut self,
        encoded: &[u8],
        id: SampleId,
        after_stage: &mut dyn FnMut(),
    ) -> Result<Current, Error> {
        self.decoder.decode_into(encoded, None, &mut self.picture)?;
        after_stage();
        let mut current = Current::whole(&self.picture);
        for index in 0..self.recipe.operations().len() {
            let Region { width, height, .. } = current.region;
            current = match self.recipe.operations()[index] {
                Operation::Resize { size, interpolation, antialias } => {
                    let to = size.resolve(height, width);
                    self.resize(current, to, Filter { interpolation, antialias }, after_stage)?
                }
                Operation::RandomResizedCrop {
                    height: to_height,
                    width: to_width,
                    scale,
                    ratio,
                    interpolation,
                    antialias,
                } => {
                    let mut draws = id.draws(index);
                    let region = crop::random_region(&mut draws, width, height, scale, ratio);
                    let filter = Filter { interpolation, antialias };
                    let to = (to_height, to_width);
                    self.resize(current.inner(region), to, filter, after_stage)?
                }
                Operation::CenterCrop { height: to_height, width: to_width } => {
                    let across = crop::center_span(width, to_width);
                    let down = crop::center_span(height, to_height);
                    self.center_crop(current, across, down)
                }
                Operation::RandomHorizontalFlip { p } => {
                    let flip = id.draws(index).chance(p);
                    Current { mirrored: current.mirrored ^ flip, ..current }
                }
                Operation::Decode
                | Operation::ToDtype { .. }
                | Operation::Normalize { .. }
                | Operation::Layout { .. } => continue,
            };
            after_stage();
        }
        Ok(current)
    }

    /// Resizes what is current to (height, width).
    fn resize(
        &mut self,
        current: Current,
        (height, width): (u32, u32),
        filter: Filter,
        after_stage: &mut dyn FnMut(),
    ) -> Result<Current, Error> {
        // The result of the first pass has one side of the input and one of the output.
        let Region { width: from_width, height: from_height, .. } = current.region;
        for (width, height) in [(width, height), (width, from_height), (from_width, height)] {
            if u64::from(width) * u64::from(height) > PIXELS_MAX {
                return Err(Error::TooLarge { width, height, limit: PIXELS_MAX });
            }
        }
        let current = self.unmirrored(current);
        let view = View::new(&self.picture, current.region);
        let resize = Resize { width, height, filter, source: None };
        self.resizer.resize(view, resize, &mut self.next, after_stage);
        std::mem::swap(&mut self.picture, &mut self.next);
        Ok(Current::whole(&self.picture))
    }

    /// Turns what is current the way it is meant, for an operation that sees the difference: the
    /// rounding of a filter is not symmetrical.
    fn unmirrored(&mut self, current: Current) -> Current {
        if !current.mirrored {
            return current;
        }
        self.picture.keep(current.region);
        crop::flip_rows(&mut self.picture.pixels, current.region.width);
        Current::whole(&self.picture)
    }

    fn center_crop(&mut self, current: Current, across: CenterSpan, down: CenterSpan) -> Current {
        let kept = Region { x: across.from, y: down.from, width: across.kept, height: down.kept };
        let padded = [across.before, across.after, down.before, down.after] != [0; 4];
        if !padded {
            return current.inner(kept);
        }
        let current = self.unmirrored(current).inner(kept);
        let view = View::new(&self.picture, current.region);
        let out = &mut self.next;
        out.set_size(across.total(), down.total());
        out.pixels.fill(0);
        let row_bytes = out.width as usize * 3;
        let rows = out.pixels.chunks_exact_mut(row_bytes).skip(down.before as usize);
        for (y, row) in rows.take(view.height() as usize).enumerate() {
            let from = view.row(y);
            row[across.before as usize * 3..][..from.len()].copy_from_slice(from);
        }
        std::mem::swap(&mut self.picture, &mut self.next);
        Current::whole(&self.picture)
    }
}
