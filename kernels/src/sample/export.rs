//! Exports the application of a recipe to a sample as data.

use super::run::apply;
use super::{SampleId, SamplePreparer, Streams};
use crate::decode::{Encoded, check_size, orientation, output_colour, probe};
use crate::finished::FinishedTensor;
use crate::operations::Step;
use crate::picture_program::{NotExported, PictureProgram, StageProgram, TensorProgram, Turn};
use crate::pixels::Pixels;
use crate::recording::Recording;
use crate::tensor::TensorWriter;
use crate::{Error, Region};
use meetpoint_format::recipe::{DecodeMode, TensorSpec};
use meetpoint_jpeg::DecodeScale;

impl SamplePreparer {
    /// How the tensors of all samples are written, for each column of the recipe, or of
    /// [`Self::set_columns`]; the error is why no sample has programs.
    pub fn export_tensors(&self) -> Result<Vec<TensorProgram>, NotExported> {
        self.check_exported()?;
        Ok(match &self.views {
            Some(views) => views.writers().map(TensorWriter::export).collect(),
            None => vec![self.program.writer.export()],
        })
    }

    /// Exports the programs of the pictures of a sample, from its headers and random parameters:
    /// column by column, in the order of the pictures. Returns the part of the picture in the file
    /// that must be decoded for them: the same as [`Self::prepare_columns`] decodes, so that both
    /// detect the same damage. All programs have the same colour and turn. Operations on batches
    /// are not included, and damage after the header is not detected here. The inner error is why
    /// the sample has no programs.
    pub fn export(
        &mut self,
        encoded: Encoded<'_>,
        id: SampleId,
        programs: &mut Vec<PictureProgram>,
    ) -> Result<Result<Region, NotExported>, Error> {
        if let Err(reason) = self.check_exported() {
            return Ok(Err(reason));
        }
        // The data after the header are left to the decoder.
        let info = probe(encoded.bytes)?;
        check_size(info, None)?;
        let orientation = match self.decode.orient {
            true => Some(orientation(encoded.bytes)?),
            false => None,
        };
        self.turn_source(info, orientation);
        if self.views.is_some() {
            return self.export_views(info, id, programs);
        }
        programs.resize_with(1, PictureProgram::default);
        let spec = self.plan_opened(info, &[], id.into())?;
        let exported = self.export_picture(spec, id.into(), &mut programs[0])?;
        Ok(exported.map(|()| programs[0].source))
    }

    /// Exports the program of a picture whose stages are planned.
    pub(super) fn export_picture(
        &mut self,
        spec: TensorSpec,
        id: Streams,
        program: &mut PictureProgram,
    ) -> Result<Result<(), NotExported>, Error> {
        program.clear();
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
        program.source = self.in_file(program.stages[0].region);
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

    /// The part of the picture in the file that becomes a part of the oriented picture.
    pub(super) fn in_file(&self, part: Region) -> Region {
        self.orientation
            .map_or(part, |(orientation, info)| orientation.source(part, (info.width, info.height)))
    }

    fn check_exported(&self) -> Result<(), NotExported> {
        if self.is_of_series() || self.text.is_some() {
            return Err(NotExported::NotPictures);
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
