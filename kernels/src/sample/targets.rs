//! Prepares a sample with its targets: points are moved while the stages are planned, and masks
//! pass through the same stages after the picture.

use super::{SampleId, SamplePreparer, Source, Streams, Tensor};
use crate::decode::Encoded;
use crate::error::Error;
use crate::stage::Geometry;
use crate::target_problem::TargetProblem;
use crate::targets::{Layers, Prepared, TargetSpec};
use meetpoint_format::recipe::TensorSpec;

impl SamplePreparer {
    /// Sets the targets of [`Self::prepare_with`]. Their columns are names for errors.
    pub fn set_targets(&mut self, targets: Vec<TargetSpec>) {
        self.prepared.clear();
        self.prepared.resize_with(targets.len(), Prepared::default);
        self.targets = targets;
    }

    /// Like [`Self::prepare`], with the stored values of all targets, in order, which move with the
    /// picture: [`Self::target`] returns the results.
    ///
    /// Values must have the form of [`TargetSpec::stored`].
    pub fn prepare_with(
        &mut self,
        encoded: Encoded<'_>,
        stored: &[&[u8]],
        id: SampleId,
        out: &mut [u8],
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        if self.is_of_series() {
            return self.prepare(encoded, id, out, after_stage);
        }
        let id = Streams::from(id);
        let spec = self.plan_with(encoded, stored, id)?;
        self.check_output(spec, out)?;
        self.run_with(encoded, (stored, spec), id, out, after_stage)
    }

    /// Like [`Self::prepare_tensor`], with the stored values of all targets.
    pub fn prepare_tensor_with(
        &mut self,
        encoded: Encoded<'_>,
        stored: &[&[u8]],
        id: SampleId,
    ) -> Result<Tensor, Error> {
        if self.is_of_series() {
            return self.prepare_tensor(encoded, id);
        }
        let id = Streams::from(id);
        let spec = self.plan_with(encoded, stored, id)?;
        let mut data = vec![0; spec.bytes()];
        self.run_with(encoded, (stored, spec), id, &mut data, &mut || ())?;
        Ok(Tensor { spec, data })
    }

    /// Like [`Self::prepare_with`], for a shape that may depend on the picture: appends the tensor
    /// to `out`, and returns its shape. After an error `out` has its original length.
    pub fn prepare_appended(
        &mut self,
        encoded: Encoded<'_>,
        stored: &[&[u8]],
        id: SampleId,
        out: &mut Vec<u8>,
        after_stage: &mut dyn FnMut(),
    ) -> Result<TensorSpec, Error> {
        let id = Streams::from(id);
        let spec = self.plan_with(encoded, stored, id)?;
        let start = out.len();
        out.resize(start + spec.bytes(), 0);
        let done = self.run_with(encoded, (stored, spec), id, &mut out[start..], after_stage);
        if done.is_err() {
            out.truncate(start);
        }
        done.map(|()| spec)
    }

    fn plan_with(
        &mut self,
        encoded: Encoded<'_>,
        stored: &[&[u8]],
        id: Streams,
    ) -> Result<TensorSpec, Error> {
        assert_eq!(stored.len(), self.targets.len(), "a value for each target");
        self.plan(encoded, stored, id)
    }

    fn run_with(
        &mut self,
        encoded: Encoded<'_>,
        (stored, spec): (&[&[u8]], TensorSpec),
        id: Streams,
        out: &mut [u8],
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        self.finish_points(stored, spec);
        self.run(Source::Encoded(encoded), id, out, after_stage)?;
        self.finish(spec, id, out, after_stage)?;
        self.prepare_masks(stored, spec, id, after_stage)
    }

    /// Computes the targets whose points have moved through all stages.
    pub(super) fn finish_points(&mut self, stored: &[&[u8]], spec: TensorSpec) {
        let size = (spec.width, spec.height);
        for ((target, stored), into) in self.targets.iter().zip(stored).zip(&mut self.prepared) {
            target.finish(stored, size, &self.points, into);
        }
    }

    /// Runs the masks through the stages of their picture.
    pub(super) fn prepare_masks(
        &mut self,
        stored: &[&[u8]],
        spec: TensorSpec,
        id: Streams,
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        for (index, stored) in stored.iter().enumerate() {
            self.prepare_mask(index, stored, spec, id, after_stage)?;
        }
        Ok(())
    }

    /// The bytes of the last sample's target in a batch.
    pub fn target(&self, index: usize) -> &[u8] {
        &self.prepared[index].bytes
    }

    /// Whether each box of the last sample is retained; `None` if boxes are never left out.
    /// [`Self::target`] contains all boxes.
    pub fn retained(&self, index: usize) -> Option<&[bool]> {
        self.prepared[index].kept.as_deref()
    }

    /// Reads the points of the targets, whose coordinates are those of the decoded picture.
    pub(super) fn begin_targets(&mut self, stored: &[&[u8]]) -> Result<(), Error> {
        self.points.clear();
        let picture = (self.source.width, self.source.height);
        for ((target, stored), into) in self.targets.iter().zip(stored).zip(&mut self.prepared) {
            let begun = target.begin(stored, picture, &mut self.points, into);
            begun.map_err(|problem| of(target, problem))?;
        }
        Ok(())
    }

    /// Upper bound of the memory in bytes for masks besides the picture of a sample: its planes,
    /// and the elements of one mask.
    pub(super) fn mask_bytes(&self, picture: Geometry) -> u64 {
        let pixels = u64::from(picture.width) * u64::from(picture.height);
        let masks = self.targets.iter().filter(|target| !target.kind.has_points());
        let elements = masks.map(|target| pixels * target.prepared.element().bytes());
        elements.max().map_or(0, |bytes| picture.bytes() + bytes)
    }

    fn prepare_mask(
        &mut self,
        index: usize,
        stored: &[u8],
        spec: TensorSpec,
        id: Streams,
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        let picture = (self.source.width, self.source.height);
        if self.targets[index].kind.has_points() {
            return Ok(());
        }
        let pixels = spec.height as usize * spec.width as usize;
        let mut bytes = std::mem::take(&mut self.prepared[index].bytes);
        let mut result = std::mem::take(&mut self.masks.result);
        for part in Layers::parts(self.targets[index].is_file_per_object, stored) {
            let target = &self.targets[index];
            let layers = Layers::of(target, part, picture).map_err(|it| of(target, it))?;
            let Some(layers) = layers else { continue };
            let before = bytes.len();
            self.masks.begin(&layers);
            for layer in layers.each() {
                layers.put(layer, &mut self.picture);
                result.resize(pixels * layers.planes(), 0);
                self.run_styled(Source::Picture, layer.style, id, &mut result, after_stage)?;
                layers.take(layer, (pixels, &result), (before, &mut bytes));
            }
        }
        self.prepared[index].bytes = bytes;
        self.masks.result = result;
        Ok(())
    }
}

fn of(target: &TargetSpec, problem: TargetProblem) -> Error {
    Error::Target { column: target.column.clone(), problem: Box::new(problem) }
}
