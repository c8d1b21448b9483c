//! Lines of bytes, and their weights.

/// One line per weighted pixel, and the weights.
pub(super) struct WeightedLines<'a, const TAPS: usize> {
    /// Each continues for a block past the end of the output.
    pub(super) lines: [&'a [u8]; TAPS],
    pub(super) weights: [f32; TAPS],
    /// Upper bound of the difference between the sums and Pillow's.
    pub(super) error: f32,
    pub(super) out: &'a mut [u8],
    /// Receives the positions of doubtful values.
    pub(super) doubtful: &'a mut Vec<usize>,
}
