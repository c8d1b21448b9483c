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
    /// Its fields as words, in the layout that kernels read.
    pub fn words(&self) -> [u32; 6] {
        let Self { address, row_stride, plane_stride, width, height } = *self;
        [address as u32, (address >> 32) as u32, row_stride, plane_stride, width, height]
    }
}
