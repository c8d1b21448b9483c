#![expect(unsafe_code, reason = "asks the libraries for tests, forks")]
//! Behaviour without a driver, and with one that fails: each test runs itself again in a process
//! whose driver and run-time compiler are test libraries.
#![cfg(feature = "cuda")]

/// The name of a test, as the harness knows it.
macro_rules! named {
    ($name:literal) => {
        concat!(module_path!(), "::", $name)
    };
}

mod compiler;
mod faults;
mod opening;
mod work;

use libloading::Library;
use meetpoint_gpu::cuda::Options;
use meetpoint_gpu::{Compute, Error, KernelName, Launch};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// Set in the second process.
const IS_INSIDE: &str = "FAKE_CUDA_INSIDE";
const NVRTC: &str = "libnvrtc.so.12";
const SOON: Duration = Duration::from_millis(50);

/// Compiles a library, unless it was already compiled from the same source: other processes may use
/// the file.
fn compile(source: &Path, compiled: &Path, library: &Path) {
    let text = std::fs::read(source).expect("the source reads");
    if library.exists() && std::fs::read(compiled).is_ok_and(|old| old == text) {
        return;
    }
    let output = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"])
        .args(["-o".as_ref(), library.as_os_str(), source.as_os_str()])
        .output()
        .expect("a C compiler runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::write(compiled, text).expect("the folder is writable");
}

/// Compiles the libraries once and returns their folder.
fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fake_cuda");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_cuda");
        std::fs::create_dir_all(&folder).expect("the folder is writable");
        let lock = std::fs::File::create(folder.join("lock")).expect("a lock file");
        lock.lock().expect("the lock is taken");
        for (source, library) in [("fake_cuda.c", "libcuda.so.1"), ("fake_nvrtc.c", NVRTC)] {
            compile(&sources.join(source), &folder.join(source), &folder.join(library));
        }
        // The name that is searched first, so that a driver of this machine is not found.
        let _ = std::os::unix::fs::symlink("libcuda.so.1", folder.join("libcuda.so"));
        folder
    })
}

/// Runs this test again in a process with these variables, where it executes `inside`.
fn with_driver(name: &str, variables: &[(&str, &str)], inside: fn()) {
    with_path(name, libraries(), variables, inside);
}

fn with_path(name: &str, path: &Path, variables: &[(&str, &str)], inside: fn()) {
    if std::env::var_os(IS_INSIDE).is_some() {
        return inside();
    }
    let (_program, name) = name.split_once("::").expect("the path of a test");
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(IS_INSIDE, "1")
        .env("LD_LIBRARY_PATH", path)
        .envs(variables.iter().copied())
        .output()
        .expect("this program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{errors}");
}

/// Reads a number from the test library.
fn ask(name: &str) -> i64 {
    // SAFETY: the library is loaded already; its functions have this type.
    unsafe {
        let library = Library::new("libcuda.so.1").expect("it is loaded");
        library.get::<unsafe extern "C" fn() -> i64>(name).expect("a function of it")()
    }
}

fn options() -> Options {
    Options { nvrtc: Some(libraries().join(NVRTC)), ..Options::default() }
}

fn launch(compute: &mut impl Compute, shared_bytes: u32) -> Result<(), Error> {
    compute.launch(&Launch {
        kernel: KernelName { module: "probe", name: "probe_squares" },
        grid: [4, 1, 1],
        block: [32, 1, 1],
        shared_bytes,
        arguments: &[0.into(), 0.into()],
    })
}
