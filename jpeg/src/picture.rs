//! An encoded picture, a region of it, and its pixels.

/// A rectangle in pixels of the whole picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Region {
    /// First column.
    pub x: u32,
    /// First row.
    pub y: u32,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Region {
    /// Whether it contains pixels and is inside a picture of `width` x `height`.
    pub fn is_inside(self, width: u32, height: u32) -> bool {
        let fits = |from: u32, length: u32, whole: u32| {
            length > 0 && from.checked_add(length).is_some_and(|end| end <= whole)
        };
        fits(self.x, self.width, width) && fits(self.y, self.height, height)
    }
}

/// An encoded picture, and the positions inside it at which decoding may begin.
#[derive(Debug, Clone, Copy)]
pub struct Encoded<'a> {
    /// The file, or its coefficient form.
    pub bytes: &'a [u8],
    /// The file's [entry points](crate::entry_points()); empty if there are none.
    pub entry_points: &'a [u8],
    /// CRC-32C of the file, if the caller has computed it.
    pub crc32c: Option<u32>,
}

impl<'a> From<&'a [u8]> for Encoded<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self { bytes, entry_points: &[], crc32c: None }
    }
}

impl<'a> From<&'a Vec<u8>> for Encoded<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        bytes.as_slice().into()
    }
}

/// RGB pixels, uint8, rows of `width * 3` bytes without padding. Its memory can be reused from one
/// picture to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Picture {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// `height * width * 3` bytes.
    pub pixels: Vec<u8>,
}

impl Picture {
    /// Changes the size and retains the memory. The values of the pixels are unspecified.
    pub fn set_size(&mut self, width: u32, height: u32) {
        self.width = width;
        self.height = height;
        self.pixels.resize(height as usize * width as usize * 3, 0);
    }
}
