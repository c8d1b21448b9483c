//! Exports the application of a recipe to a sample as data.

use super::run::apply;
use super::{SampleId, SamplePreparer, Streams};
use crate::Error;
use crate::decode::{Encoded, check_size, orientation, output_colour, probe};
use crate::finished::FinishedTensor;
use crate::operations::Step;
use crate::picture_program::{NotExported, PictureProgram, StageProgram, TensorProgram, Turn};
use crate::pixels::Pixels;
use crate::recording::Recording;
use meetpoint_format::recipe::DecodeMode;
use meetpoint_jpeg::DecodeScale;

impl SamplePreparer {
    /// How the tensors of all samples are written; the error is why no sample has a program.
    pub fn export_tensor(&self) -> Result<TensorProgram, NotExported> {
        self.check_exported().map(|()| self.program.writer.export())
    }

    /// Exports the program of a sample, from its headers and random parameters, into `program`.
    /// Operations on batches are not included, and damage after the header is not detected. The
    /// inner error is why the sample has no program; [`Self::prepare`] can prepare it instead.
    pub fn export(
        &mut self,
        encoded: Encoded<'_>,
        id: SampleId,
        program: &mut PictureProgram,
    ) -> Result<Result<(), NotExported>, Error> {
        program.clear();
        if let Err(reason) = self.check_exported() {
            return Ok(Err(reason));
        }
        let id = Streams::from(id);
        // The data after the header are left to the decoder.
        let info = probe(encoded.bytes)?;
        check_size(info, None)?;
        let orientation = match self.decode.orient {
            true => Some(orientation(encoded.bytes)?),
            false => None,
        };
        self.turn_source(info, orientation);
        let spec = self.plan_opened(info, &[], id)?;
        if self.options.scale != DecodeScale::Eight {
            return Ok(Err(NotExported::Scaled));
        }
        program.turn = self.orientation.map_or(Turn::default(), |(it, _)| it.turn());
        program.colour = output_colour(self.decode.mode);
        program.tensor = (spec.height, spec.width);
        for index in 0..self.stages.len() {
            if let Err(reason) = self.export_stage(index, id, program)? {
                return Ok(Err(reason));
            }
        }
        let first = program.stages[0].region;
        program.source = match self.orientation {
            Some((orientation, info)) => orientation.source(first, (info.width, info.height)),
            None => first,
        };
        let size = (spec.width, spec.height);
        let recording = Recording::new(program, size);
        let pause = &mut || ();
        let mut tensor =
            FinishedTensor::recorded(spec, recording, self.cpu, &self.interrupt, pause);
        for number in &self.chosen {
            if let Step::Tensor(operation) = &self.program.steps[*number] {
                operation.apply(&mut id.draws(*number), &mut tensor)?;
                if tensor.recording().is_some_and(|recording| !recording.is_complete()) {
                    return Ok(Err(NotExported::Operation(self.program.names[*number])));
                }
            }
        }
        Ok(Ok(()))
    }

    fn check_exported(&self) -> Result<(), NotExported> {
        if self.is_of_series() || self.text.is_some() {
            return Err(NotExported::NotPictures);
        }
        if self.views.is_some() {
            return Err(NotExported::Views);
        }
        match self.decode.mode {
            DecodeMode::Rgb | DecodeMode::Gray => (),
            mode @ (DecodeMode::Rgba
            | DecodeMode::Gray16
            | DecodeMode::Rgb16
            | DecodeMode::Float) => return Err(NotExported::Mode(mode.name())),
        }
        if self.targets.is_empty() { Ok(()) } else { Err(NotExported::Targets) }
    }

    /// Appends a stage and the operations on the picture after it.
    fn export_stage(
        &mut self,
        index: usize,
        id: Streams,
        program: &mut PictureProgram,
    ) -> Result<Result<(), NotExported>, Error> {
        let stage = &self.stages[index];
        let passes = self.resizer.export(&stage.work(), &mut program.words);
        let canvas = stage.canvas;
        let size = (canvas.width, canvas.height);
        let before = program.changes.len();
        stage.changes.record(&mut Recording::new(program, size));
        let row_changes = before..program.changes.len();
        let recording = Recording::new(program, size);
        let pause = &mut || ();
        let mut pixels =
            Pixels::new(&mut self.picture, &mut self.next, self.cpu, &self.interrupt, pause)
                .recorded(recording);
        for number in &self.chosen[stage.whole.clone()] {
            pixels.set_grey(self.program.grey[*number]);
            apply(&self.program.steps[*number], &|| id.draws(*number), &mut pixels)?;
            if pixels.recording().is_some_and(|recording| !recording.is_complete()) {
                return Ok(Err(NotExported::Operation(self.program.names[*number])));
            }
        }
        let [red, green, blue, _] = stage.fill;
        let (width, height) = stage.window_size();
        program.stages.push(StageProgram {
            region: stage.region(passes.needed),
            region_mirrored: stage.crop_mirrored,
            across: passes.across,
            down: passes.down,
            down_first: passes.down_first,
            window: (width, height),
            canvas: size,
            at: stage.at,
            fill: [red, green, blue],
            outside: [0; 3],
            mirrored: canvas.mirrored && (stage.is_last || !stage.result().mirrored),
            flipped: canvas.flipped,
            whole: row_changes.end..program.changes.len(),
            row_changes,
            is_last: stage.is_last,
        });
        Ok(Ok(()))
    }
}
