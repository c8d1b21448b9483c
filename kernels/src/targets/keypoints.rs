//! Keypoints: read as points that move, written with their other stored values.

use super::Prepared;
use super::numbers::{finite, numbers, put};
use crate::points::{Point, Points};
use crate::target_problem::TargetProblem;
use meetpoint_format::column::ColumnKind;
use meetpoint_format::recipe::{Keypoints, OutsidePoint};

/// Numbers of a point.
fn arity(stored: &ColumnKind) -> usize {
    stored.axes().last().map_or(2, |count| *count as usize)
}

/// Number of points per object: the length of the axis before the last, which may be the variable
/// one.
fn of_object(stored: &ColumnKind, points: usize) -> usize {
    match stored.axes() {
        [.., count, _] => *count as usize,
        _ if stored.is_variable() => points,
        _ => 1,
    }
}

/// The points of a sample.
pub(super) fn points(
    keypoints: &Keypoints,
    (stored, bytes): (&ColumnKind, &[u8]),
) -> Result<Vec<Point>, TargetProblem> {
    let arity = arity(stored);
    let numbers = finite(stored.element(), bytes)?;
    let points: Vec<Point> = numbers.chunks_exact(arity).map(|it| (it[0], it[1])).collect();
    let count = of_object(stored, points.len());
    let beyond = keypoints.swap.iter().flatten().find(|index| **index as usize >= count);
    match beyond {
        Some(wanted) if !points.is_empty() => {
            Err(TargetProblem::NoPoint { wanted: *wanted, count })
        }
        _ => Ok(points),
    }
}

/// Writes the points after they moved into a picture of this size.
pub(super) fn write(
    keypoints: &Keypoints,
    (stored, bytes): (&ColumnKind, &[u8]),
    size: (u32, u32),
    points: &Points,
    into: &mut Prepared,
) {
    let (width, height) = (f64::from(size.0), f64::from(size.1));
    let arity = arity(stored);
    let stored_numbers = numbers(stored.element(), bytes);
    let moved = points.some(into.points.clone());
    let count = of_object(stored, moved.len()).max(1);
    // For each position, the index within an object of the point that moves there.
    let mut from: Vec<usize> = (0..count).collect();
    if points.is_mirrored() {
        for [one, other] in &keypoints.swap {
            from.swap(*one as usize, *other as usize);
        }
    }
    for object in (0..moved.len()).step_by(count) {
        for index in &from {
            let index = object + index;
            let (x, y) = moved[index];
            let third = (arity == 3).then(|| stored_numbers[3 * index + 2]);
            let is_outside = !((0.0..=width).contains(&x) && (0.0..=height).contains(&y));
            let (x, y, third) = match keypoints.outside {
                // A missing point has no position.
                _ if third == Some(0.0) => {
                    (stored_numbers[3 * index], stored_numbers[3 * index + 1], third)
                }
                OutsidePoint::Clamp => (x.max(0.0).min(width), y.max(0.0).min(height), third),
                OutsidePoint::Zero if is_outside => (0.0, 0.0, third.map(|_| 0.0)),
                OutsidePoint::Zero | OutsidePoint::Keep => (x, y, third),
            };
            [Some(x), Some(y), third].into_iter().flatten().for_each(|it| put(it, &mut into.bytes));
        }
    }
}
