//! A ring buffer of rows for the pass along the columns; the latest row replaces the earliest.

use crate::planes::ROW_SLACK;

/// Bytes of a plane in a row: its width and the bytes that vectors read after it.
pub(super) fn plane_bytes(width: usize, with_slack: bool) -> usize {
    (width + if with_slack { ROW_SLACK } else { 0 }).next_multiple_of(ROW_SLACK)
}

/// Rows by their index; each contains its planes one after another.
#[derive(Debug, Default)]
pub(super) struct Ring {
    pub(super) bytes: Vec<u8>,
    pub(super) plane_bytes: usize,
    planes: usize,
    rows: usize,
}

impl Ring {
    /// Sets the size. With slack, 32 bytes after the end of each plane may be read.
    pub(super) fn set_size(&mut self, planes: usize, width: usize, rows: usize, with_slack: bool) {
        self.planes = planes;
        self.plane_bytes = plane_bytes(width, with_slack);
        self.rows = rows;
        let bytes = rows * self.row_bytes();
        if self.bytes.len() < bytes {
            self.bytes.resize(bytes, 0);
        }
    }

    /// Bytes of a row.
    pub(super) fn row_bytes(&self) -> usize {
        self.planes * self.plane_bytes
    }

    /// Offset of a row.
    #[inline]
    pub(super) fn place(&self, row: usize) -> usize {
        row % self.rows * self.row_bytes()
    }
}
