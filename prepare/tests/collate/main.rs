//! Pictures of different sizes in a batch: padded or listed, with the masks that move with them.

#![expect(clippy::unwrap_used, reason = "a helper fails its test by panicking")]

mod further;
mod support;

use meetpoint_diagnose::Diagnose;
use meetpoint_format::batching::{BatchOptions, Batching};
use meetpoint_format::column::{Collate, ColumnError, List, Pad};
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::{AspectRatio, Sampler, Sampling};
use meetpoint_kernels::{Cpu, Error as PictureError, SampleId, TargetProblem, Tensor};
use meetpoint_prepare::{Action, BatchMemory, Error, Job, MemoryKind, OnError, Preparer};

use support::*;

#[test]
fn pictures_are_padded_below_and_to_the_right_to_the_largest_of_the_batch() {
    let (_made, dataset) = TestDataset::new(false, None);
    let more = "[[operation]]\nname = 'to_dtype'\ndtype = 'float32'\n\
                [[operation]]\nname = 'layout'\nlayout = 'NCHW'\n";
    for (more, fill, bytes) in
        [("", 114.0, vec![114]), (more, -1.5, (-1.5_f32).to_le_bytes().to_vec())]
    {
        for multiple in [1, 8] {
            let recipe = format!("{OPERATIONS}{more}");
            let names = ["image", "image_size", "padding_mask"];
            let first = First::of(job(&dataset, &recipe, &names, pad(multiple, fill)));
            let alone = first.alone();
            let most = |side: fn(&Tensor) -> u32| alone.iter().map(side).max().unwrap();
            let height = most(|it| it.spec.height).next_multiple_of(multiple);
            let width = most(|it| it.spec.width).next_multiple_of(multiple);
            let is_planar = !more.is_empty();
            let axes = if is_planar { vec![3, height, width] } else { vec![height, width, 3] };
            assert_eq!(first.axes("image"), axes);
            for (at, tensor) in alone.iter().enumerate() {
                let from = tensor.spec.axes();
                let expected = padded(&tensor.data, &lengths(&from), &lengths(&axes), &bytes);
                assert_eq!(first.column("image").value(at).unwrap(), expected, "{at}");
                let (high, wide) = (tensor.spec.height, tensor.spec.width);
                let size = [high, wide].map(|side| i64::from(side).to_le_bytes()).concat();
                assert_eq!(first.column("image_size").value(at).unwrap(), size);
                let own = vec![0; (high * wide) as usize];
                let sides = (lengths(&[high, wide]), lengths(&[height, width]));
                let mask = padded(&own, &sides.0, &sides.1, &[1]);
                assert_eq!(first.column("padding_mask").value(at).unwrap(), mask);
            }
            let sizes: std::collections::HashSet<_> =
                alone.iter().map(|it| (it.spec.height, it.spec.width)).collect();
            assert!(sizes.len() > 3, "{sizes:?}");
        }
    }
}

#[test]
fn pictures_in_a_list_have_the_values_and_shapes_that_they_have_alone() {
    let (_made, dataset) = TestDataset::new(false, None);
    let list = Collate::List(List::default());
    let first = First::of(job(&dataset, OPERATIONS, &["image", "image_size", "key"], list));
    for (at, tensor) in first.alone().iter().enumerate() {
        let images = first.column("image");
        let shape = tensor.spec.axes();
        assert_eq!(images.value(at).unwrap(), tensor.data);
        let shape: Vec<i64> = shape.into_iter().map(i64::from).collect();
        assert_eq!(images.shape(at).unwrap(), shape);
    }
}

#[test]
fn masks_are_padded_with_their_own_fill_and_boxes_are_not() {
    let (made, dataset) = TestDataset::new(true, None);
    let recipe = format!("{OPERATIONS}{TARGETS}{MASKS}");
    let names = ["image", "boxes", "labels", "mask", "masks", "image_size"];
    let of = |collate| First::of(job(&dataset, &recipe, &names, collate));
    let (padded_batch, listed) = (of(pad(4, 0.0)), of(Collate::List(List::default())));
    assert_eq!(padded_batch.samples, listed.samples);
    let axes = padded_batch.axes("mask");
    assert_eq!(padded_batch.axes("masks"), axes);
    assert_eq!(padded_batch.axes("image")[..2], axes[..]);
    let mut sizes = std::collections::HashSet::new();
    for (at, &sample) in listed.samples.iter().enumerate() {
        for same in ["boxes", "labels", "image_size"] {
            let values = [&padded_batch, &listed].map(|it| it.column(same).value(at).unwrap());
            assert_eq!(values[0], values[1], "{same}");
        }
        assert_eq!(listed.column("boxes").value(at).unwrap().len() as u64, sample % 3 * 16);
        let shape = listed.column("mask").shape(at).unwrap();
        sizes.insert(shape.clone());
        let from: Vec<usize> = shape.iter().map(|side| *side as usize).collect();
        let mask = listed.column("mask").value(at).unwrap();
        let expected = padded(mask, &from, &lengths(&axes), &[255]);
        assert_eq!(padded_batch.column("mask").value(at).unwrap(), expected);
        // The nearest pixel of the mask as it is stored, mirrored or not.
        let stored = made.mask(sample);
        assert!(mask.iter().all(|element| stored.contains(element)));
        let [count, ..] = listed.column("masks").shape(at).unwrap()[..] else { panic!() };
        assert_eq!(count as u64, sample % 3);
        let each = listed.column("masks").value(at).unwrap().chunks_exact(mask.len());
        let all = each.flat_map(|own| padded(own, &from, &lengths(&axes), &[7]));
        assert_eq!(padded_batch.column("masks").value(at).unwrap(), all.collect::<Vec<u8>>());
    }
    assert!(sizes.len() > 1, "{sizes:?}");
}

#[test]
fn masks_of_pictures_of_different_sizes_are_stored_as_png() {
    let (_made, dataset) = TestDataset::new(false, None);
    let recipe = format!("{OPERATIONS}{TARGETS}");
    let first = First::of(job(&dataset, &recipe, &["image", "mask"], pad(1, 0.0)));
    let axes = lengths(&first.axes("mask"));
    assert_eq!(first.column("mask").value(0).unwrap().len(), axes[0] * axes[1]);
}

/// Memory that keeps its size, such as a slot.
struct Fixed(Vec<u8>);

impl BatchMemory for Fixed {
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

#[test]
fn a_batch_that_is_larger_than_reserved_makes_its_memory_longer_or_is_refused() {
    let (_made, dataset) = TestDataset::new(false, None);
    let whole = First::of(job(&dataset, OPERATIONS, &["image", "key"], pad(1, 0.0)));
    let small = Pad { max_size: Some((4, 4)), ..Pad::default() };
    let job = job(&dataset, OPERATIONS, &["image", "key"], Collate::Pad(small));
    let mut short = memory(&job);
    assert!(short.len() < whole.memory.len());
    let mut preparer = preparer(&job).unwrap();
    let mut fixed = Fixed(short.clone());
    let error = preparer.prepare(0, 0, &mut fixed, &mut |_| true).unwrap_err();
    assert!(matches!(error, Error::BatchTooLarge { .. }) && !error.is_damage());
    assert!(error.remedy().is_some());
    let prepared = preparer.prepare(0, 0, &mut short, &mut |_| true).unwrap();
    let bytes = prepared.layout.bytes() as usize;
    assert_eq!(short[..bytes], whole.memory[..bytes]);
}

#[test]
fn damaged_pictures_leave_no_gap() {
    let (_made, dataset) = TestDataset::new(false, Some(7));
    let names = ["image", "image_size", "sample"];
    let job = job(&dataset, OPERATIONS, &names, pad(1, 0.0));
    let mut memory = memory(&job);
    let outcome = preparer(&job).unwrap().prepare(0, 0, &mut memory, &mut |_| true);
    assert!(outcome.unwrap_err().is_damage());
    for action in [Action::Skip, Action::Replace] {
        let first = First::of(Job { on_error: OnError::Always(action), ..job.clone() });
        let left = if action == Action::Skip { SAMPLES - 1 } else { SAMPLES };
        assert_eq!(first.samples.len() as u64, left);
        assert!(!first.samples.contains(&7));
        assert_eq!(u64::from(first.layout.samples()), left);
        let largest = (0..left as usize).map(|at| {
            let (sides, _) = first.column("image_size").value(at).unwrap().as_chunks();
            [i64::from_le_bytes(sides[0]), i64::from_le_bytes(sides[1])]
        });
        let largest = largest.reduce(|a, b| [a[0].max(b[0]), a[1].max(b[1])]).unwrap();
        assert_eq!(first.axes("image")[..2], largest.map(|side| side as u32));
    }
}

#[test]
fn recipes_and_columns_that_have_no_such_form_are_refused_by_name() {
    let (_made, dataset) = TestDataset::new(false, None);
    let refused = |recipe: &str, columns: &[&str], collate| {
        job(&dataset, recipe, columns, collate).batch_columns().unwrap_err()
    };
    let error = refused(OPERATIONS, &["image"], Collate::Stack);
    assert!(matches!(error, Error::NoFixedShape));
    let remedy = error.remedy().unwrap().spelled(meetpoint_diagnose::Surface::Python);
    assert!(remedy.contains("set collate to pad"), "{remedy}");
    let list = Collate::List(List::default());
    let crops = format!("{OPERATIONS}[[operation]]\nname = 'five_crop'\nsize = 4\n");
    let error = refused(&crops, &["image"], list);
    assert!(matches!(error, Error::CollateViews { mode: "list", .. }));
    let mixed = "[[operation]]\nname = 'decode'\n[[operation]]\nname = 'center_crop'\nsize = 4\n\
                 [[operation]]\nname = 'mix_up'\nnum_classes = 3\n";
    let error = refused(mixed, &["image"], pad(1, 0.0));
    assert!(matches!(error, Error::CollateOnBatches { operation: "mix_up", .. }));
    let inner = "[[operation]]\nname = 'random_choice'\noperations = [\
                 { name = 'one_hot', num_classes = 3 }, { name = 'cut_mix', num_classes = 3 }]\n";
    let error = refused(&format!("{OPERATIONS}{inner}"), &["image"], list);
    assert!(matches!(error, Error::CollateOnBatches { operation: "cut_mix", .. }), "{error}");
    let error = refused(OPERATIONS, &["image"], pad(1, 300.0));
    assert!(matches!(error, Error::Collate(_)), "{error}");
    let column = |error| match error {
        Error::Columns { source, .. } => source,
        other => panic!("{other}"),
    };
    let without = column(refused(OPERATIONS, &["image_size"], pad(1, 0.0)));
    let (name, image) = ("image_size".to_owned(), "image".to_owned());
    assert_eq!(without, ColumnError::SizeWithoutImage { name, image });
    // Nothing is padded in a list, and every picture has one size otherwise.
    assert_eq!(
        column(refused(OPERATIONS, &["image", "padding_mask"], list)).column(),
        Some("padding_mask")
    );
}

#[test]
fn targets_that_do_not_fit_their_picture_name_sample_column_and_remedy() {
    let recipe = format!("{OPERATIONS}{TARGETS}{OBJECTS}");
    let misfits = [(Misfit::Box, "boxes"), (Misfit::Mask, "mask"), (Misfit::Object, "objects")];
    for (misfit, wanted) in misfits {
        let (_made, dataset) =
            TestDataset { misfit: Some(misfit), ..TestDataset::empty() }.written();
        let names = ["image", "boxes", "mask", "objects"];
        let job = job(&dataset, &recipe, &names, pad(1, 0.0));
        let outcome = preparer(&job).unwrap().prepare(0, 0, &mut memory(&job), &mut |_| true);
        let error = outcome.unwrap_err();
        assert!(error.is_damage() && error.remedy().is_some());
        let Error::Sample { key, source, .. } = error else { panic!("{error}") };
        assert_eq!(key, "4.png");
        let PictureError::Target { column, problem } = source else { panic!("{source}") };
        assert_eq!(column, wanted);
        match (misfit, *problem) {
            (Misfit::Box, TargetProblem::BoxOutside { index: 0, .. })
            | (Misfit::Mask | Misfit::Object, TargetProblem::MaskSize { .. }) => {}
            (_, problem) => panic!("{problem}"),
        }
        // One damaged sample, which may be left out.
        let skipping = Job { on_error: OnError::Always(Action::Skip), ..job };
        assert_eq!(First::of(skipping).samples.len() as u64, SAMPLES - 1);
    }
}

#[test]
fn target_columns_that_are_missing_or_of_another_type_are_refused_by_name() {
    let (_made, dataset) = TestDataset::new(false, None);
    let refused = |column: &str, kind: &str| {
        let target = format!("[targets.{column}]\n{kind}");
        let recipe = format!("{OPERATIONS}{target}");
        let columns = ["image", column];
        let error = job(&dataset, &recipe, &columns, pad(1, 0.0)).batch_columns().unwrap_err();
        assert!(error.remedy().is_some(), "{error}");
        match error {
            Error::Columns { source, .. } => source,
            other => panic!("{other}"),
        }
    };
    let boxes = "kind = 'boxes'\nformat = 'xyxy'\n";
    let error = refused("boxen", boxes);
    let ColumnError::Unknown { name, nearest, .. } = error else { panic!("{error}") };
    assert_eq!((&name[..], nearest.as_deref()), ("boxen", Some("boxes")));
    for (column, kind) in [("labels", boxes), ("mask", boxes), ("boxes", "kind = 'mask'\n")] {
        let error = refused(column, kind);
        let ColumnError::Target { name, .. } = error else { panic!("{error}") };
        assert_eq!(name, column);
    }
}

#[test]
fn sizes_are_those_in_the_files_and_damaged_ones_have_none() {
    let (made, dataset) = TestDataset::new(false, Some(7));
    let mut calls = 0;
    let mut watch = |_, of| {
        assert_eq!(of, SAMPLES);
        calls += 1;
        true
    };
    let sizes = dataset.picture_sizes(&mut watch).unwrap();
    assert!(calls > 0);
    for sample in 0..SAMPLES {
        let expected = (sample != 7).then(|| made.size(sample));
        assert_eq!(sizes.of(sample), expected);
    }
    assert_eq!(sizes.of(SAMPLES), None);
    let (_other, other) = TestDataset::new(false, None);
    assert!(matches!(other.picture_sizes(&mut |_, _| false), Err(Error::Interrupted)));
}

#[test]
fn batches_of_similar_aspect_ratios_waste_less_padding() {
    let (_made, dataset) = TestDataset::new(false, None);
    let elements = |sampler: Sampler| {
        let options = BatchOptions { batch_size: 3, drop_last: false, seed: SEED };
        let sampling = Sampling::of(&sampler, &*dataset).unwrap();
        let recipe = "[[operation]]\nname = 'decode'\n";
        let job = job(&dataset, recipe, &["image"], pad(1, 0.0));
        let job = Job { batching: Batching::alone(options, sampling), ..job };
        let (mut preparer, mut memory) = (preparer(&job).unwrap(), memory(&job));
        let batches = 0..u32::try_from(job.batching.batches()).unwrap();
        let bytes = batches.map(|batch| {
            preparer.prepare(0, batch, &mut memory, &mut |_| true).unwrap().layout.bytes()
        });
        bytes.sum::<u64>()
    };
    let grouped = AspectRatio { factor: 1, columns: None, shuffle: false };
    let sequential = meetpoint_format::sampler::Sequential;
    assert!(elements(grouped.into()) < elements(sequential.into()));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(40))]

    /// No picture exceeds the bounds that are known from the recipe before decoding.
    #[test]
    fn pictures_are_within_the_sizes_of_their_recipe(
        height in 1..60_u32, width in 1..60_u32, seed: u64, which in 0..9_usize,
    ) {
        let operations = [
            "name = 'random_shortest_size'\nmin_size = [5, 9]",
            "name = 'random_shortest_size'\nmin_size = [5, 9]\nmax_size = 12",
            "name = 'random_resize'\nmin_size = 4\nmax_size = 9",
            "name = 'scale_jitter'\ntarget_size = [20, 10]",
            "name = 'random_zoom_out'\nside_range = [1.0, 2.5]",
            "name = 'random_rotation'\ndegrees = 60\nexpand = true",
            "name = 'pad'\npadding = [1, 2, 3, 4]",
            "name = 'resize'\nsize = 8\nmax_size = 15",
            "name = 'random_choice'\n\
             operations = [{ name = 'pad', padding = 2 }, { name = 'center_crop', size = 7 }]",
            "name = 'random_apply'\nprobability_is_default = 0",
        ];
        let operation = operations[which];
        let second = "[[operation]]\nname = 'random_shortest_size'\nmin_size = [6]\n";
        for rest in ["", second] {
            let first = "[[operation]]\nname = 'decode'\n";
            let text = format!("{first}[[operation]]\n{operation}\n{rest}");
            let Ok(recipe) = Recipe::from_toml(&text) else { continue };
            let mut bytes = Vec::new();
            let mut encoder = png::Encoder::new(&mut bytes, width, height);
            encoder.set_color(png::ColorType::Grayscale);
            encoder.set_depth(png::BitDepth::Eight);
            let pixels = vec![9; (width * height) as usize];
            encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
            let mut preparer = meetpoint_kernels::SamplePreparer::new(&recipe, Cpu::detect());
            let id = SampleId { seed, epoch: 0, sample: 1 };
            // Some pictures get no pixels, or too many.
            let Ok(tensor) = preparer.prepare_tensor((&bytes[..]).into(), id) else { continue };
            let sizes = recipe.sizes(Some((height, width)));
            let (high, wide) = (tensor.spec.height, tensor.spec.width);
            let (heights, widths) =
                (sizes.least.0..=sizes.most.0, sizes.least.1..=sizes.most.1);
            proptest::prop_assert!(heights.contains(&high), "{sizes:?} {high}");
            proptest::prop_assert!(widths.contains(&wide), "{sizes:?} {wide}");
            let without = recipe.sizes(None);
            proptest::prop_assert!(high <= without.most.0 && wide <= without.most.1);
        }
    }
}
