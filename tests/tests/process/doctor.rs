//! `meetpoint doctor` on machines without a GPU, with a driver that does not fit, and with one that
//! works: the library for tests of the crate `gpu` takes the place of NVIDIA's.

use super::support::{command, finish};
use crate::layers::root;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Compiles a library for tests into a folder.
fn compile(source: &str, library: &Path) {
    let status = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-std=gnu11", "-shared", "-fPIC", "-pthread", "-o"])
        .args([library.to_path_buf(), root().join("gpu/tests/fake_cuda").join(source)])
        .status();
    assert!(status.expect("a C compiler runs").success());
}

/// Puts libraries for tests in the place of NVIDIA's, for processes that look into a folder first.
pub(crate) fn fake_libraries(folder: &Path) {
    compile("fake_cuda.c", &folder.join("libcuda.so.1"));
    compile("fake_nvrtc.c", &folder.join("libnvrtc.so.12"));
    std::os::unix::fs::symlink("libcuda.so.1", folder.join("libcuda.so")).unwrap();
}

/// Whether this machine has no driver of NVIDIA's.
pub(crate) fn lacks_driver() -> bool {
    !Path::new("/proc/driver/nvidia").exists()
}

/// The findings whose topic begins with `CUDA`, of a process whose loader looks in `libraries`
/// first.
fn findings(libraries: &Path, variables: &[(&str, &str)]) -> Vec<Value> {
    let mut command = command(libraries, &["doctor", "--json"]);
    command.env("LD_LIBRARY_PATH", libraries).env("HOME", libraries).env_remove("XDG_CACHE_HOME");
    command.env("MEETPOINT_NVRTC", libraries.join("libnvrtc.so.12"));
    let child = command.envs(variables.iter().copied()).spawn().expect("the program starts");
    let done = finish(child).success();
    let document: Vec<Value> = serde_json::from_str(&done.stdout).expect("one document");
    let is_cuda =
        |finding: &Value| finding["topic"].as_str().is_some_and(|topic| topic.starts_with("CUDA"));
    document.into_iter().filter(is_cuda).collect()
}

fn states(findings: &[Value]) -> Vec<(&str, &str)> {
    findings
        .iter()
        .map(|finding| {
            let text = |key: &str| finding[key].as_str().expect("a text");
            (text("topic"), text("state"))
        })
        .collect()
}

#[test]
fn doctor_says_what_cuda_lacks_and_never_fails() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    if lacks_driver() {
        let found = findings(path, &[]);
        assert_eq!(states(&found), [("CUDA", "missing")], "without a driver");
        assert!(found[0]["remedy"].is_string());
    }
    fake_libraries(path);
    for variable in [("FAKE_CUDA_DEVICES", "0"), ("FAKE_CUDA_VERSION", "11080")] {
        let found = findings(path, &[variable]);
        assert_eq!(states(&found), [("CUDA", "missing")], "{variable:?}");
        assert!(found[0]["remedy"].is_string(), "{variable:?}");
    }
    // The library for tests runs no kernel, so the results are not those of a GPU.
    let ready = |topic| (topic, "ready");
    let expected = [
        ready("CUDA"),
        ready("CUDA GPU"),
        ready("CUDA compiler"),
        ("CUDA kernel", "missing"),
        ready("CUDA pinned memory"),
        ready("CUDA kernel cache"),
    ];
    let found = findings(path, &[]);
    assert_eq!(states(&found), expected);
    let cache = path.join(".cache/meetpoint/cubin");
    assert_eq!(found[5]["found"], cache.display().to_string());
    assert_eq!(std::fs::read_dir(cache).unwrap().count(), 1, "the compiled test kernel");
    let absent = [("MEETPOINT_NVRTC", "/nowhere/libnvrtc.so"), ("FAKE_CUDA_PINNED", "1000")];
    let found = findings(path, &absent);
    let expected = [
        ready("CUDA"),
        ready("CUDA GPU"),
        ("CUDA compiler", "missing"),
        ("CUDA pinned memory", "limited"),
        ready("CUDA kernel cache"),
    ];
    assert_eq!(states(&found), expected);
    assert!(found[2]["remedy"].as_str().unwrap().contains("nvidia-cuda-nvrtc-cu12"));
}
