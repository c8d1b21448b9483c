//! Every instruction set against the portable code, for all colours and for rows of all lengths.

use super::{Ink, grey_to_rgb, ink_to_rgb, ink_to_rgb_planes, interleave, rgb_to_rgb, ycc_to_rgb};
use crate::{Cpu, golden};
use proptest::collection::vec;
use proptest::prelude::*;

fn converted(cpu: Cpu, [y, cb, cr]: [&[u8]; 3]) -> [Vec<u8>; 3] {
    let mut rgb = [0; 3].map(|_| vec![0; y.len()]);
    ycc_to_rgb(cpu, [y, cb, cr], rgb.each_mut().map(|plane| &mut plane[..]));
    rgb
}

/// Red and blue depend on one chroma each, green on both, and luma is added at the end.
#[test]
fn all_chroma_matches_portable() {
    let cr: Vec<u8> = (0..=255).collect();
    for cpu in golden::instruction_sets() {
        for y in [0, 1, 64, 127, 128, 200, 254, 255] {
            for cb in 0..=255 {
                let ycc = [&[y; 256][..], &[cb; 256], &cr];
                assert_eq!(converted(cpu, ycc), converted(Cpu::Portable, ycc), "{}", cpu.name());
            }
        }
    }
}

proptest! {
    #[test]
    fn rows_of_all_lengths_match_portable(bytes in vec(any::<u8>(), 0..600)) {
        let columns = bytes.len() / 3;
        let planes = [0, 1, 2].map(|plane| &bytes[plane * columns..][..columns]);
        let interleaved = |cpu| {
            let mut pixels = vec![0; 3 * columns];
            interleave(cpu, planes, &mut pixels);
            pixels
        };
        for cpu in golden::instruction_sets() {
            prop_assert_eq!(converted(cpu, planes), converted(Cpu::Portable, planes));
            prop_assert_eq!(interleaved(cpu), interleaved(Cpu::Portable), "{}", cpu.name());
        }
    }
}

#[test]
fn grey_and_rgb_are_copied() {
    let mut planes = [[0; 4]; 3];
    grey_to_rgb(&[1, 2, 3, 4], planes.each_mut().map(|plane| &mut plane[..]));
    assert_eq!(planes, [[1, 2, 3, 4]; 3]);
    let from = [[1; 4], [2; 4], [3; 4]];
    rgb_to_rgb(from.each_ref().map(|row| &row[..]), planes.each_mut().map(|row| &mut row[..]));
    assert_eq!(planes, from);
}

#[test]
fn inks_are_the_complement_of_rgb() {
    assert_eq!(ink_to_rgb(Ink::Cmyk, [255, 255, 255, 255]), [255; 3]);
    assert_eq!(ink_to_rgb(Ink::Cmyk, [255, 255, 255, 0]), [0; 3]);
    assert_eq!(ink_to_rgb(Ink::Cmyk, [0, 255, 255, 255]), [0, 255, 255]);
    assert_eq!(ink_to_rgb(Ink::Ycck, [0, 128, 128, 200]), [200; 3]);
    let mut planes = [[0; 2]; 3];
    let inks = [&[0, 255][..], &[255, 255], &[255, 255], &[255, 100]];
    ink_to_rgb_planes(Ink::Cmyk, inks, planes.each_mut().map(|plane| &mut plane[..]));
    assert_eq!(planes, [[0, 100], [255, 100], [255, 100]]);
}
