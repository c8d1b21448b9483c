//! Pixels as a picture file: PNG, which keeps each of them.

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};

/// Most pixels of a picture.
const PIXELS_MAX: u64 = 1 << 30;

/// A PNG of the pixels, row by row; `mode` is a name as Pillow has it: L, LA, RGB or RGBA.
pub(crate) fn png(mode: &str, width: u32, height: u32, pixels: &[u8]) -> Result<Vec<u8>, String> {
    let (colour, channels) = match mode {
        "L" => (ExtendedColorType::L8, 1),
        "LA" => (ExtendedColorType::La8, 2),
        "RGB" => (ExtendedColorType::Rgb8, 3),
        "RGBA" => (ExtendedColorType::Rgba8, 4),
        _ => return Err(format!("pixels of mode {mode:?}; L, LA, RGB and RGBA are read")),
    };
    let count = u64::from(width) * u64::from(height);
    if count == 0 || count > PIXELS_MAX || count * channels != pixels.len() as u64 {
        return Err(format!(
            "{} bytes of pixels for a picture of {width} × {height} in mode {mode}",
            pixels.len()
        ));
    }
    let mut file = Vec::new();
    PngEncoder::new_with_quality(&mut file, CompressionType::Fast, FilterType::Adaptive)
        .write_image(pixels, width, height, colour)
        .map_err(|error| error.to_string())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::png;

    #[test]
    fn pixels_come_back_and_wrong_lengths_are_refused() {
        let pixels: Vec<u8> = (0..24).collect();
        let file = png("RGB", 4, 2, &pixels).unwrap();
        let back = image::load_from_memory(&file).unwrap().into_rgb8();
        assert_eq!((back.dimensions(), back.into_raw()), ((4, 2), pixels.clone()));
        assert!(png("RGB", 4, 3, &pixels).unwrap_err().contains("24 bytes"));
        assert!(png("CMYK", 4, 2, &pixels).unwrap_err().contains("CMYK"));
        assert!(png("L", u32::MAX, u32::MAX, &pixels).is_err());
    }
}
