//! Initial inputs from the files of the tests.

use image::{DynamicImage, GrayImage, ImageFormat, Rgb, RgbImage};
use meetpoint_jpeg::{Form, dismantle, to_form};
use std::io::Cursor;

/// The unchanged file.
pub fn file(bytes: &[u8]) -> Vec<Vec<u8>> {
    vec![bytes.to_vec()]
}

/// The file, its forms, and small pictures in the other formats.
pub fn any(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = [file(bytes), forms(bytes)].concat();
    // So that not nearly all inputs are JPEGs.
    all.extend(others(bytes.len() as u8));
    all
}

/// Both coefficient forms.
pub fn forms(bytes: &[u8]) -> Vec<Vec<u8>> {
    [Form::Fast, Form::Compact].into_iter().flat_map(|form| to_form(bytes, form)).collect()
}

/// The skeleton, preceded by its length, followed by the compact form.
pub fn skeletons(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (Ok((skeleton, _)), Ok(form)) = (dismantle(bytes), to_form(bytes, Form::Compact)) else {
        return Vec::new();
    };
    let skeleton = skeleton.to_bytes();
    let Ok(length) = u16::try_from(skeleton.len()) else { return Vec::new() };
    vec![[length.to_le_bytes().as_slice(), &skeleton, &form].concat()]
}

/// A picture in one of the other formats with one of the pixel types.
fn others(number: u8) -> Option<Vec<u8>> {
    const FORMATS: [ImageFormat; 5] = [
        ImageFormat::Png,
        ImageFormat::WebP,
        ImageFormat::Bmp,
        ImageFormat::Gif,
        ImageFormat::Tiff,
    ];
    let pixel = |x: u32, y: u32| [x * 12, y * 17, (x * y) ^ 77].map(|value| value as u8);
    let colour = RgbImage::from_fn(19, 13, |x, y| Rgb(pixel(x, y)));
    let grey = GrayImage::from_fn(19, 13, |x, y| [pixel(x, y)[2]].into());
    let colour = DynamicImage::ImageRgb8(colour);
    let picture = match number / 5 % 4 {
        0 => colour,
        1 => DynamicImage::ImageLuma8(grey),
        2 => DynamicImage::ImageRgba8(colour.to_rgba8()),
        _ => DynamicImage::ImageRgb16(colour.to_rgb16()),
    };
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, FORMATS[usize::from(number % 5)]).ok()?;
    Some(bytes.into_inner())
}
