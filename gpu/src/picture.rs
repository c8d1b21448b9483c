//! The location of a picture in device memory.

/// The location of a picture in device memory: three planes of bytes, red, green and blue. Kernels
/// read this struct unchanged; see `cuda/picture.cuh`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PictureDescriptor {
    /// Address of the first byte of the first plane, a multiple of 16.
    pub address: u64,
    /// Bytes from one row to the next, a multiple of 16. Bytes after the end of a row are
    /// arbitrary.
    pub row_stride: u32,
    /// Bytes from one plane to the next.
    pub plane_stride: u32,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl PictureDescriptor {
    /// A part of it; `x` and `y` are its first column and row. Its address may have any alignment.
    #[must_use]
    pub fn part(&self, (x, y): (u32, u32), (width, height): (u32, u32)) -> Self {
        let is_inside = |from: u32, length: u32, whole: u32| {
            from.checked_add(length).is_some_and(|end| end <= whole)
        };
        assert!(is_inside(x, width, self.width) && is_inside(y, height, self.height), "a part");
        let offset = u64::from(y) * u64::from(self.row_stride) + u64::from(x);
        Self { address: self.address + offset, width, height, ..*self }
    }

    /// Its fields as words, in the layout that kernels read.
    pub fn words(&self) -> [u32; 6] {
        let Self { address, row_stride, plane_stride, width, height } = *self;
        [address as u32, (address >> 32) as u32, row_stride, plane_stride, width, height]
    }
}
