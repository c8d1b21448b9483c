//! Encodes pixels of a given mode as a picture file.

use crate::source::pixels;
use image::ExtendedColorType;

/// Maximum number of pixels of a picture.
const PIXELS_MAX: u64 = 1 << 30;

/// A PNG of the pixels, row by row; `mode` is a mode of Pillow: L, LA, RGB or RGBA.
pub(crate) fn png(mode: &str, width: u32, height: u32, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let (colour, channels) = match mode {
        "L" => (ExtendedColorType::L8, 1),
        "LA" => (ExtendedColorType::La8, 2),
        "RGB" => (ExtendedColorType::Rgb8, 3),
        "RGBA" => (ExtendedColorType::Rgba8, 4),
        _ => return Err(format!("pixels of mode {mode:?}; L, LA, RGB and RGBA are read")),
    };
    let count = u64::from(width) * u64::from(height);
    if count == 0 || count > PIXELS_MAX || count * channels != bytes.len() as u64 {
        return Err(format!(
            "{} bytes of pixels for a picture of {width} × {height} in mode {mode}",
            bytes.len()
        ));
    }
    Ok(pixels::png(width, height, colour, bytes))
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
