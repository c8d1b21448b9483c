//! Epochs under every sampler: the host alone, one device, devices with parts of their own, several
//! epochs, resumed ones, and job files.

use crate::support::device::{Behaviour, FakeDevice};
use crate::support::{BatchCopy, config, consume, dataset_in_parts, sorted};
use meetpoint_format::sampler::{
    ClassBalanced, Expression, Filter, Indices, Repeated, Sampler, SamplerError, Sequential,
    Shuffled, Weighted, Weights,
};
use meetpoint_host::job::JobFile;
use meetpoint_host::verify::{Reference, Verdict, verify};
use meetpoint_host::{DeviceSource, Error, Loader, LoaderConfig, StopHandle};
use meetpoint_kernels::Cpu;
use meetpoint_prepare::Error as PrepareError;
use meetpoint_scheduler::{AnyStrategy, DeviceOnly, HostOnly, Level, Wrr};
use std::path::Path;
use std::slice::from_ref;
use std::time::Duration;

const SAMPLES: u32 = 41;

/// One of each sampler, some of them with repeats.
fn every_sampler() -> Vec<Sampler> {
    let weights: Vec<f64> = (0..SAMPLES).map(|n| f64::from(n % 5)).collect();
    let weighted = |replacement| Weighted {
        weights: Weights::Numbers(weights.clone().into()),
        replacement,
        length: None,
    };
    let indices: Vec<u64> = (0..60).map(|n| n * 7 % 30).collect();
    let expression = Expression::parse("label_name == 'odd' and label < 2 or key in ('4.jpg')");
    vec![
        Sequential.into(),
        Shuffled.into(),
        Indices { indices: indices.into(), shuffle: true }.into(),
        Filter { expression: expression.unwrap(), shuffle: true }.into(),
        weighted(true).into(),
        weighted(false).into(),
        ClassBalanced { column: "label".to_owned(), length: Some(50) }.into(),
        Repeated { repeats: 3, length: None }.into(),
    ]
}

fn with(dataset: &Path, sampler: &Sampler) -> LoaderConfig {
    LoaderConfig { sampler: sampler.clone(), verify_samples: true, ..config(dataset) }
}

fn epochs(config: LoaderConfig, count: u32) -> Vec<Vec<BatchCopy>> {
    let mut loader = Loader::open(config).unwrap();
    (0..count).map(|epoch| sorted(consume(loader.start_epoch(epoch).unwrap()).0)).collect()
}

#[test]
fn devices_give_the_batches_of_the_host_alone_under_every_sampler() {
    let folder = dataset_in_parts(SAMPLES, 5);
    for sampler in every_sampler() {
        for count in [1, 2] {
            let devices: Vec<FakeDevice> =
                (0..count).map(|_| FakeDevice::start(Behaviour::default())).collect();
            for strategy in [AnyStrategy::DeviceOnly(DeviceOnly), AnyStrategy::Wrr(Wrr)] {
                let mut config = with(folder.path(), &sampler);
                let source = |it: &FakeDevice| DeviceSource::Connect { socket: it.socket() };
                config.devices = devices.iter().map(source).collect();
                config.stall_timeout = Duration::from_secs(30);
                config.strategy = AnyStrategy::HostOnly(HostOnly);
                let expected = epochs(config.clone(), 2);
                config.strategy = strategy;
                let mut loader = Loader::open(config).unwrap();
                let mut runs = Vec::new();
                for (epoch, expected) in (0..).zip(&expected) {
                    let (seen, stats) = consume(loader.start_epoch(epoch).unwrap());
                    assert_eq!(&sorted(seen), expected, "{sampler}: {:?}", stats.events);
                    runs.push(stats);
                }
                let (job, stop) = (loader.job(), StopHandle::new());
                let engine = loader.config().engine;
                let reference = Reference::prepare(job, 0..2, engine, Cpu::Portable, &stop);
                for judged in verify(strategy, job, &runs, &reference.unwrap()) {
                    if let Verdict::Failed { place } = judged.verdict {
                        panic!("{sampler}: {:?}: {place}", judged.level);
                    }
                    let is_checked = judged.level == Level::C1 || judged.level == Level::C2;
                    let is_verified = matches!(judged.verdict, Verdict::Verified { .. });
                    assert!(is_verified || !is_checked, "{sampler}: {:?}", judged.verdict);
                }
            }
        }
    }
}

#[test]
fn an_epoch_resumes_in_the_middle_under_every_sampler() {
    let folder = dataset_in_parts(SAMPLES, 2);
    for sampler in every_sampler() {
        let whole = epochs(with(folder.path(), &sampler), 2).remove(1);
        let mut loader = Loader::open(with(folder.path(), &sampler)).unwrap();
        let (rest, _) = consume(loader.resume_epoch(1, from_ref(&(0..3)), None).unwrap());
        assert_eq!(rest, whole[3..], "{sampler}");
    }
}

#[test]
fn occurrences_of_a_sample_have_random_parameters_of_their_own() {
    let folder = dataset_in_parts(SAMPLES, 2);
    let sampler = Repeated { repeats: 2, length: Some(SAMPLES.into()) }.into();
    let seen = epochs(with(folder.path(), &sampler), 1).remove(0);
    for batch in seen.iter().filter(|batch| batch.samples.len() == 4) {
        assert_eq!(batch.samples[0], batch.samples[1]);
        let pictures: Vec<&[u8]> = batch.bytes.chunks_exact(batch.bytes.len() / 4).collect();
        assert_ne!(pictures[0], pictures[1]);
    }
    // A list in which no sample occurs twice gives each the bits that it has in a shuffled epoch.
    let list: Vec<u64> = (0..u64::from(SAMPLES)).rev().collect();
    let listed = Indices { indices: list.into(), shuffle: false }.into();
    let picture_of = |sampler: &Sampler, sample: u64| {
        let seen = epochs(with(folder.path(), sampler), 1).remove(0);
        let held = seen.iter().find_map(|batch| {
            let at = batch.samples.iter().position(|it| *it == sample)?;
            let bytes = batch.bytes.len() / batch.samples.len();
            Some(batch.bytes[at * bytes..(at + 1) * bytes].to_vec())
        });
        held.unwrap()
    };
    assert_eq!(picture_of(&listed, 7), picture_of(&Shuffled.into(), 7));
}

#[test]
fn samplers_that_do_not_fit_the_dataset_are_errors_of_the_loader() {
    let folder = dataset_in_parts(SAMPLES, 2);
    let refused = |sampler: Sampler| match Loader::open(with(folder.path(), &sampler)) {
        Err(Error::Prepare(PrepareError::Sampler(error))) => error,
        other => panic!("{sampler}: {:?}", other.err()),
    };
    let indices = Indices { indices: [3, 41].into(), shuffle: false };
    let expected = SamplerError::Index { position: 1, index: 41, samples: 41 };
    assert_eq!(refused(indices.into()), expected);
    let filter = |text: &str| {
        let expression = Expression::parse(text).unwrap();
        refused(Filter { expression, shuffle: true }.into())
    };
    assert!(matches!(filter("label == 9"), SamplerError::NothingSelected { samples: 41, .. }));
    assert!(matches!(filter("lable == 1"), SamplerError::UnknownColumn { at: Some(1), .. }));
    assert!(matches!(filter("key == 1"), SamplerError::Expression { at: 1, .. }));
    assert!(matches!(filter("label % 0 == 1"), SamplerError::Overflow { .. }));
}

const JOB: &str = "dataset = \"d\"\nbatch_size = 1\n[[recipe.operation]]\nname = \"decode\"\n\
                   [[recipe.operation]]\nname = \"center_crop\"\nsize = 8\n";

fn parse(text: &str) -> Result<JobFile, (Option<(usize, usize)>, String)> {
    let job = format!("{JOB}{text}");
    JobFile::parse(&job, Path::new("job.toml")).map_err(|error| {
        (
            error.place,
            format!(
                "{} ({})",
                error.problem,
                error.remedy.spelled(meetpoint_diagnose::Surface::CommandLine)
            ),
        )
    })
}

#[test]
fn jobs_name_their_sampler_and_its_options() {
    let text = "[sampler]\nname = \"weighted\"\nweights = [1, 0.5, 2e3]\nlength = 7\n";
    let numbers = Weights::Numbers([1.0, 0.5, 2000.0].into());
    let expected = Weighted { weights: numbers, replacement: true, length: Some(7) };
    assert_eq!(parse(text).unwrap().sampler, expected.into());
    let text = "[sampler]\nname = \"indices\"\nindices = [3, 1, 1]\nshuffle = true\n";
    let expected = Indices { indices: [3, 1, 1].into(), shuffle: true };
    assert_eq!(parse(text).unwrap().sampler, expected.into());
    assert_eq!(parse("").unwrap().sampler, Shuffled.into());
    // Keys of the file itself come before its tables.
    let first = |keys: &str| {
        JobFile::parse(&format!("{keys}{JOB}"), Path::new("job.toml")).map(|job| job.sampler)
    };
    assert_eq!(first("shuffle = false\n").unwrap(), Sequential.into());
    let repeated = Repeated { repeats: 3, length: None };
    assert_eq!(first("sampler = \"repeated\"\n").unwrap(), repeated.into());
    let both = first("shuffle = true\nsampler = \"repeated\"\n").unwrap_err();
    assert_eq!(both.place, Some((1, 11)));
}

#[test]
fn options_of_samplers_that_are_wrong_are_refused_where_they_stand() {
    let cases = [
        ("name = \"wieghted\"", (9, 8), "did you mean \"weighted\"?"),
        ("name = \"weighted\"\nweight = \"w\"", (10, 10), "did you mean \"weights\"?"),
        ("name = \"weighted\"\nweights = [1, \"2\"]", (10, 11), "a weight for each sample"),
        ("name = \"indices\"\nindices = [-1]", (10, 11), "counted from 0"),
        ("name = \"indices\"\nindices = []", (10, 11), "at least one sample"),
        ("name = \"repeated\"\nrepeats = 0", (10, 11), "from 1 to 65536"),
        ("name = \"filter\"\nwhere = \"label ==\"", (10, 9), "character 9"),
        ("name = \"filter\"", (8, 1), "an expression over columns"),
    ];
    for (text, place, words) in cases {
        let (at, error) = parse(&format!("[sampler]\n{text}\n")).unwrap_err();
        assert_eq!(at, Some(place), "{text}: {error}");
        assert!(error.contains(words), "{text}: {error}");
    }
}
