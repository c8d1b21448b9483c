//! Operations on batches against torchvision and timm, and on batches that these do not accept.

use crate::blend::{Weights, blend};
use crate::golden;
use crate::random::beta;
use crate::{
    BatchId, BatchMixer, BatchTensors, Cpu, Encoded, Error, Interrupt, SampleId, SamplePreparer,
};
use half::f16;
use image::ImageEncoder;
use image::codecs::png::PngEncoder;
use meetpoint_format::random::{DrawKey, Draws};
use meetpoint_format::recipe::{Dtype, Recipe};

const GOLDEN: &str = include_str!("../tests/golden/batch.txt");
const CLASSES: u32 = 7;

/// A recipe for samples of a type, ending with an operation on batches.
fn recipe((dtype, layout): (&str, &str), (height, width): (u32, u32), operation: &str) -> Recipe {
    let mut tables = vec![
        "name = 'decode'".to_owned(),
        format!("name = 'center_crop'\nsize = [{height}, {width}]"),
    ];
    if dtype != "uint8" {
        tables.push(format!("name = 'to_dtype'\ndtype = '{dtype}'\nscale = true"));
        let mean = "mean = [0.485, 0.456, 0.406]\nstd = [0.229, 0.224, 0.225]";
        tables.push(format!("name = 'normalize'\n{mean}"));
    }
    if layout == "NCHW" {
        tables.push("name = 'layout'\nlayout = 'NCHW'".to_owned());
    }
    tables.push(operation.to_owned());
    let text: String = tables.iter().map(|table| format!("[[operation]]\n{table}\n")).collect();
    Recipe::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// An operation of the script by its name there.
fn operation(name: &str) -> String {
    let classes = format!("num_classes = {CLASSES}");
    if let Some(alpha) = name.strip_prefix("mix_up_") {
        return format!("name = 'mix_up'\nalpha = {alpha}\n{classes}");
    }
    let words: Vec<&str> = name.split('_').collect();
    let keys = match words[..] {
        ["cut", "mix"] => return format!("name = 'cut_mix'\n{classes}"),
        ["choice"] => {
            return format!(
                "name = 'random_choice'\np = [1, 2]
                [[operation.operations]]\nname = 'mix_up'\n{classes}
                [[operation.operations]]\nname = 'cut_mix'\n{classes}"
            );
        }
        ["mirrored", kind, mode] => {
            let name = match kind {
                "blend" => "name = 'mix_up'\nalpha = 0.3",
                "cut" => "name = 'cut_mix'\nbox = 'timm_1.0.31'",
                "even" => "name = 'cut_mix'\nbox = 'torchvision'",
                _ => panic!("no operation {kind}"),
            };
            return format!("{name}\npartner = 'mirrored'\nmode = '{mode}'\n{classes}");
        }
        ["timm", "even", _] => {
            "mixup_alpha = 0\ncutmix_alpha = 1\nlabel_smoothing = 0\nbox = 'torchvision'"
        }
        ["timm", "deit", _] => "mixup_alpha = 0.8\ncutmix_alpha = 1",
        ["timm", "some", _] => "mixup_alpha = 0.2\nprob = 0.5\nlabel_smoothing = 0",
        ["timm", "plain", _] => {
            "mixup_alpha = 0\ncutmix_alpha = 1\ncorrect_lam = false\nlabel_smoothing = 0.3"
        }
        ["timm", "minmax", _] => {
            "mixup_alpha = 0.4\ncutmix_minmax = [0.2, 0.8]\nswitch_prob = 0.75"
        }
        _ => panic!("no operation {name}"),
    };
    format!("name = 'timm_mixup'\n{keys}\nmode = '{}'\n{classes}", words[2])
}

/// The samples and labels of a batch, not mixed yet.
fn batch(recipe: &Recipe, samples: u32) -> (Vec<u8>, Vec<u8>) {
    let spec = recipe.output().unwrap();
    let mut preparer = SamplePreparer::new(recipe, Cpu::detect());
    let mut images = vec![0; samples as usize * spec.bytes()];
    for (index, out) in (0..).zip(images.chunks_mut(spec.bytes())) {
        let picture = golden::picture("noise", 100 + index, spec.width, spec.height);
        let mut file = Vec::new();
        let encoder = PngEncoder::new(&mut file);
        let (width, height) = (picture.width, picture.height);
        let colour = image::ExtendedColorType::Rgb8;
        encoder.write_image(&picture.pixels, width, height, colour).unwrap();
        let id = SampleId { seed: 0, epoch: 0, sample: 0 };
        preparer.prepare(Encoded::from(&file), id, out, &mut || ()).unwrap();
    }
    (images, labels(recipe, samples))
}

fn labels(recipe: &Recipe, samples: u32) -> Vec<u8> {
    let soft = recipe.labels().unwrap();
    let mut labels = vec![0; (4 * samples * soft.classes) as usize];
    for (index, row) in (0..).zip(labels.chunks_mut(4 * soft.classes as usize)) {
        BatchMixer::write_label(soft, (3 * index + 1) % CLASSES, row);
    }
    labels
}

fn mix(recipe: &Recipe, batch: u64, samples: u32, images: &mut [u8], labels: &mut [u8]) {
    let mut mixer = BatchMixer::new(recipe, recipe.output().unwrap()).unwrap();
    let tensors = BatchTensors { samples: samples as usize, images, labels };
    mixer.mix(BatchId { seed: 7, epoch: 2, batch }, tensors, &mut || ()).unwrap();
}

#[test]
fn mixed_batches_equal_torchvision_and_timm_bit_for_bit() {
    let mut compared = 0;
    for (words, expected) in golden::lines(GOLDEN) {
        let [dtype, layout, samples, height, width, name, number] = words[..] else { continue };
        let [samples, height, width] = [samples, height, width].map(golden::number);
        let recipe = recipe((dtype, layout), (height, width), &operation(name));
        let (mut images, mut labels) = batch(&recipe, samples);
        mix(&recipe, golden::number(number), samples, &mut images, &mut labels);
        assert_eq!(golden::sha256(&images), expected[0], "images: {words:?}");
        let row = &labels[..4 * CLASSES as usize];
        assert_eq!(row, golden::bytes(expected[2]), "first label: {words:?}");
        assert_eq!(golden::sha256(&labels), expected[1], "labels: {words:?}");
        compared += 1;
    }
    assert_eq!(compared, 981);
}

#[test]
fn labels_alone_become_rows_with_smoothing() {
    let mut compared = 0;
    for (words, expected) in golden::lines(GOLDEN) {
        let ["one_hot", smoothing] = words[..] else { continue };
        let keys = format!("num_classes = {CLASSES}\nlabel_smoothing = {smoothing}");
        let recipe = recipe(("uint8", "NHWC"), (2, 2), &format!("name = 'one_hot'\n{keys}"));
        let (mut images, mut labels) = batch(&recipe, 4);
        let before = images.clone();
        mix(&recipe, 0, 4, &mut images, &mut labels);
        assert_eq!((golden::sha256(&labels).as_str(), images), (expected[0], before));
        compared += 1;
    }
    assert_eq!(compared, 3);
}

/// Kolmogorov's distance at the quantiles of SciPy; 999 of 1000 fair generators stay below 1.95.
#[test]
fn lambda_has_the_beta_distribution() {
    const DRAWS: u64 = 20_000;
    let mut compared = 0;
    for (words, expected) in golden::lines(GOLDEN) {
        let ["quantiles", alpha] = words[..] else { continue };
        let alpha = golden::number(alpha);
        let number = |sample| {
            let key = DrawKey { seed: 1, epoch: 0, sample, operation: 3 };
            beta(alpha, &mut Draws::new(key))
        };
        let mut lambdas: Vec<f64> = (0..DRAWS).map(number).collect();
        lambdas.sort_by(f64::total_cmp);
        for (index, quantile) in expected.iter().enumerate() {
            let quantile = golden::number::<f64>(quantile);
            let below = lambdas.partition_point(|lambda| *lambda <= quantile);
            let share = (index + 1) as f64 / (expected.len() + 1) as f64;
            let distance = (below as f64 / DRAWS as f64 - share).abs();
            assert!(distance * (DRAWS as f64).sqrt() < 1.95, "{alpha}, {share}: {distance}");
        }
        compared += 1;
    }
    assert_eq!(compared, 5);
}

#[test]
fn a_short_batch_is_mixed_as_far_as_it_goes() {
    for name in ["mix_up_1.0", "cut_mix", "mirrored_blend_batch", "mirrored_blend_elem"] {
        let recipe = recipe(("float32", "NCHW"), (9, 9), &operation(name));
        let (images, labels) = batch(&recipe, 5);
        let (of_image, of_label) = (images.len() / 5, labels.len() / 5);
        let mixed_as = |batch: u64, samples: usize| {
            let mut images = images[..samples * of_image].to_vec();
            let mut labels = labels[..samples * of_label].to_vec();
            mix(&recipe, batch, samples as u32, &mut images, &mut labels);
            (images, labels)
        };
        // A rectangle may be empty.
        let batch = (0..100).find(|batch| mixed_as(*batch, 5).0 != images).unwrap();
        let mixed = |samples| mixed_as(batch, samples);
        // A single sample is its own partner, and so is the middle one in timm.
        assert_eq!(mixed(1), (images[..of_image].to_vec(), labels[..of_label].to_vec()), "{name}");
        assert_eq!(mixed(0), (vec![], vec![]));
        let (made, rows) = mixed(5);
        for sample in 0..5 {
            let stays = name.starts_with("mirrored") && sample == 2;
            let image = sample * of_image..(sample + 1) * of_image;
            let label = sample * of_label..(sample + 1) * of_label;
            assert_eq!(made[image.clone()] == images[image], stays, "{name} {sample}");
            let sum: f32 = rows[label].as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).sum();
            assert!((sum - 1.0).abs() < 1e-6, "{name} {sample}: {sum}");
        }
    }
}

#[test]
fn images_and_labels_are_mixed_alike_where_a_batch_lacks_the_other() {
    let recipe = recipe(("uint8", "NHWC"), (8, 9), &operation("timm_deit_elem"));
    let (mut images, mut labels) = batch(&recipe, 6);
    let (mut only_images, mut only_labels) = (images.clone(), labels.clone());
    mix(&recipe, 1, 6, &mut images, &mut labels);
    mix(&recipe, 1, 6, &mut only_images, &mut []);
    mix(&recipe, 1, 6, &mut [], &mut only_labels);
    assert_eq!((images, labels), (only_images, only_labels));
}

#[test]
fn each_part_of_the_id_of_a_batch_changes_it() {
    let recipe = recipe(("uint8", "NHWC"), (8, 9), &operation("cut_mix"));
    let (images, _) = batch(&recipe, 4);
    let mut mixer = BatchMixer::new(&recipe, recipe.output().unwrap()).unwrap();
    let mut made = |id| {
        let mut images = images.clone();
        let tensors = BatchTensors { samples: 4, images: &mut images, labels: &mut [] };
        mixer.mix(id, tensors, &mut || ()).unwrap();
        images
    };
    let id = BatchId { seed: 7, epoch: 2, batch: 5 };
    let first = made(id);
    for other in [
        BatchId { seed: 8, ..id },
        BatchId { epoch: 3, ..id },
        BatchId { batch: 6, ..id },
        BatchId { batch: 5 | 1 << 32, ..id },
    ] {
        assert_ne!(made(other), first, "{other:?}");
    }
    assert_eq!(made(id), first);
}

/// `half` uses the machine's conversion instructions if it has them.
#[test]
fn sums_of_float16_are_those_of_its_portable_conversions() {
    let every: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).filter(|it| it.is_finite()).collect();
    let bytes = |halves: &[f16]| halves.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>();
    for (shift, own, partner) in [(1, 0.3, 0.7), (31_744, 0.999, 0.001), (4_321, 1.0, 0.0)] {
        let mut partners = every.clone();
        partners.rotate_left(shift);
        let mut made = bytes(&every);
        blend(
            Cpu::detect(),
            Dtype::Float16,
            &mut made,
            &bytes(&partners),
            Weights { own, partner },
        );
        let product = |half: f16, weight: f32| f16::from_f32_const(half.to_f32_const() * weight);
        let sum = |(first, second): (&f16, &f16)| {
            let [first, second] = [product(*first, own), product(*second, partner)];
            f16::from_f32_const(first.to_f32_const() + second.to_f32_const())
        };
        let expected: Vec<f16> = every.iter().zip(&partners).map(sum).collect();
        assert!(made == bytes(&expected), "rotated by {shift}");
    }
}

#[test]
fn mixing_ends_when_it_is_interrupted() {
    let recipe = recipe(("float32", "NHWC"), (8, 9), &operation("mix_up_1.0"));
    let (mut images, mut labels) = batch(&recipe, 4);
    let mut mixer = BatchMixer::new(&recipe, recipe.output().unwrap()).unwrap();
    mixer.set_interrupt(Interrupt::when(|| true));
    let tensors = BatchTensors { samples: 4, images: &mut images, labels: &mut labels };
    let id = BatchId { seed: 1, epoch: 0, batch: 0 };
    assert_eq!(mixer.mix(id, tensors, &mut || ()), Err(Error::Interrupted));
}
