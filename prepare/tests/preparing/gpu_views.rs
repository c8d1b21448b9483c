//! Samples that become several pictures, views and crops, prepared on a GPU: the bits of the CPU,
//! from one decoded picture.

use crate::support::{SAMPLES, damage, job, picture, shuffled, write};
use meetpoint_format::column::{Collate, ColumnNames, Pad};
use meetpoint_format::recipe::{Recipe, find_shipped};
use meetpoint_gpu::{Argument, Compute, Error as GpuError, Hooked, Hooks, Launch, subject};
use meetpoint_kernels::{Cpu, Encoded, SampleId, SamplePreparer};
use meetpoint_prepare::gpu::{
    Computes, GpuBatch, GpuMemory, GpuPreparers, GpuRefusal, GpuUse, NotOffloaded, NotTaken,
    OfferOutcome, ShareChoice,
};
use meetpoint_prepare::{
    Action, CpuPreparer, CpuPreparers, Job, OnError, PreparedBatch, Preparer, PreparerFactory,
    Resources, Tensors,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The kernels of a GPU, for one thread.
fn compute() -> Box<dyn Compute> {
    subject(env!("CARGO_TARGET_TMPDIR").as_ref()).unwrap()
}

#[derive(Debug)]
struct Subject;

impl Computes for Subject {
    fn name(&self) -> &str {
        "subject"
    }

    fn compute(&self) -> Result<Box<dyn Compute>, GpuError> {
        Ok(compute())
    }
}

const EPOCHS: u32 = 2;

/// Prepares all batches of some epochs.
fn prepare(job: &Job, preparer: &mut dyn Preparer) -> Vec<(Vec<u8>, PreparedBatch)> {
    let batches = u32::try_from(job.batching.batches()).unwrap();
    let numbers = (0..EPOCHS).flat_map(|epoch| (0..batches).map(move |batch| (epoch, batch)));
    let prepared = numbers.map(|(epoch, batch)| {
        let mut out = vec![0xa5; 1 << 18];
        let prepared = preparer.prepare(epoch, batch, &mut out, &mut |_| true).unwrap();
        (out, prepared)
    });
    prepared.collect()
}

fn resources(job: &Job) -> Resources {
    Resources { engine: shuffled(&job.dataset, 5, 4), decode_memory: None, cache: None }
}

/// Prepares a job with a share of each batch on a GPU; compares with the CPU alone. Returns what
/// the GPU did.
fn compare_within(job: &Job, share: f64, memory: GpuMemory) -> GpuUse {
    let engine = shuffled(&job.dataset, 8, 3);
    let mut alone = CpuPreparer::new(job.clone(), engine, Cpu::Portable).unwrap();
    let expected = prepare(job, &mut alone);
    let choice = ShareChoice::Fixed(share);
    let preparers = GpuPreparers::new(CpuPreparers::default(), Arc::new(Subject), choice, memory);
    let mut preparer = preparers.preparer(job, resources(job)).unwrap();
    let found = prepare(job, &mut *preparer);
    assert_eq!(found.len(), expected.len());
    for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found.1.samples, expected.1.samples, "batch {number}");
        for (index, column) in job.columns.iter().enumerate() {
            let extent = expected.1.layout.extent(index);
            let start = usize::try_from(extent.offset).unwrap();
            let bytes = start..start + usize::try_from(extent.bytes).unwrap();
            let is_equal = found.0[bytes.clone()] == expected.0[bytes];
            assert!(is_equal, "batch {number}, column {column}, share {share}");
        }
    }
    let gpu = preparers.gpu_use().unwrap();
    assert_eq!((&gpu.failure, &gpu.unused_because), (&None, &None), "{gpu:?}");
    gpu
}

fn compare(job: &Job, share: f64) -> GpuUse {
    compare_within(job, share, GpuMemory::default())
}

fn shipped(name: &str, changes: &[&str]) -> Recipe {
    let changes: Vec<_> = changes.iter().map(|change| change.parse().unwrap()).collect();
    find_shipped(name).unwrap().recipe().changed(&changes).unwrap()
}

fn simclr() -> Recipe {
    shipped("simclr@1", &["size=14"])
}

fn dinov2() -> Recipe {
    let sizes = [
        "global_1.random_resized_crop.size=17",
        "global_2.random_resized_crop.size=17",
        "local.random_resized_crop.size=9",
    ];
    shipped("dinov2@1", &sizes)
}

fn recipe(text: &str) -> Recipe {
    Recipe::from_toml(text).unwrap()
}

/// Views whose columns have elements of different types, layouts and numbers of channels, and
/// replaced rectangles.
fn formats() -> Recipe {
    recipe(
        r#"
        operation = [{ name = "decode" }, { name = "resize", size = [19, 18] },
            { name = "random_vertical_flip" }]

        [[views]]
        column = "bytes"
        count = 2
        operations = [{ name = "random_crop", size = 7 }, { name = "random_erasing", p = 0.8 }]

        [[views]]
        column = "halves"
        operations = [{ name = "random_resized_crop", size = [6, 5] },
            { name = "to_dtype", dtype = "float16", scale = true },
            { name = "random_erasing", p = 0.9, mode = "pixel" }]

        [[views]]
        column = "grey"
        operations = [{ name = "random_rotation", degrees = 20.0 },
            { name = "grayscale" }, { name = "center_crop", size = 11 },
            { name = "to_dtype", dtype = "float32", scale = true },
            { name = "normalize", mean = [0.4], std = [0.3] },
            { name = "layout", layout = "NCHW" }, { name = "random_erasing", p = 0.5 }]
        "#,
    )
}

fn crops(operation: &str) -> Recipe {
    recipe(&format!(
        "operation = [{{ name = 'decode' }}, {{ name = 'random_resized_crop', size = [15, 13] }},
            {{ name = '{operation}', size = 8 }},
            {{ name = 'color_jitter', brightness = 0.5, hue = 0.2 }}]"
    ))
}

fn of(job: Job, recipe: Recipe, columns: &[&str]) -> Job {
    let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    Job { recipe: Arc::new(recipe), columns: columns.into(), ..job }
}

#[test]
fn views_and_crops_have_the_bits_of_the_cpu_with_any_share() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    for (recipe, columns) in [
        (simclr(), &["view", "label"][..]),
        (dinov2(), &["global_1", "global_2", "local", "label"]),
        (dinov2(), &["key", "local", "sample", "global_2"]),
        (formats(), &["bytes", "halves", "grey"]),
        (formats(), &["grey", "label", "bytes"]),
        (crops("five_crop"), &["image"]),
        (crops("ten_crop"), &["label", "image"]),
    ] {
        let job = of(job(&dataset, 6), recipe, columns);
        // Of 23 samples in batches of 6 and one of 5.
        for (share, prepared) in [(0.5, 3 * 3 + 3), (1.0, SAMPLES)] {
            let gpu = compare(&job, share);
            assert_eq!(gpu.prepared, u64::from(EPOCHS) * prepared, "{columns:?}: {gpu:?}");
            assert_eq!(gpu.samples(), u64::from(EPOCHS) * SAMPLES, "{columns:?}: {gpu:?}");
        }
    }
}

#[test]
fn no_gpu_prepares_views_of_different_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let text = "operation = [{name = 'decode'}]
        [[views]]
        column = 'fixed'
        operations = [{name = 'center_crop', size = 8}]
        [[views]]
        column = 'whole'";
    let (recipe, memory) = (recipe(text), GpuMemory::default());
    assert!(GpuBatch::new(compute(), &recipe, &[0], memory).is_ok());
    let refused = GpuBatch::new(compute(), &recipe, &[0, 1], memory).unwrap_err();
    assert!(matches!(refused, GpuRefusal::VariableSize), "{refused}");
    let columns = ColumnNames::of_collated(&recipe, Collate::Pad(Pad::default()));
    let job = Job { recipe: Arc::new(recipe), columns, ..job(&dataset, 6) };
    let padded = CpuPreparer::new(job, shuffled(&dataset, 8, 3), Cpu::detect()).unwrap();
    assert_eq!(padded.why_not_offloaded(), Some(NotOffloaded::VariableSize));
}

#[test]
fn damaged_samples_are_replaced_or_left_out_with_all_of_their_views() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |sample, image| {
        if [4, 15].contains(&sample) {
            *image = spoilt(std::mem::take(image));
        }
    });
    damage(&dataset, 9);
    for (recipe, columns) in [
        (dinov2(), &["global_1", "global_2", "local"][..]),
        (crops("ten_crop"), &["image", "label"]),
    ] {
        for action in [Action::Replace, Action::Skip] {
            let on_error = OnError::Always(action);
            let job = Job { on_error, ..of(job(&dataset, 6), recipe.clone(), columns) };
            let gpu = compare(&job, 1.0);
            // Their entry points belong to other files.
            assert_eq!(gpu.not_taken, u64::from(EPOCHS) * 2, "{gpu:?}");
            assert_eq!(gpu.prepared, u64::from(EPOCHS) * (SAMPLES - 3), "{gpu:?}");
        }
    }
}

#[test]
fn a_sample_is_taken_with_all_of_its_views_or_left_to_the_cpu() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let mut were_divided = 0;
    for (recipe, columns) in [
        (dinov2(), &["global_1", "global_2", "local"][..]),
        (formats(), &["bytes", "halves", "grey"]),
    ] {
        let job = of(job(&dataset, 6), recipe, columns);
        for kib in [1, 200, 400, 600, 800, 1000, 1200, 1600, 32 << 10] {
            let gpu = compare_within(&job, 1.0, GpuMemory::of(kib << 10));
            assert_eq!(gpu.prepared + gpu.not_taken, u64::from(EPOCHS) * SAMPLES, "{gpu:?}");
            let beyond = gpu.not_taken_because.get(&NotTaken::Memory).copied();
            assert_eq!(beyond.unwrap_or(0), gpu.not_taken, "{gpu:?}");
            assert!(gpu.device_bytes_max <= gpu.device_bytes_limit, "{gpu:?}");
            assert!(gpu.pinned_bytes_max <= gpu.pinned_bytes_limit, "{gpu:?}");
            were_divided += u32::from(gpu.prepared > 0 && gpu.not_taken > 0);
            assert!(kib < 32 << 10 || gpu.not_taken == 0, "{gpu:?}");
        }
    }
    assert!(were_divided > 1);
}

/// Damages a file behind its headers, so that a GPU takes it.
fn spoilt(mut file: Vec<u8>) -> Vec<u8> {
    let behind_headers = file.len() / 2;
    file[behind_headers - 1] = 0;
    for pair in file[behind_headers..].chunks_exact_mut(2).take(4) {
        // Ones alone are not a Huffman code.
        pair.copy_from_slice(&[0xff, 0]);
    }
    file
}

/// Files with every orientation.
fn turned() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../jpeg/tests/golden/jpeg");
    let name = |orientation| folder.join(format!("exif-{orientation}.jpg"));
    (1..=8).map(|orientation| std::fs::read(name(orientation)).unwrap()).collect()
}

fn progressive() -> Vec<u8> {
    let pixels: Vec<u8> = (0..24 * 20 * 3).map(|at| (at * 3) as u8).collect();
    let mut encoded = Vec::new();
    let mut encoder = jpeg_encoder::Encoder::new(&mut encoded, 90);
    encoder.set_progressive(true);
    encoder.encode(&pixels, 24, 20, jpeg_encoder::ColorType::Rgb).unwrap();
    encoded
}

/// Counts the pictures that are decoded.
#[derive(Clone, Default)]
struct DecodedPictures(Arc<AtomicU32>);

impl Hooks for DecodedPictures {
    fn launch(&mut self, launch: &Launch<'_>) -> Result<bool, GpuError> {
        if launch.kernel.name == "jpeg_make_pixels" {
            let [_, Argument::Word(pictures), ..] = *launch.arguments else {
                panic!("the second argument is the number of pictures")
            };
            self.0.fetch_add(pictures, Ordering::Relaxed);
        }
        Ok(true)
    }
}

#[test]
fn each_file_is_decoded_once_for_all_of_its_views() {
    // The CPU takes the ninth, and finds the damage of the tenth if a view needs what is damaged.
    let (refused, damaged) = (8, 9);
    let files = [turned(), vec![progressive(), spoilt(picture(5)), picture(3)]].concat();
    let views = "
        operation = [{ name = 'decode', orient = true }]
        [[views]]
        column = 'one'
        operations = [{ name = 'random_resized_crop', size = [7, 5], scale = [0.1, 0.4] }]
        [[views]]
        column = 'two'
        count = 3
        operations = [{ name = 'random_crop', size = 4 }, { name = 'random_horizontal_flip' }]";
    let crops = "
        operation = [{ name = 'decode', orient = true }, { name = 'ten_crop', size = 5 },
            { name = 'to_dtype', dtype = 'float32', scale = true }]";
    let resized =
        views.replace("orient = true }", "orient = true }, { name = 'resize', size = 11 }");
    let (mut found, all) =
        (0, [(views, &[0, 1][..]), (views, &[1]), (crops, &[0]), (&resized, &[0])]);
    for (text, columns) in all {
        let recipe = recipe(text);
        let decoded = DecodedPictures::default();
        let hooked = Box::new(Hooked::new(compute(), decoded.clone()));
        let mut batch = GpuBatch::new(hooked, &recipe, columns, GpuMemory::default()).unwrap();
        let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
        preparer.set_columns(columns.to_vec());
        let each: Vec<usize> = columns
            .iter()
            .map(|column| {
                let images = &recipe.images()[*column];
                images.bytes(&images.spec().unwrap())
            })
            .collect();
        for epoch in 0..4 {
            let id = |sample| SampleId { seed: 8, epoch, sample: sample as u64 };
            batch.begin().unwrap();
            for (position, file) in files.iter().enumerate() {
                let outcome = batch.take(position, Encoded::from(&file[..]), id(position)).unwrap();
                let is_taken = matches!(outcome, OfferOutcome::Yes);
                assert_eq!(is_taken, position != refused, "file {position}: {outcome:?}");
            }
            batch.start(false).unwrap();
            let unsound = batch.wait().unwrap();
            assert!(unsound.iter().all(|position| *position == damaged));
            found += unsound.len();
            assert_eq!(decoded.0.swap(0, Ordering::Relaxed), files.len() as u32 - 1);
            let mut memory: Vec<Vec<u8>> =
                each.iter().map(|each| vec![0xa5; files.len() * each]).collect();
            let tensors = memory.iter_mut().zip(&each);
            let mut tensors: Vec<_> =
                tensors.map(|(bytes, &each)| Tensors { bytes, each }).collect();
            batch.download(&mut tensors).unwrap();
            for (position, file) in files.iter().enumerate() {
                let of_sample = memory.iter().zip(&each);
                let mut of_sample = of_sample.map(|(all, each)| &all[position * each..][..*each]);
                if position == refused {
                    assert!(of_sample.all(|got| got.iter().all(|byte| *byte == 0xa5)));
                } else if !unsound.contains(&position) {
                    let encoded = Encoded::from(&file[..]);
                    let expected = preparer.prepare_tensors(encoded, id(position)).unwrap();
                    for (got, expected) in of_sample.zip(expected) {
                        let expected = expected.into_iter().flat_map(|it| it.data);
                        let expected: Vec<u8> = expected.collect();
                        assert!(*got == expected, "file {position}, epoch {epoch}");
                    }
                }
            }
        }
    }
    assert!(found > 0);
}
