//! Operations on pixels, and recipes that contain them, against Pillow.

use crate::{Cpu, Picture, SampleId, SamplePreparer, golden};
use image::ImageEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use meetpoint_format::recipe::{ColorJitter, Decode, Operation, Recipe};

const GOLDEN: &str = include_str!("../../tests/golden/colours.txt");

fn png(picture: &Picture) -> Vec<u8> {
    let mut encoded = Vec::new();
    PngEncoder::new_with_quality(&mut encoded, CompressionType::Fast, FilterType::NoFilter)
        .write_image(&picture.pixels, picture.width, picture.height, image::ExtendedColorType::Rgb8)
        .unwrap();
    encoded
}

/// Every colour whose channels are multiples of `step`, in the order of their numbers.
fn colours(step: usize, width: u32) -> Picture {
    let channel = || (0..256).step_by(step).map(|value| value as u8);
    let pixels: Vec<u8> = channel()
        .flat_map(|red| {
            channel().flat_map(move |green| channel().map(move |blue| [red, green, blue]))
        })
        .flatten()
        .collect();
    let height = pixels.len() as u32 / 3 / width;
    Picture { width, height, pixels }
}

/// A jitter that changes one property by one factor.
fn change(property: &str, factor: f64) -> Operation {
    let mut jitter = ColorJitter {
        brightness: (1.0, 1.0),
        contrast: (1.0, 1.0),
        saturation: (1.0, 1.0),
        hue: (0.0, 0.0),
    };
    let changed = match property {
        "brightness" => &mut jitter.brightness,
        "contrast" => &mut jitter.contrast,
        "saturation" => &mut jitter.saturation,
        "hue" => &mut jitter.hue,
        other => panic!("no property {other}"),
    };
    *changed = (factor, factor);
    jitter.into()
}

#[test]
fn each_property_of_every_colour_equals_pillow() {
    let grid = png(&colours(3, 86 * 86));
    let mut every = None;
    let id = SampleId { seed: 1, epoch: 0, sample: 0 };
    let mut compared = 0;
    for (words, expected) in golden::lines(GOLDEN) {
        let [picture @ ("grid" | "every"), property, factor] = words[..] else { continue };
        let file = match picture {
            "grid" => &grid,
            _ => every.get_or_insert_with(|| png(&colours(1, 4096))),
        };
        let factor = golden::number(factor);
        let recipe = Recipe::new(vec![Decode::EXACT.into(), change(property, factor)]).unwrap();
        let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
        let tensor = preparer.prepare_tensor(file.into(), id).unwrap();
        assert_eq!(golden::sha256(&tensor.data), expected[0], "{words:?}");
        compared += 1;
    }
    assert_eq!(compared, 21);
}

/// The operations after `decode` of the recipes of the golden script, by their names there.
fn recipe(name: &str) -> Recipe {
    let operations: &[&str] = match name {
        "upside_down" => &[
            "name = 'random_vertical_flip'",
            "name = 'resize'\nsize = 99\ninterpolation = 'bicubic'",
            "name = 'center_crop'\nsize = [97, 98]",
            "name = 'random_vertical_flip'",
            "name = 'center_crop'\nsize = [110, 80]",
        ],
        "contrastive" => &[
            "name = 'random_resized_crop'\nsize = [96, 112]\ninterpolation = 'bicubic'",
            "name = 'random_horizontal_flip'",
            "name = 'color_jitter'\nbrightness = 0.8\ncontrast = 0.8\nsaturation = 0.8\nhue = 0.2",
            "name = 'random_grayscale'\np = 0.2",
            "name = 'random_vertical_flip'",
            "name = 'to_dtype'\ndtype = 'float16'\nscale = true",
            "name = 'normalize'\nmean = [0.485, 0.456, 0.406]\nstd = [0.229, 0.224, 0.225]",
            "name = 'layout'\nlayout = 'NCHW'",
        ],
        "before_the_crop" => &[
            "name = 'random_horizontal_flip'",
            "name = 'color_jitter'\ncontrast = [0.1, 3]\nhue = [0.3, 0.3]",
            "name = 'random_resized_crop'\nsize = [96, 112]\ninterpolation = 'bicubic'",
            "name = 'random_grayscale'\np = 0.5",
        ],
        "grey" => &[
            "name = 'grayscale'",
            "name = 'random_resized_crop'\nsize = [96, 112]\ninterpolation = 'bicubic'",
            "name = 'color_jitter'\nbrightness = 0.5\ncontrast = 0.5\nsaturation = 0.5\nhue = 0.1",
            "name = 'to_dtype'\ndtype = 'float32'\nscale = true",
            "name = 'normalize'\nmean = [0.45]\nstd = [0.225]",
        ],
        other => panic!("no recipe {other}"),
    };
    let tables = ["name = 'decode'"].iter().chain(operations);
    let text: String = tables.map(|inside| format!("[[operation]]\n{inside}\n")).collect();
    Recipe::from_toml(&text).unwrap()
}

#[test]
fn recipes_equal_pillow_and_numpy_bit_for_bit() {
    let mut compared = 0;
    for (words, expected) in golden::lines(GOLDEN) {
        let [kind, seed, width, height, name, sample] = words[..] else { continue };
        let [seed, width, height] = [seed, width, height].map(golden::number);
        let file = png(&golden::picture(kind, seed, width, height));
        let id = SampleId { seed: 7, epoch: 2, sample: golden::number(sample) };
        let recipe = recipe(name);
        for cpu in golden::instruction_sets() {
            let mut preparer = SamplePreparer::new(&recipe, cpu);
            let tensor = preparer.prepare_tensor((&file).into(), id).unwrap();
            assert_eq!(Some(tensor.spec), recipe.output(), "{words:?}");
            assert_eq!(golden::sha256(&tensor.data), expected[0], "{} {words:?}", cpu.name());
        }
        compared += 1;
    }
    assert_eq!(compared, 48);
}
