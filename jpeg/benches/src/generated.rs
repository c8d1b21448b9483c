//! Generated pictures that resemble photographs.

use anyhow::Context;
use meetpoint_jpeg::Picture;

const WIDTH: u16 = 384;
const HEIGHT: u16 = 288;

/// Smooth areas, edges and noise, a function of `index`: 384 x 288 pixels.
pub fn generated_picture(index: u32) -> Picture {
    let mut state = index.wrapping_mul(0x9e37_79b9) | 1;
    let mut pixels = Vec::with_capacity(usize::from(WIDTH) * usize::from(HEIGHT) * 3);
    for y in 0..u32::from(HEIGHT) {
        for x in 0..u32::from(WIDTH) {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            let edge = if (x / 48 + y / 36 + index).is_multiple_of(3) { 70 } else { 0 };
            let smooth = [x / 3, y / 2, (x + y) / 5];
            pixels.extend(smooth.map(|level| (level + edge + (state & 15)).min(255) as u8));
        }
    }
    Picture { width: WIDTH.into(), height: HEIGHT.into(), pixels }
}

/// The same as a JPEG at quality 90.
pub fn encoded_picture(index: u32) -> anyhow::Result<Vec<u8>> {
    let mut encoded = Vec::new();
    jpeg_encoder::Encoder::new(&mut encoded, 90)
        .encode(&generated_picture(index).pixels, WIDTH, HEIGHT, jpeg_encoder::ColorType::Rgb)
        .context("encoding a generated picture")?;
    Ok(encoded)
}
