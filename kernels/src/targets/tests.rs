//! Targets against torchvision and Pillow, and their invariants.

use super::TargetSpec;
use crate::target_problem::TargetProblem;
use crate::{Cpu, Encoded, Error, SampleId, SamplePreparer, golden};
use image::ImageEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use meetpoint_format::column::{ColumnKind, ElementType};
use meetpoint_format::recipe::{
    BoxFormat, Boxes, Keypoints, Mask, MaskType, OutsidePoint, Recipe, Saliency, Target, TargetKind,
};
use proptest::prelude::*;

const ID: SampleId = SampleId { seed: 7, epoch: 2, sample: 0 };

fn ragged(element: ElementType, inner: &[u32]) -> ColumnKind {
    ColumnKind::Ragged { element, inner: inner.to_vec() }
}

fn tensor(element: ElementType, shape: &[u32]) -> ColumnKind {
    ColumnKind::Tensor { element, shape: shape.to_vec() }
}

fn boxes(format: BoxFormat) -> Boxes {
    Boxes { format, to_format: None, min_size: None, min_area: None, filters: vec![] }
}

fn points(swap: &[[u32; 2]], outside: OutsidePoint) -> TargetKind {
    Keypoints { swap: swap.to_vec(), outside }.into()
}

fn mask(fill: f64) -> TargetKind {
    Mask { fill, dtype: MaskType::Uint8 }.into()
}

fn target(column: &str, kind: TargetKind, stored: ColumnKind) -> TargetSpec {
    let prepared = ColumnKind::Tensor { element: stored.element(), shape: vec![] };
    TargetSpec { column: column.to_owned(), kind, stored, is_file_per_object: false, prepared }
}

/// The bytes of float64 numbers, in which targets are stored here.
fn bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Numbers of a prepared target.
fn floats(bytes: &[u8]) -> Vec<f64> {
    let (elements, _) = bytes.as_chunks();
    elements.iter().map(|it| f64::from(f32::from_le_bytes(*it))).collect()
}

/// A recipe with these operations, as inline tables, after a decode, and with these boxes as a
/// target.
fn recipe(operations: &str, boxes: Option<Boxes>) -> Recipe {
    let text = format!(
        "operation = [{{name = 'decode'}}, {operations}]\n[targets.any]\n\
                        kind = 'boxes'\nformat = 'xyxy'\n"
    );
    let read = Recipe::from_toml(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let target = |boxes: Boxes| Target { column: "any".to_owned(), kind: boxes.into() };
    let targets = boxes.map(target).into_iter().collect();
    Recipe::with_targets(read.operations().to_vec(), targets).unwrap()
}

/// A PNG of a size, whose pixels do not matter.
fn picture(width: u32, height: u32) -> Vec<u8> {
    let pixels = golden::picture("wave", 3, width, height).pixels;
    let mut file = Vec::new();
    PngEncoder::new_with_quality(&mut file, CompressionType::Fast, FilterType::NoFilter)
        .write_image(&pixels, width, height, image::ExtendedColorType::Rgb8)
        .unwrap();
    file
}

struct Prepared {
    /// Columns and rows.
    size: (u32, u32),
    targets: Vec<Vec<u8>>,
    kept: Option<Vec<bool>>,
}

fn prepare_on(
    cpu: Cpu,
    recipe: &Recipe,
    file: &[u8],
    id: SampleId,
    targets: &[(TargetSpec, Vec<u8>)],
) -> Result<Prepared, Error> {
    let mut preparer = SamplePreparer::new(recipe, cpu);
    preparer.set_targets(targets.iter().map(|(spec, _)| spec.clone()).collect());
    let stored: Vec<&[u8]> = targets.iter().map(|(_, stored)| &stored[..]).collect();
    let tensor = preparer.prepare_tensor_with(Encoded::from(file), &stored, id)?;
    let results = |preparer: &SamplePreparer| -> Vec<Vec<u8>> {
        (0..targets.len()).map(|index| preparer.target(index).to_vec()).collect()
    };
    let prepared = Prepared {
        size: (tensor.spec.width, tensor.spec.height),
        targets: results(&preparer),
        kept: preparer.retained(0).map(<[bool]>::to_vec),
    };
    // Decoding does not move targets: resumed after it, the rest gives the same targets, and the
    // same picture if the decoder does not look ahead.
    let decoded =
        SamplePreparer::new(&recipe.beginning(1), cpu).prepare_tensor(Encoded::from(file), id)?;
    let mut out = vec![0; tensor.spec.bytes()];
    let from = (&decoded.spec, &decoded.data[..]);
    preparer.resume_with(1, from, &stored, id, (&mut out, &mut || ()))?;
    assert!(results(&preparer) == prepared.targets, "targets, resumed behind decode");
    let looks_ahead = recipe.operations()[0].looks_ahead();
    assert!(looks_ahead || out == tensor.data, "picture, resumed behind decode");
    Ok(prepared)
}

fn prepare(
    operations: &str,
    size: (u32, u32),
    targets: &[(TargetSpec, Vec<u8>)],
) -> Result<Prepared, Error> {
    let recipe = recipe(operations, Some(boxes(BoxFormat::Xyxy)));
    prepare_on(Cpu::detect(), &recipe, &picture(size.0, size.1), ID, targets)
}

fn numbers(text: &str) -> Vec<f64> {
    text.split(',').map(|word| word.parse().unwrap()).collect()
}

#[test]
fn targets_move_as_those_of_torchvision_and_masks_as_those_of_pillow() {
    let sanitized = Boxes { min_size: Some(1.0), min_area: Some(6.0), ..boxes(BoxFormat::Xyxy) };
    for (words, expected) in golden::lines(include_str!("../../tests/golden/targets.txt")) {
        let [kind, seed, width, height, sample, operations, corners, at] = words[..] else {
            panic!("{words:?}")
        };
        let [seed, width, height, sample] =
            [seed, width, height, sample].map(golden::number::<u32>);
        let elements: Vec<u8> =
            golden::picture(kind, seed, width, height).pixels.into_iter().step_by(3).collect();
        let of = |kind, stored| target("it", kind, stored);
        let targets = [
            (
                of(sanitized.clone().into(), ragged(ElementType::Float64, &[4])),
                bytes(&numbers(corners)),
            ),
            (
                of(
                    points(&[[1, 2], [0, 3]], OutsidePoint::Clamp),
                    tensor(ElementType::Float64, &[4, 2]),
                ),
                bytes(&numbers(at)),
            ),
            (of(mask(7.0), tensor(ElementType::Uint8, &[height, width])), elements),
        ];
        let recipe = recipe(operations, Some(sanitized.clone()));
        let id = SampleId { sample: sample.into(), ..ID };
        let got =
            prepare_on(Cpu::detect(), &recipe, &picture(width, height), id, &targets).unwrap();
        let size = (golden::number(expected[0]), golden::number(expected[1]));
        assert_eq!(got.size, size, "{words:?}");
        assert_eq!(&golden::sha256(&got.targets[2])[..16], expected[2], "{words:?}");
        for (index, word) in [(0, expected[3]), (1, expected[5])] {
            let (got, expected) = (floats(&got.targets[index]), numbers(word));
            let is_near = |(one, other): (&f64, &f64)| (one - other).abs() <= 1e-4;
            let all = got.len() == expected.len() && got.iter().zip(&expected).all(is_near);
            assert!(all, "{words:?}\n{got:?}\n{expected:?}");
        }
        let kept: Vec<bool> = expected[4].chars().map(|it| it == '1').collect();
        assert_eq!(got.kept, Some(kept), "{words:?}");
    }
}

#[test]
fn every_instruction_set_moves_masks_alike() {
    let crop = "{name = 'random_resized_crop', size = [40, 50]}";
    let elements = golden::picture("noise", 5, 90, 70).pixels;
    let saliency = Saliency { fill: 9 }.into();
    let stored = tensor(ElementType::Uint8, &[70, 90]);
    let plane: Vec<u8> = elements.into_iter().step_by(3).collect();
    let targets = [
        (target("saliency", saliency, stored.clone()), plane.clone()),
        (target("mask", mask(0.0), stored), plane),
    ];
    let recipe = recipe(crop, Some(boxes(BoxFormat::Xyxy)));
    let on = |cpu| prepare_on(cpu, &recipe, &picture(90, 70), ID, &targets).unwrap().targets;
    let expected = on(Cpu::Portable);
    for cpu in golden::instruction_sets() {
        assert_eq!(on(cpu), expected, "{}", cpu.name());
    }
}

#[test]
fn a_saliency_map_moves_as_each_channel_of_a_picture() {
    let operations = "{name = 'random_affine', degrees = 30, interpolation = 'bilinear', \
                      supersampling = 2, fill = 9}, {name = 'random_resized_crop', size = 33}";
    let (width, height) = (50, 40);
    let plane: Vec<u8> =
        golden::picture("wave", 3, width, height).pixels.into_iter().step_by(3).collect();
    let stored = tensor(ElementType::Uint8, &[height, width]);
    let saliency = target("saliency", Saliency { fill: 9 }.into(), stored);
    let recipe = recipe(operations, Some(boxes(BoxFormat::Xyxy)));
    let file = picture(width, height);
    let got = prepare_on(Cpu::detect(), &recipe, &file, ID, &[(saliency, plane)]).unwrap();
    let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
    let image = preparer.prepare_tensor(Encoded::from(&file[..]), ID).unwrap();
    let red: Vec<u8> = image.data.into_iter().step_by(3).collect();
    assert_eq!(got.targets[0], red);
}

#[test]
fn elements_of_several_bytes_move_whole() {
    let crop = "{name = 'random_rotation', degrees = [40, 40]}, {name = 'resize', size = [12, 9]}";
    let (width, height) = (20, 30);
    let plane: Vec<u8> =
        golden::picture("noise", 1, width, height).pixels.into_iter().step_by(3).collect();
    let single = target("mask", mask(5.0), tensor(ElementType::Uint8, &[height, width]));
    let single = prepare(crop, (width, height), &[(single, plane.clone())]).unwrap();
    let values = &single.targets[0];
    assert!(values.contains(&5), "some elements come from outside");
    // Each element is a number that uses all bytes and differs from 5.
    let widen = |value: u8| u64::from(value) * 0x0101_0101_0101_0101;
    for element in [ElementType::Uint16, ElementType::Int32, ElementType::Uint64] {
        let bytes = element.bytes() as usize;
        let stored = plane.iter().flat_map(|value| widen(*value).to_le_bytes()[..bytes].to_vec());
        let spec = target("mask", mask(5.0), tensor(element, &[height, width]));
        let got = prepare(crop, (width, height), &[(spec, stored.collect())]).unwrap();
        let expected = values.iter().zip(got.targets[0].chunks_exact(bytes)).all(|(value, got)| {
            let is_fill = got[0] == 5 && got[1..].iter().all(|byte| *byte == 0);
            got == &widen(*value).to_le_bytes()[..bytes] || *value == 5 && is_fill
        });
        assert!(expected && got.targets[0].len() == bytes * values.len(), "{element}");
    }
}

#[test]
fn each_object_has_its_own_mask() {
    let flip = "{name = 'random_horizontal_flip', p = 1.0}";
    let spec = target("masks", mask(0.0), ragged(ElementType::Uint8, &[1, 3]));
    let got = prepare(flip, (3, 1), &[(spec.clone(), vec![1, 2, 3, 4, 5, 6])]).unwrap();
    assert_eq!(got.targets[0], [3, 2, 1, 6, 5, 4]);
    let none = prepare(flip, (3, 1), &[(spec, vec![])]).unwrap();
    assert_eq!(none.targets[0], [0; 0]);
}

#[test]
fn targets_belong_to_the_picture_at_full_resolution() {
    let mut jpeg = Vec::new();
    let pixels = golden::picture("wave", 3, 320, 240).pixels;
    let encoder = jpeg_encoder::Encoder::new(&mut jpeg, 90);
    encoder.encode(&pixels, 320, 240, jpeg_encoder::ColorType::Rgb).unwrap();
    let spec = || {
        [
            (
                target("boxes", boxes(BoxFormat::Xyxy).into(), ragged(ElementType::Float64, &[4])),
                bytes(&[80.0, 60.0, 160.0, 240.0]),
            ),
            (
                target("mask", mask(0.0), tensor(ElementType::Uint8, &[240, 320])),
                pixels.iter().copied().step_by(3).collect(),
            ),
        ]
    };
    let of = |scaled| {
        let text = format!(
            "operation = [{{name = 'decode', scaled = {scaled}}}, \
             {{name = 'resize', size = [24, 32]}}]"
        );
        let recipe = Recipe::from_toml(&text).unwrap();
        prepare_on(Cpu::detect(), &recipe, &jpeg, ID, &spec()).unwrap().targets
    };
    assert_eq!(floats(&of(true)[0]), [8.0, 6.0, 16.0, 24.0]);
    assert_eq!(of(true), of(false));
}

#[test]
fn boxes_are_read_and_written_in_every_format() {
    let stored = ragged(ElementType::Float64, &[4]);
    let resize = "{name = 'resize', size = [20, 40]}";
    let formats = [
        (BoxFormat::Xyxy, [2.0, 1.0, 6.0, 9.0]),
        (BoxFormat::Xywh, [2.0, 1.0, 4.0, 8.0]),
        (BoxFormat::Cxcywh, [4.0, 5.0, 4.0, 8.0]),
    ];
    for (format, numbers) in formats {
        for (to_format, expected) in formats {
            let kind = Boxes { to_format: Some(to_format), ..boxes(format) };
            let spec = target("boxes", kind.into(), stored.clone());
            let got = prepare(resize, (20, 10), &[(spec, bytes(&numbers))]).unwrap();
            assert_eq!(floats(&got.targets[0]), expected.map(|number| number * 2.0), "{format:?}");
        }
        let spec = target("boxes", boxes(format).into(), stored.clone());
        let got = prepare(resize, (20, 10), &[(spec, bytes(&numbers))]).unwrap();
        assert_eq!(floats(&got.targets[0]), numbers.map(|number| number * 2.0), "{format:?}");
        assert_eq!(got.kept, None);
    }
}

#[test]
fn a_point_outside_is_clamped_left_or_set_to_zero_and_a_missing_one_stays() {
    let crop = "{name = 'center_crop', size = [4, 4]}";
    let stored = tensor(ElementType::Float64, &[3, 3]);
    let numbers = bytes(&[1.0, 5.0, 2.0, 5.0, 5.0, 1.0, 0.0, 0.0, 0.0]);
    let got = |outside| {
        let spec = target("points", points(&[], outside), stored.clone());
        floats(&prepare(crop, (10, 10), &[(spec, numbers.clone())]).unwrap().targets[0])
    };
    assert_eq!(got(OutsidePoint::Clamp), [0.0, 2.0, 2.0, 2.0, 2.0, 1.0, 0.0, 0.0, 0.0]);
    assert_eq!(got(OutsidePoint::Keep), [-2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 0.0, 0.0, 0.0]);
    assert_eq!(got(OutsidePoint::Zero), [0.0, 0.0, 0.0, 2.0, 2.0, 1.0, 0.0, 0.0, 0.0]);
}

/// A PNG with packed rows of one channel.
fn png(
    width: u32,
    height: u32,
    colours: png::ColorType,
    depth: png::BitDepth,
    rows: &[u8],
) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(colours);
    encoder.set_depth(depth);
    if colours == png::ColorType::Indexed {
        encoder.set_palette((0..48).collect::<Vec<u8>>());
    }
    encoder.write_header().unwrap().write_image_data(rows).unwrap();
    file
}

#[test]
fn the_elements_of_a_png_are_its_grey_values_or_the_indices_of_its_palette() {
    use png::{BitDepth as B, ColorType as C};
    let resize = "{name = 'resize', size = [2, 3]}";
    let got = |file: Vec<u8>, dtype| {
        let kind = Mask { fill: 0.0, dtype }.into();
        let prepared = tensor(ElementType::from(dtype), &[2, 3]);
        let spec = TargetSpec { prepared, ..target("mask", kind, ColumnKind::Bytes) };
        prepare(resize, (3, 2), &[(spec, file)]).map(|it| it.targets[0].clone())
    };
    let (narrow, wide) = (MaskType::Uint8, MaskType::Uint16);
    let grey = png(3, 2, C::Grayscale, B::Eight, &[0, 1, 255, 7, 8, 9]);
    assert_eq!(got(grey.clone(), narrow).unwrap(), [0, 1, 255, 7, 8, 9]);
    assert_eq!(got(grey, wide).unwrap(), [0, 0, 1, 0, 255, 0, 7, 0, 8, 0, 9, 0]);
    let bits = png(3, 2, C::Grayscale, B::One, &[0b1010_0000, 0b0110_0000]);
    assert_eq!(got(bits, narrow).unwrap(), [1, 0, 1, 0, 1, 1]);
    let indices = png(3, 2, C::Indexed, B::Four, &[0x0f, 0x30, 0x12, 0x40]);
    assert_eq!(got(indices, narrow).unwrap(), [0, 15, 3, 1, 2, 4]);
    let deep = png(3, 2, C::Grayscale, B::Sixteen, &[1, 2, 0, 3, 4, 5, 0, 0, 255, 255, 6, 7]);
    assert_eq!(got(deep.clone(), wide).unwrap(), [2, 1, 3, 0, 5, 4, 0, 0, 255, 255, 7, 6]);

    let problem = |result: Result<Vec<u8>, Error>| match result {
        Err(Error::Target { column, problem }) => (column, *problem),
        other => panic!("{other:?}"),
    };
    let (column, refused) = problem(got(deep, narrow));
    assert!(column == "mask" && matches!(refused, TargetProblem::MaskColours { .. }));
    let colours = png(3, 2, C::Rgb, B::Eight, &[0; 18]);
    assert!(matches!(problem(got(colours, wide)).1, TargetProblem::MaskColours { .. }));
    let scaled = png(3, 2, C::Grayscale, B::Two, &[0; 2]);
    assert!(matches!(problem(got(scaled, narrow)).1, TargetProblem::MaskColours { .. }));
    let large = png(4, 2, C::Grayscale, B::Eight, &[0; 8]);
    let expected = TargetProblem::MaskSize { mask: (4, 2), picture: (3, 2) };
    assert_eq!(problem(got(large, narrow)).1, expected);
    assert!(matches!(problem(got(vec![1; 40], narrow)).1, TargetProblem::MaskPng { .. }));
}

#[test]
fn values_that_do_not_fit_the_picture_are_refused_by_name() {
    let problem = |kind: TargetKind, stored: ColumnKind, bytes: Vec<u8>| {
        let spec = target("it", kind, stored);
        match prepare("{name = 'resize', size = [4, 4]}", (10, 8), &[(spec, bytes)]) {
            Err(Error::Target { column, problem }) if column == "it" => *problem,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it fits"),
        }
    };
    let of_boxes = |numbers: &[f64]| {
        let stored = ragged(ElementType::Float64, &[4]);
        problem(boxes(BoxFormat::Xyxy).into(), stored, bytes(numbers))
    };
    let nan = of_boxes(&[0.0, 0.0, 1.0, f64::NAN]);
    assert!(matches!(nan, TargetProblem::NotFinite { index: 3, .. }));
    let negative = of_boxes(&[0.0, 0.0, 1.0, 1.0, 5.0, 5.0, 4.0, 6.0]);
    let corners = [5.0, 5.0, 4.0, 6.0];
    assert_eq!(negative, TargetProblem::NegativeBox { index: 1, corners });
    let corners = [10.5, 0.0, 12.0, 3.0];
    let expected = TargetProblem::BoxOutside { index: 0, corners, picture: (10, 8) };
    assert_eq!(of_boxes(&corners), expected);
    let small = problem(mask(0.0), tensor(ElementType::Uint8, &[8, 9]), vec![0; 72]);
    assert_eq!(small, TargetProblem::MaskSize { mask: (9, 8), picture: (10, 8) });
    let swap = points(&[[0, 2]], OutsidePoint::Keep);
    let few = problem(swap, ragged(ElementType::Float64, &[2]), bytes(&[1.0, 2.0, 3.0, 4.0]));
    assert_eq!(few, TargetProblem::NoPoint { wanted: 2, count: 2 });
}

#[test]
fn a_crop_by_boxes_needs_boxes_and_leaves_the_picture_where_there_are_none() {
    let crop = "{name = 'random_iou_crop'}, {name = 'resize', size = [9, 9]}";
    assert!(matches!(prepare(crop, (10, 8), &[]), Err(Error::NoBoxes)));
    let spec = target("boxes", boxes(BoxFormat::Xyxy).into(), ragged(ElementType::Float64, &[4]));
    let empty = prepare(crop, (10, 8), &[(spec, vec![])]).unwrap();
    assert_eq!((empty.size, empty.targets[0].len()), ((9, 9), 0));
}

proptest! {
    #[test]
    fn two_mirrors_leave_every_target_as_it_was(
        width in 1..40_u32, height in 1..40_u32, flip: bool,
        at in prop::collection::vec((0.0..1.0, 0.0..1.0), 4),
    ) {
        let name = if flip { "random_vertical_flip" } else { "random_horizontal_flip" };
        let twice = format!("{{name = '{name}', p = 1.0}}, {{name = '{name}', p = 1.0}}");
        // Quarters of a pixel, which float32 represents exactly.
        let place = |share: f64, side: u32| (share * f64::from(side) * 4.0).round() / 4.0;
        let at: Vec<f64> =
            at.iter().flat_map(|(x, y)| [place(*x, width), place(*y, height)]).collect();
        let plane: Vec<u8> =
            golden::picture("noise", 2, width, height).pixels.into_iter().step_by(3).collect();
        let kind = points(&[[0, 1], [2, 3]], OutsidePoint::Clamp);
        let of_mask = tensor(ElementType::Uint8, &[height, width]);
        let targets = [
            (target("points", kind, tensor(ElementType::Float64, &[4, 2])), bytes(&at)),
            (target("mask", mask(0.0), of_mask), plane.clone()),
        ];
        let got = prepare(&twice, (width, height), &targets).unwrap();
        prop_assert_eq!(floats(&got.targets[0]), at);
        prop_assert_eq!(&got.targets[1], &plane);
    }

    #[test]
    fn the_box_of_a_rectangle_moves_with_its_mask(
        sample: u64, chain in 0..7_usize,
        left in 0..30_u32, top in 0..20_u32, wide in 8..30_u32, high in 8..20_u32,
    ) {
        const CHAINS: [&str; 7] = [
            "{name = 'random_resized_crop', size = [50, 60], scale = [0.5, 1.0]}",
            "{name = 'random_horizontal_flip'}, {name = 'resize', size = [90, 130]}",
            "{name = 'random_rotation', degrees = 180, expand = true}",
            "{name = 'random_affine', degrees = 30, shear = 10, scale = [0.8, 1.5]}",
            "{name = 'random_perspective', distortion_scale = 0.4}",
            "{name = 'elastic_transform', alpha = 20.0}",
            "{name = 'random_zoom_out'}, {name = 'random_vertical_flip'}",
        ];
        let (width, height) = (70, 50);
        let (right, bottom) = (left + wide, top + high);
        let inside = |x: u32, y: u32| (left..right).contains(&x) && (top..bottom).contains(&y);
        let plane: Vec<u8> = (0..height)
            .flat_map(|y| (0..width).map(move |x| (x, y)))
            .map(|(x, y)| u8::from(inside(x, y)))
            .collect();
        let corners = [left, top, right, bottom].map(f64::from);
        let kind = TargetKind::from(boxes(BoxFormat::Xyxy));
        let targets = [
            (target("boxes", kind, ragged(ElementType::Float64, &[4])), bytes(&corners)),
            (target("mask", mask(0.0), tensor(ElementType::Uint8, &[height, width])), plane),
        ];
        let recipe = recipe(CHAINS[chain], Some(boxes(BoxFormat::Xyxy)));
        let id = SampleId { sample, ..ID };
        let file = picture(width, height);
        let got = prepare_on(Cpu::detect(), &recipe, &file, id, &targets).unwrap();
        let columns = got.size.0;
        let at = got.targets[1].iter().enumerate().filter(|(_, element)| **element == 1);
        let at: Vec<(f64, f64)> = at
            .map(|(index, _)| (index as u32 % columns, index as u32 / columns))
            .map(|(x, y)| (f64::from(x), f64::from(y)))
            .collect();
        prop_assume!(!at.is_empty());
        let fold = |axis: fn(&(f64, f64)) -> f64, pick: fn(f64, f64) -> f64| {
            at.iter().map(axis).reduce(pick).unwrap()
        };
        let seen = [
            fold(|it| it.0, f64::min),
            fold(|it| it.1, f64::min),
            fold(|it| it.0, f64::max) + 1.0,
            fold(|it| it.1, f64::max) + 1.0,
        ];
        let moved = floats(&got.targets[0]);
        let is_turned = (2..6).contains(&chain);
        let is_inside = moved[0] > 0.0
            && moved[1] > 0.0
            && moved[2] < f64::from(got.size.0)
            && moved[3] < f64::from(got.size.1);
        // For a rotated, cropped rectangle, the bounding box of its corners is larger.
        prop_assume!(is_inside || !is_turned);
        // A pixel belongs to the mask if its centre does. The tip of a corner may be between
        // centres.
        let most = if is_turned { 2.0 } else { 0.501 };
        for (seen, moved) in seen.iter().zip(&moved) {
            prop_assert!((seen - moved).abs() <= most, "{seen} is not {moved}");
        }
    }
}
