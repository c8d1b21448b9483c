//! Prepares samples whose pixels are not three bytes, as whole pictures in layers.
//!
//! The stages are planned as for any sample. For each stage, the resize is executed first, on
//! elements if it interpolates; then the rest, which only moves pixels, on the bytes of each layer.

use super::run::{apply, mirror};
use super::{SamplePreparer, Source, Streams};
use crate::Error;
use crate::canvas::Target;
use crate::decode::Encoded;
use crate::elements::Elements;
use crate::operations::Step;
use crate::pixels::{Pixels, Style};
use crate::planes::Stripe;
use crate::resize::{Rounding, resize_numbers};
use crate::stage::Stage;
use crate::tensor::convert_elements;
use crate::wide::{Channel, Layers, count, is_single};
use meetpoint_format::recipe::{DecodeMode, Dtype, Interpolation, Layout, TensorSpec};

/// Number of rows in a stripe of a layer.
const STRIPE_ROWS: usize = 16;

/// The picture of a sample.
#[derive(Debug, Default)]
pub(super) struct WidePicture {
    /// The picture between two stages, and the target of the next.
    from: Layers,
    to: Layers,
    /// The decoded pixels, and those written to the tensor.
    pixels: Vec<u8>,
}

impl WidePicture {
    /// Upper bound of its bytes for pictures of at most `pixels` pixels.
    pub(super) fn bytes(mode: DecodeMode, pixels: u64) -> u64 {
        // Layers of three planes twice, pixels, numbers of a channel before and after a pass.
        let layers = 2 * 3 * count(mode) as u64;
        pixels * (layers + 2 * mode.pixel_bytes() as u64 + 8)
    }
}

/// The meaning of a layer's bytes.
fn style(mode: DecodeMode, layer: usize) -> Style {
    match (mode, layer) {
        (DecodeMode::Rgb | DecodeMode::Gray | DecodeMode::Rgba, 0) => Style::Picture,
        (DecodeMode::Rgb | DecodeMode::Gray | DecodeMode::Rgba, _) => Style::Alpha,
        (DecodeMode::Gray16 | DecodeMode::Rgb16 | DecodeMode::Float, _) => {
            Style::Elements { mode, layer }
        }
    }
}

impl SamplePreparer {
    /// Like [`Self::run`], for a mode whose pixels are not three bytes.
    pub(super) fn run_wide(
        &mut self,
        source: Source<'_>,
        id: Streams,
        out: &mut [u8],
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        let mode = self.decode.mode;
        if let Source::Encoded(encoded) = source {
            self.decode_wide(encoded)?;
            after_stage();
        }
        for index in 0..self.stages.len() {
            let stage = self.stages[index].clone();
            let mut moves = match stage.split() {
                Some((resize, moves)) => {
                    self.resize_wide(&resize, after_stage)?;
                    moves
                }
                None => stage.clone(),
            };
            if stage.is_last {
                // There is no further stage to mirror it.
                moves.whole = 0..1;
            }
            self.pass_all(&moves, after_stage)?;
            for position in stage.whole {
                self.apply_wide(self.chosen[position], id, after_stage)?;
            }
        }
        let (width, height) = self.wide.from.size();
        let spec = TensorSpec {
            height: height as u32,
            width: width as u32,
            channels: mode.channels(),
            dtype: mode.dtype(),
            layout: Layout::Nhwc,
        };
        self.wide.from.take(mode, &mut self.wide.pixels);
        let result = self.program.result.tensor((spec.height, spec.width));
        convert_elements((&spec, &self.wide.pixels), (&result, out), &|table| {
            for step in &self.program.steps {
                if let Step::Elements(operation) = step {
                    operation.fold(table);
                }
            }
        });
        Ok(())
    }

    /// Uses a stored picture instead of a decoded one.
    pub(super) fn take_wide(&mut self, spec: &TensorSpec, data: &[u8]) {
        let size = (spec.width as usize, spec.height as usize);
        self.wide.from.put(self.decode.mode, size, data);
    }

    /// Decodes a whole picture and applies its orientation.
    fn decode_wide(&mut self, encoded: Encoded<'_>) -> Result<(), Error> {
        let mode = self.decode.mode;
        let pixels = &mut self.wide.pixels;
        let size = self.decoder.decode_wide(encoded, mode, &self.options, pixels)?;
        let size = (size.0 as usize, size.1 as usize);
        let Some((orientation, info)) = self.orientation else {
            self.wide.from.put(mode, size, pixels);
            return Ok(());
        };
        self.wide.to.put(mode, size, pixels);
        let (width, height) = orientation.size((info.width, info.height));
        self.wide.from.set_size(mode, (width as usize, height as usize));
        for layer in 0..count(mode) {
            let whole = self.wide.to.layer(layer).stripe((0, 0), size.0, size.1);
            orientation.put(whole, 0, size, self.wide.from.layer_mut(layer));
        }
        Ok(())
    }

    /// Executes the resize of a stage. Pillow premultiplies colours by alpha before it
    /// interpolates.
    fn resize_wide(&mut self, stage: &Stage, after_stage: &mut dyn FnMut()) -> Result<(), Error> {
        let work = stage.work();
        let is_same = (work.from_width, work.from_height) == (work.width, work.height);
        let mode = self.decode.mode;
        if is_same || work.filter.interpolation == Interpolation::Nearest {
            return self.pass_all(stage, after_stage);
        }
        match mode.dtype() {
            Dtype::Uint8 => {
                self.wide.from.multiply();
                self.pass_all(stage, after_stage)?;
                self.wide.from.divide();
                Ok(())
            }
            Dtype::Uint16 => self.resize_elements(stage, Rounding::Word, after_stage),
            Dtype::Int32 | Dtype::Float16 | Dtype::Float32 => {
                self.resize_elements(stage, Rounding::Float, after_stage)
            }
        }
    }

    /// Executes the resize of a stage on the elements of each channel.
    fn resize_elements(
        &mut self,
        stage: &Stage,
        rounding: Rounding,
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        let (mode, work) = (self.decode.mode, stage.work());
        let (left, width) = (stage.crop.x as usize, stage.crop.width as usize);
        let rows = stage.crop.y as usize..(stage.crop.y + stage.crop.height) as usize;
        let size = (stage.canvas.width as usize, stage.canvas.height as usize);
        self.wide.to.set_size(mode, size);
        let mut line = vec![0.0; self.wide.from.size().0];
        for channel in 0..mode.channels() as usize {
            let channel = Channel::of(mode, channel);
            let mut numbers = Vec::with_capacity(width * rows.len());
            for y in rows.clone() {
                self.wide.from.numbers(channel, y, &mut line);
                let line = &mut line[left..left + width];
                if stage.crop_mirrored {
                    line.reverse();
                }
                numbers.extend_from_slice(line);
            }
            let interrupt = &self.interrupt;
            let resized = resize_numbers(&work, &numbers, rounding, &mut || {
                after_stage();
                interrupt.check()
            })?;
            for (y, numbers) in resized.chunks_exact(size.0).enumerate() {
                self.wide.to.set_numbers(channel, y, numbers);
            }
        }
        std::mem::swap(&mut self.wide.from, &mut self.wide.to);
        Ok(())
    }

    /// Runs each layer through a stage.
    fn pass_all(&mut self, stage: &Stage, after_stage: &mut dyn FnMut()) -> Result<(), Error> {
        for layer in 0..count(self.decode.mode) {
            self.pass(stage, layer, after_stage)?;
        }
        std::mem::swap(&mut self.wide.from, &mut self.wide.to);
        Ok(())
    }

    /// Runs a layer through a stage.
    fn pass(
        &mut self,
        stage: &Stage,
        layer: usize,
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        let stage = stage.with_style(style(self.decode.mode, layer));
        let Self { cpu, wide, resizer, canvas, mirrored, interrupt, .. } = self;
        resizer.set_grey(is_single(self.decode.mode, layer));
        let region = stage.region(resizer.begin(&stage.work()));
        let target = Target::Picture(wide.to.layer_mut(layer));
        let mut filling = canvas.begin(*cpu, &stage, target);
        let from = wide.from.layer(layer);
        let (x, y, height) = (region.x as usize, region.y as usize, region.height as usize);
        for first in (0..height).step_by(STRIPE_ROWS) {
            interrupt.check()?;
            let rows = STRIPE_ROWS.min(height - first);
            let stripe: Stripe<'_> = from.stripe((x, y + first), region.width as usize, rows);
            let stripe = if stage.crop_mirrored { mirror(stripe, mirrored) } else { stripe };
            resizer.feed(stripe, after_stage, &mut |y, row| filling.put(y, row));
            after_stage();
        }
        if resizer.is_interrupted() {
            return Err(Error::Interrupted);
        }
        filling.finish();
        Ok(())
    }

    /// Executes an operation on the whole picture.
    fn apply_wide(
        &mut self,
        number: usize,
        id: Streams,
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        let (mode, step) = (self.decode.mode, &self.program.steps[number]);
        let (width, height) = self.wide.from.size();
        let is_mixed = match step {
            Step::Picture(operation) => {
                let size = (width as u32, height as u32);
                operation.mixes_pixels(size, &mut id.draws(number))
            }
            Step::Decode(_)
            | Step::DecodeSeries(_)
            | Step::DecodeText(_)
            | Step::Series(_)
            | Step::Text(_)
            | Step::Geometry(_)
            | Step::Pixels(_)
            | Step::Elements(_)
            | Step::Tensor(_)
            | Step::Batch(_)
            | Step::Choice { .. } => false,
        };
        let is_multiplied = is_mixed && mode == DecodeMode::Rgba;
        if is_multiplied {
            self.wide.from.multiply();
        }
        let WidePicture { from, to, .. } = &mut self.wide;
        if matches!(step, Step::Pixels(_)) && mode.dtype() != Dtype::Uint8 {
            let interrupt = &self.interrupt;
            let elements = Elements { layers: from, mode, interrupt, pause: after_stage };
            let mut pixels =
                Pixels::of_elements(elements, &mut self.picture, &mut self.next, self.cpu);
            return apply(step, &|| id.draws(number), &mut pixels);
        }
        for layer in 0..count(mode) {
            let (picture, next) = (from.layer_mut(layer), to.layer_mut(layer));
            let mut pixels = Pixels::new(picture, next, self.cpu, &self.interrupt, after_stage);
            pixels.set_style(style(mode, layer));
            apply(step, &|| id.draws(number), &mut pixels)?;
        }
        if is_multiplied {
            from.divide();
        }
        Ok(())
    }
}
