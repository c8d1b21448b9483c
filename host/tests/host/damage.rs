//! Damaged samples: the same batches on both ends, in every strategy, and exact counts.

use crate::support::device::{Behaviour, FakeDevice};
use crate::support::{BatchCopy, config, consume, dataset, pack, picture, sorted};
use meetpoint_format::replacement::candidates;
use meetpoint_host::stats::{DamageRecord, EpochStats, Event, EventKind};
use meetpoint_host::verify::{Reference, Verdict, verify};
use meetpoint_host::{Action, DamagePolicy, DeviceSource, Error, Loader, LoaderConfig, OnError};
use meetpoint_kernels::Cpu;
use meetpoint_prepare::Dataset;
use meetpoint_scheduler::{
    AnyStrategy, Auto, DeviceOnly, Goal, HostOnly, Mte, MteFeedback, Order, Split, Tail, Windowed,
    Wrr, WrrFrozen,
};
use meetpoint_storage::EngineKind;
use std::path::Path;
use std::slice::from_ref;
use std::time::Duration;

const SAMPLES: u32 = 41;
const DAMAGED: [u64; 5] = [0, 7, 8, 22, 40];

const STRATEGIES: [AnyStrategy; 8] = [
    AnyStrategy::DeviceOnly(DeviceOnly),
    AnyStrategy::Mte(Mte { split: Split::Fixed(4), tail: Tail::Descending }),
    AnyStrategy::Mte(Mte { split: Split::Optimal, tail: Tail::Ascending }),
    AnyStrategy::Wrr(Wrr),
    AnyStrategy::WrrFrozen(WrrFrozen),
    AnyStrategy::MteFeedback(MteFeedback),
    AnyStrategy::Windowed(Windowed { window: 4 }),
    AnyStrategy::Auto(Auto { goal: Goal::Throughput, order: Order::Any }),
];

/// A dataset in which a byte of some images changed after it was packed.
fn damaged() -> tempfile::TempDir {
    let folder = dataset(SAMPLES);
    let opened = Dataset::open(folder.path()).unwrap();
    for sample in DAMAGED {
        let location = opened.locate(sample).unwrap();
        let path = opened.part_path(location.part);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[usize::try_from(location.offset + location.bytes / 2).unwrap()] ^= 4;
        std::fs::write(path, bytes).unwrap();
    }
    folder
}

fn with(dataset: &Path, action: Action) -> LoaderConfig {
    LoaderConfig { on_error: OnError::Always(action), ..config(dataset) }
}

fn epochs_of(config: LoaderConfig, epochs: u32) -> Vec<(Vec<BatchCopy>, EpochStats)> {
    let mut loader = Loader::open(config).unwrap();
    (0..epochs).map(|epoch| consume(loader.start_epoch(epoch).unwrap())).collect()
}

fn met(stats: &EpochStats) -> Vec<u64> {
    let mut samples: Vec<u64> =
        stats.damage.records.iter().map(|record| record.damage.sample).collect();
    samples.sort_unstable();
    samples
}

#[test]
fn a_damaged_sample_ends_the_epoch_unless_it_is_said_otherwise() {
    let folder = damaged();
    let mut loader = Loader::open(config(folder.path())).unwrap();
    let mut epoch = loader.start_epoch(0).unwrap();
    let error = std::iter::from_fn(|| epoch.next_batch().transpose()).find_map(Result::err);
    assert!(error.unwrap().to_string().contains("checksum is"), "the sample is named");
}

#[test]
fn replacing_leaves_batches_full_and_is_the_same_in_every_strategy_at_either_end() {
    let folder = damaged();
    let alone = epochs_of(with(folder.path(), Action::Replace), 2);
    for (epoch, (seen, stats)) in (0..).zip(&alone) {
        assert_eq!(met(stats), DAMAGED);
        assert_eq!((stats.damage.replaced, stats.damage.left_out), (5, 0));
        assert_eq!(stats.samples, u64::from(SAMPLES));
        for DamageRecord { damage, batch, action, replaced_by } in &stats.damage.records {
            assert_eq!((*action, damage.epoch), (Action::Replace, epoch));
            let mut walk = candidates(11, epoch, damage.sample, u64::from(SAMPLES));
            assert_eq!(walk.find(|it| !DAMAGED.contains(it)), *replaced_by);
            let batch = &seen[*batch as usize];
            let position = batch.samples.iter().position(|it| Some(*it) == *replaced_by).unwrap();
            let label = i32::try_from(replaced_by.unwrap() % 2).unwrap();
            assert_eq!(batch.labels[position], Some(label), "the label is the replacement's");
        }
    }
    for strategy in STRATEGIES {
        for workers in [0, 2] {
            let device = FakeDevice::start(Behaviour::default());
            let mut config = with(folder.path(), Action::Replace);
            config.strategy = strategy;
            config.workers = workers;
            config.devices = vec![DeviceSource::Connect { socket: device.socket() }];
            config.stall_timeout = Duration::from_secs(30);
            let runs = epochs_of(config.clone(), 2);
            for ((seen, stats), (expected, _)) in runs.iter().zip(&alone) {
                assert_eq!(&sorted(seen.clone()), expected, "{strategy:?}");
                assert_eq!(met(stats), DAMAGED, "{strategy:?}, {workers} workers");
                // The device may be slow under load, but it was not given up because of the
                // samples.
                let is_given_up = |it: &&Event| matches!(it.kind, EventKind::DeviceGivenUp { .. });
                assert_eq!(stats.events.iter().find(is_given_up), None, "{strategy:?}");
            }
            let stats: Vec<EpochStats> = runs.into_iter().map(|(_, stats)| stats).collect();
            check_levels(&config, strategy, &stats);
        }
    }
}

fn check_levels(config: &LoaderConfig, strategy: AnyStrategy, runs: &[EpochStats]) {
    let alone = LoaderConfig { strategy: AnyStrategy::HostOnly(HostOnly), ..config.clone() };
    let loader = Loader::open(alone).unwrap();
    let (engine, stop) = (EngineKind::Threads, loader.stop_handle());
    let reference = Reference::prepare(loader.job(), 0..2, engine, Cpu::Portable, &stop).unwrap();
    for judged in verify(strategy, loader.job(), runs, &reference) {
        if let Verdict::Failed { place } = judged.verdict {
            panic!("{strategy:?} {:?}: {place}", judged.level);
        }
    }
}

#[test]
fn skipping_shortens_the_batch_and_nothing_else() {
    let folder = damaged();
    let whole = dataset(SAMPLES);
    let sound = epochs_of(config(whole.path()), 1).remove(0).0;
    let config = with(folder.path(), Action::Skip);
    let (seen, stats) = epochs_of(config.clone(), 1).remove(0);
    assert_eq!((stats.damage.left_out, stats.samples), (5, u64::from(SAMPLES) - 5));
    let bytes = 16 * 16 * 3;
    for (short, full) in seen.iter().zip(&sound) {
        let kept = full.samples.iter().zip(full.bytes.chunks_exact(bytes));
        let kept = kept.filter(|(sample, _)| !DAMAGED.contains(sample));
        let (samples, tensors): (Vec<u64>, Vec<&[u8]>) = kept.unzip();
        assert_eq!((&short.samples, &short.bytes), (&samples, &tensors.concat()));
        assert_eq!(short.shape[0] as usize, samples.len());
        assert_eq!(short.labels.len(), samples.len());
    }
    assert!(seen.iter().any(|batch| batch.samples.len() < 4));
    check_levels(&config, AnyStrategy::HostOnly(HostOnly), &[stats]);
    let (_, stats) = epochs_of(config, 1).remove(0);
    let last = &stats.events.last().unwrap().kind;
    assert!(matches!(last, EventKind::SamplesDamaged { replaced: 0, left_out: 5, .. }), "{last:?}");
}

#[test]
fn one_damaged_sample_above_the_limit_ends_the_epoch_also_after_resuming() {
    let folder = damaged();
    let mut config = with(folder.path(), Action::Replace);
    config.errors_max = Some(3);
    let mut loader = Loader::open(config.clone()).unwrap();
    let mut epoch = loader.start_epoch(0).unwrap();
    let mut batches = 0;
    let error = loop {
        match epoch.next_batch() {
            Ok(batch) => batches += u32::from(batch.is_some()),
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, Error::TooManyErrors { errors, limit: 3, .. } if *errors > 3));
    assert!(matches!(epoch.next_batch(), Err(Error::EpochFailed)));
    drop(epoch);
    let mut epoch = loader.start_epoch(0).unwrap();
    let half = batches / 2;
    for _ in 0..half {
        epoch.next_batch().unwrap().unwrap();
    }
    let errors = epoch.errors();
    drop(epoch);
    let mut again = Loader::open(config).unwrap();
    let mut epoch = again.resume_epoch(0, from_ref(&(0..half)), None).unwrap();
    epoch.count_errors_before(errors);
    for _ in half..batches {
        epoch.next_batch().unwrap().unwrap();
    }
    assert!(matches!(epoch.next_batch(), Err(Error::TooManyErrors { .. })));
}

#[test]
fn the_rest_of_an_epoch_has_the_replacements_of_the_whole_epoch() {
    let folder = damaged();
    for action in [Action::Replace, Action::Skip] {
        let (whole, _) = epochs_of(with(folder.path(), action), 1).remove(0);
        for at in [1, 5, 9] {
            let mut loader = Loader::open(with(folder.path(), action)).unwrap();
            let resumed = loader.resume_epoch(0, from_ref(&(0..at)), None).unwrap();
            assert_eq!(consume(resumed).0, whole[at as usize..], "{action:?} from {at}");
        }
    }
}

#[test]
fn a_damage_policy_is_called_and_its_refusal_is_the_error_of_the_sample() {
    let folder = damaged();
    let policy = DamagePolicy::new(|damage| match damage.sample {
        40 => Action::Raise,
        _ => Action::Skip,
    });
    let on_error = OnError::Ask(policy);
    let mut loader =
        Loader::open(LoaderConfig { on_error, workers: 2, ..config(folder.path()) }).unwrap();
    let mut epoch = loader.start_epoch(0).unwrap();
    let error = std::iter::from_fn(|| epoch.next_batch().transpose()).find_map(Result::err);
    assert!(error.unwrap().to_string().contains("40.jpg"));
}

#[test]
fn a_quarantine_file_has_every_damaged_sample_once_however_often_it_is_met() {
    let folder = damaged();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("damaged.jsonl");
    let config =
        LoaderConfig { quarantine: Some(path.clone()), ..with(folder.path(), Action::Replace) };
    let samples = || {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().filter_map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).ok()?;
            assert_eq!(line["dataset"], folder.path().display().to_string());
            assert!(line["key"].as_str().unwrap().ends_with(".jpg"));
            assert!(line["offset"].as_u64().unwrap() > 0);
            line["sample"].as_u64()
        });
        let mut samples: Vec<u64> = lines.collect();
        samples.sort_unstable();
        samples
    };
    epochs_of(config.clone(), 2);
    assert_eq!(samples(), DAMAGED);
    // The state after a process was killed while it wrote: the last line is incomplete.
    let mut text = std::fs::read(&path).unwrap();
    text.truncate(text.len() - 20);
    std::fs::write(&path, text).unwrap();
    epochs_of(config.clone(), 1);
    assert_eq!(samples(), DAMAGED, "the broken line is passed over, and its sample added again");
    epochs_of(config, 1);
    assert_eq!(samples(), DAMAGED);
    let unwritable = Some(place.path().to_path_buf());
    let refused =
        Loader::open(LoaderConfig { quarantine: unwritable, ..with(folder.path(), Action::Skip) });
    assert!(matches!(refused.err(), Some(Error::Quarantine { .. })));
}

/// A small progressive file whose header declares a picture so large that its coefficients alone
/// take 96 MiB.
fn bomb() -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = jpeg_encoder::Encoder::new(&mut file, 90);
    encoder.set_progressive(true);
    encoder.encode(&[7; 16 * 16 * 3], 16, 16, jpeg_encoder::ColorType::Rgb).unwrap();
    let frame = file.windows(2).position(|two| two == [0xff, 0xc2]).unwrap();
    file[frame + 5..frame + 9].copy_from_slice(&[0x10, 0, 0x10, 0]);
    file
}

#[test]
fn a_picture_that_the_budget_cannot_decode_ends_the_epoch_whatever_is_done_about_damage() {
    let folder = tempfile::tempdir().unwrap();
    let mut images: Vec<Vec<u8>> = (0..8).map(picture).collect();
    images[5] = bomb();
    pack(folder.path(), images);
    for (workers, budget) in [(0, 64 << 20), (2, 64 << 20), (2, 256 << 20)] {
        let mut config = with(folder.path(), Action::Skip);
        (config.workers, config.memory_budget_bytes) = (workers, budget);
        let mut loader = Loader::open(config).unwrap();
        let mut epoch = loader.start_epoch(0).unwrap();
        let outcome = loop {
            match epoch.next_batch() {
                Ok(Some(_)) => {}
                Ok(None) => break Ok(met(&epoch.finish())),
                Err(error) => break Err(error),
            }
        };
        match outcome {
            // There is enough memory to detect that its data are truncated.
            Ok(damaged) => assert_eq!((budget, damaged), (256 << 20, vec![5])),
            Err(Error::Prepare(meetpoint_prepare::Error::DecodeMemory { source, .. })) => {
                assert_eq!((budget, source.limit), (64 << 20, 64 << 20));
                assert!(source.needed > source.limit);
            }
            Err(other) => panic!("{other}"),
        }
    }
}
