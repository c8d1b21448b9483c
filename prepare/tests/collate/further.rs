//! Masks in files, views, soft labels and cached samples where pictures have different sizes.

use crate::support::*;
use meetpoint_format::column::{Collate, ColumnError, List};
use meetpoint_kernels::{Cpu, SampleId, Tensor};
use meetpoint_prepare::cache::{CacheSettings, CacheSlot};
use meetpoint_prepare::{Action, Error, Job, OnError, OnePreparer, Preparer};

#[test]
fn a_file_for_each_object_moves_with_pictures_of_any_size() {
    let (_made, dataset) = TestDataset::new(false, None);
    let recipe = format!("{OPERATIONS}{TARGETS}{OBJECTS}");
    let names = ["image", "mask", "objects"];
    let of = |collate| First::of(job(&dataset, &recipe, &names, collate));
    let (padded_batch, listed) = (of(pad(4, 0.0)), of(Collate::List(List::default())));
    let axes = lengths(&padded_batch.axes("objects"));
    assert_eq!(axes, lengths(&padded_batch.axes("mask")));
    for (at, &sample) in listed.samples.iter().enumerate() {
        let mask = listed.column("mask").value(at).unwrap();
        let sides = listed.column("mask").shape(at).unwrap();
        let count = (sample % 3).cast_signed();
        let shape = [&[count], &sides[..]].concat();
        assert_eq!(listed.column("objects").shape(at).unwrap(), shape);
        let objects = (0..count).flat_map(|n| mask.iter().map(move |it| it + 20 * n as u8));
        let objects: Vec<u8> = objects.collect();
        assert_eq!(listed.column("objects").value(at).unwrap(), objects);
        let from: Vec<usize> = sides.iter().map(|side| *side as usize).collect();
        let each = objects.chunks_exact(mask.len());
        let all: Vec<u8> = each.flat_map(|own| padded(own, &from, &axes, &[255])).collect();
        assert_eq!(padded_batch.column("objects").value(at).unwrap(), all);
    }
    // Pictures of one size need neither.
    let crop = format!(
        "[[operation]]\nname = 'decode'\n[[operation]]\nname = 'center_crop'\nsize = 6\n\
         {TARGETS}{OBJECTS}"
    );
    let stacked = First::of(job(&dataset, &crop, &names, Collate::Stack));
    for (at, sample) in stacked.samples.iter().enumerate() {
        let value = stacked.column("objects").value(at).unwrap();
        assert_eq!(value.len() as u64, sample % 3 * 36);
        let first = value.get(..36).unwrap_or(&[]);
        assert_eq!(first, &stacked.column("mask").value(at).unwrap()[..first.len()]);
    }
    // As an ordinary column, byte strings in lists have no form.
    let error = job(&dataset, OPERATIONS, &["image", "objects"], pad(1, 0.0)).batch_columns();
    let Err(Error::Columns { source, .. }) = error else { panic!("{error:?}") };
    assert_eq!(source.column(), Some("objects"));
}

/// Views of sizes of their own, one of which has two pictures.
const VIEWS: &str = "
    operation = [{ name = 'decode' }]
    [[views]]
    column = 'large'
    operations = [{ name = 'random_shortest_size', min_size = [10, 13, 17] }]
    [[views]]
    column = 'small'
    count = 2
    operations = [
        { name = 'random_shortest_size', min_size = [4, 6, 7, 9] },
        { name = 'to_dtype', dtype = 'float32' },
        { name = 'layout', layout = 'NCHW' },
    ]
";

#[test]
fn each_view_is_padded_to_its_own_largest_size() {
    let (_made, dataset) = TestDataset::new(false, None);
    let names =
        ["large", "large_size", "small", "small_size", "small_padding_mask", "large_padding_mask"];
    let first = First::of(job(&dataset, VIEWS, &names, pad(4, 9.0)));
    let Job { dataset, recipe, .. } = &first.job;
    let mut one = OnePreparer::new(dataset, recipe, Cpu::detect()).unwrap();
    let id = |sample| SampleId { seed: SEED, epoch: 0, sample };
    let alone: Vec<Vec<Vec<Tensor>>> =
        first.samples.iter().map(|&sample| one.prepare_all(sample, id(sample)).unwrap()).collect();
    let nine = 9.0_f32.to_le_bytes();
    for (index, name, fill) in [(0, "large", &[9][..]), (1, "small", &nine[..])] {
        let all = || alone.iter().flat_map(|views| &views[index]);
        let most = |side: fn(&Tensor) -> u32| all().map(side).max().unwrap().next_multiple_of(4);
        let (height, width) = (most(|it| it.spec.height), most(|it| it.spec.width));
        let of_one = if index == 0 { vec![height, width, 3] } else { vec![3, height, width] };
        let outer = if index == 0 { vec![] } else { vec![2] };
        assert_eq!(first.axes(name), [outer.clone(), of_one.clone()].concat());
        let mask = format!("{name}_padding_mask");
        assert_eq!(first.axes(&mask), [outer, vec![height, width]].concat());
        let sizes: std::collections::HashSet<_> =
            all().map(|it| (it.spec.height, it.spec.width)).collect();
        assert!(sizes.len() > 3, "{sizes:?}");
        for (at, views) in alone.iter().enumerate() {
            let (mut pixels, mut padding, mut sides) = (Vec::new(), Vec::new(), Vec::new());
            for tensor in &views[index] {
                let from = lengths(&tensor.spec.axes());
                pixels.extend(padded(&tensor.data, &from, &lengths(&of_one), fill));
                let (high, wide) = (tensor.spec.height, tensor.spec.width);
                let inside = vec![0; (high * wide) as usize];
                let to = lengths(&[height, width]);
                padding.extend(padded(&inside, &lengths(&[high, wide]), &to, &[1]));
                sides.extend([high, wide].map(|side| i64::from(side).to_le_bytes()).concat());
            }
            assert_eq!(first.column(name).value(at).unwrap(), pixels, "{name} {at}");
            assert_eq!(first.column(&mask).value(at).unwrap(), padding, "{name} {at}");
            let size = format!("{name}_size");
            assert_eq!(first.column(&size).value(at).unwrap(), sides, "{name} {at}");
        }
    }
    // A list has the shapes of views with one picture each.
    let list = Collate::List(List::default());
    let single = VIEWS.replace("count = 2", "count = 1");
    let listed = First::of(job(dataset, &single, &["small", "large"], list));
    for (at, views) in alone.iter().enumerate() {
        for (name, tensor) in [("large", &views[0][0]), ("small", &views[1][0])] {
            let shape: Vec<i64> = tensor.spec.axes().into_iter().map(i64::from).collect();
            assert_eq!(listed.column(name).shape(at).unwrap(), shape);
            assert_eq!(listed.column(name).value(at).unwrap(), tensor.data);
        }
    }
    let refused = |columns: &[&str], collate| {
        job(dataset, VIEWS, columns, collate).batch_columns().unwrap_err()
    };
    let several = refused(&["large"], list);
    let Error::CollateViews { mode: "list", column } = several else { panic!("{several}") };
    assert_eq!(column, "small");
    let without = refused(&["large", "small_size"], pad(1, 0.0));
    let Error::Columns { source, .. } = without else { panic!("{without}") };
    let (name, image) = ("small_size".to_owned(), "small".to_owned());
    assert_eq!(source, ColumnError::SizeWithoutImage { name, image });
}

#[test]
fn labels_become_rows_beside_pictures_of_different_sizes() {
    let (_made, dataset) = TestDataset { labels: true, ..TestDataset::empty() }.written();
    let one_hot = "[[operation]]\nname = 'one_hot'\nnum_classes = 3\nlabel_smoothing = 0.3\n";
    let sometimes = "[[operation]]\nname = 'random_apply'\np = 0.5\n\
                     operations = [{ name = 'one_hot', num_classes = 3, label_smoothing = 0.3 }]\n";
    for on_batches in [one_hot, sometimes] {
        for collate in [pad(1, 0.0), Collate::List(List::default())] {
            let recipe = format!("{OPERATIONS}{on_batches}");
            let first = First::of(job(&dataset, &recipe, &["image", "label"], collate));
            let plain = First::of(job(&dataset, OPERATIONS, &["image"], collate));
            for (at, sample) in first.samples.iter().enumerate() {
                let (off, on) = (0.3_f32 / 3.0, 1.0 - 0.3_f32 + 0.3 / 3.0);
                let row = (0..3).map(|class| if class == sample % 3 { on } else { off });
                let values = first.column("label").value(at).unwrap().chunks_exact(4);
                for (value, expected) in values.zip(row) {
                    let value = f32::from_le_bytes(value.try_into().unwrap());
                    assert!((value - expected).abs() < 1e-6, "{value} {expected}");
                }
                assert_eq!(first.column("image").value(at), plain.column("image").value(at));
            }
        }
    }
}

#[test]
fn a_cache_holds_pictures_of_different_sizes() {
    let (_made, dataset) = TestDataset::new(false, None);
    let recipe = format!("{OPERATIONS}{TARGETS}{OBJECTS}");
    let names = ["image", "mask", "objects", "boxes"];
    for (recipe, names) in [(&recipe[..], &names[..]), (OPERATIONS, &["image", "key"])] {
        for collate in [pad(4, 3.0), Collate::List(List::default())] {
            let job = job(&dataset, recipe, names, collate);
            let settings = CacheSettings { bytes: 4 << 20, operations: None };
            let cache = CacheSlot::default().open(&job, &settings, 0, false).unwrap();
            let (mut plain, mut caching) = (preparer(&job).unwrap(), preparer(&job).unwrap());
            caching.set_cache(cache);
            for epoch in 0..3 {
                let (mut expected, mut got) = (memory(&job), memory(&job));
                let of = plain.prepare(epoch, 0, &mut expected, &mut |_| true).unwrap();
                let prepared = caching.prepare(epoch, 0, &mut got, &mut |_| true).unwrap();
                let bytes = of.layout.bytes() as usize;
                assert_eq!(prepared.layout, of.layout);
                assert!(got[..bytes] == expected[..bytes], "epoch {epoch}");
                let hits = if epoch == 0 { 0 } else { SAMPLES as u32 };
                assert_eq!(prepared.stats.cached, hits);
            }
        }
    }
}

#[test]
fn a_sample_without_a_target_leaves_the_pictures_before_it_as_they_are() {
    let (_made, dataset) =
        TestDataset { misfit: Some(Misfit::Null), ..TestDataset::empty() }.written();
    let recipe = format!("{OPERATIONS}{TARGETS}");
    let job = job(&dataset, &recipe, &["image", "mask", "sample"], pad(1, 0.0));
    let skipping = Job { on_error: OnError::Always(Action::Skip), ..job };
    let first = First::of(skipping);
    assert_eq!(first.samples.len() as u64, SAMPLES - 1);
    let alone = first.alone();
    let axes = lengths(&first.axes("image"));
    for (at, tensor) in alone.iter().enumerate() {
        let expected = padded(&tensor.data, &lengths(&tensor.spec.axes()), &axes, &[0]);
        assert_eq!(first.column("image").value(at).unwrap(), expected);
    }
}
