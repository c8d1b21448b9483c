//! Rows that wait for the pass along the columns, the latest in place of the earliest.

use crate::planes::ROW_SLACK;

/// Bytes of a plane's part of a row: its width and what vectors read behind it.
pub(super) fn plane_bytes(width: usize, with_slack: bool) -> usize {
    (width + if with_slack { ROW_SLACK } else { 0 }).next_multiple_of(ROW_SLACK)
}

/// Rows by their index; each holds the parts of its planes one behind the other.
#[derive(Debug, Default)]
pub(super) struct Ring {
    pub(super) bytes: Vec<u8>,
    pub(super) plane_bytes: usize,
    planes: usize,
    rows: usize,
}

impl Ring {
    /// Takes a size. With slack, 32 bytes behind the end of each plane's part may be read.
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

    /// Where a row begins.
    #[inline]
    pub(super) fn place(&self, row: usize) -> usize {
        row % self.rows * self.row_bytes()
    }
}
