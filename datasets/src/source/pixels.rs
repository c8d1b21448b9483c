//! Stores pixels of datasets without picture files in lossless files: PNG, or raw pixels after the
//! header of a PGM or PPM.

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};
use meetpoint_kernels::{ImageFormat, Picture, decode_into};

/// Maximum number of pixels of a picture that is stored raw by default: 64 by 64, for which
/// decoding a PNG takes longer than the rest of a recipe.
const RAW_PIXELS_MAX: u64 = 64 * 64;

/// How pixels of a source without picture files are stored (`--store`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PixelStore {
    /// Raw if a picture has at most 4,096 pixels, such as those of CIFAR and MNIST.
    #[default]
    Auto,
    /// Raw: PGM or PPM.
    Raw,
    /// As PNG.
    Encoded,
}

impl PixelStore {
    /// A file with 8 bits per channel, grey or RGB, from rows of pixels.
    pub(super) fn file(
        self,
        (width, height): (u32, u32),
        colour: Pixels,
        pixels: &[u8],
    ) -> Vec<u8> {
        let is_raw = match self {
            Self::Auto => u64::from(width) * u64::from(height) <= RAW_PIXELS_MAX,
            Self::Raw => true,
            Self::Encoded => false,
        };
        if !is_raw {
            return png(width, height, colour.in_png(), pixels);
        }
        let magic = match colour {
            Pixels::Grey => "P5",
            Pixels::Rgb => "P6",
        };
        let mut file = format!("{magic}\n{width} {height}\n255\n").into_bytes();
        file.extend_from_slice(pixels);
        file
    }
}

/// The format of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pixels {
    /// One byte.
    Grey,
    /// Three bytes.
    Rgb,
}

impl Pixels {
    fn in_png(self) -> ExtendedColorType {
        match self {
            Self::Grey => ExtendedColorType::L8,
            Self::Rgb => ExtendedColorType::Rgb8,
        }
    }
}

/// A PNG with 8 bits per channel, grey or RGB, from rows of pixels.
pub(super) fn png(width: u32, height: u32, color: ExtendedColorType, pixels: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    PngEncoder::new_with_quality(&mut bytes, CompressionType::Fast, FilterType::Adaptive)
        .write_image(pixels, width, height, color)
        .expect("the pixels are as many as width and height say, and memory takes them");
    bytes
}

/// The PNG of a sample with raw pixels whose key has no extension for them: it was not packed from
/// a file, and most programs read PNG. `None` for every other sample.
pub(crate) fn as_png(key: &str, file: &[u8]) -> Option<Vec<u8>> {
    let extension = key.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|it| it.1);
    let names_them = |it: &str| ["pgm", "ppm", "pnm"].contains(&it.to_ascii_lowercase().as_str());
    if ImageFormat::of(file) != Some(ImageFormat::Pnm) || extension.is_some_and(names_them) {
        return None;
    }
    let mut picture = Picture::default();
    decode_into(file, None, &mut picture).ok()?;
    let Picture { width, height, pixels, .. } = picture;
    Some(match file.starts_with(b"P5") {
        true => {
            let grey: Vec<u8> = pixels.iter().copied().step_by(3).collect();
            png(width, height, Pixels::Grey.in_png(), &grey)
        }
        false => png(width, height, Pixels::Rgb.in_png(), &pixels),
    })
}

#[cfg(test)]
mod tests {
    use super::{PixelStore, Pixels, as_png};

    #[test]
    fn small_pictures_are_raw_by_default_and_all_stores_hold_the_same_pixels() {
        let is_raw = |store: PixelStore, side: u32| {
            let pixels: Vec<u8> = (0..side * side * 3).map(|it| it as u8).collect();
            let file = store.file((side, side), Pixels::Rgb, &pixels);
            let mut decoded = meetpoint_kernels::Picture::default();
            meetpoint_kernels::decode_into(&file, None, &mut decoded).unwrap();
            assert_eq!(decoded.pixels, pixels);
            file.starts_with(b"P6")
        };
        assert!(is_raw(PixelStore::Auto, 64) && !is_raw(PixelStore::Auto, 65));
        assert!(is_raw(PixelStore::Raw, 65) && !is_raw(PixelStore::Encoded, 8));
    }

    #[test]
    fn raw_pixels_become_a_png_unless_the_key_names_their_format() {
        for (colour, channels) in [(Pixels::Grey, 1), (Pixels::Rgb, 3)] {
            let pixels: Vec<u8> = (0..6 * channels).collect();
            let raw = PixelStore::Raw.file((3, 2), colour, &pixels);
            let file = as_png("test/00001", &raw).unwrap();
            let read = image::load_from_memory(&file).unwrap();
            assert_eq!(read.color().channel_count(), channels);
            assert_eq!(read.into_bytes(), pixels);
            assert_eq!(as_png("a/b.ppm", &raw), None);
            assert_eq!(as_png("a/b.PGM", &raw), None);
            assert_eq!(as_png("a/b", &file), None);
            assert_eq!(as_png("a/b", &raw[..raw.len() - 1]), None);
        }
    }
}
