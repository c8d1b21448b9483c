//! Pixels of datasets that have no picture files, as PNG: nothing is lost.

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};

/// A PNG of 8 bits a channel, grey or RGB, from rows of pixels.
pub(super) fn png(width: u32, height: u32, color: ExtendedColorType, pixels: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    PngEncoder::new_with_quality(&mut bytes, CompressionType::Fast, FilterType::Adaptive)
        .write_image(pixels, width, height, color)
        .expect("the pixels are as many as width and height say, and memory takes them");
    bytes
}
