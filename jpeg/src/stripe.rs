//! Pixels in planes, a few rows at a time: what a decoder passes to its caller.

/// Bytes after the end of a row that may be read; their values are unspecified.
pub const ROW_SLACK: usize = 32;

/// Pixels in planes (R, G, B), some rows of a region from top to bottom. Rows are `stride` bytes
/// apart in each plane, each plane holds `rows * stride` bytes, and `stride >= width + 32`: reading
/// up to 32 bytes after a row's end stays inside the plane.
#[derive(Debug, Clone, Copy)]
pub struct Stripe<'a> {
    /// Red, green and blue.
    pub planes: [&'a [u8]; 3],
    /// Bytes from a pixel to the one below it.
    pub stride: usize,
    /// Columns.
    pub width: usize,
    /// Rows.
    pub rows: usize,
}

impl<'a> Stripe<'a> {
    /// A row of a plane with the readable bytes after its end: `width + 32` bytes.
    #[inline]
    pub fn row(&self, plane: usize, y: usize) -> &'a [u8] {
        &self.planes[plane][y * self.stride..][..self.width + ROW_SLACK]
    }

    /// The stripe without its first rows.
    pub(crate) fn below(self, rows: usize) -> Self {
        let planes = self.planes.map(|plane| &plane[rows * self.stride..]);
        Self { planes, rows: self.rows - rows, ..self }
    }
}
