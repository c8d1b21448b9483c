//! Resizes against Pillow and the definition, and every instruction set against the portable one.

use super::{Filter, Resize, Resizer, SourceBox};
use crate::planes::Planes;
use crate::{Cpu, Picture, Region, golden};
use meetpoint_format::recipe::Interpolation;
use proptest::prelude::*;

fn planes(picture: &Picture) -> Planes {
    let mut planes = Planes::default();
    planes.set_size(picture.width as usize, picture.height as usize);
    for (y, row) in picture.pixels.chunks_exact(picture.width as usize * 3).enumerate() {
        for plane in 0..3 {
            let pixels = row.iter().skip(plane).step_by(3);
            planes.row_mut(plane, y).iter_mut().zip(pixels).for_each(|(out, value)| *out = *value);
        }
    }
    planes
}

/// The window of a resized crop, whose needed region is fed in stripes that cycle through these
/// heights.
fn fed(
    resizer: &mut Resizer,
    picture: &Picture,
    crop: Region,
    resize: &Resize,
    heights: &[usize],
) -> Picture {
    let planes = planes(picture);
    let needed = resizer.begin(resize);
    assert_eq!(resizer.needed(), needed);
    assert!(needed.x + needed.width <= crop.width && needed.y + needed.height <= crop.height);
    let window = resize.window.map_or((resize.width, resize.height), |w| (w.width, w.height));
    let mut out = Picture { width: window.0, height: 0, pixels: Vec::new() };
    let mut heights = heights.iter().cycle();
    let mut y = 0;
    while y < needed.height as usize {
        let rows = heights.next().unwrap().min(&(needed.height as usize - y)).to_owned();
        let at = ((crop.x + needed.x) as usize, (crop.y + needed.y) as usize + y);
        let stripe = planes.stripe(at, needed.width as usize, rows);
        resizer.feed(stripe, &mut || (), &mut |y, row| {
            assert_eq!((y, row.width), (out.height as usize, window.0 as usize));
            assert!(row.planes.iter().all(|plane| plane.len() >= row.width.next_multiple_of(32)));
            out.pixels.extend((0..row.width).flat_map(|x| row.planes.map(|plane| plane[x])));
            out.height += 1;
        });
        y += rows;
    }
    assert_eq!(out.height, window.1, "all rows have come");
    out
}

fn whole(picture: &Picture) -> Region {
    Region { x: 0, y: 0, width: picture.width, height: picture.height }
}

fn resized(cpu: Cpu, picture: &Picture, resize: &Resize) -> Picture {
    fed(&mut Resizer::new(cpu), picture, whole(picture), resize, &[16])
}

fn interpolation(word: &str) -> Interpolation {
    Interpolation::from_name(word).unwrap_or_else(|| panic!("no filter {word}"))
}

/// Checks the lines of a golden file; returns their number.
fn check_golden(text: &str) -> usize {
    let lines = golden::lines(text);
    for (words, expected) in &lines {
        let [kind, seed, width, height, filter, mode, to_width, to_height, source @ ..] =
            &words[..]
        else {
            panic!("{words:?}")
        };
        let (width, height) = (golden::number(width), golden::number(height));
        let picture = golden::picture(kind, golden::number(seed), width, height);
        let source = match source {
            ["whole"] => None,
            sides => Some(std::array::from_fn(|side| golden::number(sides[side]))),
        };
        let interpolation = interpolation(filter);
        let resize = Resize {
            from_width: width,
            from_height: height,
            source,
            width: golden::number(to_width),
            height: golden::number(to_height),
            filter: Filter { interpolation, antialias: *mode == "antialias" },
            window: None,
        };
        for cpu in golden::instruction_sets() {
            let made = resized(cpu, &picture, &resize);
            assert_eq!(golden::sha256(&made.pixels), expected[0], "{} {words:?}", cpu.name());
        }
    }
    lines.len()
}

#[test]
fn resizes_equal_those_of_pillow() {
    assert!(check_golden(include_str!("../../tests/golden/resize.txt")) > 300);
}

#[test]
fn boxes_and_nearest_pixels_equal_those_of_pillow() {
    assert!(check_golden(include_str!("../../tests/golden/boxes.txt")) > 150);
}

#[test]
fn all_filters_equal_those_of_pillow() {
    assert_eq!(check_golden(include_str!("../../tests/golden/filters.txt")), 144);
}

fn any_filter() -> impl Strategy<Value = Filter> {
    (proptest::sample::select(Interpolation::ALL), any::<bool>())
        .prop_map(|(interpolation, antialias)| Filter { interpolation, antialias })
}

/// A length that is occasionally so short or so long that the scale is extreme.
fn any_length() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 1..150u32, 1 => 1..4u32, 1 => 150..700u32]
}

/// A part of 0..length, not empty.
fn any_part(length: u32) -> impl Strategy<Value = (u32, u32)> {
    (0..length).prop_flat_map(move |from| (Just(from), 1..=length - from))
}

fn any_region(width: u32, height: u32) -> impl Strategy<Value = Region> {
    (any_part(width), any_part(height)).prop_map(|((x, width), (y, height))| Region {
        x,
        y,
        width,
        height,
    })
}

fn any_source(width: u32, height: u32) -> impl Strategy<Value = Option<SourceBox>> {
    let ends = |length: u32| {
        (0.0..=1.0f32, 0.0..=1.0f32, any::<bool>()).prop_map(move |(a, b, rounded)| {
            let ends = [a.min(b), a.max(b)].map(|share| share * length as f32);
            if rounded { ends.map(f32::round) } else { ends }
        })
    };
    (ends(width), ends(height), any::<bool>()).prop_map(|([left, right], [top, bottom], is_box)| {
        let holds_something = left < right && top < bottom;
        (is_box && holds_something).then_some([left, top, right, bottom])
    })
}

/// A resize of a picture, without a window.
fn any_resize() -> impl Strategy<Value = Resize> {
    (any_length(), any_length(), any_length(), any_length(), any_filter()).prop_flat_map(
        |(from_width, from_height, width, height, filter)| {
            any_source(from_width, from_height).prop_map(move |source| {
                let window = None;
                Resize { from_width, from_height, source, width, height, filter, window }
            })
        },
    )
}

fn with_window() -> impl Strategy<Value = Resize> {
    any_resize().prop_flat_map(|resize| {
        any_region(resize.width, resize.height)
            .prop_map(move |window| Resize { window: Some(window), ..resize })
    })
}

fn picture_of(seed: u32, resize: &Resize) -> Picture {
    golden::picture("noise", seed, resize.from_width, resize.from_height)
}

proptest! {
    #[test]
    fn matches_portable(seed: u32, resize in with_window()) {
        let picture = picture_of(seed, &resize);
        let expected = resized(Cpu::Portable, &picture, &resize);
        for cpu in golden::instruction_sets() {
            prop_assert_eq!(&resized(cpu, &picture, &resize), &expected, "{}", cpu.name());
        }
    }

    #[test]
    fn a_window_is_that_part_of_the_whole_result(seed: u32, resize in with_window()) {
        let picture = picture_of(seed, &resize);
        let mut expected =
            resized(Cpu::detect(), &picture, &Resize { window: None, ..resize });
        crate::decode::keep(&mut expected, resize.window.unwrap());
        prop_assert_eq!(resized(Cpu::detect(), &picture, &resize), expected);
    }

    #[test]
    fn any_cut_into_stripes_gives_the_same(
        seed: u32, resize in with_window(), heights in prop::collection::vec(1..40usize, 1..9),
    ) {
        let picture = picture_of(seed, &resize);
        let expected = resized(Cpu::detect(), &picture, &resize);
        let mut resizer = Resizer::new(Cpu::detect());
        let made = fed(&mut resizer, &picture, whole(&picture), &resize, &heights);
        prop_assert_eq!(made, expected);
    }

    #[test]
    fn a_crop_resizes_as_a_picture_of_its_own(
        seed: u32,
        (resize, around) in (with_window(), (0..30u32, 0..30u32, 0..30u32, 0..30u32)),
    ) {
        let (left, right, top, bottom) = around;
        let (width, height) = (resize.from_width, resize.from_height);
        let picture =
            golden::picture("noise", seed, left + width + right, top + height + bottom);
        let crop = Region { x: left, y: top, width, height };
        let mut alone = picture.clone();
        crate::decode::keep(&mut alone, crop);
        for cpu in golden::instruction_sets() {
            let made = fed(&mut Resizer::new(cpu), &picture, crop, &resize, &[16]);
            prop_assert_eq!(made, resized(cpu, &alone, &resize), "{}", cpu.name());
        }
    }
}

/// A white picture with a black column beside the box: a filter that reaches it turns grey.
#[test]
fn pixels_around_a_box_count_and_those_around_a_crop_do_not() {
    let mut picture = Picture { width: 9, height: 1, pixels: vec![255; 27] };
    picture.pixels[3 * 3..4 * 3].fill(0);
    let filter = Filter { interpolation: Interpolation::Bilinear, antialias: true };
    let (width, height) = (2, 1);
    let source = Some([4.0, 0.0, 9.0, 1.0]);
    let (from_width, from_height) = (9, 1);
    let window = None;
    let resize = Resize { from_width, from_height, source, width, height, filter, window };
    assert!(resized(Cpu::detect(), &picture, &resize).pixels[0] < 255);
    let crop = Region { x: 4, y: 0, width: 5, height: 1 };
    let resize = Resize { from_width: 5, source: None, ..resize };
    let of_crop = fed(&mut Resizer::new(Cpu::detect()), &picture, crop, &resize, &[1]);
    assert_eq!(of_crop.pixels, [255; 6]);
}

#[test]
fn one_resizer_serves_pictures_of_all_sizes() {
    let filter = Filter { interpolation: Interpolation::Bicubic, antialias: true };
    for cpu in golden::instruction_sets() {
        let mut resizer = Resizer::new(cpu);
        for (seed, (from_width, from_height)) in
            [(200, 90), (7, 7), (90, 400), (1, 64), (33, 44), (3000, 2)].into_iter().enumerate()
        {
            let picture = golden::picture("wave", seed as u32, from_width, from_height);
            let (source, window) = (None, None);
            let (width, height) = (33, 44);
            let resize = Resize { from_width, from_height, source, width, height, filter, window };
            let made = fed(&mut resizer, &picture, whole(&picture), &resize, &[8]);
            assert_eq!(made, resized(cpu, &picture, &resize));
        }
    }
}

#[test]
fn a_long_resize_pauses_on_the_way() {
    let picture = golden::picture("wave", 1, 900, 700);
    let filter = Filter { interpolation: Interpolation::Bilinear, antialias: true };
    let (source, window) = (None, None);
    let (width, height) = (600, 500);
    let resize =
        Resize { from_width: 900, from_height: 700, source, width, height, filter, window };
    let mut resizer = Resizer::new(Cpu::Portable);
    resizer.begin(&resize);
    let planes = planes(&picture);
    let mut pauses = 0;
    resizer.feed(planes.stripe((0, 0), 900, 700), &mut || pauses += 1, &mut |_, _| ());
    assert!(pauses > 4, "{pauses}");
}
