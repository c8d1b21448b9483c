//! Resizes against Pillow, against the definition, and of every instruction set against the
//! portable one.

use super::{Filter, Resize, Resizer};
use crate::view::View;
use crate::{Cpu, Picture, Region, golden};
use meetpoint_format::recipe::Interpolation;
use proptest::prelude::*;

fn resized(cpu: Cpu, from: View<'_>, resize: Resize) -> Picture {
    let mut out = Picture::default();
    Resizer::new(cpu).resize(from, resize, &mut out, &mut || ());
    out
}

fn interpolation(word: &str) -> Interpolation {
    match word {
        "bilinear" => Interpolation::Bilinear,
        "bicubic" => Interpolation::Bicubic,
        other => panic!("no filter {other}"),
    }
}

#[test]
fn resizes_equal_those_of_pillow() {
    for (words, expected) in golden::lines(include_str!("../../tests/golden/resize.txt")) {
        let [kind, seed, width, height, filter, mode, to_width, to_height, source @ ..] =
            &words[..]
        else {
            panic!("{words:?}")
        };
        let picture = golden::picture(
            kind,
            golden::number(seed),
            golden::number(width),
            golden::number(height),
        );
        let source = match source {
            ["whole"] => None,
            sides => Some(std::array::from_fn(|side| golden::number(sides[side]))),
        };
        let resize = Resize {
            width: golden::number(to_width),
            height: golden::number(to_height),
            filter: Filter {
                interpolation: interpolation(filter),
                antialias: *mode == "antialias",
            },
            source,
        };
        for cpu in golden::instruction_sets() {
            let made = resized(cpu, View::whole(&picture), resize);
            assert_eq!(golden::sha256(&made.pixels), expected[0], "{} {words:?}", cpu.name());
        }
    }
}

fn any_resize() -> impl Strategy<Value = Resize> {
    let interpolation = prop_oneof![Just(Interpolation::Bilinear), Just(Interpolation::Bicubic)];
    (1..120u32, 1..120u32, interpolation, any::<bool>()).prop_map(
        |(width, height, interpolation, antialias)| {
            let filter = Filter { interpolation, antialias };
            Resize { width, height, filter, source: None }
        },
    )
}

/// A picture and a region of it.
fn any_region() -> impl Strategy<Value = (u32, u32, Region)> {
    (1..150u32, 1..150u32).prop_flat_map(|(width, height)| {
        (0..width, 0..height).prop_flat_map(move |(x, y)| {
            (1..=width - x, 1..=height - y)
                .prop_map(move |(w, h)| (width, height, Region { x, y, width: w, height: h }))
        })
    })
}

proptest! {
    #[test]
    fn matches_portable(
        seed: u32, (width, height, region) in any_region(), resize in any_resize(),
    ) {
        let picture = golden::picture("noise", seed, width, height);
        let view = View::new(&picture, region);
        let expected = resized(Cpu::Portable, view, resize);
        for cpu in golden::instruction_sets() {
            prop_assert_eq!(&resized(cpu, view, resize), &expected, "{}", cpu.name());
        }
    }

    #[test]
    fn a_view_resizes_as_a_copy_of_it_does(
        seed: u32, (width, height, region) in any_region(), resize in any_resize(),
    ) {
        let picture = golden::picture("noise", seed, width, height);
        let mut copy = picture.clone();
        copy.keep(region);
        for cpu in golden::instruction_sets() {
            let of_view = resized(cpu, View::new(&picture, region), resize);
            prop_assert_eq!(of_view, resized(cpu, View::whole(&copy), resize), "{}", cpu.name());
        }
    }
}

#[test]
fn one_resizer_serves_pictures_of_all_sizes() {
    let filter = Filter { interpolation: Interpolation::Bicubic, antialias: true };
    for cpu in golden::instruction_sets() {
        let mut resizer = Resizer::new(cpu);
        let mut out = Picture::default();
        for (seed, (width, height)) in [(200, 90), (7, 7), (90, 200), (1, 64)].iter().enumerate() {
            let picture = golden::picture("wave", seed as u32, *width, *height);
            let resize = Resize { width: 33, height: 44, filter, source: None };
            resizer.resize(View::whole(&picture), resize, &mut out, &mut || ());
            assert_eq!(out, resized(cpu, View::whole(&picture), resize));
        }
    }
}

#[test]
fn a_long_resize_pauses_on_the_way() {
    let picture = golden::picture("wave", 1, 900, 700);
    let filter = Filter { interpolation: Interpolation::Bilinear, antialias: true };
    let resize = Resize { width: 600, height: 500, filter, source: None };
    let mut pauses = 0;
    let mut out = Picture::default();
    Resizer::new(Cpu::Portable)
        .resize(View::whole(&picture), resize, &mut out, &mut || pauses += 1);
    assert!(pauses > 4, "{pauses}");
}
