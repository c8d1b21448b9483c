//! The system's libjpeg-turbo: a peer for speed and an oracle for pixels and coefficients.
//!
//! It is behind the feature `libjpeg-turbo`; no released program links it.

mod ffi;
#[cfg(test)]
mod tests;

pub use ffi::{Plane, Turbo};

/// Version of the library, as its package reports.
pub const VERSION: &str = env!("LIBJPEG_VERSION");

/// How to decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// Output size in eighths of the picture's, 1 to 16.
    pub scale_eighths: u8,
    /// The quicker, less exact inverse transform.
    pub fast_idct: bool,
    /// Chroma repeated instead of interpolated.
    pub plain_upsampling: bool,
}

/// The defaults of libjpeg.
impl Default for Mode {
    fn default() -> Self {
        Self { scale_eighths: 8, fast_idct: false, plain_upsampling: false }
    }
}

/// How to encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    /// 1 to 100.
    pub quality: u8,
    /// Sampling factors of Y across and down, those of chroma being 1: (2, 2) is 4:2:0.
    pub luma_factors: (u8, u8),
    /// Huffman tables made for the picture.
    pub optimise: bool,
    /// Progressive, by libjpeg's own script.
    pub progressive: bool,
    /// MCUs between restart markers; 0 for none.
    pub restart_interval: u16,
}

impl Encoding {
    /// 4:2:0 at quality 90 with standard tables.
    pub const USUAL: Self = Self {
        quality: 90,
        luma_factors: (2, 2),
        optimise: false,
        progressive: false,
        restart_interval: 0,
    };
}

/// Why libjpeg does not decode a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurboError {
    /// An error, with libjpeg's message.
    Refused(String),
    /// Decoded, with warnings: something is missing or damaged.
    Damaged,
    /// Neither RGB nor CMYK, or a region outside the picture.
    Unsupported,
    /// Its header claims this number of pixels, more than [`PIXELS_MAX`].
    TooLarge(u64),
}

/// Maximum pixels that memory is allocated for: libjpeg may read another size from a damaged header
/// than our decoder does.
pub const PIXELS_MAX: u64 = 1 << 28;

impl std::fmt::Display for TurboError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(message) => write!(f, "libjpeg refuses it: {message}"),
            Self::Damaged => f.write_str("libjpeg warns that it is damaged"),
            Self::Unsupported => f.write_str("not supported by this binding"),
            Self::TooLarge(pixels) => write!(f, "libjpeg sees a picture of {pixels} pixels"),
        }
    }
}

impl std::error::Error for TurboError {}

/// Converts libjpeg's CMYK as Pillow does: inks are inverted, as Adobe stores them.
fn cmyk_to_rgb(inks: &[u8], rgb: &mut [u8]) {
    for (ink, rgb) in inks.chunks_exact(4).zip(rgb.chunks_exact_mut(3)) {
        let white = u32::from(ink[3]);
        for (ink, channel) in ink.iter().zip(rgb) {
            let biased = u32::from(255 - ink) * white + 128;
            *channel = (white - (((biased >> 8) + biased) >> 8)) as u8;
        }
    }
}
