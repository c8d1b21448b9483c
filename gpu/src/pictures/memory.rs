//! Memory for pictures between two steps.

use super::jobs::{Address, Planes};
use super::program::Turn;

/// Memory for results between two steps. A picture reuses the memory of results that were read.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) bytes: usize,
    pub(super) free: Vec<(usize, usize)>,
}

impl Memory {
    pub(super) fn take(&mut self, bytes: usize) -> usize {
        let bytes = bytes.next_multiple_of(ALIGNMENT);
        if let Some(index) = self.free.iter().position(|(_, free)| *free >= bytes) {
            return self.free.swap_remove(index).0;
        }
        self.bytes += bytes;
        self.bytes - bytes
    }
}

/// Alignment of rows and pictures.
pub(super) const ALIGNMENT: usize = 16;

/// Appends bytes up to a multiple of the alignment.
pub(super) fn align(data: &mut Vec<u8>) {
    data.resize(data.len().next_multiple_of(ALIGNMENT), 0);
}

/// The location and size of a picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Picture {
    pub(super) planes: Planes,
    pub(super) size: (u32, u32),
    /// Number of planes.
    pub(super) count: u32,
}

impl Picture {
    /// Offset and bytes in [`Memory`]; `None` if it is elsewhere.
    pub(super) fn memory(self) -> Option<(usize, usize)> {
        let bytes = self.count as usize * self.planes.plane_bytes as usize;
        match self.planes.address {
            Address::Between(offset) => Some((offset, bytes.next_multiple_of(ALIGNMENT))),
            Address::Null
            | Address::Source(_)
            | Address::Tensor { .. }
            | Address::Uploaded(_)
            | Address::Counts(_) => None,
        }
    }
}

/// The layout of a turned picture: bytes from its address to the first pixel, and from a pixel to
/// the next column and to the next row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk {
    pub(super) first: u64,
    pub(super) column_step: i32,
    pub(super) row_step: i32,
}

impl Walk {
    /// The layout of a picture whose size is given as it is after the turn.
    pub(super) fn of(picture: Picture, turn: Turn) -> Self {
        let Turn { is_transposed, from_right, from_bottom } = turn;
        let row_bytes = picture.planes.row_bytes;
        let (width, height) = picture.size;
        let (columns, rows) = if is_transposed { (height, width) } else { (width, height) };
        let right = if from_right { u64::from(columns - 1) } else { 0 };
        let bottom = if from_bottom { u64::from(rows - 1) * u64::from(row_bytes) } else { 0 };
        let row_bytes = i32::try_from(row_bytes).expect("a row has less than 2 GiB");
        let along = if from_right { -1 } else { 1 };
        let down = if from_bottom { -row_bytes } else { row_bytes };
        let (column_step, row_step) = if is_transposed { (down, along) } else { (along, down) };
        Self { first: right + bottom, column_step, row_step }
    }

    /// Bytes from the address of the picture to a pixel.
    pub(super) fn offset(self, column: u32, row: u32) -> u64 {
        let across = i64::from(column) * i64::from(self.column_step);
        let down = i64::from(row) * i64::from(self.row_step);
        self.first.checked_add_signed(across + down).expect("the pixel is in the picture")
    }
}
