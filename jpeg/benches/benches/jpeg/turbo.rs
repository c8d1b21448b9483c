//! Methods of programs that use libjpeg-turbo, with fast_image_resize for the resize.

use crate::methods::Method;
use crate::sets::SIDE;
use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::U8x3;
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};
use meetpoint_jpeg::{Picture, Region};
use meetpoint_jpeg_benches::libjpeg::{Mode, Turbo};

/// All of them.
pub(crate) fn methods() -> Vec<Method> {
    vec![whole(), region(), sample_of_whole(), sample_of_region(), entropy()]
}

fn whole() -> Method {
    let (mut turbo, mut pixels) = (Turbo::new(), Picture::default());
    Method::new("whole: libjpeg", move |picture, _, out| {
        std::mem::swap(&mut pixels.pixels, out);
        let result = turbo.decode(&picture.encoded, Mode::default(), &mut pixels);
        std::mem::swap(&mut pixels.pixels, out);
        Ok(result?)
    })
}

fn region() -> Method {
    let (mut turbo, mut pixels) = (Turbo::new(), Picture::default());
    Method::new("region: libjpeg", move |picture, sweep, out| {
        let (region, _) = picture.draw(sweep);
        std::mem::swap(&mut pixels.pixels, out);
        let result = turbo.decode_region(&picture.encoded, region, &mut pixels);
        std::mem::swap(&mut pixels.pixels, out);
        Ok(result?)
    })
}

fn sample_of_whole() -> Method {
    let (mut turbo, mut pixels) = (Turbo::new(), Picture::default());
    let mut resizer = Resizer::new();
    Method::new("sample: libjpeg whole + resize (A)", move |picture, sweep, out| {
        let (region, flip) = picture.draw(sweep);
        turbo.decode(&picture.encoded, Mode::default(), &mut pixels)?;
        resize(&mut resizer, &pixels, region, flip, out)
    })
}

fn sample_of_region() -> Method {
    let (mut turbo, mut pixels) = (Turbo::new(), Picture::default());
    let mut resizer = Resizer::new();
    Method::new("sample: libjpeg region + resize (B)", move |picture, sweep, out| {
        let (region, flip) = picture.draw(sweep);
        turbo.decode_region(&picture.encoded, region, &mut pixels)?;
        resize(&mut resizer, &pixels, Region { x: 0, y: 0, ..region }, flip, out)
    })
}

/// Entropy decoding alone. Its result, blocks in libjpeg's arrays, is only counted.
fn entropy() -> Method {
    let mut turbo = Turbo::new();
    Method::new("entropy: libjpeg", move |picture, _, out| {
        let blocks = turbo.read_coefficients(&picture.encoded)?;
        out.clear();
        out.extend(blocks.to_le_bytes());
        Ok(())
    })
}

/// The region, bilinear with antialiasing, mirrored on request.
fn resize(
    resizer: &mut Resizer,
    pixels: &Picture,
    region: Region,
    flip: bool,
    out: &mut Vec<u8>,
) -> anyhow::Result<()> {
    let bytes = (SIDE * SIDE * 3) as usize;
    out.resize(bytes, 0);
    // Typed, so that code for other pixel formats is not compiled.
    let from = TypedImageRef::<U8x3>::from_buffer(pixels.width, pixels.height, &pixels.pixels)?;
    let mut to = TypedImage::<U8x3>::from_buffer(SIDE, SIDE, out)?;
    let Region { x, y, width, height } = region;
    let options = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(FilterType::Bilinear))
        .crop(x.into(), y.into(), width.into(), height.into());
    resizer.resize_typed(&from, &mut to, &options)?;
    if flip {
        flip_rows(out);
    }
    Ok(())
}

/// Mirrors rows of `SIDE` pixels left to right in place.
fn flip_rows(pixels: &mut [u8]) {
    for row in pixels.chunks_exact_mut(SIDE as usize * 3) {
        row.as_chunks_mut::<3>().0.reverse();
    }
}
