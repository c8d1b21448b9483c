//! Colours: components at full resolution to red, green and blue, in planes, as libjpeg-turbo's
//! jdcolor.c makes them and, from inks, Pillow.
//!
//! libjpeg multiplies by 1.402, 0.344136286, 0.714136286 and 1.772 with 16 fractional bits and
//! rounds each of red, green and blue once.
#![expect(unsafe_code, reason = "calls behind a CPU check")]

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod ink;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(test)]
mod tests;

use crate::Cpu;

#[cfg(test)]
use ink::ink_to_rgb;
pub(crate) use ink::{Ink, ink_to_rgb_planes};
pub(super) use portable::pixel;

/// Rows of the three planes of a picture or of its components.
pub(crate) type Planes<'a> = [&'a [u8]; 3];

/// Rows of the three planes that are written.
pub(crate) type PlanesMut<'a> = [&'a mut [u8]; 3];

/// Factors of the vector code: it multiplies twice the chroma by a 15-bit fraction and rounds, in
/// one instruction. For red and blue that is one bit less than libjpeg has; for each of the 256
/// values of chroma the result is the same, which a test checks.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const TWICE_CR_TO_RED: i16 = 22_971;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const TWICE_CB_TO_BLUE: i16 = 29_033;

/// Green takes both exactly, with 16 bits: half of libjpeg's even factors.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const TWICE_CB_TO_GREEN: i16 = -11_277;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const TWICE_CR_TO_GREEN: i16 = -23_401;

/// Luma and chroma to red, green and blue; all rows of one length.
pub(crate) fn ycc_to_rgb(cpu: Cpu, ycc: Planes<'_>, mut rgb: PlanesMut<'_>) {
    check(ycc, &rgb);
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the instruction set, as just checked.
        Cpu::Avx512 => unsafe { avx512::ycc_to_rgb(ycc, &mut rgb) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as for AVX-512.
        Cpu::Avx2 => unsafe { avx2::ycc_to_rgb(ycc, &mut rgb) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as for AVX-512.
        Cpu::Neon => unsafe { neon::ycc_to_rgb(ycc, &mut rgb) },
        _ => portable::ycc_to_rgb(ycc, &mut rgb),
    }
}

/// Grey to red, green and blue, which are the same.
pub(crate) fn grey_to_rgb(grey: &[u8], rgb: PlanesMut<'_>) {
    for plane in rgb {
        plane.copy_from_slice(grey);
    }
}

/// Red, green and blue to grey, in place of red: `rgb_gray_convert` of libjpeg's jdcolor.c, which
/// has the factors and the rounding of Pillow's `convert("L")`.
pub(crate) fn rgb_to_grey(red: &mut [u8], green: &[u8], blue: &[u8]) {
    for ((red, green), blue) in red.iter_mut().zip(green).zip(blue) {
        let [r, g, b] = [*red, *green, *blue].map(u32::from);
        *red = ((19595 * r + 38470 * g + 7471 * b + 32768) >> 16) as u8;
    }
}

/// Red, green and blue as they are.
pub(crate) fn rgb_to_rgb(from: Planes<'_>, rgb: PlanesMut<'_>) {
    for (from, plane) in from.into_iter().zip(rgb) {
        plane.copy_from_slice(from);
    }
}

/// Rows of three planes to one of pixels, three bytes each.
pub(crate) fn interleave(cpu: Cpu, rgb: Planes<'_>, pixels: &mut [u8]) {
    let columns = rgb[0].len();
    assert!(rgb.iter().all(|plane| plane.len() == columns), "planes of one length");
    assert_eq!(columns * 3, pixels.len(), "three bytes a pixel");
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a machine with AVX-512 has AVX2 too, and that it has one was just checked.
        Cpu::Avx2 | Cpu::Avx512 => unsafe { avx2::interleave(rgb, pixels) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the machine has the instruction set, as just checked.
        Cpu::Neon => unsafe { neon::interleave(rgb, pixels) },
        _ => portable::interleave(rgb, pixels),
    }
}

fn check(from: Planes<'_>, to: &PlanesMut<'_>) {
    let columns = from[0].len();
    let one_length =
        from.iter().all(|row| row.len() == columns) && to.iter().all(|row| row.len() == columns);
    assert!(one_length, "six rows of one length");
}
