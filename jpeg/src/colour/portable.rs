//! The reference implementation of the colour conversion: libjpeg's fixed-point formulas.

use super::{Planes, PlanesMut};

/// Fractional bits.
const SHIFT: u32 = 16;

/// Half of the bits that are shifted out, for rounding.
const HALF: i32 = 1 << (SHIFT - 1);

/// Luma and chroma to red, green and blue.
pub(super) fn ycc_to_rgb([y, cb, cr]: Planes<'_>, [red, green, blue]: &mut PlanesMut<'_>) {
    let to = red.iter_mut().zip(green.iter_mut()).zip(blue.iter_mut());
    for (((y, cb), cr), ((red, green), blue)) in y.iter().zip(cb).zip(cr).zip(to) {
        [*red, *green, *blue] = pixel(*y, *cb, *cr);
    }
}

/// A pixel of red, green and blue.
#[inline(always)]
pub(crate) fn pixel(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    let red = y + ((91_881 * cr + HALF) >> SHIFT);
    let green = y + ((-22_554 * cb - 46_802 * cr + HALF) >> SHIFT);
    let blue = y + ((116_130 * cb + HALF) >> SHIFT);
    [red, green, blue].map(|value| value.clamp(0, 255) as u8)
}

/// Rows of planes to a row of pixels.
pub(super) fn interleave([red, green, blue]: Planes<'_>, pixels: &mut [u8]) {
    let planes = red.iter().zip(green).zip(blue);
    for (((red, green), blue), pixel) in planes.zip(pixels.chunks_exact_mut(3)) {
        pixel.copy_from_slice(&[*red, *green, *blue]);
    }
}
