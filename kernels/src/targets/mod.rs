//! The targets of a sample: their stored values in, and what batches hold of them out.
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

/// A target of a preparer: what is stored for a sample, and what is to be prepared of it.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetSpec {
    /// Name of its column.
    pub column: String,
    /// Kind and options.
    pub kind: TargetKind,
    /// What the dataset holds for a sample, or for each object.
    pub stored: ColumnKind,
    /// Whether the dataset holds a file for each object, as [`meetpoint_format::column::files_of`]
    /// reads them.
    pub is_file_per_object: bool,
    /// What a batch holds for a sample.
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
        /// Of the mask.
        mask: (u32, u32),
        /// Of the picture as it is decoded.
        picture: (u32, u32),
    },
    /// A mask that is not a PNG, or cannot be decoded.
    #[error("the mask cannot be decoded: {reason}")]
    MaskPng {
        /// Cause.
        reason: String,
    },
    /// A PNG whose pixels are not elements of a mask.
    #[error("the mask is a PNG with {found}, but {wanted} is wanted")]
    MaskColours {
        /// Colour type and depth.
        found: String,
        /// What fits.
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
    /// A box whose right side lies left of its left side, or whose lower side above its upper side.
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
    /// A box no point of which lies in the picture.
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
        /// Of the picture as it is decoded.
        picture: (u32, u32),
    },
    /// Points that cannot change places.
    #[error("`swap` names the point {wanted}, but the sample has {count}")]
    NoPoint {
        /// As named.
        wanted: u32,
        /// Points of the sample.
        count: usize,
    },
}

/// What a preparer has of the target of a sample.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// Its points among all that move.
    points: Range<usize>,
    /// The values of a batch.
    pub(crate) bytes: Vec<u8>,
    /// Of boxes that may be left out, which are kept.
    pub(crate) kept: Option<Vec<bool>>,
}

impl TargetSpec {
    /// Takes the points of a sample, if it has some.
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

    /// Writes points that have been moved into a picture of a size.
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
