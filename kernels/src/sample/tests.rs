//! Whole recipes against Pillow and NumPy, and invariants of every sample.

use super::{SampleId, SamplePreparer};
use crate::{Cpu, Error, Picture, golden};
use image::ImageEncoder;
use image::codecs::png::PngEncoder;
use meetpoint_format::recipe::{
    CenterCrop, Decode, Dtype, GaussianBlur, Grayscale, Interpolation, Layout, Normalize,
    Operation, PerChannel, RandomHorizontalFlip, RandomResizedCrop, RandomVerticalFlip, Recipe,
    Resize, Scale, Size, ToDtype,
};

const MEAN: PerChannel = PerChannel::Rgb([0.485, 0.456, 0.406]);
const STD: PerChannel = PerChannel::Rgb([0.229, 0.224, 0.225]);
const BILINEAR: Interpolation = Interpolation::Bilinear;
const BICUBIC: Interpolation = Interpolation::Bicubic;

fn png(picture: &Picture) -> Vec<u8> {
    let mut encoded = Vec::new();
    let (width, height) = (picture.width, picture.height);
    PngEncoder::new(&mut encoded)
        .write_image(&picture.pixels, width, height, image::ExtendedColorType::Rgb8)
        .unwrap();
    encoded
}

fn recipe(operations: &[Operation]) -> Recipe {
    Recipe::new([&[Operation::Decode(Decode::EXACT)], operations].concat()).unwrap()
}

fn shorter(side: u32, interpolation: Interpolation) -> Operation {
    Operation::Resize(Resize {
        size: Size::ShorterSide(side),
        max_size: None,
        interpolation,
        antialias: true,
    })
}

fn random_crop(height: u32, width: u32) -> Operation {
    let (scale, ratio) = ((0.08, 1.0), (3.0 / 4.0, 4.0 / 3.0));
    let interpolation = BICUBIC;
    Operation::RandomResizedCrop(RandomResizedCrop {
        height,
        width,
        scale,
        ratio,
        interpolation,
        antialias: true,
    })
}

fn center(height: u32, width: u32) -> Operation {
    Operation::CenterCrop(CenterCrop { height, width })
}

fn to(dtype: Dtype) -> Operation {
    Operation::ToDtype(ToDtype { dtype, scale: Scale::Multiply })
}

const FLIP: Operation = Operation::RandomHorizontalFlip(RandomHorizontalFlip { p: 0.5 });
const GREY: Operation = Operation::Grayscale(Grayscale { num_output_channels: 3 });
const PLANES: Operation = Operation::Layout(Layout::Nchw);
const NORMALIZE: Operation = Operation::Normalize(Normalize { mean: MEAN, std: STD });

/// The recipes of the golden script by their names there.
fn golden_recipe(name: &str) -> Recipe {
    match name {
        "evaluation" => {
            recipe(&[shorter(256, BILINEAR), center(224, 224), to(Dtype::Float32), NORMALIZE])
        }
        "padded" => recipe(&[center(300, 280)]),
        // A flip between two crops, and one at the end that never happens.
        "flipped" => recipe(&[
            shorter(99, BICUBIC),
            center(97, 98),
            Operation::RandomHorizontalFlip(RandomHorizontalFlip { p: 1.0 }),
            center(81, 80),
            Operation::RandomHorizontalFlip(RandomHorizontalFlip { p: 0.0 }),
            PLANES,
        ]),
        "training" => recipe(&[random_crop(96, 112), FLIP, to(Dtype::Float16), NORMALIZE, PLANES]),
        other => panic!("no recipe {other}"),
    }
}

#[test]
fn recipes_equal_pillow_and_numpy_bit_for_bit() {
    for (words, expected) in golden::lines(include_str!("../../tests/golden/recipes.txt")) {
        let [kind, seed, width, height, name, sample @ ..] = &words[..] else {
            panic!("{words:?}")
        };
        let picture = golden::picture(
            kind,
            golden::number(seed),
            golden::number(width),
            golden::number(height),
        );
        let recipe = golden_recipe(name);
        let sample = sample.first().map_or(0, |sample| golden::number(sample));
        let id = SampleId { seed: 7, epoch: 2, sample };
        for cpu in golden::instruction_sets() {
            let mut preparer = SamplePreparer::new(&recipe, cpu);
            let tensor = preparer.prepare_tensor((&png(&picture)).into(), id).unwrap();
            assert_eq!(Some(tensor.spec), recipe.output(), "{words:?}");
            assert_eq!(golden::sha256(&tensor.data), expected[0], "{} {words:?}", cpu.name());
            let mut out = vec![0; tensor.data.len()];
            preparer.prepare((&png(&picture)).into(), id, &mut out, &mut || ()).unwrap();
            assert_eq!(out, tensor.data);
        }
    }
}

#[test]
fn what_was_prepared_before_does_not_matter() {
    let recipe = golden_recipe("training");
    let pictures = [(300, 200), (7, 9), (64, 301)];
    let files = pictures.map(|(width, height)| png(&golden::picture("wave", 2, width, height)));
    let mut shared = SamplePreparer::new(&recipe, Cpu::detect());
    let mut out = vec![0; recipe.output().unwrap().bytes()];
    for sample in 0..12 {
        let id = SampleId { seed: 1, epoch: 0, sample };
        let file = &files[sample as usize % files.len()];
        shared.prepare(file.into(), id, &mut out, &mut || ()).unwrap();
        let alone =
            SamplePreparer::new(&recipe, Cpu::detect()).prepare_tensor(file.into(), id).unwrap();
        assert_eq!(out, alone.data);
    }
}

#[test]
fn a_damaged_sample_does_not_spoil_the_next() {
    let recipe = golden_recipe("evaluation");
    let file = png(&golden::picture("wave", 2, 300, 200));
    let id = SampleId { seed: 1, epoch: 0, sample: 0 };
    let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
    let expected = preparer.prepare_tensor((&file).into(), id).unwrap();
    let error = preparer.prepare_tensor(file[..file.len() / 2].into(), id).unwrap_err();
    assert!(matches!(error, Error::Decode { format: "PNG", .. }), "{error:?}");
    assert_eq!(preparer.prepare_tensor((&file).into(), id).unwrap(), expected);
}

#[test]
fn seed_epoch_and_sample_each_change_a_random_crop() {
    let recipe = recipe(&[random_crop(32, 32)]);
    let file = png(&golden::picture("noise", 2, 300, 200));
    let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
    let base = SampleId { seed: 1, epoch: 0, sample: 0 };
    let mut prepared = |id| preparer.prepare_tensor((&file).into(), id).unwrap();
    let expected = prepared(base);
    assert_eq!(prepared(base), expected);
    for id in [
        SampleId { seed: 2, ..base },
        SampleId { epoch: 1, ..base },
        SampleId { sample: 1, ..base },
    ] {
        assert_ne!(prepared(id), expected, "{id:?}");
    }
}

#[test]
fn a_sample_pauses_after_every_stripe() {
    let recipe = golden_recipe("evaluation");
    let file = png(&golden::picture("wave", 2, 260, 240));
    let mut out = vec![0; recipe.output().unwrap().bytes()];
    let mut stages = 0;
    let id = SampleId { seed: 1, epoch: 0, sample: 0 };
    SamplePreparer::new(&recipe, Cpu::detect())
        .prepare((&file).into(), id, &mut out, &mut || stages += 1)
        .unwrap();
    // A central crop needs all but a few rows.
    assert!(stages >= 13, "{stages}");
}

#[test]
fn an_output_of_another_size_is_an_error_that_says_both() {
    let file = png(&golden::picture("wave", 2, 60, 50));
    let id = SampleId { seed: 1, epoch: 0, sample: 0 };
    // The size of the first is known before decoding, that of the second depends on the picture.
    for (recipe, expected) in [(recipe(&[center(8, 9)]), 216), (recipe(&[]), 9000)] {
        let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
        for got in [0, expected - 1, expected + 1] {
            let refused = preparer.prepare((&file).into(), id, &mut vec![0; got], &mut || ());
            assert_eq!(refused, Err(Error::OutputSize { got, expected }));
        }
        preparer.prepare((&file).into(), id, &mut vec![0; expected], &mut || ()).unwrap();
    }
}

#[test]
fn a_resize_beyond_the_limit_is_an_error_before_memory_is_taken() {
    let file = png(&golden::picture("wave", 2, 1, 9000));
    let id = SampleId { seed: 1, epoch: 0, sample: 0 };
    let exact = |height, width| {
        Operation::Resize(Resize {
            max_size: None,
            size: Size::Exact { height, width },
            interpolation: BILINEAR,
            antialias: true,
        })
    };
    // The result of the second is small, but not the intermediate picture between its two passes.
    for operation in [shorter(60_000, BILINEAR), exact(1, 60_000)] {
        let refused = SamplePreparer::new(&recipe(&[operation]), Cpu::detect())
            .prepare_tensor((&file).into(), id);
        let Err(Error::DoesNotFit(unfit)) = refused else { panic!("{refused:?}") };
        assert!(matches!(unfit.misfit, crate::Misfit::TooLarge { .. }), "{unfit:?}");
    }
}

fn mirrored(picture: &Picture) -> Picture {
    let mut picture = picture.clone();
    for row in picture.pixels.chunks_exact_mut(picture.width as usize * 3) {
        let pixels = row.as_chunks_mut::<3>().0;
        pixels.reverse();
    }
    picture
}

fn upside_down(picture: &Picture) -> Picture {
    let rows = picture.pixels.chunks_exact(picture.width as usize * 3);
    Picture { pixels: rows.rev().flatten().copied().collect(), ..*picture }
}

/// The result of a recipe on a picture, uint8 NHWC.
fn made(operations: &[Operation], picture: &Picture) -> Picture {
    let id = SampleId { seed: 1, epoch: 0, sample: 0 };
    let mut preparer = SamplePreparer::new(&recipe(operations), Cpu::detect());
    let tensor = preparer.prepare_tensor((&png(picture)).into(), id).unwrap();
    Picture { width: tensor.spec.width, height: tensor.spec.height, pixels: tensor.data }
}

#[test]
fn a_flip_anywhere_is_a_mirror_there() {
    const ALWAYS: Operation = Operation::RandomHorizontalFlip(RandomHorizontalFlip { p: 1.0 });
    // Padded by an odd number, cropped by an odd number, resized, and several of them.
    let chains: [&[Operation]; 6] = [
        &[center(40, 78)],
        &[center(21, 30)],
        &[shorter(32, BICUBIC)],
        &[center(90, 66), shorter(31, BILINEAR)],
        &[shorter(31, BILINEAR), center(50, 20), shorter(17, BICUBIC), center(20, 40)],
        &[
            center(80, 80),
            center(30, 31),
            Operation::RandomHorizontalFlip(RandomHorizontalFlip { p: 0.0 }),
        ],
    ];
    let picture = golden::picture("noise", 8, 67, 53);
    for chain in chains {
        let before: Vec<_> = [ALWAYS].iter().chain(chain).cloned().collect();
        assert_eq!(made(&before, &picture), made(chain, &mirrored(&picture)), "{chain:?}");
        let after: Vec<_> = chain.iter().cloned().chain([ALWAYS]).collect();
        assert_eq!(made(&after, &picture), mirrored(&made(chain, &picture)), "{chain:?}");
    }
}

#[test]
fn a_vertical_flip_anywhere_is_a_mirror_there() {
    const ALWAYS: Operation = Operation::RandomVerticalFlip(RandomVerticalFlip { p: 1.0 });
    const MIRROR: Operation = Operation::RandomHorizontalFlip(RandomHorizontalFlip { p: 1.0 });
    // Padded by an odd number, cropped by an odd number, resized, recoloured, and several of them.
    let chains: [&[Operation]; 7] = [
        &[center(78, 40)],
        &[center(30, 21)],
        &[shorter(32, BICUBIC)],
        &[random_crop(40, 30)],
        &[center(66, 90), shorter(31, BILINEAR)],
        &[GREY, shorter(31, BILINEAR), center(20, 50), GREY, MIRROR],
        &[center(80, 80), center(31, 30)],
    ];
    let picture = golden::picture("noise", 8, 53, 67);
    for chain in chains {
        // Replaces another operation, so that random parameters do not change.
        let none = || Operation::RandomVerticalFlip(RandomVerticalFlip { p: 0.0 });
        let with = |first: Operation, last: Operation, picture: &Picture| {
            made(&[&[first], chain, &[last]].concat(), picture)
        };
        let plain = with(none(), none(), &upside_down(&picture));
        assert_eq!(with(ALWAYS, none(), &picture), plain, "{chain:?}");
        let plain = upside_down(&with(none(), none(), &picture));
        assert_eq!(with(none(), ALWAYS, &picture), plain, "{chain:?}");
    }
}

#[test]
fn the_memory_of_a_picture_between_two_stages_is_announced() {
    let id = |sample| SampleId { seed: 1, epoch: 0, sample };
    let file = png(&golden::picture("wave", 2, 300, 200));
    let bytes = |operations: &[Operation], id: SampleId| {
        let preparer = SamplePreparer::new(&recipe(operations), Cpu::detect());
        preparer.memory_bytes(&file, id).unwrap()
    };
    let decoder = bytes(&[], id(0));
    assert_eq!(bytes(&[shorter(50, BILINEAR), center(40, 40), FLIP], id(0)), decoder);
    let between = 3 * 50 * 75;
    assert_eq!(bytes(&[shorter(50, BILINEAR), GREY, center(40, 40)], id(0)), decoder + between);
    let two = [GREY, shorter(50, BILINEAR), GREY];
    assert_eq!(bytes(&two, id(0)), decoder + 3 * 300 * 200);
    // Besides a second picture, a blur holds a row of float32 for each row of its kernel, or of the
    // picture if that has fewer.
    for (kernel, rows) in [((5, 3), 5), ((301, 1), 200)] {
        let blur =
            GaussianBlur { kernel_size: Some(kernel), sigma: (1.0, 1.0), sigma_relative: None };
        let held = 2 * 3 * 300 * 200 + rows * 3 * 300 * 4;
        assert_eq!(bytes(&[blur.into()], id(0)), decoder + held);
    }
    // Only some samples are turned upside down before they are resized.
    let flip = || Operation::RandomVerticalFlip(RandomVerticalFlip { p: 0.5 });
    let found: Vec<u64> =
        (0..20).map(|sample| bytes(&[flip(), random_crop(9, 9)], id(sample)) - decoder).collect();
    assert!(found.iter().all(|bytes| [0, 3 * 300 * 200].contains(bytes)), "{found:?}");
    assert!(found.contains(&0) && found.contains(&(3 * 300 * 200)), "{found:?}");
}

#[test]
fn a_chain_makes_what_its_operations_make_one_by_one() {
    let exact = |height, width| {
        Operation::Resize(Resize {
            max_size: None,
            size: Size::Exact { height, width },
            interpolation: BICUBIC,
            antialias: true,
        })
    };
    let nearest = shorter(45, Interpolation::Nearest);
    let always = || Operation::RandomHorizontalFlip(RandomHorizontalFlip { p: 1.0 });
    let chain = [
        center(60, 75),
        always(),
        exact(41, 90),
        center(55, 31),
        always(),
        nearest,
        center(30, 100),
        always(),
        center(29, 9),
    ];
    let picture = golden::picture("noise", 9, 67, 63);
    for length in 1..=chain.len() {
        let one_by_one = chain[..length]
            .iter()
            .fold(picture.clone(), |picture, it| made(std::slice::from_ref(it), &picture));
        assert_eq!(made(&chain[..length], &picture), one_by_one, "{length}");
    }
}

/// The results of a recipe for a JPEG decoded exactly and decoded at a lower resolution.
#[test]
fn a_scaled_decode_shows_the_same_part_of_the_picture() {
    // A ramp, in which displaced pixels are brighter or darker.
    let ramp = |x: u32, y: u32| [x * 255 / 639, y * 255 / 479, (x + y) * 255 / 1118];
    let pixels: Vec<u8> = (0..480)
        .flat_map(|y| (0..640).flat_map(move |x| ramp(x, y).map(|value| value as u8)))
        .collect();
    let mut file = Vec::new();
    jpeg_encoder::Encoder::new(&mut file, 95)
        .encode(&pixels, 640, 480, jpeg_encoder::ColorType::Rgb)
        .unwrap();
    let scaled = Decode { scaled: true, ..Decode::EXACT };
    let chains: [&[Operation]; 3] = [
        &[shorter(60, BILINEAR), center(50, 50)],
        &[random_crop(40, 40), FLIP],
        // The flip comes first, so that the crop itself is mirrored.
        &[Operation::RandomHorizontalFlip(RandomHorizontalFlip { p: 1.0 }), random_crop(40, 40)],
    ];
    for chain in chains {
        let of = |decode| [&[Operation::Decode(decode)], chain].concat();
        let [exact, fast] = [Decode::EXACT, scaled].map(|decode| {
            let recipe = Recipe::new(of(decode)).unwrap();
            let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
            (0..20)
                .map(|sample| {
                    let id = SampleId { seed: 1, epoch: 0, sample };
                    preparer.prepare_tensor((&file).into(), id).unwrap()
                })
                .collect::<Vec<_>>()
        });
        let mut differs = false;
        for (exact, fast) in exact.iter().zip(&fast) {
            assert_eq!(exact.spec, fast.spec);
            let values = exact.data.iter().zip(&fast.data);
            let sum: u64 = values.map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
            // A displacement by one pixel would be a difference of at least 3.
            let mean = sum as f64 / exact.data.len() as f64;
            assert!(mean < 0.8, "{mean}");
            differs |= sum > 0;
        }
        assert!(differs, "nothing was decoded at a lower resolution");
    }
}

#[test]
fn a_plan_for_the_memory_of_a_sample_is_that_of_the_sample() {
    let pad = "{ name = 'pad', padding = 3, padding_mode = 'edge' }";
    let crop = "{ name = 'random_resized_crop', size = 24 }, { name = 'gaussian_noise' }";
    for operations in ["{ name = 'center_crop', size = 20 }", pad, crop] {
        let text = format!("operation = [{{ name = 'decode' }}, {operations}]");
        let recipe = Recipe::from_toml(&text).unwrap();
        let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
        let mut alone = SamplePreparer::new(&recipe, Cpu::detect());
        for (sample, seed) in (0..6).zip([1, 1, 2, 3, 3, 4]) {
            let file = png(&golden::picture("noise", seed, 40 + seed, 33));
            let id = SampleId { seed: 5, epoch: 1, sample };
            let expected = alone.memory_bytes(&file, id).unwrap();
            assert_eq!(preparer.plan_memory((&file).into(), id).unwrap(), expected, "{text}");
            // A plan of another sample, or one that is never used, changes nothing.
            let other = SampleId { sample: sample + sample % 2, ..id };
            let found = preparer.prepare_tensor((&file).into(), other).unwrap();
            assert_eq!(found, alone.prepare_tensor((&file).into(), other).unwrap(), "{text}");
            preparer.plan_memory((&file).into(), other).unwrap();
        }
    }
}
