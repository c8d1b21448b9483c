//! Which operations of a recipe share a stage, for one sample.

use super::SampleId;
use crate::Error;
use crate::operations::Step;
use crate::stage::{Fit, Geometry, Stage, check_pixels};

/// Passes the stages of a sample to a function, in order. Returns the geometry of the tensor.
///
/// Operations on the geometry join a stage as long as it takes them. An operation on a whole
/// picture that is applied to the sample ends its stage, and another stage always follows.
pub(super) fn for_each_stage(
    steps: &[Step],
    mut picture: Geometry,
    id: SampleId,
    found: &mut dyn FnMut(Stage),
) -> Result<Geometry, Error> {
    let mut next = 0;
    loop {
        let mut stage = Stage::of(picture);
        let (first, fit) = join(steps, next, id, &mut stage)?;
        next = first;
        stage.is_last = next == steps.len();
        let canvas = Geometry::upright(stage.canvas.width, stage.canvas.height);
        let (after, bytes_max) = follow(steps, &mut next, fit, id, canvas)?;
        stage.whole = first..next;
        stage.after = if stage.whole.is_empty() { stage.result() } else { after };
        stage.whole_bytes_max = bytes_max;
        picture = stage.after;
        let is_last = stage.is_last;
        found(stage);
        if is_last {
            return Ok(picture);
        }
    }
}

/// Adds operations from an index on to a stage. Returns the index of the first that is not part of
/// it, and whether that is executed on the whole picture.
fn join(
    steps: &[Step],
    from: usize,
    id: SampleId,
    stage: &mut Stage,
) -> Result<(usize, Fit), Error> {
    for (index, step) in steps.iter().enumerate().skip(from) {
        match step {
            Step::Geometry(operation) => match operation.join(stage, &mut id.draws(index))? {
                Fit::Here => (),
                fit @ (Fit::Next | Fit::Whole) => return Ok((index, fit)),
            },
            Step::Pixels(operation) => {
                if operation.is_applied(&mut id.draws(index)) {
                    return Ok((index, Fit::Whole));
                }
            }
            Step::Picture(operation) => {
                let (height, width) = stage.size();
                if operation.size((width, height), &mut id.draws(index))?.is_some() {
                    return Ok((index, Fit::Whole));
                }
            }
            Step::Decode(_) | Step::Elements(_) => (),
        }
    }
    Ok((steps.len(), Fit::Here))
}

/// Moves an index past the operations that are executed on the whole picture after a stage; `fit`
/// is that of the first. Returns the picture after them, and the most bytes of pictures in memory.
fn follow(
    steps: &[Step],
    next: &mut usize,
    fit: Fit,
    id: SampleId,
    mut picture: Geometry,
) -> Result<(Geometry, u64), Error> {
    let mut bytes_max = 0;
    let first = *next;
    while let Some(step) = steps.get(*next) {
        let operation = match step {
            Step::Pixels(operation) => {
                if operation.needs_copy() && operation.is_applied(&mut id.draws(*next)) {
                    bytes_max = bytes_max.max(2 * picture.bytes());
                }
                None
            }
            Step::Picture(operation) => Some(&**operation),
            Step::Geometry(operation) if fit == Fit::Whole && *next == first => operation.whole(),
            Step::Geometry(_) | Step::Decode(_) | Step::Elements(_) => break,
        };
        if let Some(operation) = operation {
            let size = (picture.width, picture.height);
            if let Some((width, height)) = operation.size(size, &mut id.draws(*next))? {
                check_pixels(width, height)?;
                let result = Geometry::upright(width, height);
                bytes_max = bytes_max.max(picture.bytes() + result.bytes());
                picture = result;
            }
        }
        *next += 1;
    }
    Ok((picture, bytes_max))
}
