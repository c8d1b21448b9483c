//! Resuming of stopped operations.

use crate::support::{TestFolder, options, read, silent};
use meetpoint_datasets::Error;
use meetpoint_datasets::operations::{CopyOptions, Share, SplitBy, shuffle, split};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn resumed(stop: &Arc<AtomicBool>) -> CopyOptions {
    CopyOptions { resume: true, memory_bytes: 0, stop: Arc::clone(stop), ..options() }
}

#[test]
fn a_shuffle_resumes_wherever_it_was_stopped() {
    for stop_at in [1, 7, 19, 38, 59] {
        let place = TestFolder::new();
        let from = place.write_some("a", 60);
        let to = place.path("b");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = shuffle(&from, &to, 5, &resumed(&stop), &mut |step| {
            stop.store(step.samples_done >= stop_at, Ordering::Relaxed);
        });
        match stopped {
            Err(Error::Stopped { parts, .. }) => assert!(parts > 0),
            other => {
                assert!(matches!(other, Err(Error::Interrupted)), "{other:?}");
                assert_eq!(place.names(), ["a"], "of no whole part nothing is kept");
            }
        }
        assert!(!to.exists(), "what is not whole is not there");
        stop.store(false, Ordering::Relaxed);
        let summary = shuffle(&from, &to, 5, &resumed(&stop), &mut silent).unwrap();
        assert!(summary.parts_resumed > 0 || stop_at < 10, "{stop_at}: nothing was taken over");
        shuffle(&from, &place.path("c"), 5, &options(), &mut silent).unwrap();
        assert_eq!(read(&to), read(&place.path("c")), "{stop_at}");
        assert_eq!(place.names(), ["a", "b", "c"]);
    }
}

#[test]
fn another_operation_does_not_resume() {
    let place = TestFolder::new();
    let from = place.write_some("a", 60);
    let to = place.path("b");
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = shuffle(&from, &to, 5, &resumed(&stop), &mut |step| {
        stop.store(step.samples_done >= 30, Ordering::Relaxed);
    });
    stopped.unwrap_err();
    stop.store(false, Ordering::Relaxed);
    let other = shuffle(&from, &to, 6, &resumed(&stop), &mut silent).unwrap_err();
    assert!(matches!(other, Error::ResumeDiffers { .. }), "{other}");
    shuffle(&from, &to, 6, &options(), &mut silent).unwrap();
    assert_eq!(place.names(), ["a", "b"], "without --resume, remains go");
}

#[test]
fn a_split_resumes_in_the_interrupted_part() {
    let place = TestFolder::new();
    let from = place.write_some("a", 60);
    let by = |place: &TestFolder| SplitBy::Shares {
        parts: ["x", "y", "z"].map(|name| (place.path(name), Share::ONE)).to_vec(),
        stratify: true,
        seed: 1,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = split(&from, &by(&place), &resumed(&stop), &mut |step| {
        stop.store(step.samples_done >= 35, Ordering::Relaxed);
    });
    assert!(matches!(stopped, Err(Error::Stopped { parts: 1.., .. })), "{stopped:?}");
    assert!(place.path("x").exists() && !place.path("y").exists());
    stop.store(false, Ordering::Relaxed);
    let summaries = split(&from, &by(&place), &resumed(&stop), &mut silent).unwrap();
    assert_eq!(summaries.iter().map(|part| part.samples).sum::<u64>(), 60);
    let whole = TestFolder::new();
    let again = whole.write_some("a", 60);
    split(&again, &by(&whole), &options(), &mut silent).unwrap();
    for name in ["x", "y", "z"] {
        assert_eq!(read(&place.path(name)), read(&whole.path(name)), "{name}");
    }
}
