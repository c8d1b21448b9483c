//! Several pictures of one sample: each is bit-identical to the result of a recipe with only its
//! operations.

use super::{SampleId, SamplePreparer, Source, Streams, Tensor};
use crate::{Cpu, Encoded, Error, golden};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use meetpoint_format::recipe::{Recipe, RecipeParts};
use proptest::prelude::*;
use std::path::Path;

const SIDES: std::ops::Range<u16> = 40..260;

/// A JPEG of a picture with edges and ramps.
fn jpeg(width: u16, height: u16) -> Vec<u8> {
    let picture = golden::picture("wave", 5, width.into(), height.into());
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, 90);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.encode(&picture.pixels, width, height, ColorType::Rgb).unwrap();
    file
}

/// The tables of operations, each given as `name` or `name key = value;key = value`.
fn tables(path: &str, operations: &[&str]) -> String {
    let table = |keys: &&str| {
        let (name, rest) = keys.split_once(' ').unwrap_or((keys, ""));
        format!("[[{path}]]\nname = \"{name}\"\n{}\n", rest.replace(';', "\n"))
    };
    operations.iter().map(table).collect()
}

fn with_views(common: &[&str], views: &[(&str, u32, &[&str])]) -> Recipe {
    let view = |(column, count, operations): &(&str, u32, &[&str])| {
        let own = tables("views.operations", operations);
        format!("[[views]]\ncolumn = \"{column}\"\ncount = {count}\n{own}")
    };
    let views: String = views.iter().map(view).collect();
    Recipe::from_toml(&(tables("operation", common) + &views)).unwrap()
}

/// The result of a recipe with only these operations and the random numbers of a view.
fn alone(operations: &[&str], own: usize, view: u16, file: &[u8], id: SampleId) -> Tensor {
    let recipe = Recipe::from_toml(&tables("operation", operations)).unwrap();
    let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
    let (streams, encoded) = (Streams { id, view, own }, Encoded::from(file));
    let spec = preparer.plan(encoded, &[], streams).unwrap();
    let mut data = vec![0; spec.bytes()];
    preparer.run(Source::Encoded(encoded), streams, &mut data, &mut || ()).unwrap();
    preparer.finish(spec, streams, &mut data, &mut || ()).unwrap();
    Tensor { spec, data }
}

const COMMON: [&[&str]; 10] = [
    &["decode"],
    &["decode scaled = true"],
    &["decode scaled = true", "resize size = 61"],
    &["decode", "random_horizontal_flip", "center_crop size = 230"],
    &["decode scaled = true", "random_vertical_flip"],
    &["decode", "resize size = 57", "random_horizontal_flip"],
    &["decode", "color_jitter brightness = 0.4;hue = 0.1"],
    &["decode", "pad padding = 3", "random_rotation degrees = 30.0", "random_crop size = 33"],
    &["decode mode = \"gray\"", "random_horizontal_flip"],
    &["decode", "random_choice", "grayscale num_output_channels = 1"],
];

const OWN: [&[&str]; 6] = [
    &["random_resized_crop size = 32", "random_horizontal_flip"],
    &["random_resized_crop size = 17;scale = [0.05, 0.3]", "gaussian_blur kernel_size = 3"],
    &["center_crop size = 30", "random_solarize threshold = 100.0", "layout layout = \"NCHW\""],
    &["resize size = [23, 19]", "to_dtype dtype = \"float32\";scale = true", "random_erasing"],
    &["random_crop size = 20;padding = 4", "random_vertical_flip", "random_equalize"],
    &["random_grayscale p = 0.5", "resize size = 24"],
];

/// The given operations, with content for those that contain others.
fn spelled<'a>(operations: &[&'a str]) -> Vec<&'a str> {
    let with_content = |it: &&'a str| match *it {
        "random_choice" => {
            "random_choice operations = [{ name = \"random_invert\" }, \
             { name = \"random_vertical_flip\" }]"
        }
        other => other,
    };
    operations.iter().map(with_content).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_view_has_the_bits_of_the_recipe_of_its_operations(
        (width, height) in (SIDES, SIDES),
        common in proptest::sample::select(&COMMON[..]),
        views in proptest::collection::vec((proptest::sample::select(&OWN[..]), 1..4u32), 1..4),
        (seed, epoch, sample) in any::<(u64, u32, u32)>(),
    ) {
        let (file, common) = (jpeg(width, height), spelled(common));
        let id = SampleId { seed, epoch, sample: sample.into() };
        let names = ["a", "b", "c", "d"];
        let named: Vec<(&str, u32, &[&str])> =
            views.iter().zip(names).map(|((own, count), name)| (name, *count, *own)).collect();
        let recipe = with_views(&common, &named);
        let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
        let got = preparer.prepare_tensors(Encoded::from(&file), id).unwrap();
        let numbers = if common[1..].contains(&spelled(&["random_choice"])[0]) {
            common.len() + 2
        } else {
            common.len()
        };
        let mut view = 0;
        for ((_, count, own), pictures) in named.iter().zip(&got) {
            prop_assert_eq!(pictures.len(), *count as usize);
            let all = [&common, *own].concat();
            for picture in pictures {
                let expected = alone(&all, numbers, view, &file, id);
                prop_assert!(*picture == expected, "picture {view} by {all:?}");
                view += 1;
            }
        }
    }
}

const ID: SampleId = SampleId { seed: 3, epoch: 1, sample: 9 };

#[test]
fn the_first_view_is_the_recipe_without_views() {
    let (common, own) = (["decode"], OWN[0]);
    let recipe = with_views(&common, &[("x", 2, own)]);
    let file = jpeg(200, 150);
    let got = SamplePreparer::new(&recipe, Cpu::detect()).prepare_tensors((&file).into(), ID);
    let plain = Recipe::from_toml(&tables("operation", &[&common, own].concat())).unwrap();
    let plain = SamplePreparer::new(&plain, Cpu::detect()).prepare_tensor((&file).into(), ID);
    let got = got.unwrap().remove(0);
    assert_eq!(got[0], plain.unwrap());
    assert_ne!(got[0], got[1], "each picture has random parameters of its own");
}

#[test]
fn a_column_has_the_same_bits_whichever_columns_are_prepared() {
    let views: [(&str, u32, &[&str]); 2] = [("global", 2, OWN[0]), ("local", 3, OWN[1])];
    for common in COMMON.map(|it| spelled(it)) {
        let recipe = with_views(&common, &views);
        let file = jpeg(250, 190);
        let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
        let both = preparer.prepare_tensors((&file).into(), ID).unwrap();
        preparer.set_columns(vec![1]);
        let one = preparer.prepare_tensors((&file).into(), ID).unwrap();
        assert_eq!(one, both[1..]);
        preparer.set_columns(vec![1, 0]);
        let oriented = preparer.prepare_tensors((&file).into(), ID).unwrap();
        assert_eq!([&oriented[1], &oriented[0]], [&both[0], &both[1]]);
        let data = |pictures: &[Tensor]| pictures.iter().flat_map(|it| it.data.clone()).collect();
        let expected: [Vec<u8>; 2] = [data(&oriented[0]), data(&oriented[1])];
        let mut memory = expected.clone().map(|bytes| vec![0; bytes.len()]);
        let [one, other] = &mut memory;
        let outs = &mut [&mut one[..], &mut other[..]];
        preparer.prepare_columns((&file).into(), &[], ID, outs, &mut || ()).unwrap();
        assert_eq!(memory, expected);
        let short = &mut [&mut memory[0][1..], &mut []];
        let refused = preparer.prepare_columns((&file).into(), &[], ID, short, &mut || ());
        assert!(matches!(refused, Err(Error::OutputSize { .. })), "{refused:?}");
    }
}

#[test]
fn a_picture_is_turned_before_its_views() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../jpeg/tests/golden/jpeg");
    let common = ["decode orient = true;scaled = true"];
    for orientation in 1..=8 {
        let file = std::fs::read(folder.join(format!("exif-{orientation}.jpg"))).unwrap();
        let own = ["random_resized_crop size = 9"];
        let recipe = with_views(&common, &[("x", 2, &own)]);
        let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
        let got = preparer.prepare_tensors((&file).into(), ID).unwrap();
        for (view, picture) in (0..).zip(&got[0]) {
            let expected = alone(&[&common[..], &own[..]].concat(), 1, view, &file, ID);
            assert_eq!(*picture, expected, "{orientation}");
        }
    }
}

#[test]
fn crops_of_one_picture_share_their_random_parameters() {
    let operations = ["decode", "ten_crop size = 40", "color_jitter brightness = 0.9"];
    let recipe = Recipe::from_toml(&tables("operation", &operations)).unwrap();
    let file = jpeg(90, 77);
    let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
    let crops = preparer.prepare_tensors((&file).into(), ID).unwrap().remove(0);
    assert_eq!(crops.len(), 10);
    let mean = |tensor: &Tensor| {
        tensor.data.iter().map(|it| f64::from(*it)).sum::<f64>() / tensor.data.len() as f64
    };
    let plain = Recipe::from_toml(&tables("operation", &operations[..2])).unwrap();
    let mut plain = SamplePreparer::new(&plain, Cpu::detect());
    let before = plain.prepare_tensors((&file).into(), ID).unwrap().remove(0);
    let factors = crops.iter().zip(&before).map(|(crop, plain)| mean(crop) / mean(plain));
    let factors: Vec<f64> = factors.collect();
    let spread = factors.iter().fold(0.0_f64, |most, it| most.max((it - factors[0]).abs()));
    assert!((factors[0] - 1.0).abs() > 0.02 && spread < 0.05, "{factors:?}");
}

#[test]
fn a_picture_smaller_than_its_crops_is_refused() {
    let recipe = Recipe::from_toml(&tables("operation", &["decode", "five_crop size = 91"]));
    let mut preparer = SamplePreparer::new(&recipe.unwrap(), Cpu::detect());
    let refused = preparer.prepare_tensors((&jpeg(90, 200)).into(), ID);
    let Err(Error::DoesNotFit(why)) = refused else { panic!("{refused:?}") };
    assert_eq!((why.operation, why.picture), ("five_crop", (200, 90)));
}

#[test]
fn the_memory_of_views_covers_the_shared_picture() {
    let recipe = with_views(&["decode"], &[("x", 4, OWN[0])]);
    let file = jpeg(250, 200);
    let preparer = SamplePreparer::new(&recipe, Cpu::detect());
    let decoder = crate::decode_bytes(&file, Default::default()).unwrap();
    let bytes = preparer.memory_bytes(&file, ID).unwrap();
    assert_eq!(bytes - decoder, 3 * 250 * 200);
    let common = ["decode", "resize size = [100, 120]", "random_invert p = 1.0"];
    let resized = with_views(&common, &[("x", 1, &["resize size = 80", "random_invert p = 1.0"])]);
    let preparer = SamplePreparer::new(&resized, Cpu::detect());
    let bytes = preparer.memory_bytes(&file, ID).unwrap() - decoder;
    assert!(bytes >= 3 * (100 * 120 + 80 * 96), "{bytes}");
}

#[test]
fn views_made_in_code_are_those_of_a_text() {
    let recipe = with_views(&["decode"], &[("x", 2, OWN[0]), ("y", 1, OWN[3])]);
    let parts = RecipeParts {
        operations: recipe.operations().to_vec(),
        views: recipe.views().to_vec(),
        targets: vec![],
    };
    assert_eq!(Recipe::from_parts(parts).unwrap(), recipe);
}
