//! The pixels around a picture.

named!(PaddingMode {
    Constant = "constant",
    Edge = "edge",
    Reflect = "reflect",
    Symmetric = "symmetric",
});

/// The content of the pixels around a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PaddingMode {
    /// One colour.
    Constant,
    /// The pixels of the border, repeated.
    Edge,
    /// The picture mirrored, without its border; for a side of one pixel, that pixel.
    Reflect,
    /// The picture mirrored, with its border.
    Symmetric,
}

/// Pixels on each side of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Padding {
    /// Columns before the picture.
    pub left: u32,
    /// Rows above it.
    pub top: u32,
    /// Columns after it.
    pub right: u32,
    /// Rows below it.
    pub bottom: u32,
}

impl Padding {
    /// Height and width of a picture of this height and width with the padding. A side that exceeds
    /// 32 bits becomes `u32::MAX`.
    pub fn around(self, (height, width): (u32, u32)) -> (u32, u32) {
        let sum = |a: u32, b: u32, c: u32| a.saturating_add(b).saturating_add(c);
        (sum(self.top, height, self.bottom), sum(self.left, width, self.right))
    }
}

/// The colour of pixels outside the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fill {
    /// One value for every channel.
    Every(u8),
    /// Red, green and blue.
    Rgb([u8; 3]),
    /// Red, green, blue and alpha.
    Rgba([u8; 4]),
}

impl Fill {
    /// Black.
    pub const BLACK: Self = Self::Every(0);

    /// Red, green, blue and alpha; a picture uses as many as it has channels.
    pub fn rgba(self) -> [u8; 4] {
        match self {
            Self::Every(value) => [value; 4],
            Self::Rgb([red, green, blue]) => [red, green, blue, 255],
            Self::Rgba(colour) => colour,
        }
    }
}
