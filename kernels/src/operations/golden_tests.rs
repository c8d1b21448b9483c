//! Operations on colours, and those that contain others, against Pillow.

use crate::{Cpu, Picture, SampleId, SamplePreparer, golden};
use image::ImageEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use meetpoint_format::recipe::Recipe;

const OPERATIONS: &str = include_str!("../../tests/golden/operations.txt");
const POLICIES: &str = include_str!("../../tests/golden/policies.txt");

fn png(picture: &Picture) -> Vec<u8> {
    let mut encoded = Vec::new();
    PngEncoder::new_with_quality(&mut encoded, CompressionType::Fast, FilterType::NoFilter)
        .write_image(&picture.pixels, picture.width, picture.height, image::ExtendedColorType::Rgb8)
        .unwrap();
    encoded
}

/// A recipe of `decode` and these tables.
fn recipe(tables: &[String]) -> Recipe {
    let decode = "name = 'decode'".to_owned();
    let tables = [&[decode], tables].concat();
    let text: String = tables.iter().map(|table| format!("[[operation]]\n{table}\n")).collect();
    Recipe::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// An operation of the script, always executed, by its name and keys. `gain` on its own separates
/// it from the preceding operations.
fn single(words: &[&str]) -> Recipe {
    let (name, keys) = words.split_first().unwrap();
    let always = if name.starts_with("random_") { "\np = 1" } else { "" };
    let is_gamma = *name == "adjust_gamma";
    let mut own = keys.to_vec();
    let mut tables = Vec::new();
    // The keys of `adjust_gamma` are gamma and gain themselves.
    if own.len() > if is_gamma { 2 } else { 0 } && own.last().unwrap().starts_with("gain=") {
        let gain = own.pop().unwrap();
        tables.push(format!("name = 'adjust_gamma'\ngamma = 1\n{gain}"));
        if gain == "gain=0.35" {
            tables.push("name = 'random_invert'\np = 1".to_owned());
        }
    }
    tables.push(format!("name = '{name}'{always}\n{}", own.join("\n")));
    recipe(&tables)
}

/// A recipe of the script by its name.
fn named(name: &str) -> Recipe {
    let table = match name {
        "distort" => "name = 'random_photometric_distort'",
        "always_distort" => "name = 'random_photometric_distort'\np = 1",
        "erase_bytes" => "name = 'random_erasing'\np = 1\nvalue = [7, 8, 255]",
        "erase_half" => {
            "name = 'to_dtype'\ndtype = 'float32'\nscale = true
            [[operation]]
            name = 'normalize'\nmean = [0.485, 0.456, 0.406]\nstd = [0.229, 0.224, 0.225]
            [[operation]]
            name = 'layout'\nlayout = 'NCHW'
            [[operation]]
            name = 'random_erasing'"
        }
        "erase_pixel" => {
            "name = 'to_dtype'\ndtype = 'float32'\nscale = true
            [[operation]]
            name = 'layout'\nlayout = 'NCHW'
            [[operation]]
            name = 'normalize'\nmean = [0.485, 0.456, 0.406]\nstd = [0.229, 0.224, 0.225]
            [[operation]]
            name = 'random_erasing'\np = 1\nmode = 'pixel'
            scale = [0.02, 0.3333333333333333]\nratio = [0.3, 3.3333333333333335]"
        }
        "erase_rand" => {
            "name = 'to_dtype'\ndtype = 'float16'\nscale = true
            [[operation]]
            name = 'random_erasing'\np = 1\nmode = 'rand'\nmax_count = 4
            scale = [0.02, 0.3333333333333333]\nratio = [0.3, 3.3333333333333335]"
        }
        "erase_grey" => {
            "name = 'grayscale'
            [[operation]]
            name = 'to_dtype'\ndtype = 'float32'\nscale = true
            [[operation]]
            name = 'random_erasing'\np = 1\nmode = 'pixel'\nmin_count = 2\nmax_count = 2
            scale = [0.9, 1]\nratio = [0.5, 2]"
        }
        "trivial" => "name = 'trivial_augment_wide'",
        "trivial_bilinear" => {
            "name = 'trivial_augment_wide'\nnum_magnitude_bins = 7\ninterpolation = 'bilinear'
            fill = [9, 200, 77]"
        }
        "rand" => "name = 'rand_augment'",
        "rand_bicubic" => {
            "name = 'rand_augment'\nnum_ops = 3\nmagnitude = 10\nnum_magnitude_bins = 11
            interpolation = 'bicubic'\nfill = [9, 200, 77]"
        }
        "auto_imagenet" => "name = 'auto_augment'",
        "auto_cifar10" => "name = 'auto_augment'\npolicy = 'cifar10'",
        "auto_svhn" => "name = 'auto_augment'\npolicy = 'svhn'",
        "timm" => {
            "name = 'timm_rand_augment'\nmagnitude = 9\nmagnitude_std = 0.5\nincreasing = true"
        }
        "timm_plain" => {
            "name = 'timm_rand_augment'\nnum_ops = 4\nmagnitude_std = 101\np = 1
            fill = [9, 200, 77]"
        }
        "timm_full" => "name = 'timm_rand_augment'\nnum_ops = 3\np = 1\nincreasing = true",
        "mix" => "name = 'aug_mix'",
        "mix_some" => {
            "name = 'aug_mix'\nseverity = 10\nmixture_width = 2\nchain_depth = 2\nalpha = 0.5
            all_ops = false\ninterpolation = 'nearest'\nfill = [9, 200, 77]"
        }
        "sensor" => "name = 'random_sensor_noise'\nstrength = [0.1, 0.6]\np = 0.75",
        "crumpets_train" => "name = 'random_gamma'\ncolor = [-0.5, 0.5]\ncontrast = [-1, 1]",
        "gamma_wide" => "name = 'random_gamma'\nbrightness = [-1, 1]\ncolor = [-1, 1]\np = 1",
        "contrast" => "name = 'random_sigmoid_contrast'\ncontrast = [-0.75, 1]\np = 0.8",
        "three" => "name = 'three_augment'",
        "noise" => "name = 'gaussian_noise'",
        "noise_wrapped" => "name = 'gaussian_noise'\nmean = 0.25\nsigma = 0.5\nclip = false",
        "permute" => "name = 'random_channel_permutation'",
        "nested" => {
            "name = 'random_order'
            [[operation.operations]]
            name = 'random_apply'
            p = 0.7
            operations = [
                { name = 'random_solarize', threshold = 90 },
                { name = 'color_jitter', brightness = 0.5 },
            ]
            [[operation.operations]]
            name = 'random_choice'
            p = [1, 0, 2.5]
            [[operation.operations.operations]]
            name = 'grayscale'
            num_output_channels = 3
            [[operation.operations.operations]]
            name = 'random_invert'
            [[operation.operations.operations]]
            name = 'random_apply'
            p = 1
            operations = [{ name = 'random_posterize', bits = 3 }, { name = 'random_invert' }]
            [[operation.operations]]
            name = 'random_equalize'
            [[operation]]
            name = 'random_invert'"
        }
        other => panic!("no recipe {other}"),
    };
    recipe(&[table.to_owned()])
}

/// Compares every line of a golden file; returns their number.
fn compare(lines: &str) -> usize {
    let cpus = golden::instruction_sets();
    let mut compared = 0;
    for (words, expected) in golden::lines(lines) {
        let [kind, seed, width, height, rest @ ..] = &words[..] else { panic!("{words:?}") };
        let [seed, width, height] = [seed, width, height].map(|word| golden::number(word));
        let file = png(&golden::picture(kind, seed, width, height));
        let (recipe, sample) = match rest {
            ["recipe", name, sample] => (named(name), golden::number(sample)),
            words => (single(words), 0),
        };
        let id = SampleId { seed: 7, epoch: 2, sample };
        // Code that differs between instruction sets surrounds the operations.
        let cpus = if compared % 16 == 0 { cpus.clone() } else { vec![Cpu::detect()] };
        for cpu in cpus {
            let mut preparer = SamplePreparer::new(&recipe, cpu);
            let tensor = preparer.prepare_tensor((&file).into(), id).unwrap();
            assert_eq!(golden::sha256(&tensor.data), expected[0], "{} {words:?}", cpu.name());
        }
        compared += 1;
    }
    compared
}

#[test]
fn every_operation_equals_pillow_and_numpy_bit_for_bit() {
    assert_eq!(compare(OPERATIONS), 842 + 240 + 3 * 32);
}

#[test]
fn every_policy_and_blur_equals_pillow_and_numpy_bit_for_bit() {
    assert_eq!(compare(POLICIES), 3 * (40 * 13 + 9) + 3 * (7 + 20 + 3));
}

#[test]
fn noise_on_a_picture_of_one_channel_leaves_it_grey() {
    let file = png(&golden::picture("wave", 3, 40, 30));
    let id = SampleId { seed: 3, epoch: 0, sample: 1 };
    let tensor = |name: &str, then: &str| {
        let tables = [
            "name = 'grayscale'".to_owned(),
            format!("name = '{name}'{}", if name == "gaussian_noise" { "" } else { "\np = 1" }),
            then.to_owned(),
        ];
        let mut preparer = SamplePreparer::new(&recipe(&tables), Cpu::detect());
        preparer.prepare_tensor((&file).into(), id).unwrap().data
    };
    for name in ["gaussian_noise", "random_sensor_noise"] {
        // The luma of equal channels is each of them.
        let plain = tensor(name, "name = 'random_invert'\np = 0");
        assert_eq!(tensor(name, "name = 'random_grayscale'\np = 1"), plain, "{name}");
        assert_eq!(tensor(name, "name = 'random_channel_permutation'"), plain, "{name}");
    }
}

#[test]
fn a_blur_of_almost_no_deviation_changes_nothing() {
    let picture = golden::picture("noise", 3, 20, 30);
    for table in [
        "name = 'gaussian_blur'\nkernel_size = 7\nsigma = [1e-200, 1e-200]",
        "name = 'pillow_gaussian_blur'\nradius = [1e-30, 1e-30]",
    ] {
        let mut preparer = SamplePreparer::new(&recipe(&[table.to_owned()]), Cpu::detect());
        let id = SampleId { seed: 3, epoch: 0, sample: 1 };
        let tensor = preparer.prepare_tensor((&png(&picture)).into(), id).unwrap();
        assert_eq!(tensor.data, picture.pixels, "{table}");
    }
}
