//! Epochs of the host alone: the same bytes with any number of threads, and every way to stop
//! early.
use crate::support::{config, consume, dataset, pack, picture, recipe, sorted};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_format::batching::{BatchOptions, Batching};
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::{Sampling, Sequential};
use meetpoint_host::Notice;
use meetpoint_host::stats::{EventKind, Preparer};
use meetpoint_host::verify::{Fact, Reference, Verdict, verify};
use meetpoint_host::{Accelerator, DeviceSource, Emulated, Error, Loader, Null, StopHandle};
use meetpoint_kernels::Cpu;
use meetpoint_scheduler::{AnyStrategy, HostOnly, Level, Mte, Split, Tail, Wrr};
use meetpoint_storage::EngineKind;
use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn any_number_of_workers_gives_the_same_batches_in_the_same_order() {
    let folder = dataset(23);
    let mut seen = Vec::new();
    for workers in [0, 1, 3] {
        let mut config = config(folder.path());
        config.workers = workers;
        let mut loader = Loader::open(config).unwrap();
        assert_eq!(loader.batches_per_epoch(), 6);
        let (first, stats) = consume(loader.start_epoch(0).unwrap());
        let (second, _) = consume(loader.start_epoch(1).unwrap());
        assert!(stats.is_complete && stats.events.is_empty(), "{:?}", stats.events);
        assert_eq!((stats.samples, stats.schedule.host_batches), (23, 6));
        assert!(first.iter().map(|batch| batch.index).eq(0..6));
        assert_ne!(first[0].bytes, second[0].bytes, "another epoch, other draws");
        seen.push((first, second));
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0], seen[2]);
}

#[test]
fn a_batch_holds_the_samples_and_labels_of_its_position_in_the_order() {
    let folder = dataset(10);
    let mut loader = Loader::open(config(folder.path())).unwrap();
    let (seen, _) = consume(loader.start_epoch(3).unwrap());
    let options = BatchOptions { batch_size: 4, drop_last: false, seed: 11 };
    let batching = Batching::alone(options, Sampling::shuffled(10));
    let order = batching.order(3);
    for batch in &seen {
        assert!(batching.samples_of(&order, batch.index).eq(batch.samples.iter().copied()));
        let labels = batch.samples.iter().map(|sample| Some((sample % 2) as i32));
        assert!(labels.eq(batch.labels.iter().copied()));
        assert_eq!(batch.shape, [batch.samples.len() as u32, 16, 16, 3]);
        assert_eq!(batch.bytes.len(), batch.samples.len() * 16 * 16 * 3);
    }
    assert_eq!(seen.last().unwrap().samples.len(), 2, "the last is short");
}

#[test]
fn a_short_last_batch_is_left_out_on_request() {
    let folder = dataset(10);
    let mut config = config(folder.path());
    config.drop_last = true;
    let mut loader = Loader::open(config).unwrap();
    let (seen, stats) = consume(loader.start_epoch(0).unwrap());
    assert_eq!((seen.len(), stats.samples), (2, 8));
}

#[test]
fn an_epoch_that_is_dropped_early_does_not_disturb_the_next() {
    let folder = dataset(40);
    for workers in [0, 2] {
        let mut config = config(folder.path());
        config.workers = workers;
        let mut loader = Loader::open(config).unwrap();
        let (whole, _) = consume(loader.start_epoch(0).unwrap());
        for consumed in 0..3 {
            let mut epoch = loader.start_epoch(0).unwrap();
            for _ in 0..consumed {
                epoch.next_batch().unwrap().unwrap();
            }
            if consumed == 2 {
                let stats = epoch.finish();
                assert!(!stats.is_complete);
                assert_eq!(stats.records.len(), 2);
            }
        }
        let (again, _) = consume(loader.start_epoch(0).unwrap());
        assert_eq!(whole, again);
    }
}

#[test]
fn an_epoch_that_is_resumed_gives_what_was_left_in_its_order() {
    let folder = dataset(40);
    for workers in [0, 2] {
        let mut config = config(folder.path());
        config.workers = workers;
        let mut loader = Loader::open(config).unwrap();
        let (whole, _) = consume(loader.start_epoch(5).unwrap());
        for at in [1, 4, 9] {
            let resumed = loader.resume_epoch(5, from_ref(&(0..at)), None);
            let (rest, stats) = consume(resumed.unwrap());
            assert_eq!(rest, whole[at as usize..]);
            assert!(stats.is_complete && stats.displacement.is_none());
        }
        let gaps = [2..3, 0..1, 7..10];
        let (rest, _) = consume(loader.resume_epoch(5, &gaps, None).unwrap());
        assert!(rest.iter().map(|batch| batch.index).eq([1, 3, 4, 5, 6]));
        let (again, _) = consume(loader.start_epoch(5).unwrap());
        assert_eq!(again, whole, "the next epoch is whole");
    }
}

#[test]
fn epochs_that_cannot_resume_are_refused() {
    let folder = dataset(40);
    let mut loader = Loader::open(config(folder.path())).unwrap();
    for (consumed, words) in [
        (0..10, "all of its batches were consumed"),
        (8..11, "not have the batches"),
        (5..5, "not have the batches"),
    ] {
        let error = loader.resume_epoch(0, from_ref(&consumed), None).err().unwrap();
        let error = error.to_string();
        assert!(error.contains(words), "{error}");
    }
    let mut chosen = config(folder.path());
    chosen.choose_by_saving = true;
    let mut loader = Loader::open(chosen).unwrap();
    let error = loader.resume_epoch(0, from_ref(&(0..1)), None).err().unwrap();
    assert!(matches!(error, Error::Resume { epoch: 0, .. }), "{error}");
}

#[test]
fn retained_batches_are_never_overwritten_and_outlive_the_loader() {
    let folder = dataset(40);
    let mut config = config(folder.path());
    config.workers = 1;
    let mut loader = Loader::open(config.clone()).unwrap();
    let (expected, _) = consume(loader.start_epoch(0).unwrap());
    let mut epoch = loader.start_epoch(0).unwrap();
    let mut kept = Vec::new();
    while let Some(batch) = epoch.next_batch().unwrap() {
        kept.push(batch);
    }
    drop(epoch);
    consume(loader.start_epoch(1).unwrap());
    drop(loader);
    std::thread::spawn(move || {
        for (batch, expected) in kept.iter().zip(&expected) {
            assert_eq!(batch.bytes(), expected.bytes);
        }
    })
    .join()
    .unwrap();
}

#[test]
fn a_consumer_that_retains_every_batch_gets_an_error_and_no_hang() {
    let folder = dataset(40);
    for workers in [0, 2] {
        let mut config = config(folder.path());
        config.workers = workers;
        config.memory_budget_bytes = 8 << 20;
        // All of it is for batches.
        config.small_samples_bytes = Some(0);
        config.place_timeout = Duration::from_millis(50);
        let mut loader = Loader::open(config).unwrap();
        let mut epoch = loader.start_epoch(0).unwrap();
        let mut kept = Vec::new();
        let error = loop {
            match epoch.next_batch() {
                Ok(batch) => kept.push(batch.expect("memory ends before the epoch")),
                Err(error) => break error,
            }
        };
        let Error::AllBatchesKept { kept: retained, places: 4, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(retained, kept.len());
        assert!(matches!(epoch.next_batch(), Err(Error::EpochFailed)));
        drop((epoch, kept));
        assert_eq!(consume(loader.start_epoch(0).unwrap()).0.len(), 10);
    }
}

#[test]
fn a_stop_ends_waits_with_interrupted_from_any_thread() {
    let folder = dataset(40);
    for workers in [0, 1] {
        let mut config = config(folder.path());
        config.workers = workers;
        let mut loader = Loader::open(config).unwrap();
        let stop = loader.stop_handle();
        let mut epoch = loader.start_epoch(0).unwrap();
        epoch.next_batch().unwrap().unwrap();
        std::thread::spawn(move || stop.stop()).join().unwrap();
        assert!(matches!(epoch.next_batch(), Err(Error::Interrupted)));
        drop(epoch);
        assert!(matches!(loader.start_epoch(1), Err(Error::Interrupted)));
    }
}

#[test]
fn a_damaged_sample_ends_the_epoch_and_is_named() {
    for workers in [0, 2] {
        let folder = tempfile::tempdir().unwrap();
        let mut images: Vec<Vec<u8>> = (0..12).map(picture).collect();
        images[7] = b"no picture at all".to_vec();
        pack(folder.path(), images);
        let mut config = config(folder.path());
        config.workers = workers;
        let mut loader = Loader::open(config).unwrap();
        let mut epoch = loader.start_epoch(0).unwrap();
        let error = loop {
            match epoch.next_batch() {
                Ok(batch) => assert!(batch.is_some(), "the epoch cannot end well"),
                Err(error) => break error.to_string(),
            }
        };
        for word in ["part-00001.arrow", "row 1", "key 7.jpg"] {
            assert!(error.contains(word), "{word} is not in: {error}");
        }
    }
}

#[test]
fn invalid_numbers_are_refused_with_their_remedy() {
    let folder = dataset(6);
    let refused = |change: &dyn Fn(&mut meetpoint_host::LoaderConfig)| {
        let mut config = config(folder.path());
        change(&mut config);
        Loader::open(config).unwrap_err().in_full(Surface::CommandLine)
    };
    let error = refused(&|config| config.batch_size = 0);
    assert!(error.contains("batch_size is 0"), "{error}");
    let error = refused(&|config| config.batch_size = 7);
    assert!(error.contains("set batch_size to 6 or less"), "{error}");
    let error = refused(&|config| config.memory_budget_bytes = 3 << 20);
    assert!(error.contains("set memory_budget to 4 MiB or more"), "{error}");
    let error = refused(&|config| config.strategy = AnyStrategy::Wrr(Wrr));
    assert!(error.contains("strategy wrr needs a device"), "{error}");
    let error = refused(&|config| {
        config.strategy = AnyStrategy::Mte(Mte { split: Split::Fixed(99), tail: Tail::Descending });
        config.devices = vec![DeviceSource::Connect { socket: "/no/such/socket".into() }];
    });
    assert!(error.contains("mte.split is 99, more than the 2 batches"), "{error}");
    let error = refused(&|config| config.prefetch = 0);
    assert!(error.contains("prefetch is 0"), "{error}");
    let error = refused(&|config| config.host_cores = Some(vec![1023]));
    assert!(error.contains("1023"), "{error}");
    let error = refused(&|config| config.dataset = "/no/such/set".into());
    assert!(error.contains("/no/such/set"), "{error}");
    let text = "[[operation]]\nname = \"decode\"\n";
    let shapeless = Arc::new(Recipe::from_toml(text).unwrap());
    let error = refused(&|config| config.recipe = Arc::clone(&shapeless));
    assert!(error.contains("no fixed shape"), "{error}");
}

#[test]
fn a_small_budget_prepares_less_ahead_and_says_so() {
    let folder = dataset(40);
    let mut config = config(folder.path());
    config.workers = 3;
    config.memory_budget_bytes = 8 << 20;
    let mut loader = Loader::open(config).unwrap();
    assert!(
        loader.notices().iter().any(|it| matches!(it, Notice::PreparedAhead { asked: 6, .. })),
        "{:?}",
        loader.notices()
    );
    assert_eq!(consume(loader.start_epoch(0).unwrap()).0.len(), 10);
}

#[test]
fn records_contain_the_life_of_every_batch_in_order() {
    let folder = dataset(24);
    for workers in [0, 2] {
        let mut config = config(folder.path());
        config.workers = workers;
        let mut loader = Loader::open(config).unwrap();
        let mut accelerator = Emulated::new(Duration::from_millis(1), StopHandle::new());
        let mut epoch = loader.start_epoch(0).unwrap();
        while let Some(batch) = epoch.next_batch().unwrap() {
            accelerator.step(&batch);
            Null.step(&batch);
        }
        let stats = epoch.finish();
        assert_eq!(stats.records.len(), 6);
        for record in &stats.records {
            assert_eq!(record.source, Preparer::Host);
            assert!(record.prepare_start_ns <= record.prepare_end_ns);
            assert!(record.prepare_end_ns <= record.ready_ns);
            assert!(record.ready_ns <= record.consume_ns);
            assert!(record.consume_ns + 1_000_000 <= record.step_end_ns);
            assert!(record.step_end_ns <= stats.duration_ns);
        }
        for quantiles in [stats.wait, stats.prepare, stats.read, stats.step] {
            assert_eq!(quantiles.count, 6);
        }
        assert!(stats.schedule.t_c_ns > 0);
        assert!(stats.host_bytes_read > 0 && stats.host_peak_resident_bytes > 0);
    }
}

#[test]
fn what_was_consumed_is_verified_against_an_independent_preparation() {
    let folder = dataset(23);
    let mut loader = Loader::open(config(folder.path())).unwrap();
    let runs: Vec<_> = (0..2).map(|epoch| consume(loader.start_epoch(epoch).unwrap()).1).collect();
    let stop = StopHandle::new();
    let job = loader.job().clone();
    let portable =
        Reference::prepare(&job, 0..2, EngineKind::Threads, Cpu::Portable, &stop).unwrap();
    assert_eq!(portable.len(), 46);
    let judged = |runs: &[_], reference: &Reference, level| {
        let verdicts = verify(AnyStrategy::HostOnly(HostOnly), &job, runs, reference);
        verdicts.into_iter().find(|it| it.level == level).unwrap().verdict
    };
    for level in [Level::C0, Level::C1, Level::C2, Level::C3, Level::C4, Level::C6] {
        let verdict = judged(&runs, &portable, level);
        assert!(matches!(verdict, Verdict::Verified { .. }), "{level:?}: {verdict:?}");
    }
    assert!(matches!(judged(&runs, &portable, Level::C5), Verdict::NotChecked { .. }));
    // Verification fails for a run with a changed order or changed content.
    let mut damaged = runs.clone();
    damaged[1].checks[2].crc32c[1] ^= 1;
    let Verdict::Failed { place } = judged(&damaged, &portable, Level::C2) else { panic!() };
    assert_eq!(place.epoch, Some(1));
    assert!(matches!(place.fact, Fact::OtherTensor { batch: 2, row: 1, .. }), "{place}");
    let mut swapped = runs.clone();
    swapped[0].records.swap(1, 2);
    assert!(matches!(judged(&swapped, &portable, Level::C4), Verdict::Failed { .. }));
    assert!(matches!(judged(&swapped, &portable, Level::C0), Verdict::Verified { .. }));
    let mut twice = runs.clone();
    twice[0].records[3].batch = 1;
    assert!(matches!(judged(&twice, &portable, Level::C0), Verdict::Failed { .. }));
    let mut elsewhere = runs.clone();
    elsewhere[0].checks[0].samples.swap(0, 1);
    assert!(matches!(judged(&elsewhere, &portable, Level::C1), Verdict::Failed { .. }));
    let own = Reference::of_host_only(loader.job(), &runs[..1]);
    assert!(matches!(judged(&runs, &own, Level::C2), Verdict::NotChecked { .. }));
}

#[test]
fn an_interrupted_reference_is_no_reference() {
    let folder = dataset(8);
    let loader = Loader::open(config(folder.path())).unwrap();
    let stop = StopHandle::new();
    stop.stop();
    let reference =
        Reference::prepare(loader.job(), 0..1, EngineKind::Threads, Cpu::Portable, &stop);
    assert!(matches!(reference, Err(Error::Interrupted)));
}

#[test]
fn the_order_is_the_one_of_the_seed() {
    let folder = dataset(16);
    let mut config = config(folder.path());
    config.sampler = Sequential.into();
    config.recipe = recipe();
    let (seen, _) = consume(Loader::open(config).unwrap().start_epoch(0).unwrap());
    let samples: Vec<u64> = sorted(seen).iter().flat_map(|batch| batch.samples.clone()).collect();
    assert!(samples.into_iter().eq(0..16));
}

#[test]
fn damaged_samples_that_are_filled_in_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut images: Vec<Vec<u8>> = (0..8).map(picture).collect();
    for damaged in [2, 5] {
        let bytes = images[damaged].len();
        images[damaged].truncate(bytes - 60);
    }
    pack(folder.path(), images);
    let mut config = config(folder.path());
    let strict = Loader::open(config.clone()).unwrap().start_epoch(0).unwrap().next_batch();
    let text = "[[operation]]\nname = \"decode\"\non_error = \"lenient\"\n\
                [[operation]]\nname = \"resize\"\nsize = [16, 16]\n";
    config.recipe = Arc::new(Recipe::from_toml(text).unwrap());
    let mut loader = Loader::open(config).unwrap();
    let (seen, stats) = consume(loader.start_epoch(0).unwrap());
    assert_eq!(seen.len(), 2);
    let events: Vec<&EventKind> = stats.events.iter().map(|event| &event.kind).collect();
    assert_eq!(events, [&EventKind::SamplesFilledIn { samples: 2, has_devices: false }]);
    assert!(strict.is_err(), "without the key it is an error");
}
