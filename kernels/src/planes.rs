//! Rows and whole pictures in planes, which pass between the stages after a decoder.

pub use meetpoint_jpeg::{ROW_SLACK, Stripe};

/// One row of pixels in planes, each slice with at least `width` bytes rounded up to a multiple of
/// 32; bytes beyond the width are unspecified.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Red, green and blue.
    pub planes: [&'a [u8]; 3],
    /// Columns.
    pub width: usize,
}

/// A picture in planes that owns its memory and reuses it when the size changes.
#[derive(Debug, Default)]
pub(crate) struct Planes {
    bytes: Vec<u8>,
    stride: usize,
    plane_bytes: usize,
    width: usize,
    rows: usize,
}

impl Planes {
    /// Sets the size. The pixels are unspecified.
    pub(crate) fn set_size(&mut self, width: usize, rows: usize) {
        self.stride = (width + ROW_SLACK).next_multiple_of(ROW_SLACK);
        // A rectangle that starts inside a row extends, with its stride, beyond the last row.
        self.plane_bytes = (rows + 1) * self.stride;
        self.width = width;
        self.rows = rows;
        if self.bytes.len() < 3 * self.plane_bytes {
            self.bytes.resize(3 * self.plane_bytes, 0);
        }
    }

    /// A row of a plane, `width` bytes.
    pub(crate) fn row_mut(&mut self, plane: usize, y: usize) -> &mut [u8] {
        assert!(plane < 3 && y < self.rows, "the row is in the picture");
        &mut self.bytes[plane * self.plane_bytes + y * self.stride..][..self.width]
    }

    /// A row of a plane, `width` bytes.
    pub(crate) fn row(&self, plane: usize, y: usize) -> &[u8] {
        assert!(plane < 3 && y < self.rows, "the row is in the picture");
        &self.bytes[plane * self.plane_bytes + y * self.stride..][..self.width]
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.width, self.rows)
    }

    /// Bytes from one row to the next.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Red, green and blue: `stride` bytes per row.
    pub(crate) fn planes(&self) -> [&[u8]; 3] {
        [0, 1, 2].map(|plane| &self.bytes[plane * self.plane_bytes..][..self.rows * self.stride])
    }

    /// A row of each plane, `width` bytes.
    pub(crate) fn pixels_mut(&mut self, y: usize) -> [&mut [u8]; 3] {
        assert!(y < self.rows, "the row is in the picture");
        let (red, rest) = self.bytes.split_at_mut(self.plane_bytes);
        let (green, blue) = rest.split_at_mut(self.plane_bytes);
        [red, green, blue].map(|plane| &mut plane[y * self.stride..][..self.width])
    }

    /// `width` columns from `x` of `rows` rows from `y`.
    pub(crate) fn stripe(&self, (x, y): (usize, usize), width: usize, rows: usize) -> Stripe<'_> {
        assert!(x + width <= self.width && y + rows <= self.rows, "the stripe is in the picture");
        let from = y * self.stride + x;
        let planes = [0, 1, 2].map(|plane: usize| {
            &self.bytes[plane * self.plane_bytes + from..][..rows * self.stride]
        });
        Stripe { planes, stride: self.stride, width, rows }
    }
}
