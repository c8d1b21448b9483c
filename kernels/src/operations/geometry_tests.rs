//! Operations on the geometry of a picture against Pillow and NumPy.

use super::random_perspective::coefficients;
use crate::{Cpu, Error, SampleId, SamplePreparer, Tensor, golden};
use image::ImageEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use meetpoint_format::recipe::Recipe;

const GOLDEN: &str = include_str!("../../tests/golden/geometry.txt");

fn png(kind: &str, seed: u32, width: u32, height: u32) -> Vec<u8> {
    let picture = golden::picture(kind, seed, width, height);
    let mut encoded = Vec::new();
    PngEncoder::new_with_quality(&mut encoded, CompressionType::Fast, FilterType::NoFilter)
        .write_image(&picture.pixels, picture.width, picture.height, image::ExtendedColorType::Rgb8)
        .unwrap();
    encoded
}

/// A recipe that decodes and runs these operations, given as contents of their tables.
fn recipe(operations: &[&str]) -> Recipe {
    let tables = ["name = 'decode'"].iter().chain(operations);
    let text: String = tables.map(|inside| format!("[[operation]]\n{inside}\n")).collect();
    Recipe::from_toml(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn try_prepare(recipe: &Recipe, file: &[u8], sample: u64) -> Result<Tensor, Error> {
    let id = SampleId { seed: 7, epoch: 2, sample };
    SamplePreparer::new(recipe, Cpu::detect()).prepare_tensor(file.into(), id)
}

fn prepare(recipe: &Recipe, file: &[u8], sample: u64) -> Tensor {
    try_prepare(recipe, file, sample).unwrap()
}

const LANCZOS: &str = "\ninterpolation = 'lanczos'";

/// A key with two numbers, unless they are "none".
fn optional(key: &str, words: &[&str; 2]) -> String {
    match words {
        ["none", "none"] => String::new(),
        [first, second] => format!("{key} = [{first}, {second}]\n"),
    }
}

/// Parses the words of a line: the table of an operation, the pattern of its pictures, and its
/// sample.
fn operation(words: &[&str]) -> (String, &'static str, u64) {
    match words {
        ["rotate", _, _, _, angle, expand, x, y, interpolation] => {
            let center = optional("center", &[x, y]);
            let expand = expand.to_lowercase();
            let inside = format!(
                "name = 'random_rotation'\ndegrees = [{angle}, {angle}]\nexpand = {expand}\n\
                 interpolation = '{interpolation}'\nfill = [9, 8, 7]\n{center}"
            );
            (inside, "noise", 0)
        }
        ["perspective", _, _, _, sample, interpolation] => {
            let inside = format!(
                "name = 'random_perspective'\ndistortion_scale = 0.6\np = 0.8\n\
                 interpolation = '{interpolation}'\nfill = [1, 200, 30]"
            );
            (inside, "wave", golden::number(sample))
        }
        ["affine", _, _, _, sample, interpolation, samples, x, y, to_width, to_height] => {
            let center = optional("center", &[x, y]);
            let size = optional("size", &[to_height, to_width]);
            let samples = if *samples == "auto" { "'auto'" } else { samples };
            let inside = format!(
                "name = 'random_affine'\ndegrees = [-40, 60]\ntranslate = [0.25, 0.5]\n\
                 scale = [0.4, 1.75]\nshear = [-10, 20, -5, 5]\n\
                 interpolation = '{interpolation}'\nfill = [9, 80, 200]\n\
                 supersampling = {samples}\n{center}{size}"
            );
            (inside, "wave", golden::number(sample))
        }
        ["crumpets", _, _, _, sample, mode, interpolation, samples] => {
            let samples = if *samples == "auto" { "'auto'" } else { samples };
            let inside = format!(
                "name = 'crumpets_affine'\nsize = [18, 31]\nscale = [0.5, 2.25]\nshift = [-1, 1]\n\
                 rotation_sigma = 25\naspect_sigma = 0.25\nshear = [-0.25, 0.5]\n\
                 scale_mode = '{mode}'\ninterpolation = '{interpolation}'\n\
                 fill = [9, 80, 200]\nsupersampling = {samples}"
            );
            (inside, "wave", golden::number(sample))
        }
        ["pad", _, _, _, mode, left, top, right, bottom] => {
            let inside = format!(
                "name = 'pad'\npadding = [{left}, {top}, {right}, {bottom}]\n\
                 padding_mode = '{mode}'\nfill = [3, 2, 1]"
            );
            (inside, "noise", 0)
        }
        ["crop", _, _, _, sample, mode, left, top, right, bottom, to_width, to_height, needed] => {
            let inside = format!(
                "name = 'random_crop'\nsize = [{to_height}, {to_width}]\n\
                 padding = [{left}, {top}, {right}, {bottom}]\npadding_mode = '{mode}'\n\
                 pad_if_needed = {}\nfill = [3, 2, 1]",
                needed.to_lowercase()
            );
            (inside, "noise", golden::number(sample))
        }
        ["zoom", _, _, _, sample] => {
            let keys = "side_range = [1, 3]\np = 0.8\nfill = [3, 2, 1]";
            (format!("name = 'random_zoom_out'\n{keys}"), "noise", golden::number(sample))
        }
        ["max_size", _, _, _, side, most] => {
            (format!("name = 'resize'\nsize = {side}\nmax_size = {most}{LANCZOS}"), "wave", 0)
        }
        ["random_resize", _, _, _, sample] => {
            let keys = "min_size = 5\nmax_size = 20";
            (format!("name = 'random_resize'\n{keys}{LANCZOS}"), "wave", golden::number(sample))
        }
        ["shortest", _, _, _, sample] => {
            let keys = "name = 'random_shortest_size'\nmin_size = [8, 16, 33]\nmax_size = 50";
            (format!("{keys}{LANCZOS}"), "wave", golden::number(sample))
        }
        ["jitter", _, _, _, sample] => {
            let keys = "name = 'scale_jitter'\ntarget_size = [40, 30]";
            (format!("{keys}{LANCZOS}"), "wave", golden::number(sample))
        }
        ["elastic", seed, _, _, name, interpolation] => {
            let keys = match *name {
                "default" => "",
                "rough" => "alpha = [9, 3]\nsigma = 0\n",
                "uneven" => "alpha = [300, 40]\nsigma = [1, 3.3]\n",
                other => panic!("no fields {other}"),
            };
            let inside = format!(
                "name = 'elastic_transform'\n{keys}interpolation = '{interpolation}'\n\
                 fill = [9, 200, 31]"
            );
            (inside, "wave", golden::number(seed))
        }
        other => panic!("no operation {other:?}"),
    }
}

#[test]
fn operations_equal_pillow_bit_for_bit() {
    let lines = golden::lines(GOLDEN);
    for (words, expected) in &lines {
        let [seed, width, height] = [1, 2, 3].map(|at| golden::number(words[at]));
        let (inside, kind, sample) = operation(words);
        let file = png(kind, seed, width, height);
        let tensor = match try_prepare(&recipe(&[&inside]), &file, sample) {
            Ok(tensor) => tensor,
            Err(Error::DoesNotFit(_)) => {
                assert_eq!(expected[0], "small", "{words:?}");
                continue;
            }
            Err(error) => panic!("{words:?}: {error}"),
        };
        let size = [tensor.spec.width, tensor.spec.height].map(|side| side.to_string());
        assert_eq!(size, expected[..2], "{words:?}");
        assert_eq!(golden::sha256(&tensor.data)[..16], *expected[2], "{words:?}");
    }
    assert_eq!(lines.len(), 3487 + 336);
}

#[test]
fn whole_pictures_and_rows_alternate_in_any_order() {
    let file = png("noise", 3, 60, 41);
    let turn = "name = 'random_rotation'\ndegrees = [90, 90]\nexpand = true";
    let back = "name = 'random_rotation'\ndegrees = [270, 270]\nexpand = true";
    let flip = "name = 'random_horizontal_flip'\np = 1";
    let crop = "name = 'center_crop'\nsize = [31, 33]";
    let plain = prepare(&recipe(&[crop]), &file, 0);
    assert_eq!(prepare(&recipe(&[turn, back, crop]), &file, 0), plain);
    assert_eq!(prepare(&recipe(&[crop, turn, back]), &file, 0), plain);
    assert_eq!(prepare(&recipe(&[flip, turn, back, flip, crop]), &file, 0), plain);
    let upside_down = "name = 'random_vertical_flip'\np = 1";
    assert_eq!(prepare(&recipe(&[crop, flip, turn, upside_down, back]), &file, 0), plain);
    let grey = "name = 'grayscale'\nnum_output_channels = 3";
    let grey_first = prepare(&recipe(&[grey, crop]), &file, 0);
    assert_eq!(prepare(&recipe(&[turn, grey, back, crop]), &file, 0), grey_first);
}

#[test]
fn the_size_of_a_result_that_grows_is_that_of_the_recipe() {
    let expand = recipe(&["name = 'random_rotation'\ndegrees = 30\nexpand = true"]);
    assert_eq!(expand.output(), None);
    let fixed =
        recipe(&["name = 'center_crop'\nsize = 20", "name = 'random_rotation'\ndegrees = 9"]);
    assert_eq!(fixed.output().map(|it| (it.height, it.width)), Some((20, 20)));
}

#[test]
fn the_memory_of_a_warp_is_announced() {
    let file = png("noise", 3, 60, 40);
    let id = SampleId { seed: 7, epoch: 2, sample: 0 };
    let bytes = |operations: &[&str]| {
        SamplePreparer::new(&recipe(operations), Cpu::detect()).memory_bytes(&file, id).unwrap()
    };
    let decoder = bytes(&[]);
    let picture = 3 * 60 * 40;
    let turn = "name = 'random_rotation'\ndegrees = [10, 10]";
    // Pixels of four bytes with two more on each side.
    let packed = |width: u64, height: u64| 4 * (width + 4) * (height + 4);
    assert_eq!(bytes(&[turn]), decoder + 2 * picture + packed(60, 40));
    let never = "name = 'random_rotation'\ndegrees = 0";
    assert_eq!(bytes(&[never]), decoder);
    let crop = "name = 'center_crop'\nsize = [8, 8]";
    assert_eq!(bytes(&[crop, turn]), decoder + 2 * 3 * 8 * 8 + packed(8, 8));
    let expand = "name = 'random_rotation'\ndegrees = [90, 90]\nexpand = true";
    assert_eq!(bytes(&[expand, crop]), decoder + 2 * picture + packed(60, 40));
}

#[test]
fn corners_on_a_line_determine_no_perspective() {
    assert_eq!(coefficients([(0, 0); 4], (1, 1)), None);
    assert_eq!(coefficients([(0, 0), (1, 0), (2, 0), (0, 0)], (5, 1)), None);
    let same = coefficients([(0, 0), (8, 0), (8, 5), (0, 5)], (9, 6)).unwrap();
    assert_eq!(same, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn a_turn_about_a_point_as_far_as_a_recipe_allows_has_a_side_of_each() {
    let far = 2_147_483_648_u64;
    for degrees in [1e-9, 30.0, 45.0, 90.0, 271.5] {
        for center in [[far, far], [far, 0], [0, far]] {
            let [x, y] = center;
            let turn = format!(
                "name = 'random_rotation'\ndegrees = [{degrees}, {degrees}]\nexpand = true\n\
                 center = [-{x}, {y}]"
            );
            let resize = "name = 'resize'\nsize = [3, 4]";
            let made = prepare(&recipe(&[&turn, resize]), &png("noise", 3, 1, 1), 0);
            assert_eq!(made.data.len(), 3 * 3 * 4, "{turn}");
        }
    }
}

#[test]
fn crops_of_one_picture_equal_those_of_torchvision() {
    let lines = golden::lines(include_str!("../../tests/golden/crops_of_one.txt"));
    for (words, expected) in &lines {
        let [width, height, to_height, to_width]: [u32; 4] =
            [1, 2, 3, 4].map(|at| golden::number(words[at]));
        let keys = match words[0] {
            "five" => "name = 'five_crop'",
            "ten" => "name = 'ten_crop'",
            "vertical" => "name = 'ten_crop'\nvertical_flip = true",
            other => panic!("no crops {other}"),
        };
        let recipe = recipe(&[&format!("{keys}\nsize = [{to_height}, {to_width}]")]);
        let file = png("noise", width, width, height);
        for cpu in golden::instruction_sets() {
            let mut preparer = SamplePreparer::new(&recipe, cpu);
            let id = SampleId { seed: 7, epoch: 2, sample: 0 };
            let pictures = match preparer.prepare_tensors((&file).into(), id) {
                Ok(columns) => columns.into_iter().flatten().collect::<Vec<_>>(),
                Err(Error::DoesNotFit(_)) => {
                    assert_eq!(expected[0], "small", "{words:?}");
                    continue;
                }
                Err(error) => panic!("{words:?}: {error}"),
            };
            let hash = |it: &Tensor| golden::sha256(&it.data)[..16].to_owned();
            assert_eq!(pictures.iter().map(hash).collect::<Vec<_>>(), *expected, "{words:?}");
        }
    }
    assert_eq!(lines.len(), 90);
}

/// A move by whole pixels joins a pass of rows; after an operation on the whole picture, it is a
/// warp.
#[test]
fn moves_by_whole_pixels_equal_warps() {
    let affine = "name = 'random_affine'\ndegrees = [0.0, 0.0]\ntranslate = [0.6, 1.0]\n\
                  fill = [9, 8, 7]";
    let invert = |p: &str| format!("name = 'random_invert'\np = {p}");
    // Its fill is not inverted, since it comes first.
    let inverted = |pixels: &[u8]| pixels.iter().map(|value| 255 - value).collect::<Vec<u8>>();
    for flips in ["p = 0.0", "p = 1.0"] {
        let flip = format!("name = 'random_horizontal_flip'\n{flips}");
        for sample in 0..60 {
            let mut picture = golden::picture("noise", 3, 41, 29);
            let file = |picture: &crate::Picture| {
                let header = format!("P6 {} {} 255\n", picture.width, picture.height);
                [header.as_bytes(), &picture.pixels[..]].concat()
            };
            let moved = recipe(&[&flip, &invert("0.0"), affine, "name = 'center_crop'\nsize = 23"]);
            let warped =
                recipe(&[&flip, &invert("1.0"), affine, "name = 'center_crop'\nsize = 23"]);
            let found = prepare(&moved, &file(&picture), sample);
            picture.pixels = inverted(&picture.pixels);
            assert_eq!(found, prepare(&warped, &file(&picture), sample), "{sample}");
        }
    }
}

#[test]
fn rectangles_are_erased_alike_in_every_layout_and_type() {
    let erasing = "name = 'random_erasing'\np = 1.0\nvalue = [3.0, 70.0, 200.0]\nmax_count = 3";
    let file = png("noise", 5, 37, 41);
    for sample in 0..20 {
        let bytes = prepare(&recipe(&[erasing]), &file, sample);
        let planes = "name = 'layout'\nlayout = 'NCHW'";
        let floats = "name = 'to_dtype'\ndtype = 'float32'\nscale = false";
        let (rows, pixels) = (bytes.spec.height as usize, 37 * 41);
        assert_eq!(rows, 41);
        // One operation precedes it in both, so that its random parameters are equal.
        let in_planes = prepare(&recipe(&[planes, erasing]), &file, sample);
        let as_floats = prepare(&recipe(&[floats, erasing]), &file, sample);
        let mut erased = 0;
        for (index, value) in bytes.data.iter().enumerate() {
            let (pixel, channel) = (index / 3, index % 3);
            let float = as_floats.data.as_chunks::<4>().0[index];
            let same = in_planes.data[channel * pixels + pixel];
            erased += u32::from(*value == [3, 70, 200][channel]);
            assert_eq!(f32::from_le_bytes(float), f32::from(same), "{sample} {index}");
        }
        assert!(erased > 3 * 10, "{sample}: {erased}");
    }
}
