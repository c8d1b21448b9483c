//! Lines of bytes side by side, and how they are weighed.

/// As many lines as pixels are weighed, and their weights.
pub(super) struct Weighed<'a, const TAPS: usize> {
    /// Each continues for a block past the end of the output.
    pub(super) lines: [&'a [u8]; TAPS],
    pub(super) weights: [f32; TAPS],
    /// More than the sums differ from Pillow's.
    pub(super) error: f32,
    pub(super) out: &'a mut [u8],
    /// Gets the positions of values that are doubtful.
    pub(super) doubtful: &'a mut Vec<usize>,
}
