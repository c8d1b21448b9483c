//! The luma of a pixel, as Pillow's `convert("L")` computes it.

/// Weights of red, green and blue in 1/65536.
const WEIGHTS: [u32; 3] = [19595, 38470, 7471];

/// The weighted sum of a pixel, rounded to the nearest whole number.
pub(crate) fn luma(red: u8, green: u8, blue: u8) -> u8 {
    let sum = WEIGHTS[0] * u32::from(red) + WEIGHTS[1] * u32::from(green);
    // At most 65536 * 255 + 32768, whose upper half fits a byte.
    ((sum + WEIGHTS[2] * u32::from(blue) + 0x8000) >> 16) as u8
}

/// Gives every channel of a row the luma of its pixels.
pub(crate) fn make_grey([red, green, blue]: [&mut [u8]; 3]) {
    for ((red, green), blue) in red.iter_mut().zip(green).zip(blue) {
        let value = luma(*red, *green, *blue);
        (*red, *green, *blue) = (value, value, value);
    }
}
