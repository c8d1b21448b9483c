//! Signals at the host: it ends soon, and no process, socket, spool or incomplete dataset remains.

use super::jobs::{SAMPLES, job};
use super::support::{PATIENCE, command, finish, packed, pictures, processes_with, until, wait};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::Child;

/// A run that would take long, with its device up; the mark is in the device's command line.
fn long_run(folder: &Path, strategy: &str, runtime: &Path) -> Child {
    packed(folder, SAMPLES);
    let job = job(strategy, 0, "cpu_ratio = 0.5").replace("20ms", "500ms");
    std::fs::write(folder.join("job.toml"), job).unwrap();
    std::fs::create_dir_all(runtime).unwrap();
    let mut host = command(folder, &["run", "job.toml"]);
    let host = host.env("XDG_RUNTIME_DIR", runtime).spawn().expect("the program starts");
    let mark = runtime.display().to_string();
    assert!(until(PATIENCE, || !processes_with(&mark).is_empty()), "the device comes up");
    host
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).expect("a folder reads").next().is_none()
}

#[test]
fn an_interrupt_ends_the_run_and_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM] {
        let folder = tempfile::tempdir().unwrap();
        let runtime = folder.path().join("runtime");
        let host = long_run(folder.path(), "wrr", &runtime);
        kill_process(Pid::from_child(&host), signal).unwrap();
        let done = finish(host);
        assert_eq!(done.code(), Some(1), "{done:?}");
        assert!(done.stderr.contains("interrupted"), "{done:?}");
        assert_eq!(processes_with(&runtime.display().to_string()), Vec::<u32>::new());
        assert!(is_empty(&runtime), "something is left in {}", runtime.display());
    }
}

#[test]
fn a_killed_host_leaves_no_device_and_no_socket() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = folder.path().join("runtime");
    let mut host = long_run(folder.path(), "device-only", &runtime);
    host.kill().unwrap();
    wait(&mut host, PATIENCE).expect("a killed process ends");
    let mark = runtime.display().to_string();
    assert!(
        until(PATIENCE, || processes_with(&mark).is_empty()),
        "the device stays: {:?}",
        processes_with(&mark)
    );
    assert!(until(PATIENCE, || is_empty(&runtime)), "the socket stays");
}

/// An interrupted pack that can resume reports what it retains; else it retains nothing.
#[test]
fn an_interrupted_pack_reports_what_remains_and_how_to_resume() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path(), 600);
    let packing = ["pack", "pictures", "to.set", "--resume", "--part-size", "20KiB"];
    let host = command(folder.path(), &packing).spawn().unwrap();
    let kept = folder.path().join("to.set.partial-0-0");
    let (third, whole) = (kept.join("part-00003.arrow"), folder.path().join("to.set"));
    let is_underway = || third.exists() || whole.exists();
    assert!(until(PATIENCE, is_underway), "the pack reaches its third part");
    kill_process(Pid::from_child(&host), Signal::INT).unwrap();
    let done = finish(host);
    // A pack that ends before it is detected is not a failure of this test.
    if !whole.exists() {
        assert_eq!(done.code(), Some(1), "{done:?}");
        assert!(done.stderr.starts_with("interrupted; "), "{done:?}");
        let words = "to.set.partial-0-0; to resume from there, repeat this with --resume\n";
        assert!(done.stderr.contains(" complete part") && done.stderr.ends_with(words), "{done:?}");
        let done = super::support::run(folder.path(), &packing).success();
        assert!(done.stdout.contains("of the parts already existed"), "{done:?}");
    }
    super::support::run(folder.path(), &["verify", "to.set"]).success();
}

#[test]
fn a_killed_pack_leaves_nothing_that_looks_like_a_dataset() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path(), 400);
    let mut packing = command(folder.path(), &["pack", "pictures", "killed.set"]).spawn().unwrap();
    let has_begun = || {
        std::fs::read_dir(folder.path())
            .unwrap()
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().contains("partial"))
    };
    // A pack that ends before it is detected is not a failure of this test.
    let seen = until(PATIENCE, || has_begun() || folder.path().join("killed.set").exists());
    assert!(seen, "the pack begins");
    packing.kill().unwrap();
    wait(&mut packing, PATIENCE).expect("a killed process ends");
    if folder.path().join("killed.set").exists() {
        super::support::run(folder.path(), &["verify", "killed.set"]).success();
    } else {
        super::support::run(folder.path(), &["inspect", "killed.set"]).refused(&["killed.set"]);
        super::support::run(folder.path(), &["pack", "pictures", "killed.set"]).success();
    }
    super::support::run(folder.path(), &["verify", "killed.set"]).success();
    assert!(!has_begun(), "the next pack clears what the killed one left");
}
