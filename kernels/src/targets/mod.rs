//! The targets of a sample: converts their stored values to those of batches.
//!
//! In reading order: [`TargetSpec`] and [`TargetProblem`], `numbers` (elements as float64), `boxes`
//! and `keypoints` (points that move), `mask` (elements as planes of pixels), `png` (masks in
//! files).

mod boxes;
mod keypoints;
mod mask;
mod numbers;
mod png;
#[cfg(test)]
mod tests;

pub(crate) use mask::{Layers, Memory};
pub use numbers::element_bytes;

use crate::points::Points;
use crate::target_problem::TargetProblem;
use meetpoint_format::column::ColumnKind;
use meetpoint_format::recipe::TargetKind;
use std::ops::Range;

/// A target of a preparer: the stored and the prepared form.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetSpec {
    /// Name of its column.
    pub column: String,
    /// Kind and options.
    pub kind: TargetKind,
    /// The stored form for a sample, or for each object.
    pub stored: ColumnKind,
    /// Whether the dataset contains a file for each object, as read by
    /// [`meetpoint_format::column::files_of`].
    pub is_file_per_object: bool,
    /// The form of a sample in a batch.
    pub prepared: ColumnKind,
}

/// The state of a sample's target in a preparer.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// The range of its points among all points.
    points: Range<usize>,
    /// The prepared values.
    pub(crate) bytes: Vec<u8>,
    /// Whether each box is retained, if boxes may be left out.
    pub(crate) kept: Option<Vec<bool>>,
}

impl TargetSpec {
    /// Reads the points of a sample, if it has any.
    pub(crate) fn begin(
        &self,
        stored: &[u8],
        picture: (u32, u32),
        points: &mut Points,
        into: &mut Prepared,
    ) -> Result<(), TargetProblem> {
        into.bytes.clear();
        into.kept = None;
        match &self.kind {
            TargetKind::Mask(_) | TargetKind::Saliency(_) => {}
            TargetKind::Boxes(it) => {
                let corners = boxes::corners(it, (&self.stored, stored), picture)?;
                into.points = points.add_boxes(corners.into_iter());
            }
            TargetKind::Keypoints(it) => {
                let at = keypoints::points(it, (&self.stored, stored))?;
                into.points = points.add(at.into_iter());
            }
        }
        Ok(())
    }

    /// Writes the points after they moved into a picture of this size.
    pub(crate) fn finish(
        &self,
        stored: &[u8],
        size: (u32, u32),
        points: &Points,
        into: &mut Prepared,
    ) {
        match &self.kind {
            TargetKind::Mask(_) | TargetKind::Saliency(_) => {}
            TargetKind::Boxes(it) => boxes::write(it, size, points, into),
            TargetKind::Keypoints(it) => {
                keypoints::write(it, (&self.stored, stored), size, points, into);
            }
        }
    }
}
