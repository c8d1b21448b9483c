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

/// Why a target does not fit its picture. Sizes are columns and rows.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetProblem {
    /// A mask of another size.
    #[error(
        "the mask has {} x {} pixels, the picture {} x {} (width x height)",
        .mask.0, .mask.1, .picture.0, .picture.1
    )]
    MaskSize {
        /// Size of the mask.
        mask: (u32, u32),
        /// Size of the decoded picture.
        picture: (u32, u32),
    },
    /// A mask that is not a PNG, or cannot be decoded.
    #[error("the mask cannot be decoded: {reason}")]
    MaskPng {
        /// Cause.
        reason: String,
    },
    /// A PNG whose pixel type does not match the elements of the mask.
    #[error("the mask is a PNG with {found}, but {wanted} is wanted")]
    MaskColours {
        /// Colour type and bit depth.
        found: String,
        /// The expected types.
        wanted: &'static str,
    },
    /// A coordinate that is not a finite number.
    #[error("number {index} is {value}, not a finite number")]
    NotFinite {
        /// Index among all numbers of the sample.
        index: usize,
        /// As stored.
        value: f64,
    },
    /// A box whose right side is left of its left side, or whose lower side is above its upper
    /// side.
    #[error(
        "box {index} has the corners ({}, {}) and ({}, {}), the second above or left of the first; \
         is its format right?",
        .corners[0], .corners[1], .corners[2], .corners[3]
    )]
    NegativeBox {
        /// Index of the box.
        index: usize,
        /// Left, top, right and bottom.
        corners: [f64; 4],
    },
    /// A box that is completely outside the picture.
    #[error(
        "box {index} with the corners ({}, {}) and ({}, {}) lies outside of the picture of {} x {} \
         pixels; is its format right?",
        .corners[0], .corners[1], .corners[2], .corners[3], .picture.0, .picture.1
    )]
    BoxOutside {
        /// Index of the box.
        index: usize,
        /// Left, top, right and bottom.
        corners: [f64; 4],
        /// Size of the decoded picture.
        picture: (u32, u32),
    },
    /// A point named by `swap` that the sample does not have.
    #[error("`swap` names the point {wanted}, but the sample has {count}")]
    NoPoint {
        /// The given index.
        wanted: u32,
        /// Points of the sample.
        count: usize,
    },
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
