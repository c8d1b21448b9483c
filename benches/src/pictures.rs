//! A packed dataset to measure on: the pictures of a folder, or generated ones.

use anyhow::Context;
use meetpoint_datasets::{OnError, PackOptions, pack};
use std::path::{Path, PathBuf};

/// Packs the pictures below `source`, or `count` generated ones, into `folder/bench.set`.
pub fn dataset(folder: &Path, source: Option<&Path>, count: u32) -> anyhow::Result<PathBuf> {
    let made = folder.join("pictures");
    let source = match source {
        Some(source) => source,
        None => {
            std::fs::create_dir_all(&made).context("making a folder for pictures")?;
            for index in 0..count {
                std::fs::write(made.join(format!("{index}.jpg")), picture(index)?)?;
            }
            &made
        }
    };
    let packed = folder.join("bench.set");
    let options = PackOptions { on_error: OnError::Fail, ..PackOptions::default() };
    pack(source, &packed, &options, &mut |_| ()).context("packing the pictures")?;
    Ok(packed)
}

/// A JPEG with smooth areas, edges and grain, a function of `index`: 384 x 288 pixels.
fn picture(index: u32) -> anyhow::Result<Vec<u8>> {
    const WIDTH: u16 = 384;
    const HEIGHT: u16 = 288;
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
    let mut encoded = Vec::new();
    jpeg_encoder::Encoder::new(&mut encoded, 90)
        .encode(&pixels, WIDTH, HEIGHT, jpeg_encoder::ColorType::Rgb)
        .context("encoding a generated picture")?;
    Ok(encoded)
}
