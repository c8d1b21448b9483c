//! Warps against Pillow.

use super::{Map, Warp};
use crate::pixels::Pixels;
use crate::planes::Planes;
use crate::{Cpu, Error, Interrupt, golden};
use meetpoint_format::recipe::WarpInterpolation;
use proptest::prelude::*;

fn planes(kind: &str, seed: u32, width: u32, height: u32) -> Planes {
    let picture = golden::picture(kind, seed, width, height);
    let mut planes = Planes::default();
    planes.set_size(width as usize, height as usize);
    for (y, row) in picture.pixels.chunks_exact(3 * width as usize).enumerate() {
        let [red, green, blue] = planes.pixels_mut(y);
        for (x, pixel) in row.chunks_exact(3).enumerate() {
            (red[x], green[x], blue[x]) = (pixel[0], pixel[1], pixel[2]);
        }
    }
    planes
}

/// The interleaved pixels.
fn interleaved(planes: &mut Planes) -> Vec<u8> {
    let (_, height) = planes.size();
    let mut bytes = Vec::new();
    for y in 0..height {
        let [red, green, blue] = planes.pixels_mut(y);
        let pixels = red.iter().zip(green).zip(blue);
        bytes.extend(pixels.flat_map(|((red, green), blue)| [*red, *green, *blue]));
    }
    bytes
}

#[test]
fn every_warp_equals_pillow_bit_for_bit() {
    let lines = golden::lines(include_str!("../../tests/golden/warps.txt"));
    for (words, expected) in &lines {
        let [kind, seed, width, height, _, interpolation, rest @ ..] = &words[..] else {
            panic!("{words:?}")
        };
        let [to_width, to_height, red, green, blue, map @ ..] = rest else { panic!("{words:?}") };
        let map: Vec<f64> = map.iter().map(|word| golden::number(word)).collect();
        let map = match map.len() {
            6 => Map::Affine(map.try_into().unwrap()),
            _ => Map::Perspective(map.try_into().unwrap()),
        };
        let warp = Warp {
            size: (golden::number(to_width), golden::number(to_height)),
            map,
            interpolation: WarpInterpolation::from_name(interpolation).unwrap(),
            fill: [red, green, blue, &"0"].map(|word| golden::number(word)),
        };
        let [seed, width, height] = [seed, width, height].map(|word| golden::number(word));
        for cpu in golden::instruction_sets() {
            let (mut picture, mut next) = (planes(kind, seed, width, height), Planes::default());
            let interrupt = Interrupt::default();
            let mut pause = || ();
            let mut pixels = Pixels::new(&mut picture, &mut next, cpu, &interrupt, &mut pause);
            warp.apply(&mut pixels).unwrap();
            assert_eq!(pixels.size(), warp.size);
            let hash = golden::sha256(&interleaved(&mut picture));
            assert_eq!(hash[..16], *expected[0], "{} {words:?}", cpu.name());
        }
    }
    assert_eq!(lines.len(), 462);
}

#[test]
fn a_warp_is_interrupted() {
    let cpu = Cpu::detect();
    let (mut picture, mut next) = (planes("wave", 1, 9, 5), Planes::default());
    for interpolation in WarpInterpolation::ALL {
        for map in [
            Map::Affine([1.0, 0.0, 0.0, 0.0, 1.0, 0.0]),
            Map::Affine([1.0, 0.1, 0.0, 0.0, 1.0, 0.0]),
            Map::Affine([1.0, 0.1, 40_000.0, 0.0, 1.0, 0.0]),
            Map::Perspective([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]),
        ] {
            let warp = Warp { size: (9, 5), map, interpolation: *interpolation, fill: [0; 4] };
            let interrupt = Interrupt::when(|| true);
            let mut pause = || ();
            let mut pixels = Pixels::new(&mut picture, &mut next, cpu, &interrupt, &mut pause);
            assert_eq!(warp.apply(&mut pixels), Err(Error::Interrupted), "{warp:?}");
        }
    }
}

#[test]
fn a_position_that_is_no_number_is_outside() {
    let cases = WarpInterpolation::ALL.iter();
    let cases =
        cases.flat_map(|it| golden::instruction_sets().into_iter().map(move |cpu| (it, cpu)));
    for (interpolation, cpu) in cases {
        let (mut picture, mut next) = (planes("wave", 1, 9, 5), Planes::default());
        // 0 / 0 in the column whose centre is at 1.5.
        let map = Map::Perspective([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0 / 1.5, 0.0]);
        let warp = Warp { size: (3, 1), map, interpolation: *interpolation, fill: [1, 2, 3, 0] };
        let interrupt = Interrupt::default();
        let mut pause = || ();
        let mut pixels = Pixels::new(&mut picture, &mut next, cpu, &interrupt, &mut pause);
        warp.apply(&mut pixels).unwrap();
        assert_eq!(interleaved(&mut picture)[3..6], [1, 2, 3], "{interpolation:?}");
    }
}

/// An integer, a number near an integer, a half, or an arbitrary number.
fn shift() -> impl Strategy<Value = f64> {
    let near = prop_oneof![Just(0.0), Just(0.5), Just(1e-7), Just(-1e-7), Just(1e-16), -0.5..0.5];
    (-40..40, near).prop_map(|(whole, part)| f64::from(whole) + part)
}

/// Maps for each way to write rows, and maps between these.
fn map() -> impl Strategy<Value = Map> {
    let slope = || prop_oneof![Just(0.0), Just(0.25), -1.5..1.5];
    let tilt = || prop_oneof![Just(0.0), -0.004..0.004];
    prop_oneof![
        (slope(), shift(), prop_oneof![Just(1.0), 0.3..2.0], shift())
            .prop_map(|(a1, a2, a4, a5)| Map::Affine([1.0, a1, a2, 0.0, a4, a5])),
        (shift(), slope(), shift())
            .prop_map(|(a2, a3, a5)| { Map::Affine([1.0, 0.0, a2, a3, 1.0, a5]) }),
        (slope(), slope(), shift(), slope(), slope(), shift())
            .prop_map(|(a0, a1, a2, a3, a4, a5)| Map::Affine([a0, a1, a2, a3, a4, a5])),
        (slope(), slope(), shift(), (slope(), slope(), shift()), tilt(), tilt()).prop_map(
            |(a0, a1, a2, (a3, a4, a5), a6, a7)| {
                Map::Perspective([a0, a1, a2, a3, a4, a5, a6, a7])
            }
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// The portable instruction set runs Pillow's arithmetic for every value. Pictures with few
    /// values have flat areas, in which a sum is an integer.
    #[test]
    fn every_instruction_set_makes_what_pillows_arithmetic_makes(
        map in map(),
        size in (1..90u32, 1..50u32),
        result in (1..110u32, 1..50u32),
        seed in 0..1000u32,
        mask in prop_oneof![Just(0xffu8), Just(0xc0), Just(0x80), Just(0)],
        is_cubic: bool,
    ) {
        let interpolation =
            if is_cubic { WarpInterpolation::Bicubic } else { WarpInterpolation::Bilinear };
        let warp = Warp { size: result, map, interpolation, fill: [9, 250, 77, 0] };
        let warped = |cpu: Cpu| {
            let mut picture = planes("noise", seed, size.0, size.1);
            for y in 0..size.1 as usize {
                for plane in picture.pixels_mut(y) {
                    plane.iter_mut().for_each(|value| *value = *value & mask | mask >> 4);
                }
            }
            let (mut next, interrupt) = (Planes::default(), Interrupt::default());
            let mut pause = || ();
            let mut pixels = Pixels::new(&mut picture, &mut next, cpu, &interrupt, &mut pause);
            warp.apply(&mut pixels).unwrap();
            interleaved(&mut picture)
        };
        let expected = warped(Cpu::Portable);
        for cpu in golden::instruction_sets() {
            prop_assert_eq!(&warped(cpu), &expected, "{}", cpu.name());
        }
    }
}

#[test]
fn the_weights_in_float32_are_near_enough() {
    use super::interpolate::cubic;
    use super::taps::Taps;
    for step in 0..=1 << 20 {
        let distance = f64::from(step) / f64::from(1 << 20);
        let weights = Taps::Four.weights(distance as f32);
        let mut difference = 0.0;
        for (tap, weight) in weights.into_iter().enumerate() {
            let mut numbers = [0.0; 4];
            numbers[tap] = 1.0;
            difference += (f64::from(weight) - cubic(numbers, distance)).abs();
        }
        assert!(difference < 3e-7, "{distance} {difference}");
        assert!(weights.iter().map(|weight| weight.abs()).sum::<f32>() < 1.5001, "{distance}");
    }
}
