//! Runs the planned stages of a sample.

use super::{SamplePreparer, Source, Streams};
use crate::Error;
use crate::canvas::Target;
use crate::decode::{Encoded, Region};
use crate::finished::FinishedTensor;
use crate::operations::Step;
use crate::pixels::{Pixels, Style};
use crate::planes::{Planes, Stripe};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::TensorSpec;

/// Rows that are passed to the resizer together.
const STRIPE_ROWS: usize = 16;

impl SamplePreparer {
    /// Runs the planned stages.
    pub(super) fn run(
        &mut self,
        source: Source<'_>,
        id: Streams,
        out: &mut [u8],
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        if self.decode.mode.is_wide() {
            return self.run_wide(source, id, out, after_stage);
        }
        self.run_styled(source, Style::Picture, id, out, after_stage)
    }

    /// Like [`Self::run`], for pixels of a given style.
    pub(super) fn run_styled(
        &mut self,
        source: Source<'_>,
        style: Style,
        id: Streams,
        out: &mut [u8],
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        // Position of the first operation of a stage.
        let mut first = 0;
        for index in 0..self.stages.len() {
            let unscaled = self.unscaled.as_ref().filter(|_| index == 0 && style.is_target());
            let stage = unscaled.unwrap_or(&self.stages[index]).with_style(style);
            let number = self.chosen.get(first).copied().unwrap_or(self.program.steps.len());
            self.resizer.set_grey(!style.is_target() && self.program.grey[number]);
            first = stage.whole.end;
            let region = stage.region(self.resizer.begin(&stage.work()));
            let is_oriented = index == 0 && self.orientation.is_some();
            if is_oriented && let Source::Encoded(encoded) = source {
                self.decode_oriented(encoded, region, after_stage)?;
            }
            let writer =
                if style.is_target() { self.masks.writer() } else { &mut self.program.writer };
            let target = if stage.is_last {
                Target::Tensor(writer, out)
            } else {
                Target::Picture(&mut self.next)
            };
            let (resizer, mirrored) = (&mut self.resizer, &mut self.mirrored);
            let mut canvas = self.canvas.begin(self.cpu, &stage, target);
            let mut take = |stripe: Stripe<'_>| {
                let stripe = if stage.crop_mirrored { mirror(stripe, mirrored) } else { stripe };
                resizer.feed(stripe, after_stage, &mut |y, row| canvas.put(y, row));
                after_stage();
            };
            if let Source::Encoded(encoded) = source
                && index == 0
                && !is_oriented
            {
                self.decoder.decode_opened(encoded, region, &self.options, &mut take)?;
            } else {
                let (picture, (left, top)) = match source {
                    Source::Shared if index == 0 => (&self.shared, self.shared_at),
                    Source::Encoded(_) if is_oriented => (&self.picture, (region.x, region.y)),
                    Source::Shared | Source::Encoded(_) | Source::Picture => {
                        (&self.picture, (0, 0))
                    }
                };
                let (x, y) = ((region.x - left) as usize, (region.y - top) as usize);
                let (width, height) = (region.width as usize, region.height as usize);
                for row in (0..height).step_by(STRIPE_ROWS) {
                    self.interrupt.check()?;
                    let rows = STRIPE_ROWS.min(height - row);
                    take(picture.stripe((x, y + row), width, rows));
                }
            }
            if self.resizer.is_interrupted() {
                return Err(Error::Interrupted);
            }
            canvas.finish();
            std::mem::swap(&mut self.picture, &mut self.next);
            let (picture, next) = (&mut self.picture, &mut self.next);
            let mut pixels = Pixels::new(picture, next, self.cpu, &self.interrupt, after_stage);
            pixels.set_style(style);
            for number in &self.chosen[stage.whole] {
                pixels.set_grey(self.program.grey[*number]);
                apply(&self.program.steps[*number], &|| id.draws(*number), &mut pixels)?;
            }
        }
        Ok(())
    }

    /// Executes the operations on the whole tensor.
    pub(super) fn finish(
        &self,
        spec: TensorSpec,
        id: Streams,
        out: &mut [u8],
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        let mut tensor = FinishedTensor::new(spec, out, self.cpu, &self.interrupt, after_stage);
        for number in &self.chosen {
            if let Step::Tensor(operation) = &self.program.steps[*number] {
                operation.apply(&mut id.draws(*number), &mut tensor)?;
            }
        }
        Ok(())
    }

    /// Decodes a region of the oriented picture, if it needs orientation, into `picture`.
    pub(super) fn decode_oriented(
        &mut self,
        encoded: Encoded<'_>,
        region: Region,
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        let Some((orientation, info)) = self.orientation else { return Ok(()) };
        let picture = &mut self.picture;
        picture.set_size(region.width as usize, region.height as usize);
        let from = orientation.source(region, (info.width, info.height));
        let size = (from.width as usize, from.height as usize);
        let mut first = 0;
        self.decoder.decode_opened(encoded, from, &self.options, &mut |stripe| {
            orientation.put(stripe, first, size, picture);
            first += stripe.rows;
            after_stage();
        })
    }
}

/// Executes an operation on the whole picture, if it changes this sample. `draws` returns its
/// stream at the beginning.
pub(super) fn apply(
    step: &Step,
    draws: &dyn Fn() -> Draws,
    pixels: &mut Pixels<'_>,
) -> Result<(), Error> {
    let operation = match step {
        Step::Pixels(_) if pixels.is_target() => return Ok(()),
        Step::Pixels(operation) => {
            let is_applied = operation.is_applied(&mut draws());
            return if is_applied { operation.apply(&mut draws(), pixels) } else { Ok(()) };
        }
        Step::Picture(operation) => Some(&**operation),
        Step::Geometry(operation) => operation.whole(),
        Step::Decode(_)
        | Step::DecodeSeries(_)
        | Step::DecodeText(_)
        | Step::Series(_)
        | Step::Text(_)
        | Step::Elements(_)
        | Step::Tensor(_)
        | Step::Batch(_)
        | Step::Choice { .. } => None,
    };
    match operation {
        Some(operation) if operation.size(pixels.size(), &mut draws()).is_some() => {
            operation.apply(&mut draws(), pixels)
        }
        Some(_) | None => Ok(()),
    }
}

/// A stripe mirrored left to right.
pub(super) fn mirror<'a>(stripe: Stripe<'_>, to: &'a mut Planes) -> Stripe<'a> {
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
