//! A rectangle of pixels inside a picture, without copying.

use crate::{Picture, Region};

/// RGB pixels, uint8, rows `stride_bytes` apart.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// From the first pixel of the rectangle to the last one; what lies between the rows belongs
    /// to others.
    pixels: &'a [u8],
    stride_bytes: usize,
    width: u32,
    height: u32,
}

impl<'a> View<'a> {
    /// A region of a picture. Panics when it is empty or does not lie inside.
    pub fn new(picture: &'a Picture, region: Region) -> Self {
        let stride_bytes = picture.width as usize * 3;
        let row_bytes = region.width as usize * 3;
        let from = region.y as usize * stride_bytes + region.x as usize * 3;
        let bytes = (region.height as usize - 1) * stride_bytes + row_bytes;
        let inside = u64::from(region.x) + u64::from(region.width) <= u64::from(picture.width);
        assert!(inside, "a region must lie inside the picture");
        let pixels = &picture.pixels[from..from + bytes];
        Self { pixels, stride_bytes, width: region.width, height: region.height }
    }

    /// All of a picture.
    pub fn whole(picture: &'a Picture) -> Self {
        Self::new(picture, Region { x: 0, y: 0, width: picture.width, height: picture.height })
    }

    /// Columns.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Bytes from a pixel to the one below it.
    pub(crate) fn stride_bytes(&self) -> usize {
        self.stride_bytes
    }

    /// The pixels of a row, `width * 3` bytes.
    pub fn row(&self, y: usize) -> &'a [u8] {
        &self.pixels[y * self.stride_bytes..][..self.width as usize * 3]
    }

    /// The pixels of a row and all that follow it in memory, for reads that reach a little further.
    pub(crate) fn row_and_beyond(&self, y: usize) -> &'a [u8] {
        &self.pixels[y * self.stride_bytes..]
    }
}
