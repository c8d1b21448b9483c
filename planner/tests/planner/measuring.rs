//! Profiles of generated datasets: what is measured, checked, refused and removed.

use crate::recipe;
use jpeg_encoder::{ColorType, Encoder};
use meetpoint_datasets::{PackOptions, pack};
use meetpoint_planner::profile::{Options, Profile, Samples};
use meetpoint_planner::{Codec, Error, Form, Goal, Settings, enumerate, profile};
use meetpoint_prepare::Dataset;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Packs some JPEGs of different sizes.
pub(crate) fn dataset(folder: &Path, samples: u16) -> Arc<Dataset> {
    dataset_of(folder, samples, false, &PackOptions::default())
}

/// The same, baseline or progressive.
pub(crate) fn dataset_of(
    folder: &Path,
    samples: u16,
    is_progressive: bool,
    options: &PackOptions,
) -> Arc<Dataset> {
    let from = folder.join("pictures");
    std::fs::create_dir(&from).unwrap();
    for sample in 0..samples {
        let (width, height) = (40 + 3 * sample, 30 + 5 * (sample % 7));
        let pixels = (0..usize::from(width) * usize::from(height) * 3)
            .map(|at| ((at * 7 + at / 97 * usize::from(sample + 1)) % 251) as u8)
            .collect::<Vec<_>>();
        let file = from.join(format!("{sample}.jpg"));
        let mut encoder = Encoder::new_file(&file, 90).unwrap();
        encoder.set_progressive(is_progressive);
        encoder.encode(&pixels, width, height, ColorType::Rgb).unwrap();
    }
    let to = folder.join("pictures.set");
    pack(&from, &to, options, &mut |_| ()).unwrap();
    Arc::new(Dataset::open(&to).unwrap())
}

pub(crate) fn options(folder: &Path) -> Options {
    Options {
        settings: Settings { codecs: Codec::ALL.to_vec(), threads: vec![1, 2] },
        runs: 2,
        samples: Samples::Exactly(5),
        seed: 11,
        gpu: None,
        folder: folder.to_path_buf(),
        goal: Goal {
            epochs: 3,
            storage_limit: None,
            memory_limit: None,
            confidence: 0.9,
            allows_loss: false,
        },
    }
}

pub(crate) const OPERATIONS: &[&str] = &[
    "decode",
    "resize size = 24",
    "center_crop size = 20",
    "random_horizontal_flip",
    "to_dtype dtype = \"float32\";scale = true",
];

pub(crate) fn measure(
    dataset: &Arc<Dataset>,
    operations: &[&str],
    options: &Options,
) -> Result<Profile, Error> {
    let stop = AtomicBool::new(false);
    profile(dataset, &recipe(operations), options, &stop, &mut |_| ())
}

pub(crate) fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn every_strategy_is_measured_checked_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = dataset(folder.path(), 8);
    let temporary = tempfile::tempdir().unwrap();
    let options = options(temporary.path());
    let found = measure(&dataset, OPERATIONS, &options).unwrap();
    let strategies = enumerate(&found.points.legal, &options.settings, None);
    let measured: Vec<_> = found.results.iter().map(|it| it.strategy()).collect();
    assert_eq!(measured, strategies);
    assert_eq!(found.points.refused.len(), 2);
    for it in &found.results {
        assert_eq!((it.samples, it.runs, it.dataset_samples), (5, 2, 8));
        assert!(it.cold_per_second > 0.0 && it.per_second > 0.0 && it.cpu_seconds > 0.0, "{it:?}");
        let is_free = it.form == Form::Files;
        assert_eq!(it.offline_seconds == 0.0, is_free, "{it:?}");
        let sum = it.process_seconds + it.save_seconds;
        assert!((sum - it.offline_seconds).abs() <= 1e-9 * it.offline_seconds, "{it:?}");
    }
    // A crop of 20 x 20 pixels, whatever the picture.
    let crop = |codec| {
        let is = |it: &&meetpoint_planner::Measured| {
            (it.form, it.operations, it.codec) == (Form::Prepared, 3, codec)
        };
        found.results.iter().find(is).unwrap()
    };
    let plain = crop(Codec::None);
    assert_eq!((plain.stored_bytes, plain.stored_error), (8.0 * 1200.0, 0.0));
    assert_eq!(crop(Codec::Zstd).cached_bytes, plain.stored_bytes);
    let best = &found.results[found.decision.best().index];
    assert!(best.form.is_exact());
    assert!(is_empty(temporary.path()));
}

#[test]
fn a_recipe_without_random_operations_is_measured_to_its_tensor() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = dataset(folder.path(), 4);
    let temporary = tempfile::tempdir().unwrap();
    let settings = Settings { codecs: vec![Codec::Lz4], threads: vec![2] };
    let samples = Samples::Widening;
    let options = Options { settings, samples, runs: 1, ..options(temporary.path()) };
    let operations = [
        "decode orient = true",
        "grayscale",
        "resize size = [9, 11]",
        "to_dtype dtype = \"float16\"",
        "normalize mean = [100.0];std = [50.0]",
        "layout layout = \"NCHW\"",
    ];
    let found = measure(&dataset, &operations, &options).unwrap();
    // All of the dataset, so that the sample adds no error; one run shows no spread.
    assert_eq!((found.samples, found.rounds, found.decision.is_certain), (4, 1, false));
    assert!(found.results.iter().all(|it| it.sampling_error == 0.0));
    assert_eq!(found.points.legal.last().unwrap().to_string(), "6-layout");
    assert!(found.points.refused.is_empty());
}

#[test]
fn a_stop_ends_a_profile_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = dataset(folder.path(), 6);
    let temporary = tempfile::tempdir().unwrap();
    let (stop, mut steps) = (AtomicBool::new(false), 0);
    let found = profile(
        &dataset,
        &recipe(OPERATIONS),
        &options(temporary.path()),
        &stop,
        &mut |progress| {
            steps += 1;
            stop.store(progress.done == 3, Ordering::Relaxed);
        },
    );
    assert!(matches!(found, Err(Error::Stopped)), "{found:?}");
    assert_eq!(steps, 4);
    assert!(is_empty(temporary.path()));
}

#[test]
fn options_outside_of_their_ranges_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = dataset(folder.path(), 6);
    let temporary = tempfile::tempdir().unwrap();
    let good = options(temporary.path());
    let refused = |options: &Options| measure(&dataset, OPERATIONS, options).unwrap_err();
    for asked in [0, 1, 7] {
        let error = refused(&Options { samples: Samples::Exactly(asked), ..good.clone() });
        assert!(matches!(error, Error::Samples { least: 2, most: 6, .. }), "{error}");
    }
    let error = refused(&Options { runs: 0, ..good.clone() });
    assert!(matches!(error, Error::Number { name: "runs", value: 0, .. }), "{error}");
    for (codecs, threads) in [(vec![], vec![1]), (vec![Codec::None], vec![])] {
        let settings = Settings { codecs, threads };
        let error = refused(&Options { settings, ..good.clone() });
        assert!(matches!(error, Error::NoSettings { .. }), "{error}");
    }
    let settings = Settings { codecs: vec![Codec::None], threads: vec![0] };
    let error = refused(&Options { settings, ..good.clone() });
    assert!(matches!(error, Error::Number { name: "threads", .. }), "{error}");
    let error = refused(&Options { folder: temporary.path().join("absent"), ..good });
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert!(is_empty(temporary.path()));
}
