//! Every operation of the registry gives the same bits on every instruction set, for random keys,
//! random parameters and pictures of many sizes.
//!
//! The cases come from the declarations alone: a new operation is tested without a change here, and
//! an operation without a successful case fails the test.

mod generate;

use generate::{Chance, Content, after, case};
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};
use meetpoint_format::column::{ColumnKind, ElementType};
use meetpoint_format::npy;
use meetpoint_format::recipe::{
    DECLARATIONS, Dtype, FileContent, Mask, MaskType, NamedFile, OnTargets, Operation, Recipe,
    Saliency, Target, TargetKind, TensorSpec,
};
use meetpoint_kernels::{
    BatchId, BatchMixer, BatchTensors, Cpu, Encoded, SampleId, SamplePreparer, TargetSpec, Tensor,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Samples of a batch.
const SAMPLES: usize = 5;

/// Sizes (columns, rows) of pictures for every operation, in addition to random ones.
const SIZES: [(u32, u32); 8] =
    [(1, 1), (1, 9), (8, 1), (3, 2), (33, 17), (64, 64), (97, 61), (40, 131)];

/// A PNG of a size: edges, ramps and noise.
fn picture((width, height): (u32, u32), has_alpha: bool, chance: &mut Chance) -> Vec<u8> {
    let channels = if has_alpha { 4 } else { 3 };
    let (slope, noise) = (chance.up_to(9), chance.up_to(80));
    let mut pixels = Vec::new();
    for y in 0..height {
        for x in 0..width {
            for channel in 0..channels {
                let ramp = (x * (slope + channel) + y * (3 * channel + 1)) % 256;
                let edge = if (x / 7 + y / 5) % 3 == 0 { 90 } else { 0 };
                pixels.push((ramp / 2 + edge + chance.up_to(noise)).min(255) as u8);
            }
        }
    }
    let kind = if has_alpha { ExtendedColorType::Rgba8 } else { ExtendedColorType::Rgb8 };
    let mut file = Vec::new();
    PngEncoder::new_with_quality(&mut file, CompressionType::Fast, FilterType::NoFilter)
        .write_image(&pixels, width, height, kind)
        .expect("a PNG in memory");
    file
}

/// A WAV file of one channel at 8000 Hz: a tone and noise.
fn sound(samples: u32, chance: &mut Chance) -> Vec<u8> {
    let period = 3.0 + f64::from(chance.up_to(40));
    let mut file = b"RIFF".to_vec();
    file.extend((36 + 2 * samples).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(8000_u32.to_le_bytes());
    file.extend(16000_u32.to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend((2 * samples).to_le_bytes());
    for at in 0..samples {
        let tone = (f64::from(at) / period).sin() * 9000.0;
        file.extend(((tone + f64::from(chance.up_to(4000))) as i16).to_le_bytes());
    }
    file
}

/// A NumPy file of two channels of float64.
fn signal(samples: u32, chance: &mut Chance) -> Vec<u8> {
    let dictionary =
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': (2, {samples}), }}");
    let header = format!("{dictionary:<117}\n");
    let mut file = b"\x93NUMPY\x01\0".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    for at in 0..2 * samples {
        let value = (f64::from(at) * 0.049).sin() * 325.0 + f64::from(chance.up_to(1000)) / 500.0;
        file.extend(value.to_le_bytes());
    }
    file
}

/// Words of some letters, numbers and tags of HTML.
fn words(count: u32, chance: &mut Chance) -> Vec<u8> {
    let mut text = String::new();
    for _ in 0..count.min(300) {
        match chance.up_to(9) {
            0 => text.push_str("<p>"),
            1 => text.push_str("<b>x</b>\n"),
            2 => text.push_str(&chance.up_to(9999).to_string()),
            _ => {
                let letters = (0..=chance.up_to(5)).map(|_| chance.up_to(25));
                let letters: Vec<u32> = letters.collect();
                text.extend(letters.iter().filter_map(|it| char::from_u32(0x61 + it)));
            }
        }
        text.push(' ');
    }
    text.into_bytes()
}

/// The recipe with its files: the tokenizer of the golden files, and tables with its tokens.
fn with_files(recipe: Recipe) -> Recipe {
    const TOKENIZER: &[u8] = include_bytes!("../golden/text/byte_level.json");
    let dims = recipe.operations().iter().find_map(|operation| match operation {
        Operation::Embed(it) => Some(it.dim),
        _ => None,
    });
    let table = dims.map(|dim| {
        let data: Vec<u8> = (0..600 * dim).flat_map(|at| (at as f32 / 7.0).to_le_bytes()).collect();
        npy::encode(&[600, dim], Dtype::Float32, &data)
    });
    let read = |operation: &'static str, file: &NamedFile| {
        let content = match operation {
            "tokenize" => TOKENIZER,
            _ => table.as_deref().expect("only `embed` has another file"),
        };
        let content = Some(FileContent::new(content));
        Ok::<_, Infallible>(NamedFile { content, ..file.clone() })
    };
    let Ok(recipe) = recipe.with_files(read);
    recipe
}

/// The result of an operation, or why it refuses the picture.
type Outcome = Result<(Vec<Tensor>, Vec<Vec<u8>>), String>;

/// Targets with their stored values, which follow the picture.
fn targets(
    recipe: &Recipe,
    (width, height): (u32, u32),
    may_move: bool,
) -> Vec<(TargetSpec, Vec<u8>)> {
    let spec = |target: Target, stored: ColumnKind| {
        let prepared = ColumnKind::Tensor { element: stored.element(), shape: vec![] };
        TargetSpec {
            column: target.column,
            kind: target.kind,
            stored,
            is_file_per_object: false,
            prepared,
        }
    };
    let mut all = Vec::new();
    for target in recipe.targets() {
        let stored = ColumnKind::Ragged { element: ElementType::Float32, inner: vec![4] };
        let corners = [0.1, 0.2, 0.7, 0.9].map(|share: f32| share * width.min(height) as f32);
        let bytes = corners.iter().flat_map(|corner| corner.to_le_bytes()).collect();
        all.push((spec(target.clone(), stored), bytes));
    }
    if may_move {
        let pixels: Vec<u8> = (0..width * height).map(|at| (at % 251) as u8).collect();
        let shape = vec![height, width];
        let stored = || ColumnKind::Tensor { element: ElementType::Uint8, shape: shape.clone() };
        for kind in [
            TargetKind::from(Mask { fill: 7.0, dtype: MaskType::Uint8 }),
            Saliency { fill: 3 }.into(),
        ] {
            let column = kind.name().to_owned();
            all.push((spec(Target { column, kind }, stored()), pixels.clone()));
        }
    }
    all
}

/// Prepares a sample, with targets where the recipe gives one picture.
fn prepare(
    cpu: Cpu,
    recipe: &Recipe,
    file: &[u8],
    id: SampleId,
    targets: &[(TargetSpec, Vec<u8>)],
) -> Outcome {
    let mut preparer = SamplePreparer::new(recipe, cpu);
    if !recipe.gives_one_picture() {
        let pictures = preparer.prepare_tensors(Encoded::from(file), id);
        let pictures = pictures.map_err(|error| error.to_string())?;
        return Ok((pictures.into_iter().flatten().collect(), Vec::new()));
    }
    preparer.set_targets(targets.iter().map(|(spec, _)| spec.clone()).collect());
    let stored: Vec<&[u8]> = targets.iter().map(|(_, stored)| &stored[..]).collect();
    let tensor = preparer.prepare_tensor_with(Encoded::from(file), &stored, id);
    let tensor = tensor.map_err(|error| error.to_string())?;
    let moved = (0..targets.len()).map(|index| preparer.target(index).to_vec()).collect();
    Ok((vec![tensor], moved))
}

/// Images and labels of a mixed batch of samples.
fn mix(cpu: Cpu, recipe: &Recipe, spec: TensorSpec, samples: &[Tensor], batch: u64) -> Vec<u8> {
    let mut mixer = BatchMixer::new(recipe, spec).expect("the recipe mixes");
    mixer.set_cpu(cpu);
    let mut images: Vec<u8> = samples.iter().flat_map(|it| it.data.clone()).collect();
    let labels = mixer.labels();
    let row = labels.map_or(0, |labels| 4 * labels.classes as usize);
    let mut rows = vec![0; row * samples.len()];
    for (index, row) in rows.chunks_exact_mut(row.max(1)).enumerate() {
        let labels = labels.expect("there are rows");
        BatchMixer::write_label(labels, index as u32 % labels.classes, row);
    }
    let id = BatchId { seed: 3, epoch: 1, batch };
    let tensors = BatchTensors { samples: samples.len(), images: &mut images, labels: &mut rows };
    mixer.mix(id, tensors, &mut || ()).expect("nothing interrupts");
    images.extend(rows);
    images
}

/// Compares the results of a recipe on every instruction set with the portable ones; returns
/// whether it succeeded with random keys.
fn compare(name: &str, seed: u64, cpus: &[Cpu]) -> Result<bool, TestCaseError> {
    let declaration = DECLARATIONS.iter().find(|it| it.name == name).expect("it is registered");
    let mut chance = Chance::new(seed, name);
    let case = case(declaration, &mut chance);
    let size = match chance.up_to(11) as usize {
        index if index < SIZES.len() => SIZES[index],
        _ => (1 + chance.up_to(159), 1 + chance.up_to(119)),
    };
    let file = match case.content {
        Content::Picture { has_alpha } => picture(size, has_alpha, &mut chance),
        Content::Sound => sound(size.0 * size.1, &mut chance),
        Content::Signal => signal(size.0 * size.1, &mut chance),
        Content::Text => words(size.0 * size.1, &mut chance),
    };
    let id = SampleId { seed, epoch: 2, sample: u64::from(chance.up_to(1000)) };
    let recipe = &with_files(case.recipe);
    let may_move = declaration.targets != OnTargets::Refuses && recipe.gives_one_picture();
    let targets = targets(recipe, size, may_move);
    let expected = prepare(Cpu::Portable, recipe, &file, id, &targets);
    for cpu in cpus {
        let outcome = prepare(*cpu, recipe, &file, id, &targets);
        prop_assert!(outcome == expected, "{name} on {} for {size:?}:\n{}", cpu.name(), case.text);
    }
    let Ok((tensors, _)) = expected else { return Ok(false) };
    if recipe.split().1.is_empty() {
        return Ok(case.has_random_keys);
    }
    let spec = tensors[0].spec;
    let mut preparer = SamplePreparer::new(recipe, Cpu::Portable);
    let samples: Vec<Tensor> = (0..SAMPLES as u64)
        .map(|sample| preparer.prepare_tensor((&file).into(), SampleId { sample, ..id }))
        .map(|tensor| tensor.expect("as the first one"))
        .filter(|tensor| tensor.spec == spec)
        .collect();
    let expected = mix(Cpu::Portable, recipe, spec, &samples, seed);
    for cpu in cpus {
        let mixed = mix(*cpu, recipe, spec, &samples, seed);
        prop_assert!(mixed == expected, "{name} on {}:\n{}", cpu.name(), case.text);
    }
    Ok(case.has_random_keys)
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped instruction set must be seen")]
fn every_operation_gives_the_bits_of_the_portable_code_on_every_instruction_set() {
    for (cpu, reason) in Cpu::ALL.iter().filter_map(|cpu| Some((cpu, cpu.unavailable()?))) {
        eprintln!("skipped: {} ({reason})", cpu.name());
    }
    let cpus: Vec<Cpu> = Cpu::available().filter(|cpu| *cpu != Cpu::Portable).collect();
    let succeeded = RefCell::new(BTreeMap::<&str, u32>::new());
    // A case runs all operations.
    let default = ProptestConfig::default();
    let config = ProptestConfig { cases: default.cases.div_ceil(8), ..default };
    let result = TestRunner::new(config).run(&any::<u64>(), |seed| {
        for declaration in DECLARATIONS {
            let is_counted = compare(declaration.name, seed, &cpus)?;
            *succeeded.borrow_mut().entry(declaration.name).or_default() += u32::from(is_counted);
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let succeeded = succeeded.into_inner();
    for declaration in DECLARATIONS {
        assert!(succeeded[declaration.name] > 0, "no case of {} succeeds", declaration.name);
        assert!(after(declaration).is_empty() || declaration.targets == OnTargets::Moves);
    }
}
