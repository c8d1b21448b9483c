//! Boxes: read as corners that move, written as the bounding boxes of the corners.

use super::Prepared;
use super::numbers::{finite, put};
use crate::points::{Point, Points, around};
use crate::target_problem::TargetProblem;
use meetpoint_format::column::ColumnKind;
use meetpoint_format::recipe::{BoxFormat, Boxes};

/// The corners of all boxes of a sample, four per box.
pub(super) fn corners(
    boxes: &Boxes,
    (stored, bytes): (&ColumnKind, &[u8]),
    picture: (u32, u32),
) -> Result<Vec<Point>, TargetProblem> {
    let numbers = finite(stored.element(), bytes)?;
    let (width, height) = (f64::from(picture.0), f64::from(picture.1));
    let mut found = Vec::with_capacity(numbers.len());
    let (quads, _) = numbers.as_chunks();
    for (index, &[a, b, c, d]) in quads.iter().enumerate() {
        let [left, top, right, bottom] = match boxes.format {
            BoxFormat::Xyxy => [a, b, c, d],
            BoxFormat::Xywh => [a, b, a + c, b + d],
            BoxFormat::Cxcywh => [a - c * 0.5, b - d * 0.5, a + c * 0.5, b + d * 0.5],
        };
        let corners = [left, top, right, bottom];
        if right < left || bottom < top {
            return Err(TargetProblem::NegativeBox { index, corners });
        }
        if right < 0.0 || bottom < 0.0 || left > width || top > height {
            return Err(TargetProblem::BoxOutside { index, corners, picture });
        }
        found.extend([(left, top), (right, top), (right, bottom), (left, bottom)]);
    }
    Ok(found)
}

/// Writes the bounding boxes of the moved corners, clamped to a picture of this size.
pub(super) fn write(boxes: &Boxes, size: (u32, u32), points: &Points, into: &mut Prepared) {
    let (width, height) = (f64::from(size.0), f64::from(size.1));
    let mut kept = Vec::new();
    let corners = points.some(into.points.clone()).chunks_exact(4);
    for (index, corners) in corners.enumerate() {
        let is_dropped = points.is_dropped(&into.points, index);
        let [left, top, right, bottom] = match is_dropped {
            true => [0.0; 4],
            false => around(corners.iter().copied()),
        };
        // NaN becomes 0.
        let clamp = |position: f64, side: f64| position.max(0.0).min(side);
        let (left, right) = (clamp(left, width), clamp(right, width));
        let (top, bottom) = (clamp(top, height), clamp(bottom, height));
        let (wide, high) = (right - left, bottom - top);
        let is_large = boxes.min_size.is_none_or(|least| wide >= least && high >= least)
            && boxes.min_area.is_none_or(|least| wide * high >= least);
        kept.push(is_large && !is_dropped);
        let result = match boxes.to_format.unwrap_or(boxes.format) {
            BoxFormat::Xyxy => [left, top, right, bottom],
            BoxFormat::Xywh => [left, top, wide, high],
            BoxFormat::Cxcywh => [(left + right) * 0.5, (top + bottom) * 0.5, wide, high],
        };
        result.into_iter().for_each(|number| put(number, &mut into.bytes));
    }
    into.kept = boxes.is_sanitized().then_some(kept);
}
