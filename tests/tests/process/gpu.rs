//! `meetpoint run --gpu-decode` where a GPU cannot be used: what is refused, and with which remedy.

use super::doctor::{fake_libraries, lacks_driver};
use super::jobs::job;
use super::support::{Finished, command, finish, packed};
use std::path::Path;

/// Runs the job in `folder`, whose loader of libraries looks there first.
fn run(folder: &Path, arguments: &[&str]) -> Finished {
    let mut all = vec!["run", "job.toml"];
    all.extend(arguments);
    let mut command = command(folder, &all);
    command.env("LD_LIBRARY_PATH", folder).env("HOME", folder).env_remove("XDG_CACHE_HOME");
    command.env("MEETPOINT_NVRTC", folder.join("libnvrtc.so.12"));
    finish(command.spawn().expect("the program starts"))
}

/// A folder with a dataset and a job for the host alone, with these lines before its tables.
fn folder(lines: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), 8);
    let text = format!("{lines}\n{}", job("host-only", 0, ""));
    std::fs::write(folder.path().join("job.toml"), text).expect("a job file");
    folder
}

#[test]
fn values_that_name_no_gpu_or_share_are_refused() {
    let at_key = folder("gpu_decode = \"gpu\"");
    run(at_key.path(), &[]).refused(&["job.toml:1:14", "gpu_decode", "cuda:0"]);
    let at_share = folder("gpu_decode = \"cuda:0\"\ngpu_share = 2");
    run(at_share.path(), &[]).refused(&["job.toml:2:13", "gpu_share", "auto", "from 0 to 1"]);
    let plain = folder("");
    run(plain.path(), &["--gpu-share", "0.5"]).refused(&["--gpu-decode cuda:0"]);
    run(plain.path(), &["--gpu-memory", "1GiB"]).refused(&["--gpu-decode cuda:0"]);
    let options = [("--gpu-decode", "tpu"), ("--gpu-share", "1.5"), ("--gpu-memory", "1KiB")];
    for (option, value) in options {
        let done = run(plain.path(), &[option, value]);
        assert_eq!(done.code(), Some(2), "{}", done.stderr);
        let is_explained = ["expected", "less than"].iter().any(|it| done.stderr.contains(it));
        assert!(is_explained, "{}", done.stderr);
    }
}

#[test]
fn the_gpu_of_a_job_can_be_turned_off() {
    let of_job = folder("gpu_decode = \"cuda:0\"\ngpu_share = 0.5");
    let done = run(of_job.path(), &["--no-gpu-decode"]);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let done = run(of_job.path(), &["--no-gpu-decode", "--gpu-share", "0.5"]);
    assert_eq!(done.code(), Some(2), "{}", done.stderr);
}

#[test]
fn a_gpu_that_cannot_be_opened_ends_the_run_with_a_remedy() {
    let of_job = folder("gpu_decode = \"cuda:0\"");
    let planning = |program: &str, gpu: &str| {
        let words =
            [program, "imagenet-resnet@2", "small.set", "--batch-size=4", "--gpu-decode", gpu];
        let mut command = command(of_job.path(), &words);
        command.env("LD_LIBRARY_PATH", of_job.path()).env("HOME", of_job.path());
        finish(command.spawn().expect("the program starts"))
    };
    if lacks_driver() {
        for program in ["profile", "plan"] {
            planning(program, "cuda:0").refused(&["GPU cuda:0", "no NVIDIA driver", "install"]);
        }
        let parts = ["job.toml:1:14", "no NVIDIA driver", "install", "--no-gpu-decode"];
        run(of_job.path(), &[]).refused(&parts);
        let plain = folder("");
        run(plain.path(), &["--gpu-decode", "cuda:0"]).refused(&["no NVIDIA driver", "install"]);
    }
    fake_libraries(of_job.path());
    run(of_job.path(), &["--gpu-decode", "cuda:7"]).refused(&["no GPU with the index 7"]);
    planning("profile", "cuda:7").refused(&["no GPU with the index 7"]);
    // The library for tests runs no kernel: its results are not used.
    run(of_job.path(), &["--gpu-share", "0.5"]).refused(&["wrong results", "update the driver"]);
}
