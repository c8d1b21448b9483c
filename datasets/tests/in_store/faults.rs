//! Servers and caches that fail: a retry that succeeds, or an error that names the object.

use crate::server::Fault;
use crate::support::{Given, usage};
use meetpoint_datasets::store::RemoteOptions;
use meetpoint_datasets::{VerifyOptions, verify_with};
use meetpoint_diagnose::Diagnose;
use meetpoint_kernels::Interrupt;
use meetpoint_prepare::{Dataset, Error};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const PART: &str = "part-00000.arrow";
/// A number of answers that is never reached.
const ALWAYS: u32 = u32::MAX;

/// The error of reading everything while a fault lasts; it is not taken for damage.
fn refused(given: &Given, fault: Fault) -> Error {
    let dataset = given.open(1 << 30).unwrap();
    given.server.fault(PART, fault, ALWAYS);
    let error = given.read(&dataset, 0..20).unwrap_err();
    assert!(!error.is_damage(), "{error}");
    let words = error.to_string();
    assert!(words.contains(&format!("{}/{PART}", given.server.url)), "{words}");
    assert!(error.remedy().is_some(), "{words}");
    error
}

#[test]
fn faults_that_pass_are_retried_and_no_sample_is_lost_or_repeated() {
    for fault in [
        Fault::Status(503),
        Fault::Status(429),
        Fault::Status(500),
        Fault::Cut(1000),
        Fault::Short,
        Fault::Shifted,
        Fault::Stall,
    ] {
        let given = Given::new(40);
        let dataset = given.open(1 << 30).unwrap();
        given.server.fault(PART, fault, 2);
        let stats = given.read(&dataset, 0..40).unwrap();
        assert_eq!(stats.samples, 40, "{fault:?}");
        assert!(usage(&dataset).retries > 0, "{fault:?}");
    }
}

#[test]
fn a_server_that_keeps_failing_is_reported_with_the_object_the_range_and_the_status() {
    let given = Given::new(40);
    let error = refused(&given, Fault::Status(503));
    assert_eq!(error.cause(), "remote_range");
    let words = error.to_string();
    assert!(words.contains("HTTP status 503") && words.contains("bytes at offset"), "{words}");
    // Once it answers again, so does the dataset.
    given.server.mend(PART);
    let dataset = given.open(1 << 30).unwrap();
    given.read(&dataset, 0..40).unwrap();
}

#[test]
fn a_server_that_stalls_is_given_up_within_the_deadline() {
    let given = Given::new(40);
    let error = refused(&given, Fault::Stall);
    assert_eq!(error.cause(), "remote_range");
}

#[test]
fn an_interrupt_ends_a_wait_for_a_server_that_stalls() {
    let given = Given::new(40);
    let dataset = given.open(1 << 30).unwrap();
    given.server.fault(PART, Fault::Stall, ALWAYS);
    given.server.state().requests.clear();
    let is_raised = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&is_raised);
    dataset.set_remote_interrupt(&Interrupt::when(move || raised.load(Ordering::Relaxed)));
    let error = std::thread::scope(|scope| {
        let reader = scope.spawn(|| given.read(&dataset, 0..20).unwrap_err());
        while given.server.state().requests.is_empty() && !reader.is_finished() {
            std::thread::yield_now();
        }
        is_raised.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    assert_eq!(error.cause(), "interrupted");
}

#[test]
fn a_server_that_ignores_ranges_is_refused_at_once() {
    let given = Given::new(40);
    let error = refused(&given, Fault::Whole);
    assert_eq!(error.cause(), "remote_range");
    let remedy = error.remedy().unwrap().spelled(meetpoint_diagnose::Surface::Python);
    assert!(remedy.contains("range requests"), "{remedy}");
}

#[test]
fn an_object_that_changes_while_the_dataset_is_open_is_an_error_that_names_it() {
    let given = Given::new(40);
    let dataset = given.open(1 << 30).unwrap();
    given.server.replace(PART, |bytes| bytes[1000] ^= 1);
    let error = given.read(&dataset, 0..20).unwrap_err();
    assert_eq!(error.cause(), "dataset_changed");
    assert!(error.to_string().contains(PART), "{error}");
}

#[test]
fn missing_objects_are_named() {
    let given = Given::new(40);
    let dataset = given.open(1 << 30).unwrap();
    given.server.remove(PART);
    let error = given.read(&dataset, 0..20).unwrap_err();
    assert_eq!(error.cause(), "remote_object_missing");
    drop(dataset);
    let error = given.open(1 << 30).unwrap_err();
    assert_eq!(error.cause(), "remote_object_missing");
    given.server.remove("dataset.json");
    let error = given.open(1 << 30).unwrap_err();
    assert!(error.to_string().contains("dataset.json"), "{error}");
}

#[test]
fn bytes_that_do_not_match_their_checksum_are_fetched_again_once() {
    let given = Given::new(40);
    let dataset = given.open(1 << 30).unwrap();
    given.server.fault(PART, Fault::Flip, 1);
    given.read(&dataset, 0..40).unwrap();
    assert!(usage(&dataset).refetched_bytes > 0);
}

#[test]
fn an_object_that_is_damaged_in_the_store_is_damage_of_a_sample() {
    let given = Given::new(40);
    let local = meetpoint_prepare::Dataset::open(&given.set).unwrap();
    let location = local.locate(3).unwrap();
    given.server.replace(PART, |bytes| bytes[location.offset as usize + 100] ^= 1);
    let dataset = given.open(1 << 30).unwrap();
    let error = given.read(&dataset, 0..20).unwrap_err();
    assert!(
        error.is_damage() && matches!(error, Error::ChecksumMismatch { row: 3, .. }),
        "{error}"
    );
    let cache = Some(given.cache());
    let remote = RemoteOptions { cache, ..RemoteOptions::default() };
    let options = VerifyOptions { remote, ..VerifyOptions::default() };
    let report = verify_with(given.server.url.as_ref(), &options, &mut |_| ()).unwrap();
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    assert_eq!(report.problems[0].file, PART);
}

#[test]
fn a_dataset_in_a_store_is_verified_in_place() {
    let given = Given::new(40);
    let cache = Some(given.cache());
    let remote = RemoteOptions { cache, ..RemoteOptions::default() };
    let options = VerifyOptions { remote, ..VerifyOptions::default() };
    let report = verify_with(given.server.url.as_ref(), &options, &mut |_| ()).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    assert_eq!((report.samples, report.bytes), (40, given.bytes));
}

#[test]
fn a_damaged_cache_is_fetched_again() {
    let given = Given::new(40);
    let dataset = given.open(1 << 30).unwrap();
    given.read(&dataset, 0..40).unwrap();
    for entry in walkdir::WalkDir::new(given.cache()).into_iter().flatten() {
        if entry.file_name() == "blocks" {
            let file = std::fs::OpenOptions::new().write(true).open(entry.path()).unwrap();
            file.write_all_at(&[7; 5000], 100_000).unwrap();
        }
    }
    given.read(&dataset, 0..40).unwrap();
    assert!(usage(&dataset).refetched_bytes > 0);
}

#[test]
fn a_damaged_footer_is_an_error_that_names_its_part_when_a_sample_of_it_is_requested() {
    let given = Given::new(60);
    let dataset = Dataset::open_for_samples(&given.paths(1 << 30)).unwrap();
    let last = dataset.manifest().parts.last().unwrap().clone();
    given.server.replace(&last.file, |bytes| {
        let at = bytes.len() - 20;
        bytes[at] ^= 1;
    });
    assert_eq!(dataset.read_sample(0).unwrap().len() as u64, dataset.locate(0).unwrap().bytes);
    let error = dataset.locate(dataset.len() - 1).unwrap_err();
    assert!(matches!(error, Error::Dataset { .. }), "{error}");
    assert!(error.to_string().contains(&last.file), "{error}");
    assert!(!error.is_damage(), "{error}");
    // The others remain usable, and opening with all footers is an error as well.
    dataset.locate(1).unwrap();
    assert!(matches!(given.open(1 << 30).unwrap_err(), Error::Dataset { .. }));
}
