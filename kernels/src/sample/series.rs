//! Samples that are not pictures: sound, signals and text, from the file or from the middle of a
//! recipe.

use super::series_preparer::{SeriesPreparer, convert, finish_tensor, shape_of};
use super::text::TextPreparer;
use super::{SampleId, SamplePreparer, Streams};
use crate::operations::Step;
use crate::{Error, Interrupt};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::TensorSpec;

/// A pause that polls the interrupt.
fn pause<'a>(
    interrupt: &'a Interrupt,
    after_stage: &'a mut dyn FnMut(),
) -> impl FnMut() -> Result<(), Error> + use<'a> {
    move || {
        after_stage();
        Ok(interrupt.check()?)
    }
}

/// The random numbers of each operation.
fn draws(id: SampleId) -> impl Fn(usize) -> Draws {
    let streams = Streams::from(id);
    move |operation| streams.draws(operation)
}

impl SamplePreparer {
    /// Whether samples are sound, signals or text.
    pub(super) fn is_of_series(&self) -> bool {
        self.series.is_some() || self.text.is_some()
    }

    fn series_mut(&mut self) -> (&mut SeriesPreparer, &super::Program, &Interrupt) {
        let Self { series, program, interrupt, .. } = self;
        (series.as_mut().expect("the recipe is of sound or signals"), program, interrupt)
    }

    /// Executes the operations up to those on elements, and returns the shape of the result.
    pub(super) fn run_series(
        &mut self,
        encoded: &[u8],
        id: SampleId,
        after_stage: &mut dyn FnMut(),
    ) -> Result<TensorSpec, Error> {
        if let Self { text: Some(text), program, interrupt, .. } = self {
            let pause = &mut pause(interrupt, after_stage);
            return text.run(&program.steps, program.result, encoded, pause);
        }
        let (series, program, interrupt) = self.series_mut();
        series.run(program.result, encoded, &draws(id), &mut pause(interrupt, after_stage))
    }

    /// Writes the result of the last run.
    pub(super) fn finish_series(
        &mut self,
        (spec, out): (&TensorSpec, &mut [u8]),
        id: SampleId,
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        if let Some(text) = &self.text {
            after_stage();
            return text.write(&self.program.steps, out);
        }
        let (series, program, interrupt) = self.series_mut();
        let all = (&program.steps[..], 0);
        series.finish(all, (spec, out), &draws(id), (interrupt, after_stage))
    }

    /// Executes the operations from a number on, up to those on elements.
    pub(super) fn resume_series(
        &mut self,
        first: usize,
        (spec, data): (&TensorSpec, &[u8]),
        id: SampleId,
        after_stage: &mut dyn FnMut(),
    ) -> Result<TensorSpec, Error> {
        if data.len() != spec.bytes() {
            return Err(Error::OutputSize { got: data.len(), expected: spec.bytes() });
        }
        if !self.resumes_picture(first) {
            return Ok(self.program.result.tensor((spec.height, spec.width)));
        }
        if let Self { text: Some(text), program, interrupt, .. } = self {
            let pause = &mut pause(interrupt, after_stage);
            return text.resume((&program.steps, first), program.result, (spec, data), pause);
        }
        let (series, program, interrupt) = self.series_mut();
        let pause = &mut pause(interrupt, after_stage);
        series.resume(first, program.result, (spec, data), &draws(id), pause)
    }

    /// Writes the result of operations from a number on.
    pub(super) fn finish_resumed_series(
        &mut self,
        first: usize,
        from: (&TensorSpec, &[u8]),
        (spec, out): (&TensorSpec, &mut [u8]),
        id: SampleId,
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        if self.resumes_picture(first) {
            return self.finish_series((spec, out), id, after_stage);
        }
        if self.text.is_some() {
            out.copy_from_slice(from.1);
            return Ok(());
        }
        let cpu = self.cpu;
        let (_, program, interrupt) = self.series_mut();
        match program.steps[first..].iter().any(|step| matches!(step, Step::Elements(_))) {
            true => convert((&program.steps, first), from, (spec, &mut *out)),
            false => out.copy_from_slice(from.1),
        }
        finish_tensor(&program.steps, (*spec, out), &draws(id), cpu, (interrupt, after_stage))
    }

    /// Upper bound of the memory in bytes for resuming at a number.
    pub(super) fn resumed_series_bytes(
        &self,
        first: usize,
        spec: &TensorSpec,
    ) -> Result<u64, Error> {
        if self.text.is_some() && self.resumes_picture(first) {
            return TextPreparer::resumed_bytes(&self.program.steps, first, spec);
        }
        match &self.series {
            Some(series) if self.resumes_picture(first) => {
                series.changed_bytes(first, shape_of(spec))
            }
            Some(_) | None => Ok(0),
        }
    }
}
