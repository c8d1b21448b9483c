//! Traces have the format that viewers read, and contain the events of the run.

use crate::support::device::{Behaviour, FakeDevice, Fault};
use crate::support::{config, consume, dataset};
use meetpoint_host::stats::EpochStats;
use meetpoint_host::trace::{Process, TRACE_BATCHES_MAX, Written, write};
use meetpoint_host::{DeviceSource, Loader};
use meetpoint_scheduler::{AnyStrategy, DeviceOnly};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

fn epochs() -> Vec<EpochStats> {
    let folder = dataset(40);
    let device =
        FakeDevice::start(Behaviour { faults: vec![(2, Fault::Failed)], ..Behaviour::default() });
    let mut config = config(folder.path());
    config.strategy = AnyStrategy::DeviceOnly(DeviceOnly);
    config.workers = 2;
    config.devices = vec![DeviceSource::Connect { socket: device.socket() }];
    config.stall_timeout = Duration::from_secs(30);
    let mut loader = Loader::open(config).unwrap();
    (0..2).map(|epoch| consume(loader.start_epoch(epoch).unwrap()).1).collect()
}

fn trace(epochs: &[EpochStats], batches_max: usize) -> (Value, Written) {
    let process = Process { name: "a \"name\"".to_owned(), epochs: epochs.iter().collect() };
    let mut text = Vec::new();
    let written = write(&mut text, &[process], batches_max).unwrap();
    (serde_json::from_slice(&text).unwrap(), written)
}

fn named<'t>(trace: &'t Value, phase: &str, name: &str) -> Vec<&'t Value> {
    let events = trace["traceEvents"].as_array().unwrap();
    events.iter().filter(|event| event["ph"] == phase && event["name"] == name).collect()
}

#[test]
fn every_batch_is_prepared_and_trained_on_and_nothing_in_a_row_overlaps() {
    let epochs = epochs();
    let (trace, written) = trace(&epochs, TRACE_BATCHES_MAX);
    let events = trace["traceEvents"].as_array().unwrap();
    assert_eq!(written, Written { events: events.len() as u64, batches_left_out: 0 });
    assert_eq!(named(&trace, "X", "prepare").len(), 20);
    assert_eq!(named(&trace, "X", "step").len(), 20);
    let of_device: u32 = epochs.iter().map(|epoch| epoch.schedule.device_batches).sum();
    assert_eq!(named(&trace, "X", "hand-over").len(), of_device as usize);
    let prepared = named(&trace, "X", "prepare");
    let lies_in = |kind: &str| prepared.iter().filter(|it| it["args"]["memory"] == kind).count();
    assert!(of_device > 0);
    assert_eq!((lies_in("shared"), lies_in("host")), (of_device as usize, 20 - of_device as usize));
    assert_eq!(named(&trace, "X", "epoch 1").len(), 1);
    let ready = named(&trace, "C", "ready batches");
    let levels: Vec<i64> =
        ready.iter().map(|event| event["args"]["ready"].as_i64().unwrap()).collect();
    assert!(levels.iter().all(|level| *level >= 0) && levels.last() == Some(&0), "{levels:?}");
    let reported: usize = epochs.iter().map(|epoch| epoch.events.len()).sum();
    assert!(reported > 0, "a fault was traced");
    assert_eq!(events.iter().filter(|event| event["ph"] == "i").count(), reported);
    let mut rows: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    let prepared = ["prepare", "hand-over"].map(|name| named(&trace, "X", name));
    for span in prepared.into_iter().flatten() {
        let (from, took) = (span["ts"].as_f64().unwrap(), span["dur"].as_f64().unwrap());
        rows.entry(span["tid"].as_u64().unwrap()).or_default().push((from, from + took));
    }
    for (row, mut spans) in rows {
        spans.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Times are rounded to the nanosecond as microseconds in floating point.
        let overlap = spans.windows(2).find(|pair| pair[0].1 > pair[1].0 + 1e-3);
        assert_eq!(overlap, None, "row {row}");
        let names = named(&trace, "M", "thread_name");
        assert!(names.iter().any(|name| name["tid"] == row), "row {row} has a name");
    }
}

#[test]
fn of_a_long_run_the_last_batches_are_traced_and_the_rest_is_counted() {
    let epochs = epochs();
    let (trace, written) = trace(&epochs, 13);
    assert_eq!(written.batches_left_out, 7);
    assert_eq!(trace["otherData"]["batches_left_out"], 7);
    assert_eq!(trace["otherData"]["batches"], 20);
    assert_eq!(named(&trace, "X", "step").len(), 13);
}

#[test]
fn an_empty_run_has_a_trace() {
    let (trace, _) = trace(&[], 10);
    assert_eq!(named(&trace, "X", "step").len(), 0);
}
