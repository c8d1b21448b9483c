//! Groups the operations of a recipe into stages, for one sample.

use super::Streams;
use crate::colour::RowChanges;
use crate::operations::{StageRefusal, Step};
use crate::points::Points;
use crate::stage::{Fit, Geometry, Stage, check_pixels};
use crate::{DoesNotFit, Error};
use meetpoint_format::random::OPERATIONS_MAX;

/// An operation that does not fit the picture after the preceding operations.
struct OperationMisfit {
    number: usize,
    key: &'static str,
    /// Height and width.
    picture: (u32, u32),
    why: StageRefusal,
}

impl OperationMisfit {
    fn error(self, names: &[&'static str]) -> Error {
        let Self { number, key, picture, why } = self;
        match why {
            StageRefusal::Misfit(misfit) => {
                let operation = names[number];
                Error::DoesNotFit(Box::new(DoesNotFit { operation, key, picture, misfit }))
            }
            StageRefusal::Error(error) => error,
        }
    }
}

/// The target of the last operation on the geometry of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramEnd {
    /// The tensor.
    Tensor,
    /// A picture in memory for further operations.
    Picture,
}

/// Appends the numbers of the operations in `first..end` that are executed for a sample, in order.
/// Operations that contain others are replaced by their choice.
pub(crate) fn choose(
    steps: &[Step],
    first: usize,
    end: usize,
    id: Streams,
    chosen: &mut Vec<usize>,
) {
    let mut number = first;
    while number < end {
        number = choose_one(steps, number, id, chosen);
    }
}

/// Appends one operation, or what it chooses. Returns the number of the operation after it.
fn choose_one(steps: &[Step], number: usize, id: Streams, chosen: &mut Vec<usize>) -> usize {
    let Step::Choice { choice, content, end } = &steps[number] else {
        chosen.push(number);
        return number + 1;
    };
    let mut numbers = [0; OPERATIONS_MAX as usize];
    let numbers = &mut numbers[..content.len()];
    numbers.copy_from_slice(content);
    for inner in choice.choose(&mut id.draws(number), numbers) {
        choose_one(steps, usize::from(*inner), id, chosen);
    }
    *end
}

/// Passes the stages of a sample to a function, in order, and moves points through them. Returns
/// the geometry of the tensor. `chosen` are the numbers of the sample's operations, `names` the
/// names of all operations.
///
/// Operations on the geometry join a stage as long as it accepts them. An operation on a whole
/// picture that is applied to the sample ends its stage, and another stage always follows.
pub(super) fn for_each_stage(
    (steps, names): (&[Step], &[&'static str]),
    (chosen, ends): (&[usize], ProgramEnd),
    mut picture: Geometry,
    id: Streams,
    points: &mut Points,
    found: &mut dyn FnMut(Stage),
) -> Result<Geometry, Error> {
    let mut next = 0;
    loop {
        let mut stage = Stage::of(picture);
        let joined = join((steps, chosen), next, id, &mut stage, points);
        let (first, fit) = joined.map_err(|unfit| unfit.error(names))?;
        next = first;
        if ends == ProgramEnd::Tensor
            && let Some(changes) = changes_to_the_end((steps, &chosen[first..]), id)
        {
            stage.changes = changes;
            next = chosen.len();
        }
        let (first, fit) = if next == first { (first, fit) } else { (next, Fit::Here) };
        stage.is_last = ends == ProgramEnd::Tensor && next == chosen.len();
        let canvas = Geometry::upright(stage.canvas.width, stage.canvas.height);
        let followed = follow((steps, chosen), &mut next, fit, id, canvas);
        let (after, bytes_max) = followed.map_err(|unfit| unfit.error(names))?;
        stage.whole = first..next;
        stage.after = if stage.whole.is_empty() { stage.result() } else { after };
        stage.whole_bytes_max = bytes_max;
        if !points.is_empty() {
            stage.move_points(points);
            let numbers = &chosen[stage.whole.clone()];
            move_points(steps, numbers, (canvas.width, canvas.height), id, points)?;
        }
        picture = stage.after;
        let is_last = stage.is_last || ends == ProgramEnd::Picture && next == chosen.len();
        found(stage);
        if is_last {
            return Ok(picture);
        }
    }
}

/// Adds operations from a position on to a stage. Returns the position of the first operation that
/// is not part of it, and whether that operation is executed on the whole picture.
fn join(
    (steps, chosen): (&[Step], &[usize]),
    from: usize,
    id: Streams,
    stage: &mut Stage,
    points: &mut Points,
) -> Result<(usize, Fit), OperationMisfit> {
    for (index, number) in chosen.iter().enumerate().skip(from) {
        match &steps[*number] {
            Step::Geometry(operation) => {
                let (number, key, picture) = (*number, operation.size_key(), stage.size());
                match operation.join(stage, &mut id.draws(number), points) {
                    Ok(Fit::Here) => (),
                    Ok(fit @ (Fit::Next | Fit::Whole)) => return Ok((index, fit)),
                    Err(why) => return Err(OperationMisfit { number, key, picture, why }),
                }
            }
            Step::Pixels(operation) => {
                if operation.is_applied(&mut id.draws(*number)) {
                    return Ok((index, Fit::Whole));
                }
            }
            Step::Picture(operation) => {
                let (height, width) = stage.size();
                let (size, draws) = ((width, height), || id.draws(*number));
                let is_applied = operation.size(size, &mut draws()).is_some();
                let shift = if is_applied { operation.shift(size, &mut draws()) } else { None };
                let fit = match shift {
                    Some(shift) => stage.shift(shift),
                    None if is_applied => Fit::Whole,
                    None => Fit::Here,
                };
                if fit != Fit::Here {
                    return Ok((index, fit));
                }
            }
            Step::Decode(_)
            | Step::DecodeSeries(_)
            | Step::DecodeText(_)
            | Step::Series(_)
            | Step::Text(_)
            | Step::Elements(_)
            | Step::Tensor(_)
            | Step::Batch(_) => (),
            Step::Choice { .. } => unreachable!("choices were made before"),
        }
    }
    Ok((chosen.len(), Fit::Here))
}

/// The changes of colours of the remaining operations, if all of them change single rows or
/// elements, so that no picture is needed in memory.
fn changes_to_the_end((steps, chosen): (&[Step], &[usize]), id: Streams) -> Option<RowChanges> {
    let is_wide = |step: &Step| matches!(step, Step::Decode(it) if it.mode.is_wide());
    if steps.iter().any(is_wide) {
        return None;
    }
    let mut changes = RowChanges::default();
    for number in chosen {
        match &steps[*number] {
            Step::Pixels(operation) => {
                let draws = || id.draws(*number);
                let is_applied = operation.is_applied(&mut draws());
                if is_applied && !operation.add_row_changes(&mut draws(), &mut changes) {
                    return None;
                }
            }
            Step::Geometry(_) | Step::Picture(_) => return None,
            Step::Decode(_)
            | Step::DecodeSeries(_)
            | Step::DecodeText(_)
            | Step::Series(_)
            | Step::Text(_)
            | Step::Elements(_)
            | Step::Tensor(_)
            | Step::Batch(_) => (),
            Step::Choice { .. } => unreachable!("choices were made before"),
        }
    }
    Some(changes)
}

/// Advances a position past the operations that are executed on the whole picture after a stage;
/// `fit` is that of the first. Returns the picture after them, and the maximum number of bytes of
/// pictures in memory.
fn follow(
    (steps, chosen): (&[Step], &[usize]),
    next: &mut usize,
    fit: Fit,
    id: Streams,
    mut picture: Geometry,
) -> Result<(Geometry, u64), OperationMisfit> {
    let mut bytes_max = 0;
    let first = *next;
    while let Some(number) = chosen.get(*next) {
        let operation = match &steps[*number] {
            Step::Pixels(operation) => {
                let size = (picture.width, picture.height);
                let extra = operation.extra_bytes(picture.bytes(), size);
                if extra > 0 && operation.is_applied(&mut id.draws(*number)) {
                    bytes_max = bytes_max.max(picture.bytes() + extra);
                }
                None
            }
            Step::Picture(operation) => Some(&**operation),
            Step::Geometry(operation) if fit == Fit::Whole && *next == first => operation.whole(),
            Step::Geometry(_)
            | Step::Decode(_)
            | Step::DecodeSeries(_)
            | Step::DecodeText(_)
            | Step::Series(_)
            | Step::Text(_)
            | Step::Elements(_)
            | Step::Tensor(_)
            | Step::Batch(_) => break,
            Step::Choice { .. } => unreachable!("choices were made before"),
        };
        if let Some(operation) = operation {
            let size = (picture.width, picture.height);
            if let Some((width, height)) = operation.size(size, &mut id.draws(*number)) {
                check_pixels(width, height).map_err(|misfit| {
                    let (number, key, why) = (*number, operation.size_key(), misfit.into());
                    OperationMisfit { number, key, picture: (size.1, size.0), why }
                })?;
                let result = Geometry::upright(width, height);
                let held = picture.bytes() + result.bytes() + operation.buffer_bytes(size);
                bytes_max = bytes_max.max(held);
                picture = result;
            }
        }
        *next += 1;
    }
    Ok((picture, bytes_max))
}

/// Moves points through operations, given by numbers, on a whole picture of this size.
fn move_points(
    steps: &[Step],
    numbers: &[usize],
    mut size: (u32, u32),
    id: Streams,
    points: &mut Points,
) -> Result<(), Error> {
    for number in numbers {
        let operation = match &steps[*number] {
            Step::Picture(operation) => Some(&**operation),
            Step::Geometry(operation) => operation.whole(),
            Step::Decode(_)
            | Step::DecodeSeries(_)
            | Step::DecodeText(_)
            | Step::Series(_)
            | Step::Text(_)
            | Step::Pixels(_)
            | Step::Elements(_)
            | Step::Tensor(_)
            | Step::Batch(_)
            | Step::Choice { .. } => None,
        };
        if let Some(operation) = operation
            && let Some(to) = operation.size(size, &mut id.draws(*number))
        {
            operation.move_points(size, &mut id.draws(*number), points)?;
            size = to;
        }
    }
    Ok(())
}
