//! Which operations of a recipe share a stage, for one sample.

use super::SampleId;
use crate::Error;
use crate::operations::Step;
use crate::stage::{Fit, Geometry, Stage};

/// Passes the stages of a sample to a function, in order. Returns the geometry of the tensor.
///
/// Operations on the geometry join a stage as long as it takes them. An operation on pixels that is
/// applied to the sample ends its stage, and another stage always follows.
pub(super) fn for_each_stage(
    steps: &[Step],
    mut picture: Geometry,
    id: SampleId,
    found: &mut dyn FnMut(Stage),
) -> Result<Geometry, Error> {
    let mut next = 0;
    loop {
        let mut stage = Stage::of(picture);
        next = join(steps, next, id, &mut stage)?;
        stage.is_last = next == steps.len();
        let first = next;
        while matches!(steps.get(next), Some(Step::Pixels(_))) {
            next += 1;
        }
        stage.pixels = first..next;
        picture = stage.result();
        let is_last = stage.is_last;
        found(stage);
        if is_last {
            return Ok(picture);
        }
    }
}

/// Adds operations from an index on to a stage. Returns the index of the first that is not part of
/// it.
fn join(steps: &[Step], from: usize, id: SampleId, stage: &mut Stage) -> Result<usize, Error> {
    for (index, step) in steps.iter().enumerate().skip(from) {
        match step {
            Step::Geometry(operation) => {
                if operation.join(stage, &mut id.draws(index))? == Fit::Next {
                    return Ok(index);
                }
            }
            Step::Pixels(operation) => {
                if operation.is_applied(&mut id.draws(index)) {
                    return Ok(index);
                }
            }
            Step::Decode(_) | Step::Elements(_) => (),
        }
    }
    Ok(steps.len())
}
