//! A recipe applied to a sample.
//!
//! In reading order: [`SamplePreparer`], `program` (the operations of a picture), `plan` (groups
//! operations into stages), `run` (runs them), `orientation` (of Exif), `resume` (resumes a recipe
//! in the middle), `targets` (move with the picture), `views` (several pictures of one sample),
//! `series` with `series_preparer` (sound and signals), `text` (text and tokens).

mod export;
#[cfg(test)]
mod mode_tests;
mod orientation;
mod plan;
mod program;
mod resume;
mod run;
mod series;
mod series_preparer;
mod targets;
#[cfg(test)]
mod tests;
mod text;
#[cfg(test)]
mod view_tests;
mod views;
mod wide;

use crate::canvas::Canvas;
use crate::decode::{Decoder, Encoded, ImageInfo, decode_bytes, on_damage, output_colour, probe};
use crate::operations::Step;
use crate::planes::Planes;
use crate::points::Points;
use crate::resize::Resizer;
use crate::stage::{Geometry, Stage};
use crate::targets::{Memory, Prepared, TargetSpec};
use crate::{Cpu, Error, Interrupt};
use meetpoint_format::recipe::{Decode, Recipe, TensorSpec};
use meetpoint_jpeg::{DecodeOptions, DecodeScale};
use orientation::Orientation;
pub(crate) use plan::choose;
use plan::{ProgramEnd, for_each_stage};
use program::Program;
pub(crate) use program::Streams;
pub use program::element_table;
use series_preparer::SeriesPreparer;
use text::TextPreparer;
use views::Views;
use wide::WidePicture;

/// Identifies a sample for its random parameters: equal ids give equal tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleId {
    /// Seed of the job.
    pub seed: u64,
    /// Epoch, from 0.
    pub epoch: u32,
    /// Index in the dataset.
    pub sample: u64,
}

/// A sample whose stages are planned, and its tensor.
#[derive(Debug)]
struct Planned {
    sample: PlannedSample,
    spec: TensorSpec,
}

/// Identifies a planned sample: its id, and the address, length and checksum of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PlannedSample {
    id: SampleId,
    address: usize,
    bytes: usize,
    crc32c: Option<u32>,
}

impl PlannedSample {
    fn of(Encoded { bytes, crc32c, .. }: Encoded<'_>, id: SampleId) -> Self {
        Self { id, address: bytes.as_ptr().addr(), bytes: bytes.len(), crc32c }
    }
}

/// The source of the first stage.
#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    /// The opened file.
    Encoded(Encoded<'a>),
    /// The picture in memory.
    Picture,
    /// The picture that the views share.
    Shared,
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
/// Crop, resize, padding and flip are one stream: only the needed region is decoded, its rows pass
/// through a resizer as they are decoded, and each row of the result is written directly into the
/// tensor. A recipe with several resizes runs as several such streams with pictures between them;
/// operations on whole pictures change or replace such a picture. In steady state only the
/// decoders, blurs, warps, noise, erasing and mixtures allocate. Otherwise the memory is that of
/// the resizer (see [`crate::resize`]), a few rows, and at most two such pictures.
#[derive(Debug)]
pub struct SamplePreparer {
    cpu: Cpu,
    /// The operations; while one of several pictures is computed, the operations of that picture.
    program: Program,
    /// Set if the recipe creates several pictures of a sample.
    views: Option<Box<Views>>,
    /// Set if samples are sound or signals.
    series: Option<Box<SeriesPreparer>>,
    /// Set if samples are text.
    text: Option<Box<TextPreparer>>,
    /// Numbers of the operations of the current sample.
    chosen: Vec<usize>,
    decoder: Decoder,
    interrupt: Interrupt,
    /// The decode options of the recipe.
    decode: Decode,
    /// The decode options and, if needed, the orientation of the current sample.
    options: DecodeOptions,
    orientation: Option<(Orientation, ImageInfo)>,
    /// The sample that is planned but not prepared.
    planned: Option<Planned>,
    /// The current picture as decoded, and after orientation.
    source: Geometry,
    /// The stages of the current sample.
    stages: Vec<Stage>,
    /// The first stage for a picture at full resolution, if the picture is decoded at a lower one.
    unscaled: Option<Stage>,
    /// Points of the targets of the current sample.
    points: Points,
    targets: Vec<TargetSpec>,
    /// The targets of the current sample.
    prepared: Vec<Prepared>,
    masks: Memory,
    resizer: Resizer,
    canvas: Canvas,
    /// The result of the previous stage, and the target of the next.
    picture: Planes,
    next: Planes,
    /// A mirrored stripe.
    mirrored: Planes,
    /// The part of a picture that several views share as their source, and its position in the
    /// picture.
    shared: Planes,
    shared_at: (u32, u32),
    /// The picture, for modes whose pixels are not three bytes.
    wide: WidePicture,
}

impl SamplePreparer {
    /// Creates a preparer for a recipe. Panics if this machine lacks `cpu`.
    pub fn new(recipe: &Recipe, cpu: Cpu) -> Self {
        let first = &recipe.images()[0];
        let program = Program::new(&first.operations, first.result, 0, cpu);
        let decode = program.steps.iter().find_map(|step| match step {
            Step::Decode(it) => Some(*it),
            Step::DecodeSeries(_)
            | Step::DecodeText(_)
            | Step::Geometry(_)
            | Step::Pixels(_)
            | Step::Picture(_)
            | Step::Series(_)
            | Step::Text(_)
            | Step::Elements(_)
            | Step::Tensor(_)
            | Step::Batch(_)
            | Step::Choice { .. } => None,
        });
        Self {
            cpu,
            views: (!recipe.gives_one_picture()).then(|| Box::new(Views::new(recipe, cpu))),
            series: SeriesPreparer::new(&program.steps, cpu).map(Box::new),
            text: TextPreparer::new(&program.steps).map(Box::new),
            chosen: Vec::with_capacity(program.steps.len()),
            program,
            decode: decode.unwrap_or(Decode::EXACT),
            options: DecodeOptions::default(),
            orientation: None,
            decoder: Decoder::new(cpu),
            interrupt: Interrupt::default(),
            planned: None,
            source: Geometry::upright(0, 0),
            stages: Vec::new(),
            unscaled: None,
            points: Points::default(),
            targets: Vec::new(),
            prepared: Vec::new(),
            masks: Memory::new(cpu),
            resizer: Resizer::new(cpu),
            canvas: Canvas::default(),
            picture: Planes::default(),
            next: Planes::default(),
            mirrored: Planes::default(),
            shared: Planes::default(),
            shared_at: (0, 0),
            wide: WidePicture::default(),
        }
    }

    /// Stops preparing with [`Error::Interrupted`] when `interrupt` is raised.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.decoder.set_interrupt(interrupt.clone());
        self.resizer.set_interrupt(interrupt.clone());
        self.interrupt = interrupt;
    }

    /// Upper bound of the memory in bytes for whole pictures and coefficients while a sample is
    /// prepared, from its headers and random parameters. The result and some rows are not counted.
    pub fn memory_bytes(&self, encoded: &[u8], id: SampleId) -> Result<u64, Error> {
        if let Some(series) = &self.series {
            return series.memory_bytes(&self.program.steps, encoded);
        }
        if self.text.is_some() {
            return TextPreparer::memory_bytes(&self.program.steps, encoded);
        }
        let of_decoder = decode_bytes(encoded, self.decode.on_error)?;
        if let Some(views) = &self.views {
            return Ok(of_decoder + views.memory_bytes(encoded, self.decode.orient, id)?);
        }
        let id = Streams::from(id);
        let has_masks = self.targets.iter().any(|target| !target.kind.has_points());
        let mode = self.decode.mode;
        let is_wide = mode.is_wide();
        if !self.decode.orient && !has_masks && !self.may_hold_pictures() && !is_wide {
            return Ok(of_decoder);
        }
        let info = probe(encoded)?;
        // The largest picture between two stages.
        let mut pixels = u64::from(info.width) * u64::from(info.height);
        let picture = Geometry::upright(info.width, info.height);
        let oriented = if self.decode.orient { picture.bytes() } else { 0 };
        let oriented = oriented.max(self.mask_bytes(picture));
        let mut most = oriented;
        let mut chosen = Vec::new();
        choose(&self.program.steps, 0, self.program.steps.len(), id, &mut chosen);
        let sides = [(info.width, info.height), (info.height, info.width)];
        // The orientation is unknown here.
        let sides = if self.decode.orient { &sides[..] } else { &sides[..1] };
        for &(width, height) in sides {
            let mut before = oriented;
            let picture = Geometry::upright(width, height);
            let points = &mut Points::unknown();
            for_each_stage(
                (&self.program.steps, &self.program.names),
                (&chosen, ProgramEnd::Tensor),
                picture,
                id,
                points,
                &mut |stage| {
                    for size in [stage.result(), stage.after] {
                        pixels = pixels.max(u64::from(size.width) * u64::from(size.height));
                    }
                    let held = if stage.is_last { 0 } else { stage.result().bytes() };
                    most = most.max(before + held).max(stage.whole_bytes_max);
                    before = if stage.is_last { 0 } else { stage.after.bytes() };
                },
            )?;
        }
        let of_wide = if is_wide { WidePicture::bytes(mode, pixels) } else { 0 };
        Ok(of_decoder + most + of_wide)
    }

    /// Like [`Self::memory_bytes`], but retains the plan for the next call of [`Self::prepare`] or
    /// [`Self::prepare_columns`], which then need not plan again.
    pub fn plan_memory(&mut self, encoded: Encoded<'_>, id: SampleId) -> Result<u64, Error> {
        let is_plain = self.views.is_none()
            && self.series.is_none()
            && self.text.is_none()
            && self.targets.is_empty()
            && !self.decode.mode.is_wide();
        if !is_plain {
            return self.memory_bytes(encoded.bytes, id);
        }
        let of_decoder = decode_bytes(encoded.bytes, self.decode.on_error)?;
        let spec = self.plan(encoded, &[], id.into())?;
        self.planned = Some(Planned { sample: PlannedSample::of(encoded, id), spec });
        let mut before = if self.orientation.is_some() { self.source.bytes() } else { 0 };
        let mut most = before;
        for stage in &self.stages {
            let held = if stage.is_last { 0 } else { stage.result().bytes() };
            most = most.max(before + held).max(stage.whole_bytes_max);
            before = if stage.is_last { 0 } else { stage.after.bytes() };
        }
        Ok(of_decoder + most)
    }

    /// Whether a sample can have more than one stage.
    fn may_hold_pictures(&self) -> bool {
        let mut on_pictures = 0;
        for step in &self.program.steps {
            match step {
                Step::Pixels(_) | Step::Picture(_) => return true,
                Step::Geometry(operation) if operation.whole().is_some() => return true,
                Step::Geometry(_) => on_pictures += 1,
                Step::Decode(_)
                | Step::DecodeSeries(_)
                | Step::DecodeText(_)
                | Step::Series(_)
                | Step::Text(_)
                | Step::Elements(_)
                | Step::Tensor(_)
                | Step::Batch(_)
                | Step::Choice { .. } => (),
            }
        }
        on_pictures > 1
    }

    /// Frees the memory for whole pictures, which is otherwise reused.
    pub fn free_pictures(&mut self) {
        self.decoder.free_pictures();
        (self.picture, self.next, self.shared) = Default::default();
        self.wide = WidePicture::default();
        self.series.iter_mut().for_each(|series| series.free());
        self.text.iter_mut().for_each(|text| text.free());
    }

    /// Prepares a sample into `out`, whose length must be the recipe's output size. After an error
    /// the content of `out` is unspecified.
    ///
    /// `after_stage` is called repeatedly (after each stripe of decoded rows, and every fraction of
    /// a millisecond of resizing), so that an emulated device can throttle itself; hosts pass `&mut
    /// || ()`.
    ///
    /// # Panics
    ///
    /// Where the recipe makes several pictures of a sample: [`Self::prepare_columns`] prepares
    /// those.
    pub fn prepare(
        &mut self,
        encoded: Encoded<'_>,
        id: SampleId,
        out: &mut [u8],
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        // Checked before anything is read, if the size does not depend on the picture.
        let result = self.program.result;
        let expected = result.size.map(|size| result.tensor(size));
        expected.map_or(Ok(()), |spec| self.check_output(spec, out))?;
        if self.is_of_series() {
            let spec = self.run_series(encoded.bytes, id, after_stage)?;
            self.check_output(spec, out)?;
            return self.finish_series((&spec, out), id, after_stage);
        }
        let id = Streams::from(id);
        let spec = self.plan(encoded, &[], id)?;
        self.check_output(spec, out)?;
        self.run(Source::Encoded(encoded), id, out, after_stage)?;
        self.finish(spec, id, out, after_stage)
    }

    /// Refuses memory whose size differs from that of the tensor.
    fn check_output(&self, spec: TensorSpec, out: &[u8]) -> Result<(), Error> {
        let (got, expected) = (out.len(), spec.bytes());
        if got == expected { Ok(()) } else { Err(Error::OutputSize { got, expected }) }
    }

    /// Prepares a sample into a new tensor, for recipes whose output shape may vary.
    ///
    /// # Panics
    ///
    /// Where the recipe makes several pictures of a sample: [`Self::prepare_tensors`] prepares
    /// those.
    pub fn prepare_tensor(&mut self, encoded: Encoded<'_>, id: SampleId) -> Result<Tensor, Error> {
        if self.is_of_series() {
            let spec = self.run_series(encoded.bytes, id, &mut || ())?;
            let mut data = vec![0; spec.bytes()];
            self.finish_series((&spec, &mut data), id, &mut || ())?;
            return Ok(Tensor { spec, data });
        }
        let id = Streams::from(id);
        let spec = self.plan(encoded, &[], id)?;
        let mut data = vec![0; spec.bytes()];
        self.run(Source::Encoded(encoded), id, &mut data, &mut || ())?;
        self.finish(spec, id, &mut data, &mut || ())?;
        Ok(Tensor { spec, data })
    }

    /// Whether the last sample was a damaged JPEG, filled in as the recipe allows.
    pub fn is_filled_in(&self) -> bool {
        self.decoder.is_filled_in()
    }

    /// Plans the stages of a sample from its size, its random parameters and the stored values of
    /// its targets, if targets are prepared.
    fn plan(
        &mut self,
        encoded: Encoded<'_>,
        stored: &[&[u8]],
        id: Streams,
    ) -> Result<TensorSpec, Error> {
        if let Some(Planned { sample, spec }) = self.planned.take()
            && stored.is_empty()
            && sample == PlannedSample::of(encoded, id.id)
        {
            return Ok(spec);
        }
        let info = self.open(encoded)?;
        self.plan_opened(info, stored, id)
    }

    /// Like [`Self::plan`], for a picture whose header was read.
    fn plan_opened(
        &mut self,
        info: ImageInfo,
        stored: &[&[u8]],
        id: Streams,
    ) -> Result<TensorSpec, Error> {
        self.planned = None;
        assert!(self.views.is_none(), "the recipe makes one picture of a sample");
        self.begin_targets(stored)?;
        self.chosen.clear();
        choose(&self.program.steps, 0, self.program.steps.len(), id, &mut self.chosen);
        self.stages.clear();
        let found = &mut |stage| self.stages.push(stage);
        let (source, points) = (self.source, &mut self.points);
        let programs = (&self.program.steps[..], &self.program.names[..]);
        let ending = (&self.chosen[..], ProgramEnd::Tensor);
        let picture = for_each_stage(programs, ending, source, id, points, found)?;
        self.scale_down(info);
        Ok(self.program.result.tensor((picture.height, picture.width)))
    }

    /// Opens a picture, and determines its orientation.
    fn open(&mut self, encoded: Encoded<'_>) -> Result<ImageInfo, Error> {
        let info = self.decoder.open(encoded, on_damage(self.decode.on_error))?;
        let orientation = match self.decode.orient {
            true => Some(self.decoder.opened_orientation(encoded.bytes)?),
            false => None,
        };
        self.turn_source(info, orientation);
        Ok(info)
    }

    /// Determines the source picture of the stages, given its orientation.
    fn turn_source(&mut self, info: ImageInfo, orientation: Option<u8>) {
        self.orientation = orientation.and_then(Orientation::of).map(|it| (it, info));
        let size = (info.width, info.height);
        let (width, height) =
            self.orientation.map_or(size, |(orientation, _)| orientation.size(size));
        self.source = Geometry::upright(width, height);
    }

    /// Determines the resolution at which an opened picture is decoded for the planned stages.
    fn scale_down(&mut self, info: ImageInfo) {
        self.unscaled = None;
        self.options = DecodeOptions {
            scale: DecodeScale::Eight,
            on_damage: on_damage(self.decode.on_error),
            colour: output_colour(self.decode.mode),
        };
        // A picture that needs orientation is decoded at full resolution.
        if self.decode.scaled
            && self.orientation.is_none()
            && info.format.has_stripes()
            && let Some(first) = self.stages.first_mut()
        {
            let unscaled = first.clone();
            self.options.scale = first.scale_down((info.width, info.height));
            if self.options.scale != DecodeScale::Eight {
                self.unscaled = Some(unscaled);
            }
        }
    }
}
