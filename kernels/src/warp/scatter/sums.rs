//! Computes the weighted sums of the pixels around the positions of a row, and their bytes, on an
//! instruction set.

use super::portable;
use super::row::{Row, Shape};
use crate::Cpu;
use crate::vector::BLOCK;
use crate::warp::packed::{PIXEL_BYTES, Packed};
use crate::warp::taps::Taps;

/// Computes the sums of a row.
pub(super) fn compute(cpu: Cpu, packed: &Packed, taps: Taps, row: &mut Row) {
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    let shape = match taps {
        Taps::Two => Shape::Square2,
        Taps::Four if row.is_across => Shape::Square4,
        Taps::Four => Shape::Column4,
    };
    match cpu {
        #[cfg(target_arch = "x86_64")]
        Cpu::Avx2 | Cpu::Avx512 => super::avx2::sums(packed, shape, row),
        _ => portable::sums(packed, shape, row),
    }
}

/// Converts the sums of a row to pixels; outside, uses the fill. A doubtful sum, closer than
/// `error` to an integer, gives the lower byte.
pub(super) fn make_pixels(cpu: Cpu, row: &mut Row, fill: [u8; PIXEL_BYTES], error: f32) {
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    match cpu {
        #[cfg(target_arch = "x86_64")]
        Cpu::Avx2 | Cpu::Avx512 => super::avx2::make_pixels(row, fill, error),
        _ => portable::make_pixels(row, fill, error),
    }
}

/// Writes the channels of the pixels of a row.
pub(super) fn separate(cpu: Cpu, row: &Row, out: [&mut [u8]; 3]) {
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    let [red, green, blue] = out;
    for (number, pixels) in row.blocks.iter().enumerate() {
        let first = number * BLOCK;
        let planes = [&mut red[first..], &mut green[first..], &mut blue[first..]];
        let separate = |planes: [&mut [u8; BLOCK]; 3]| match cpu {
            #[cfg(target_arch = "x86_64")]
            Cpu::Avx2 | Cpu::Avx512 => super::avx2::separate(&pixels.values, planes),
            _ => portable::separate(&pixels.values, planes),
        };
        let [red, green, blue] = planes;
        match [&mut *red, &mut *green, &mut *blue].map(|it| it.first_chunk_mut::<BLOCK>()) {
            [Some(red), Some(green), Some(blue)] => separate([red, green, blue]),
            _ => {
                let mut blocks = [[0; BLOCK]; 3];
                separate(blocks.each_mut());
                for (plane, block) in [red, green, blue].into_iter().zip(&blocks) {
                    plane.copy_from_slice(&block[..plane.len()]);
                }
            }
        }
    }
}
