//! Explanations of epochs with synthetic times.

use crate::support::{config, consume, dataset};
use meetpoint_host::energy::{GpuError, Gpus, Kernel, Machine, Meters, Recorder, Unusable};
use meetpoint_host::explain::{
    Advice, Basis, Ceiling, Contention, Explanation, GpuMeter, RunContext, Stage, TransformTime,
    explain,
};
use meetpoint_host::stats::{BatchRecord, DeviceSchedule, EpochStats, Preparer, Quantiles};
use meetpoint_host::{Loader, MemoryKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MS: u64 = 1_000_000;

/// An epoch from the wait, the step and, for batches of a device, the time between request and
/// publish of each batch, in milliseconds.
fn epoch(batches: &[(u64, u64, Option<u64>)]) -> EpochStats {
    let folder = dataset(8);
    let mut loader = Loader::open(config(folder.path())).unwrap();
    let (_, mut stats) = consume(loader.start_epoch(0).unwrap());
    let mut now = 0;
    stats.records.clear();
    for (number, (wait, step, published)) in (0..).zip(batches) {
        let consume_ns = now + wait * MS;
        let prepare_end_ns = published.map_or(consume_ns, |published| now + published * MS);
        stats.records.push(BatchRecord {
            batch: number,
            source: if published.is_some() { Preparer::Device } else { Preparer::Host },
            device: published.map(|_| 0),
            memory: MemoryKind::Host,
            prepare_start_ns: now,
            prepare_end_ns,
            ready_ns: consume_ns,
            consume_ns,
            step_end_ns: consume_ns + step * MS,
        });
        now = consume_ns + step * MS;
    }
    let mean =
        |mean_ms: f64| Quantiles { count: 9, mean_ns: mean_ms * 1e6, ..Quantiles::default() };
    stats.prepare = mean(10.0);
    stats.read = mean(2.0);
    stats.step = mean(batches[0].1 as f64);
    stats.schedule.devices = vec![DeviceSchedule { t_s_ns: 20 * MS, ..DeviceSchedule::default() }];
    stats
}

fn explained(batches: &[(u64, u64, Option<u64>)], context: &RunContext) -> Explanation {
    explain(&epoch(batches), context).unwrap()
}

fn context(workers: u32) -> RunContext {
    RunContext { workers, cores: 8, replayed_step_ns: None, transform_ns: 0.0 }
}

fn ceiling(explanation: &Explanation, stage: Stage) -> f64 {
    let of = explanation.ceilings.iter().find(|it| it.stage == stage);
    let rate = |it: &Ceiling| it.measured_batches_per_second.or(it.modelled_batches_per_second);
    of.and_then(rate).unwrap_or(0.0)
}

#[test]
fn a_consumer_that_hardly_waits_is_its_own_bottleneck() {
    // The time until the first batch belongs to the start, not to the rate.
    let said = explained(&[(500, 100, None), (1, 100, None), (0, 100, None)], &context(2));
    assert!(!said.is_loading && said.stage == Stage::Step, "{said:?}");
    assert_eq!(said.startup_seconds, 0.5);
    assert!(said.modelled_gain.unwrap() < 1.01);
    assert_eq!(said.advice, None);
}

#[test]
fn waits_are_put_down_to_what_the_batch_waited_for() {
    let host = explained(&[(1, 2, None), (8, 2, None), (8, 2, None)], &context(1));
    assert!(host.is_loading && host.stage == Stage::HostCompute, "{host:?}");
    assert_eq!(host.waited_share, 16.0 / 22.0);
    assert_eq!((host.modelled_gain, host.measured_gain), (Some(22.0 / 6.0), None));
    assert_eq!(host.advice, Some(Advice::MoreWorkers));
    let device = explained(&[(1, 2, Some(1)), (9, 2, Some(8)), (9, 2, Some(8))], &context(1));
    assert_eq!(device.stage, Stage::Device, "{device:?}");
    let handed = explained(&[(1, 2, Some(1)), (9, 2, Some(0)), (9, 2, Some(1))], &context(1));
    assert_eq!(handed.stage, Stage::HandOver, "{handed:?}");
    let waited = |said: &Explanation| said.ceilings.iter().map(|it| it.seconds).sum::<f64>();
    assert!((waited(&host) - 0.022).abs() < 1e-9, "every wait and step has one stage: {host:?}");
}

#[test]
fn ceilings_are_those_of_the_measured_means() {
    let said = explained(&[(1, 5, None), (1, 5, None)], &context(4));
    assert_eq!(ceiling(&said, Stage::HostRead), 4.0 / 0.002);
    assert_eq!(ceiling(&said, Stage::HostCompute), 4.0 / 0.008);
    assert_eq!(ceiling(&said, Stage::Device), 1.0 / 0.020);
    assert_eq!(ceiling(&said, Stage::Step), 1.0 / 0.005);
    assert_eq!(ceiling(&said, Stage::HandOver), 0.0, "nothing was fetched");
}

#[test]
fn a_replay_makes_the_gain_a_measured_one() {
    let replayed_step_ns = Some(1e6);
    let context = RunContext { replayed_step_ns, ..context(1) };
    let said = explained(&[(1, 2, None), (8, 2, None), (8, 2, None)], &context);
    assert_eq!(said.measured_gain, Some(22.0 / 3.0));
    let contention = Contention { step_seconds: 0.002, replayed_step_seconds: 0.001 };
    assert_eq!(said.contention, Some(contention));
    // The form in report.json and Python, and a sentence for each fact.
    let text = serde_json::to_string(&said).unwrap();
    assert_eq!(serde_json::from_str::<Explanation>(&text).unwrap(), said);
    assert_eq!(said.sentences().len(), 5, "{:?}", said.sentences());
    assert_eq!(said.ceiling_sentences().count(), said.ceilings.len());
}

#[test]
fn the_users_transform_is_a_stage_of_its_own() {
    let context = RunContext { transform_ns: 9e6, replayed_step_ns: Some(1e6), ..context(1) };
    let said = explained(&[(1, 4, None), (0, 4, None), (0, 4, None)], &context);
    assert!(!said.is_loading && said.stage == Stage::Transform, "{said:?}");
    assert_eq!((said.modelled_gain, said.measured_gain), (Some(1.0), Some(1.0)));
    assert_eq!(ceiling(&said, Stage::Transform), 1.0 / 0.003);
    let of_transform = said.ceilings.iter().find(|it| it.stage == Stage::Transform).unwrap();
    assert_eq!(of_transform.basis, Basis::Transform);
    assert_eq!(said.advice, Some(Advice::TransformInRecipe));
    assert_eq!(said.transform, Some(TransformTime { seconds_per_batch: 0.003, share: 0.75 }));
    let waited = said.ceilings.iter().map(|it| it.seconds).sum::<f64>();
    assert!((waited - 0.012).abs() < 1e-9, "every wait and step has one stage: {said:?}");
    // A faster loader leaves the time of the transform as it is.
    let loading = explained(&[(1, 4, None), (8, 4, None), (8, 4, None)], &context);
    assert_eq!((loading.is_loading, loading.modelled_gain), (true, Some(28.0 / 12.0)));
}

#[test]
fn epochs_without_measured_rates_are_not_explained() {
    assert_eq!(explain(&epoch(&[(1, 2, None)]), &context(0)), None);
    let said = explained(&[(1, 0, None), (4, 0, None)], &context(0));
    assert_eq!((said.modelled_gain, said.measured_gain), (None, None));
    assert!(said.is_loading, "{said:?}");
}

/// Two boards: one that uses 3 J between two readings, and one that reports nothing but its name.
struct Boards(AtomicU64);

impl Gpus for Boards {
    fn library(&self) -> &str {
        "NVML"
    }

    fn count(&self) -> Result<u32, Unusable> {
        Ok(2)
    }

    fn name(&self, index: u32) -> Result<String, GpuError> {
        Ok(format!("Board {index}"))
    }

    fn millijoules(&self, index: u32) -> Result<u64, GpuError> {
        match index {
            0 => Ok(self.0.load(Ordering::SeqCst)),
            _ => Err(GpuError::NotSupported),
        }
    }

    fn milliwatts(&self, _index: u32) -> Result<u32, GpuError> {
        Err(GpuError::NotSupported)
    }

    fn utilisation(&self, index: u32) -> Result<f64, GpuError> {
        if index == 0 { Ok(0.25) } else { Err(GpuError::NotSupported) }
    }
}

#[test]
fn the_energy_and_the_utilisation_of_a_graphics_board_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let boards = Arc::new(Boards(AtomicU64::new(5)));
    let gpus: Arc<dyn Gpus> = Arc::clone(&boards) as _;
    let root = folder.path().to_owned();
    let meters = Meters::find(Machine { root, counters: Box::new(Kernel), gpus: Ok(gpus) });
    let recorder = Recorder::start(meters);
    boards.0.store(3005, Ordering::SeqCst);
    let measurement = recorder.stop().0;
    let found = GpuMeter::of(&measurement, 24);
    let [board] = &found[..] else { panic!("{found:?}") };
    assert_eq!((board.meter.as_str(), board.board.as_str()), ("nvml:0", "Board 0"));
    assert_eq!((board.joules, board.joules_per_sample), (Some(3.0), Some(0.125)));
    assert_eq!((board.utilisation, board.samples), (Some(0.25), 24));
    assert_eq!(GpuMeter::of(&measurement, 0)[0].joules_per_sample, None);
    let mut said = explained(&[(1, 2, None), (8, 2, None)], &context(1));
    let without = said.sentences();
    said.gpu_meters = found;
    let sentences = said.sentences();
    let [sentence] = &sentences.iter().filter(|it| !without.contains(it)).collect::<Vec<_>>()[..]
    else {
        panic!("{sentences:?}");
    };
    for figure in ["Board 0", "24 samples", "3.0 J", "0.1250 J per sample", "25 %"] {
        assert!(sentence.contains(figure), "{figure}: {sentence}");
    }
    let text = serde_json::to_string(&said).unwrap();
    assert_eq!(serde_json::from_str::<Explanation>(&text).unwrap(), said);
}
