//! Limits of the process (ulimit), and what remains of a dataset that cannot be completed.

use super::jobs::job;
use super::support::{Finished, command, finish, jpeg, packed, pictures, program, run};
use std::path::Path;
use std::process::Command;

/// Runs the program with a limit on the size of files, in blocks of 512 or 1024 bytes depending on
/// the shell.
fn limited(folder: &Path, blocks: u32, arguments: &[&str]) -> Finished {
    limited_by(folder, &format!("-f {blocks}"), arguments)
}

/// Runs the program under a limit, in the words of the shell's `ulimit`.
fn limited_by(folder: &Path, limit: &str, arguments: &[&str]) -> Finished {
    let unlimited = command(folder, arguments);
    let mut shell = Command::new("sh");
    let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
    shell.args(["-c", &script]).arg(program()).args(unlimited.get_args()).current_dir(folder);
    shell.env("NO_COLOR", "1").stdin(std::process::Stdio::null());
    shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    finish(shell.spawn().expect("a shell"))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn threads_that_do_not_start_are_an_error_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path(), 4);
    for command in ["pack", "index"] {
        let arguments = [command, "pictures", "to", "--threads", "1024"];
        // Each thread takes 2 MiB of address space for its stack, and then, on its own, some pages
        // for the handler of stack overflows. If the stack of another took the last of the space,
        // the standard library aborts the process, so several limits are tried.
        let outcome = (0..8)
            .map(|step| format!("-v {}", 1_500_000 + 300 * step))
            .map(|limit| limited_by(folder.path(), &limit, &arguments))
            .find(|outcome| outcome.code().is_some());
        let outcome = outcome.expect("the process is not aborted at every limit");
        outcome.refused(&["failed to start thread"]);
        run(folder.path(), &[command, "pictures", "to", "--threads", "1025"]).refused(&["1024"]);
        assert_eq!(names(folder.path()), ["pictures"]);
    }
}

#[test]
fn the_number_of_threads_of_every_command_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path(), 4);
    run(folder.path(), &["pack", "pictures", "a.set"]).success();
    for arguments in [
        &["unpack", "a.set", "to"][..],
        &["unpack", "a.set", "to", "--to", "mds"],
        &["convert", "pictures", "to", "--to", "mds"],
        &["verify", "a.set", "--deep"],
    ] {
        let too_many = [arguments, &["--threads", "1025"]].concat();
        run(folder.path(), &too_many).refused(&["1025 threads", "1024"]);
        assert_eq!(names(folder.path()), ["a.set", "pictures"], "{arguments:?}");
    }
}

#[test]
fn every_command_names_the_limit_of_open_files_and_leaves_no_sample_out() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path(), 24);
    run(folder.path(), &["pack", "pictures", "a.set", "--part-size", "30KiB"]).success();
    std::fs::write(folder.path().join("job.toml"), job("host-only", 2, "")).unwrap();
    std::fs::rename(folder.path().join("a.set"), folder.path().join("small.set")).unwrap();
    let all = ["job.toml", "pictures", "small.set"];
    for files in 4..=24 {
        for arguments in [
            &["pack", "pictures", "to", "--on-error", "skip"][..],
            &["index", "pictures", "to", "--on-error", "skip"],
            &["unpack", "small.set", "to", "--on-error", "skip"],
            &["convert", "pictures", "to", "--to", "mds", "--on-error", "skip"],
            &["dataset", "stats", "small.set"],
            &["inspect", "small.set"],
            &["run", "job.toml", "--report", "to"],
        ] {
            let done = limited_by(folder.path(), &format!("-n {files}"), arguments);
            match done.code() {
                Some(0) => {
                    let is_reached = done.stdout.contains("Too many open files");
                    let is_named = done.stdout.contains("(ulimit -n)");
                    assert!(!is_reached || is_named, "{files}: {done:?}");
                    assert!(!done.stdout.contains("left out:"), "{files}: {done:?}");
                }
                Some(1) => assert!(done.stderr.contains("(ulimit -n)"), "{files}: {done:?}"),
                // The loader of the system needs files of its own.
                _ => assert!(done.stderr.contains("shared libraries"), "{files}: {done:?}"),
            }
            let _ = std::fs::remove_dir_all(folder.path().join("to"));
            assert_eq!(names(folder.path()), all, "{arguments:?} with {files}");
        }
    }
}

#[test]
fn a_job_whose_device_cannot_start_or_be_reached_names_the_limit_of_open_files() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path(), 48);
    run(folder.path(), &["pack", "pictures", "small.set"]).success();
    std::fs::write(folder.path().join("job.toml"), job("wrr", 1, "")).unwrap();
    let mut failures = 0;
    for files in 8..=40 {
        let done = limited_by(folder.path(), &format!("-n {files}"), &["run", "job.toml"]);
        let said = format!("{}{}", done.stdout, done.stderr);
        let is_named = said.contains("(ulimit -n)");
        match done.code() {
            Some(0) => {
                assert!(is_named || !said.contains("Too many open files"), "{files}: {said}")
            }
            Some(1) => assert!(is_named, "{files}: {said}"),
            // The loader of the system needs files of its own.
            _ => assert!(said.contains("shared libraries"), "{files}: {done:?}"),
        }
        failures += u32::from(done.code() == Some(1));
    }
    assert!(failures > 0, "no limit was too low");
}

#[test]
fn a_sound_dataset_is_not_damaged_where_too_few_files_may_be_open() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path(), 24);
    run(folder.path(), &["pack", "pictures", "to", "--part-size", "30KiB"]).success();
    for files in 8..20 {
        let done = limited_by(folder.path(), &format!("-n {files}"), &["verify", "to"]);
        assert!(!done.stdout.contains("DAMAGED"), "{files}: {done:?}");
        assert!(done.stderr.is_empty() || done.stderr.contains("ulimit -n"), "{files}: {done:?}");
    }
}

#[test]
fn a_file_beyond_the_limit_is_named_with_it_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path(), 60);
    run(folder.path(), &["pack", "pictures", "there.set"]).success();
    const PART: &str = "or make the files smaller with --part-size\n";
    const SHARD: &str = "or make the files smaller with --shard-size\n";
    for (arguments, file, remedy) in [
        (&["pack", "pictures", "to"][..], "part-00000.arrow", PART),
        (&["index", "pictures", "to"], "part-00000.arrow", PART),
        (&["unpack", "there.set", "to", "--to", "webdataset"], ".tar", SHARD),
        (&["unpack", "there.set", "to", "--to", "mds"], ".mds", SHARD),
        (&["unpack", "there.set", "to", "--to", "folder"], ".jpg", "raise the limit (ulimit -f)\n"),
        (&["convert", "pictures", "to", "--to", "parquet"], ".parquet", SHARD),
        (
            &["convert", "pictures", "to", "--to", "datadings"],
            ".msgpack",
            "raise the limit (ulimit -f)\n",
        ),
        (&["convert", "pictures", "to", "--to", "tfrecord"], ".tfrecord", SHARD),
        (&["dataset", "shuffle", "there.set", "to"], "part-00000.arrow", PART),
    ] {
        let done = limited(folder.path(), 4, arguments);
        done.refused(&["failed to write", file, "raise the limit (ulimit -f)", remedy]);
        assert_eq!(names(folder.path()), ["pictures", "there.set"], "{arguments:?}");
    }
}

/// More than is buffered before it is written, so that the write fails while the table is built.
#[test]
fn a_long_table_that_does_not_fit_is_named_by_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let source = pictures(folder.path(), 2);
    let long = jpeg(1, 1000, 1000);
    for number in 0..(6 << 20) / long.len() {
        std::fs::write(source.join(format!("cat/long-{number}.jpg")), &long).unwrap();
    }
    let done = limited(folder.path(), 3000, &["convert", "pictures", "to", "--to", "parquet"]);
    done.refused(&["failed to write", "data-00000.parquet", "--shard-size"]);
    assert_eq!(names(folder.path()), ["pictures"]);
}

#[test]
fn a_report_that_cannot_be_written_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), 8);
    std::fs::write(folder.path().join("job.toml"), job("host-only", 0, "")).unwrap();
    let running = ["run", "job.toml", "--report", "out/deep"];
    limited(folder.path(), 2, &running).refused(&["could not be written to out/deep", "--report"]);
    assert_eq!(names(folder.path()), ["job.toml", "pictures", "small.set"]);
    std::fs::create_dir(folder.path().join("out")).unwrap();
    limited(folder.path(), 2, &running).refused(&["could not be written to out/deep"]);
    assert_eq!(names(&folder.path().join("out")), [""; 0], "what was there stays");
}

/// Small parts, and a last one that is longer than the limit.
#[test]
fn whole_parts_remain_for_a_pack_that_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let source = pictures(folder.path(), 24);
    std::fs::write(source.join("dog/99.jpg"), jpeg(99, 1000, 1000)).unwrap();
    assert!(source.join("dog/99.jpg").metadata().unwrap().len() > 200 << 10);
    let packing = ["pack", "pictures", "to", "--resume", "--part-size", "30KiB"];
    let done = limited(folder.path(), 100, &packing);
    done.refused(&["(ulimit -f)", "complete parts are retained in", "repeat this with --resume"]);
    assert_eq!(names(folder.path()), ["pictures", "to.partial-0-0"]);
    let done = run(folder.path(), &packing).success();
    assert!(done.stdout.contains("of the parts already existed"), "{done:?}");
    run(folder.path(), &["verify", "to"]).success();

    let shuffling = ["dataset", "shuffle", "to", "mixed", "--resume", "--part-size", "30KiB"];
    let seeded = |seed: &'static str| [&shuffling[..], &["--seed", seed]].concat();
    // With some seeds, the long sample comes first: then no part is complete, and nothing remains.
    let (mut kept, mut left) = (0, 0);
    for seed in ["1", "2", "3", "4", "5", "6", "7", "8"] {
        let done = limited(folder.path(), 100, &seeded(seed));
        match done.stderr.contains("retained in") {
            true => {
                kept += 1;
                done.refused(&["(ulimit -f)", "repeat this with --resume"]);
                run(folder.path(), &seeded(seed)).success();
                std::fs::remove_dir_all(folder.path().join("mixed")).unwrap();
            }
            false => {
                left += 1;
                done.refused(&["(ulimit -f)"]);
            }
        }
        assert_eq!(names(folder.path()), ["pictures", "to"]);
    }
    assert!(kept > 0, "{left} of 8 kept nothing");
}
