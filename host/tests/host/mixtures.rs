//! Several datasets in one loader: served as one, mixed, at both ends, resumed, and refused.

use crate::support::device::{Behaviour, FakeDevice};
use crate::support::{BatchCopy, config, consume, dataset_in_parts, pack_with, picture, sorted};
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use meetpoint_format::sampler::{Mixture, Sampler, SamplerError, Sequential, Shuffled, Stop};
use meetpoint_host::job::JobFile;
use meetpoint_host::{DeviceSource, Error, Loader, LoaderConfig, StopHandle};
use meetpoint_prepare::Error as PrepareError;
use meetpoint_scheduler::{AnyStrategy, DeviceOnly, HostOnly, StrategyName, Wrr};
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

fn with(datasets: &[&Path], sampler: Sampler) -> LoaderConfig {
    let paths: Vec<PathBuf> = datasets.iter().map(|path| path.to_path_buf()).collect();
    LoaderConfig { dataset: paths.into(), sampler, ..config(datasets[0]) }
}

fn mixture(weights: &[f64], stop: Stop) -> Sampler {
    Mixture { weights: weights.into(), stop, shuffle: true }.into()
}

fn epochs(config: LoaderConfig, count: u32) -> Vec<Vec<BatchCopy>> {
    let mut loader = Loader::open(config).unwrap();
    (0..count).map(|epoch| sorted(consume(loader.start_epoch(epoch).unwrap()).0)).collect()
}

#[test]
fn samples_of_several_datasets_follow_one_another() {
    let (first, second) = (dataset_in_parts(7, 2), dataset_in_parts(12, 3));
    let mut config = with(&[first.path(), second.path()], Sequential.into());
    config.columns = vec!["sample".to_owned(), "label".to_owned(), "key".to_owned()].into();
    let seen = epochs(config.clone(), 1).remove(0);
    let samples: Vec<u64> = seen.iter().flat_map(|batch| batch.samples.clone()).collect();
    assert_eq!(samples, (0..19).collect::<Vec<_>>());
    let keys: Vec<Vec<u8>> = seen.iter().flat_map(|batch| batch.columns[2].1.clone()).collect();
    let alone = |path: &Path| {
        let config = LoaderConfig { dataset: path.into(), ..config.clone() };
        let seen = epochs(config, 1).remove(0);
        seen.into_iter().flat_map(|batch| batch.columns[2].1.clone()).collect::<Vec<_>>()
    };
    assert_eq!(keys, [alone(first.path()), alone(second.path())].concat());
}

#[test]
fn devices_give_the_batches_of_the_host_alone_of_several_datasets() {
    let (first, second) = (dataset_in_parts(9, 2), dataset_in_parts(20, 3));
    let datasets = [first.path(), second.path()];
    let samplers = [
        Shuffled.into(),
        mixture(&[1.0, 1.0], Stop::FirstExhausted),
        mixture(&[1.0, 1.0], Stop::AllExhausted),
        mixture(&[1.0, 3.0], Stop::Size(31)),
    ];
    for sampler in samplers {
        for count in [1, 2] {
            let devices: Vec<FakeDevice> =
                (0..count).map(|_| FakeDevice::start(Behaviour::default())).collect();
            for strategy in [AnyStrategy::DeviceOnly(DeviceOnly), AnyStrategy::Wrr(Wrr)] {
                let mut config = with(&datasets, sampler.clone());
                let source = |it: &FakeDevice| DeviceSource::Connect { socket: it.socket() };
                config.devices = devices.iter().map(source).collect();
                config.stall_timeout = Duration::from_secs(30);
                config.strategy = AnyStrategy::HostOnly(HostOnly);
                let expected = epochs(config.clone(), 2);
                config.strategy = strategy;
                assert_eq!(epochs(config, 2), expected, "{sampler}, {count} devices");
            }
        }
    }
}

#[test]
fn a_mixture_resumes_in_the_middle_and_gives_occurrences_their_own_random_parameters() {
    let (first, second) = (dataset_in_parts(3, 2), dataset_in_parts(20, 3));
    let config = with(&[first.path(), second.path()], mixture(&[1.0, 1.0], Stop::AllExhausted));
    let whole = epochs(config.clone(), 2).remove(1);
    let mut loader = Loader::open(config).unwrap();
    let (rest, _) = consume(loader.resume_epoch(1, from_ref(&(0..3)), None).unwrap());
    assert_eq!(rest, whole[3..]);
    let pictures: Vec<&[u8]> = whole
        .iter()
        .flat_map(|batch| {
            let bytes = batch.bytes.len() / batch.samples.len();
            batch.samples.iter().zip(batch.bytes.chunks_exact(bytes))
        })
        .filter(|(sample, _)| **sample == 0)
        .map(|(_, bytes)| bytes)
        .collect();
    assert!(pictures.len() >= 6 && pictures.windows(2).any(|pair| pair[0] != pair[1]));
}

#[test]
fn datasets_whose_columns_differ_are_refused_with_both_types() {
    let folders: Vec<tempfile::TempDir> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let columns: [(&str, ArrayRef); 3] = [
        ("width", Arc::new(Int32Array::from_iter_values(0..4))),
        ("width", Arc::new(Int64Array::from_iter_values(0..4))),
        ("height", Arc::new(Int32Array::from_iter_values(0..4))),
    ];
    for (folder, column) in folders.iter().zip(columns) {
        let further = Arc::new(RecordBatch::try_from_iter([column]).unwrap());
        pack_with(folder.path(), (0..4).map(picture).collect(), 1, Some(&further));
    }
    let paths: Vec<&Path> = folders.iter().map(tempfile::TempDir::path).collect();
    let refused =
        |other: &Path| match Loader::open(with(&[paths[0], other], Shuffled.into())).map(|_| ()) {
            Err(Error::Prepare(PrepareError::ColumnsDiffer {
                path,
                first,
                column,
                found,
                expected,
            })) => {
                assert_eq!((path.as_path(), first.as_path()), (other, paths[0]));
                (column, found, expected)
            }
            other => panic!("{other:?}"),
        };
    let (column, found, expected) = refused(paths[1]);
    assert_eq!(&*column, "width");
    assert!(found.contains("Int64") && expected.contains("Int32"), "{found}; {expected}");
    let (column, found, _) = refused(paths[2]);
    assert!(&*column == "width" && found.contains("height"), "{found}");
    let plain = dataset_in_parts(4, 1);
    assert_eq!(&*refused(plain.path()).1, "absent");
    let alone = with(&[paths[0]], mixture(&[1.0, 1.0], Stop::FirstExhausted));
    assert!(matches!(
        Loader::open(alone),
        Err(Error::Prepare(PrepareError::Sampler(SamplerError::DatasetWeights {
            weights: 2,
            datasets: 1
        })))
    ));
}

#[test]
fn a_job_names_several_datasets_and_mixes_them() {
    let text = |dataset: &str, sampler: &str| {
        format!(
            "dataset = {dataset}\nbatch_size = 1\n[[recipe.operation]]\nname = \"decode\"\n\
             [[recipe.operation]]\nname = \"center_crop\"\nsize = 8\n\
             [sampler]\nname = \"mixture\"\n{sampler}"
        )
    };
    let parse = |text: &str| JobFile::parse(text, Path::new("jobs/job.toml"));
    let job = parse(&text("[\"a\", \"/b\"]", "weights = [2, 1.5]\nstop = \"all_exhausted\""));
    let job = job.unwrap();
    assert_eq!(job.dataset, vec![PathBuf::from("jobs/a"), PathBuf::from("/b")].into());
    assert_eq!(job.sampler, mixture(&[2.0, 1.5], Stop::AllExhausted));
    let config = job.loader_config(StrategyName::HostOnly, Vec::new(), StopHandle::new());
    assert_eq!(config.dataset, job.dataset);
    for (dataset, sampler, key) in [
        ("[]", "weights = [1]", "dataset"),
        ("[\"\"]", "weights = [1]", "dataset"),
        ("[1]", "weights = [1]", "dataset"),
        ("\"a\"", "weights = \"column\"", "weights"),
        ("\"a\"", "weights = [1]\nstop = \"never\"", "stop"),
        ("\"a\"", "weights = [1]\nlength = 5", "length"),
        ("\"a\"", "weights = [1]\nstop = \"size\"", "length"),
    ] {
        let error = parse(&text(dataset, sampler)).unwrap_err();
        assert!(error.to_string().contains(key), "{error}");
    }
}
