//! The passes of a resize along one axis, as plain data without pixels.

/// A position of an axis without a pixel: the result is
/// [`StageProgram::outside`](crate::StageProgram::outside) there.
pub const OUTSIDE: i32 = -1;

/// One axis of a stage. Positions are relative to the first of the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AxisProgram {
    /// Each position of the result is the same position of the region.
    Shift,
    /// Each position of the result is copied from one of the region, or is [`OUTSIDE`]: one word
    /// per position of the result, starting at this index.
    Pick {
        /// Index of the first word.
        words: usize,
    },
    /// Each position of the result is a weighted sum. The words, for `n` positions: `n` first
    /// positions in the region, `n` counts of weights, then the `n` first weights, the `n` second
    /// weights, and so on. Weights have [`WEIGHT_BITS`](crate::WEIGHT_BITS) fraction bits and
    /// are 0 beyond the count. The sum starts at one half and is truncated.
    Weigh {
        /// Index of the first word.
        words: usize,
        /// Maximum number of weights of a position.
        taps: u32,
    },
}
