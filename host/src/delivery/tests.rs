//! Deliveries of a loader's batches to the CPU that executes the kernels.

use super::{DeliveryOutcome, DeliveryStage, GpuAccelerator, GpuElement, Split, Unlocked};
use crate::{Accelerator, Loader, LoaderConfig, StopHandle};
use meetpoint_format::column::Collate;
use meetpoint_format::recipe::Recipe;
use meetpoint_gpu::Shim;
use meetpoint_gpu::delivery::{DeliveryError, DeliveryLimits, bfloat16_bits};
use std::sync::Arc;
use std::time::Duration;

const DATASET: &str = "../datasets/tests/golden/version-3";

fn shim() -> Shim {
    // Of this copy of the sources; others have other kernels.
    let sources = env!("CARGO_MANIFEST_DIR").replace('/', "-");
    Shim::start(&std::env::temp_dir().join(format!("meetpoint-shim{sources}"))).unwrap()
}

fn open(recipe: Recipe) -> Loader {
    let config =
        LoaderConfig { seed: 5, workers: 1, ..LoaderConfig::new(DATASET, Arc::new(recipe), 4) };
    Loader::open(config).unwrap()
}

/// Columns of every batch, as the host prepares them and through the device.
fn compare(recipe: &str, is_divided: bool) {
    let copied_directly = compare_within(recipe, is_divided, DeliveryLimits::default());
    assert_eq!(copied_directly, None);
}

/// The same with limits; why batches were not copied from where they were.
fn compare_within(recipe: &str, is_divided: bool, limits: DeliveryLimits) -> Option<Unlocked> {
    let recipe = Recipe::from_toml(&format!("operation = [{recipe}]")).unwrap();
    let split = Split::of(&recipe, &Collate::Stack, 0);
    assert_eq!(split.undivided().is_none(), is_divided, "{split:?}");
    assert_eq!(split.mixing.is_some(), recipe.mixes_tensors());
    compare_split(recipe, &split, limits)
}

fn compare_split(recipe: Recipe, split: &Split, limits: DeliveryLimits) -> Option<Unlocked> {
    let (mut whole, mut divided) = (open(recipe), open(split.head.clone()));
    let mut conversions = split.conversions.iter().flatten().flatten();
    let is_rounded = conversions.any(|it| it.element == GpuElement::Bfloat16);
    let limits = DeliveryLimits { device_bytes: 2 << 20, ..limits };
    let mut stage = DeliveryStage::new(shim(), split, limits).unwrap();
    let (mut expected, mut found) =
        (whole.start_epoch(1).unwrap(), divided.start_epoch(1).unwrap());
    let mut batches = 0;
    while let Some(host) = expected.next_batch().unwrap() {
        let batch = found.next_batch().unwrap().unwrap();
        let gpu = stage.deliver(&batch, &|| false).unwrap();
        drop(batch);
        for (column, place) in host.columns().iter().zip(&gpu.columns) {
            let place = place.expect("numbers are on the device");
            let index = host.table.columns.position(&column.name).unwrap();
            let bytes = &host.memory.payload(host.table.bytes())[host.table.range(index)];
            let mut bytes = bytes.to_vec();
            let mut element = GpuElement::from(column.kind.element());
            if is_rounded && column.source.is_picture() {
                let floats = bytes.as_chunks::<4>().0.iter().map(|it| f32::from_le_bytes(*it));
                bytes = floats.flat_map(|it| bfloat16_bits(it).to_le_bytes()).collect();
                element = GpuElement::Bfloat16;
            }
            assert_eq!(place.element, element, "{}", column.name);
            let mut read = vec![0; bytes.len()];
            gpu.memory.read(stage.streams(), place.offset, &mut read).unwrap();
            assert!(read == bytes, "{} of batch {batches}", column.name);
        }
        let labels: Vec<u8> = host
            .labels()
            .iter()
            .flat_map(|label| i64::from(label.unwrap()).to_le_bytes())
            .collect();
        // Labels that are rows are a column.
        assert_eq!(gpu.labels.is_none(), host.labels().is_empty());
        if let Some([wide, _]) = gpu.labels {
            let mut read = vec![0; labels.len()];
            gpu.memory.read(stage.streams(), wide, &mut read).unwrap();
            assert_eq!(read, labels);
        }
        let numbers: Vec<u8> =
            host.samples().iter().flat_map(|it| (*it as u32).to_le_bytes()).collect();
        let mut read = vec![0; numbers.len()];
        gpu.memory.read(stage.streams(), gpu.samples.1.unwrap(), &mut read).unwrap();
        assert_eq!(read, numbers);
        batches += 1;
    }
    let delivered = stage.delivered().unwrap();
    assert_eq!((delivered.batches, delivered.allocations), (batches, 1));
    // Arrays that are not columns are in no slot.
    let is_direct = delivered.direct_bytes > 0 && delivered.direct_bytes < delivered.bytes;
    assert_eq!(is_direct, stage.staged().is_none());
    stage.staged().cloned()
}

const HEAD: &str = "{name = 'decode'}, {name = 'random_resized_crop', size = [7, 9]},
    {name = 'random_horizontal_flip'}";
const NORMALIZE: &str =
    "{name = 'normalize', mean = [0.485, 0.456, 0.406], std = [0.229, 0.224, 0.225]}";

const FLOAT: &str = "{name = 'to_dtype', dtype = 'float32', scale = true}";

#[test]
fn batches_have_the_bits_of_the_host() {
    for dtype in ["float32", "float16"] {
        for scale in ["true", "'divide'"] {
            for layout in ["NHWC", "NCHW"] {
                let recipe = format!(
                    "{HEAD}, {{name = 'to_dtype', dtype = '{dtype}', scale = {scale}}},
                    {NORMALIZE}, {{name = 'layout', layout = '{layout}'}}"
                );
                compare(&recipe, true);
            }
        }
    }
}

#[test]
fn memory_beyond_the_limit_is_copied_first_and_the_reason_is_reported() {
    let limits = DeliveryLimits { locked_bytes: (2 << 20) - 1, ..DeliveryLimits::default() };
    let staged = compare_within(HEAD, false, limits).unwrap();
    assert_eq!(staged, Unlocked::Limit { limit_bytes: (2 << 20) - 1 });
}

#[test]
fn batches_of_other_recipes_are_brought_as_they_are() {
    compare(HEAD, false);
    compare(&format!("{HEAD}, {FLOAT}, {{name = 'random_erasing'}}"), false);
    let grey = "{name = 'grayscale'}";
    compare(&format!("{HEAD}, {grey}, {FLOAT}"), true);
}

#[test]
fn several_pictures_of_a_sample_are_converted_on_the_device() {
    let planes = "{name = 'layout', layout = 'NCHW'}";
    let crops = "{name = 'decode'}, {name = 'five_crop', size = [3, 5]}";
    compare(&format!("{crops}, {FLOAT}, {NORMALIZE}, {planes}"), true);
    let view = |column: &str, count: u32, size: u32, tail: &str| {
        let crop = format!("{{name = 'random_resized_crop', size = {size}}}");
        format!("{{column = '{column}', count = {count}, operations = [{crop}{tail}]}}")
    };
    let float = format!(", {FLOAT}, {NORMALIZE}, {planes}");
    let views =
        [view("a", 2, 8, &float), view("b", 1, 5, ""), view("c", 3, 4, &format!(", {FLOAT}"))];
    let views = views.join(", ");
    let recipe = format!("operation = [{{name = 'decode'}}]\nviews = [{views}]");
    let recipe = Recipe::from_toml(&recipe).unwrap();
    let split = Split::of(&recipe, &Collate::Stack, 0);
    assert_eq!(compare_split(recipe, &split, DeliveryLimits::default()), None);
}

#[test]
fn samples_are_mixed_on_the_device() {
    let cut_mix = "{name = 'cut_mix', num_classes = 10}";
    let pairs = "{name = 'mix_up', num_classes = 10, label_smoothing = 0.1, mode = 'pair',
        partner = 'mirrored'}";
    let mix_up = "{name = 'mix_up', num_classes = 10}";
    let one_of = format!("{{name = 'random_choice', operations = [{cut_mix}, {mix_up}]}}");
    let half = "{name = 'to_dtype', dtype = 'float16', scale = true}";
    let planes = "{name = 'layout', layout = 'NCHW'}";
    for mix in [cut_mix, pairs, &one_of, &format!("{one_of}, {cut_mix}")] {
        compare(&format!("{HEAD}, {FLOAT}, {NORMALIZE}, {planes}, {mix}"), true);
        compare(&format!("{HEAD}, {half}, {NORMALIZE}, {mix}"), true);
        compare(&format!("{HEAD}, {mix}"), false);
        compare(&format!("{HEAD}, {FLOAT}, {{name = 'random_erasing'}}, {mix}"), false);
    }
}

#[test]
fn mixed_samples_are_rounded_to_bfloat16_last() {
    for mix in ["", ", {name = 'mix_up', num_classes = 10, mode = 'elem'}"] {
        let recipe = format!("operation = [{HEAD}, {FLOAT}, {NORMALIZE}{mix}]");
        let recipe = Recipe::from_toml(&recipe).unwrap();
        let split = Split::of(&recipe, &Collate::Stack, 0).to_bfloat16().unwrap();
        assert_eq!(compare_split(recipe, &split, DeliveryLimits::default()), None);
    }
}

/// Steps on the batches of an epoch.
struct Steps {
    loader: Loader,
    accelerator: GpuAccelerator<Shim>,
    outcome: DeliveryOutcome,
    stop: StopHandle,
    split: Split,
}

impl Steps {
    fn of(step: Duration, limits: DeliveryLimits) -> Self {
        let recipe = Recipe::from_toml(&format!("operation = [{HEAD}, {FLOAT}]")).unwrap();
        let split = Split::of(&recipe, &Collate::Stack, 0);
        let stage = DeliveryStage::new(shim(), &split, limits).unwrap();
        let (outcome, stop) = (DeliveryOutcome::default(), StopHandle::new());
        let accelerator = GpuAccelerator::new(stage, step, stop.clone(), outcome.clone());
        Self { loader: open(split.head.clone()), accelerator, outcome, stop, split }
    }
}

#[test]
fn every_batch_is_delivered_before_its_step() {
    let mut steps = Steps::of(Duration::ZERO, DeliveryLimits::default());
    for epoch in 0..2 {
        let mut epoch = steps.loader.start_epoch(epoch).unwrap();
        while let Some(batch) = epoch.next_batch().unwrap() {
            steps.accelerator.step(&batch);
        }
        steps.accelerator.finish();
    }
    let used = steps.outcome.usage("cuda:0".to_owned(), &steps.split);
    assert_eq!((used.batches, used.undivided), (4, None));
    // The first step of an epoch waits for nothing.
    assert_eq!(used.gpu_idle_measured, 2);
    assert!(used.late_batches <= 2 && (used.gpu_idle_ns > 0) == (used.late_batches > 0));
    assert!(steps.outcome.take_failure().is_none() && !steps.stop.is_stopped());
}

#[test]
fn a_step_continues_after_its_batch_was_taken_and_a_stop_ends_it() {
    let mut steps = Steps::of(Duration::from_secs(3600), DeliveryLimits::default());
    let mut epoch = steps.loader.start_epoch(0).unwrap();
    let batch = epoch.next_batch().unwrap().unwrap();
    steps.accelerator.step(&batch);
    steps.stop.stop();
    steps.accelerator.step(&epoch.next_batch().unwrap().unwrap());
    steps.accelerator.finish();
}

#[test]
fn a_batch_that_cannot_be_delivered_stops_the_run() {
    let limits = DeliveryLimits { device_bytes: 1, ..DeliveryLimits::default() };
    let mut steps = Steps::of(Duration::ZERO, limits);
    let mut epoch = steps.loader.start_epoch(0).unwrap();
    steps.accelerator.step(&epoch.next_batch().unwrap().unwrap());
    assert!(steps.stop.is_stopped());
    let failure = steps.outcome.take_failure().unwrap();
    assert!(matches!(failure, DeliveryError::TooLarge { .. }), "{failure}");
}
