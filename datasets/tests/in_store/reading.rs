//! What is fetched, cached, evicted and shared.

use crate::support::{Given, allocated, usage};
use meetpoint_diagnose::Diagnose;
use meetpoint_prepare::Dataset;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn samples_are_those_of_the_local_dataset_and_are_fetched_once() {
    let given = Given::new(80);
    let dataset = given.open(1 << 30).unwrap();
    assert_eq!(dataset.len(), 80);
    given.read(&dataset, 0..80).unwrap();
    given.read(&dataset, (0..80).rev()).unwrap();
    let sent = given.server.take_sent();
    assert!(sent <= given.bytes * 11 / 10, "{sent} of {}", given.bytes);
    assert_eq!((usage(&dataset).retries, usage(&dataset).evicted_bytes), (0, 0));
    // The next process finds the blocks, and fetches only the manifest and the footers.
    drop(dataset);
    let dataset = given.open(1 << 30).unwrap();
    given.read(&dataset, 0..80).unwrap();
    let again = given.server.take_sent();
    assert!(again < given.bytes / 4, "{again} of {}", given.bytes);
    assert_eq!(usage(&dataset).hit_share(), 1.0);
}

#[test]
fn a_cache_smaller_than_the_dataset_keeps_its_limit_in_every_order() {
    let given = Given::new(80);
    let limit = given.bytes / 2;
    let dataset = given.open(limit).unwrap();
    let orders: [Box<dyn Iterator<Item = u64>>; 4] = [
        Box::new(0..80),
        Box::new((0..80).rev()),
        Box::new((0..80).map(|number| number * 37 % 80)),
        Box::new((0..80).map(|number| if number % 2 == 0 { number / 2 } else { 79 - number / 2 })),
    ];
    for order in orders {
        let stats = given.read(&dataset, order).unwrap();
        assert_eq!(stats.samples, 80);
        assert!(allocated(&given.cache()) <= limit, "more than the limit");
    }
    assert!(usage(&dataset).evicted_bytes > 0);
}

#[test]
fn readers_that_share_a_cache_fetch_the_dataset_once_together() {
    let given = Given::new(60);
    let datasets: Vec<Arc<Dataset>> = (0..3).map(|_| given.open(1 << 30).unwrap()).collect();
    given.server.take_sent();
    std::thread::scope(|scope| {
        for dataset in &datasets {
            scope.spawn(|| given.read(dataset, 0..60).unwrap());
        }
    });
    let sent = given.server.take_sent();
    assert!(sent <= given.bytes * 11 / 10, "{sent} of {}", given.bytes);
}

#[test]
fn many_short_requests_are_in_flight_at_once() {
    let given = Given::new(200);
    let paths = given.paths_with(1 << 30, Duration::from_secs(60));
    let dataset = Arc::new(Dataset::open_paths(&paths).unwrap());
    // The tables of the record batches, so that only samples are requested.
    (0..200).for_each(|sample| drop(dataset.locate(sample).unwrap()));
    // No answer comes before 24 requests wait. Samples of 40 KB are in blocks of 64 KiB, so every
    // fourth needs a request of its own; few of them are in the blocks of tables.
    given.server.state().gate = 24;
    let stats = given.read(&dataset, (2..198).step_by(4)).unwrap();
    assert_eq!((stats.samples, usage(&dataset).retries), (49, 0));
}

#[test]
fn only_what_is_read_is_fetched() {
    let given = Given::new(80);
    let dataset = given.open(1 << 30).unwrap();
    given.server.take_sent();
    given.read(&dataset, [40]).unwrap();
    let sent = given.server.take_sent();
    assert!(sent < given.bytes / 5, "{sent} of {}", given.bytes);
    let key = dataset.key(7).unwrap();
    assert_eq!(dataset.find(&key).unwrap(), Some(7));
}

#[test]
fn a_cache_that_is_too_small_is_refused_with_the_figures() {
    let given = Given::new(40);
    let dataset = given.open(256 << 10).unwrap();
    let error = dataset.check_remote(4, 2).unwrap_err();
    assert_eq!(error.cause(), "cache_too_small");
    let (words, remedy) = (error.to_string(), error.remedy().unwrap());
    assert!(words.contains("256 KiB") && words.contains("8 readers"), "{words}");
    let remedy = remedy.spelled(meetpoint_diagnose::Surface::CommandLine);
    assert!(remedy.contains("--cache-size"), "{remedy}");
    let large = given.open(1 << 30).unwrap();
    large.check_remote(4, 2).unwrap();
}

#[test]
fn the_cache_is_private() {
    let given = Given::new(8);
    let dataset = given.open(1 << 30).unwrap();
    given.read(&dataset, 0..8).unwrap();
    for entry in walkdir::WalkDir::new(given.cache()).min_depth(1).into_iter().flatten() {
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        let expected = if entry.file_type().is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{}", entry.path().display());
    }
}

#[test]
fn a_dataset_at_a_url_needs_someone_who_opens_it() {
    let given = Given::new(2);
    let error = Dataset::open(given.server.url.as_ref()).unwrap_err();
    assert_eq!(error.cause(), "remote_not_used_here");
    assert!(given.server.state().requests.is_empty());
}
