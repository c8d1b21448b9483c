//! Why a target does not fit its picture.

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
