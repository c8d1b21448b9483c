#![expect(unsafe_code, reason = "asks the libraries for tests, forks")]
//! Behaviour without a driver, and with one that fails: each test runs itself again in a process
//! whose driver and run-time compiler are test libraries.
#![cfg(feature = "cuda")]

use libloading::Library;
use meetpoint_gpu::cuda::{Allocated, Driver, Gpu, Options, Version};
use meetpoint_gpu::{Compute, Error, GpuIndex, KernelName, Launch, MODULES};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
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

#[test]
fn without_a_driver_opening_is_a_typed_error() {
    let empty = tempfile::tempdir().unwrap();
    with_path("without_a_driver_opening_is_a_typed_error", empty.path(), &[], || {
        // On a machine that has a driver, nothing is asserted.
        match Gpu::open(0, &options()) {
            Err(Error::NoDriver) => {}
            other => assert!(Path::new("/proc/driver/nvidia").exists(), "{other:?}"),
        }
    });
}

#[test]
fn a_library_that_lacks_functions_is_an_error_that_names_one() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("part.c");
    std::fs::write(&source, "int cuDriverGetVersion(int *v) { return *v = 12080, 0; }").unwrap();
    compile(&source, &folder.path().join("old"), &folder.path().join("libcuda.so"));
    let name = "a_library_that_lacks_functions_is_an_error_that_names_one";
    with_path(name, folder.path(), &[], || match Gpu::open(0, &options()) {
        Err(Error::Driver { call, .. }) => assert_eq!(call, "cuCtxGetCurrent"),
        other => panic!("{other:?}"),
    });
}

#[test]
fn the_library_for_linking_alone_is_no_driver() {
    let name = "the_library_for_linking_alone_is_no_driver";
    with_driver(name, &[("FAKE_CUDA_NO_INIT", "34")], || {
        assert!(matches!(Driver::load(), Err(Error::NoDriver)));
    });
}

#[test]
fn an_old_driver_is_refused_with_its_version() {
    let name = "an_old_driver_is_refused_with_its_version";
    with_driver(name, &[("FAKE_CUDA_VERSION", "11080")], || {
        let error = Gpu::open(0, &options()).unwrap_err();
        assert!(matches!(error, Error::OldDriver { found_major: 11, found_minor: 8 }), "{error}");
    });
}

#[test]
fn a_driver_without_a_gpu_is_refused() {
    let name = "a_driver_without_a_gpu_is_refused";
    with_driver(name, &[("FAKE_CUDA_DEVICES", "0")], || {
        let version = Version { major: 12, minor: 8 };
        let driver = Driver::load().unwrap();
        assert_eq!((driver.version, driver.gpu_count), (version, 0));
        let error = Gpu::open(0, &options()).unwrap_err();
        assert!(matches!(error, Error::NoDevice { index: 0, count: 0 }), "{error}");
    });
}

#[test]
fn a_driver_that_does_not_start_is_an_error_with_its_name() {
    let name = "a_driver_that_does_not_start_is_an_error_with_its_name";
    with_driver(name, &[("FAKE_CUDA_NO_INIT", "999")], || match Driver::load() {
        Err(Error::Driver { call: "cuInit", name, .. }) => assert_eq!(name, "CUDA_ERROR_UNKNOWN"),
        other => panic!("{other:?}"),
    });
}

#[test]
fn a_gpu_is_described() {
    with_driver("a_gpu_is_described", &[("FAKE_CUDA_DEVICES", "2")], || {
        let gpu = Gpu::open(1, &options()).unwrap();
        let info = gpu.info();
        assert_eq!((info.name.as_str(), info.index), ("Fake GPU 1", 1));
        assert_eq!((info.capability, info.multiprocessors), ((9, 0), 132));
        assert_eq!((info.pci_bus.as_str(), info.total_bytes), ("0000:02:00.0", 1 << 30));
        assert_eq!(info.driver, Version { major: 12, minor: 8 });
        let error = Gpu::open(2, &options()).unwrap_err();
        assert!(matches!(error, Error::NoDevice { index: 2, count: 2 }), "{error}");
    });
}

#[test]
fn copies_and_fills_arrive_and_everything_is_freed() {
    with_driver("copies_and_fills_arrive_and_everything_is_freed", &[], || {
        let gpu = Gpu::open(0, &options()).unwrap();
        let mut compute = gpu.compute().unwrap();
        assert_eq!(compute.name(), "Fake GPU 0");
        let memory = compute.allocate(1000).unwrap();
        assert_eq!(memory.address() % 256, 0);
        let mut pinned = compute.allocate_host(300).unwrap();
        assert!(pinned.iter().all(|byte| *byte == 0));
        pinned.fill(7);
        compute.fill(&memory, 0, 1000, 3).unwrap();
        compute.upload(&pinned, &memory, 200).unwrap();
        let mut out = vec![0; 600];
        compute.download(&memory, 0, &mut out).unwrap();
        let expected = [[3; 200].as_slice(), &[7; 300], &[3; 100]].concat();
        assert_eq!(out, expected);
        let fence = compute.fence().unwrap();
        let mut other = gpu.compute().unwrap();
        other.wait_for_fence(&fence).unwrap();
        other.copy(&memory, 200, &memory, 800, 100).unwrap();
        other.copy(&memory, 200, &memory, 0, 0).unwrap();
        let mut copied = [0; 300];
        other.download(&memory, 700, &mut copied).unwrap();
        assert_eq!(copied.chunks(100).map(|part| part[50]).collect::<Vec<u8>>(), [3, 7, 3]);
        drop((other, fence));
        let download = compute.download_async(&memory, 250, pinned).unwrap();
        download.wait(SOON).unwrap();
        assert!(download.query().unwrap());
        let pinned = download.into_memory(SOON).unwrap();
        assert_eq!(*pinned, expected[250..550]);
        let allocated = Allocated { device_bytes: 1000, pinned_bytes: 300, allocations: 2 };
        assert_eq!(gpu.bytes_allocated(), allocated);
        assert_eq!((ask("fake_device_bytes"), ask("fake_pinned_bytes")), (1000, 300));
        // An empty copy makes no call, and an empty allocation succeeds.
        let nothing = compute.allocate(0).unwrap();
        compute.upload(&[], &nothing, 0).unwrap();
        compute.fill(&nothing, 0, 0, 1).unwrap();
        compute.download(&nothing, 0, &mut []).unwrap();
        launch(&mut compute, 0).unwrap();
        drop((memory, pinned, nothing));
        assert_eq!((gpu.bytes_allocated().device_bytes, ask("fake_device_bytes")), (0, 0));
        drop(compute);
        drop(gpu);
        assert_eq!(ask("fake_live"), 0, "a context, stream, event, module or memory remains");
        assert_eq!(ask("fake_depth"), 0, "the context of the thread is as before");
    });
}

#[test]
fn memory_of_others_is_locked_until_the_lock_is_dropped() {
    let name = "memory_of_others_is_locked_until_the_lock_is_dropped";
    with_driver(name, &[("FAKE_CUDA_PINNED", "5000")], || {
        let gpu = Gpu::open(0, &options()).unwrap();
        let mut compute = gpu.compute().unwrap();
        let bytes = vec![7; 4096];
        let lock = compute.lock_pages(&bytes).unwrap();
        assert_eq!((lock.bytes(), ask("fake_pinned_bytes")), (4096, 4096));
        assert_eq!(gpu.bytes_allocated().pinned_bytes, 4096);
        let error = compute.lock_pages(&[0; 1000]).unwrap_err();
        assert!(matches!(error, Error::NoPinnedMemory { bytes: 1000 }), "{error}");
        // It is not a failure of the GPU.
        let memory = compute.allocate(4096).unwrap();
        compute.upload(&bytes, &memory, 0).unwrap();
        drop(lock);
        assert_eq!((ask("fake_pinned_bytes"), gpu.bytes_allocated().pinned_bytes), (0, 0));
        drop((memory, compute, gpu));
        assert_eq!(ask("fake_live"), 0);
    });
}

#[test]
fn too_large_an_allocation_reports_what_is_free() {
    let name = "too_large_an_allocation_reports_what_is_free";
    let limits = [("FAKE_CUDA_MEMORY", "10000"), ("FAKE_CUDA_PINNED", "500")];
    with_driver(name, &limits, || {
        let gpu = Gpu::open(0, &options()).unwrap();
        let mut compute = gpu.compute().unwrap();
        let memory = compute.allocate(8000).unwrap();
        let error = compute.allocate(3000).unwrap_err();
        assert!(
            matches!(error, Error::OutOfMemory { bytes: 3000, free: 2000, total: 10000 }),
            "{error}"
        );
        let error = compute.allocate_host(501).unwrap_err();
        assert!(matches!(error, Error::NoPinnedMemory { bytes: 501 }), "{error}");
        // It is not a failure of the GPU.
        drop(memory);
        compute.allocate(3000).unwrap();
        assert_eq!(gpu.free_and_total_bytes().unwrap(), (10000, 10000));
    });
}

#[test]
fn after_a_fault_of_a_kernel_every_call_is_that_error() {
    let name = "after_a_fault_of_a_kernel_every_call_is_that_error";
    with_driver(name, &[("FAKE_CUDA_FAIL_LAUNCH", "2")], || {
        let gpu = Gpu::open(0, &options()).unwrap();
        let mut compute = gpu.compute().unwrap();
        let memory = compute.allocate(100).unwrap();
        launch(&mut compute, 0).unwrap();
        compute.wait(SOON).unwrap();
        launch(&mut compute, 0).unwrap();
        let is_that = |result: Result<(), Error>| match result {
            Err(Error::Driver { name, .. }) => assert_eq!(name, "CUDA_ERROR_ILLEGAL_ADDRESS"),
            other => panic!("{other:?}"),
        };
        is_that(compute.wait(SOON));
        is_that(compute.is_done().map(|_| ()));
        is_that(gpu.check());
        is_that(launch(&mut compute, 0));
        is_that(compute.allocate(1).map(|_| ()));
        is_that(compute.download(&memory, 0, &mut [0; 4]));
        is_that(compute.copy(&memory, 0, &memory, 50, 50));
        is_that(compute.fence().map(|_| ()));
        is_that(gpu.compute().map(|_| ()));
        assert_eq!(ask("fake_launches"), 2);
    });
}

#[test]
fn a_shared_gpu_is_opened_once_and_again_after_a_failure() {
    let name = "a_shared_gpu_is_opened_once_and_again_after_a_failure";
    let variables = [("FAKE_CUDA_FAIL_LAUNCH", "1"), ("FAKE_CUDA_DEVICES", "2")];
    with_driver(name, &variables, || {
        let first = Gpu::shared(GpuIndex(0), &options()).unwrap();
        let again = Gpu::shared(GpuIndex(0), &options()).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        first.load_kernels(&|| false).unwrap();
        assert_eq!(
            (first.modules_compiled(), again.modules_compiled()),
            (MODULES.len() as u64, MODULES.len() as u64)
        );
        let other = Gpu::shared(GpuIndex(1), &options()).unwrap();
        assert_eq!((first.info().index, other.info().index), (0, 1));
        drop((first, again, other));
        assert_eq!(ask("fake_live"), 0, "nothing but its users keeps a GPU open");
        let first = Gpu::shared(GpuIndex(0), &options()).unwrap();
        launch(&mut first.compute().unwrap(), 0).unwrap();
        first.compute().unwrap_err();
        ask("fake_recover");
        let new = Gpu::shared(GpuIndex(0), &options()).unwrap();
        assert!(!Arc::ptr_eq(&first, &new));
        new.check().unwrap();
        assert!(Arc::ptr_eq(&new, &Gpu::shared(GpuIndex(0), &options()).unwrap()));
    });
}

#[test]
fn a_refused_launch_does_not_lose_the_gpu() {
    with_driver("a_refused_launch_does_not_lose_the_gpu", &[], || {
        let gpu = Gpu::open(0, &options()).unwrap();
        let mut compute = gpu.compute().unwrap();
        let kernel = KernelName { module: "probe", name: "probe_squares" };
        let (grid, arguments) = ([1, 1, 1], &[0.into(), 0.into()]);
        let block = [2048, 1, 1];
        let refused = compute
            .launch(&Launch { kernel, grid, block, shared_bytes: 0, arguments })
            .unwrap_err();
        assert!(matches!(refused, Error::Driver { call: "cuLaunchKernel", .. }), "{refused}");
        gpu.check().unwrap();
        launch(&mut compute, 0).unwrap();
        compute.wait(SOON).unwrap();
    });
}

#[test]
fn a_hanging_gpu_is_an_error_after_the_limit_and_blocks_no_destructor() {
    let name = "a_hanging_gpu_is_an_error_after_the_limit_and_blocks_no_destructor";
    with_driver(name, &[("FAKE_CUDA_HANG_LAUNCH", "1")], || {
        let options = Options { hang_limit: SOON, ..options() };
        let gpu = Gpu::open(0, &options).unwrap();
        let mut compute = gpu.compute().unwrap();
        let memory = compute.allocate(100).unwrap();
        compute.wait(SOON).unwrap();
        assert!(compute.is_done().unwrap());
        launch(&mut compute, 0).unwrap();
        assert!(!compute.is_done().unwrap());
        let asked = Cell::new(0);
        let stops = || asked.replace(asked.get() + 1) > 0;
        let late = Duration::from_secs(3600);
        assert!(matches!(compute.wait_unless(late, &stops), Err(Error::Stopped)));
        assert_eq!(asked.get(), 2);
        assert!(matches!(compute.wait(SOON), Err(Error::Hung { .. })));
        assert!(matches!(compute.download(&memory, 0, &mut [0; 4]), Err(Error::Hung { .. })));
        assert!(gpu.check().is_ok(), "work that is late may still end");
        drop(memory);
        assert_eq!(ask("fake_device_bytes"), 100, "the driver would wait for the GPU");
    });
}

#[test]
fn streams_of_others_are_waited_for_in_both_directions() {
    with_driver("streams_of_others_are_waited_for_in_both_directions", &[], || {
        let gpu = Gpu::open(0, &options()).unwrap();
        let (mut first, mut second) = (gpu.compute().unwrap(), gpu.compute().unwrap());
        let own = |handle: u64| handle.cast_signed();
        assert_ne!(first.stream_handle(), second.stream_handle());
        let (start, end) = (gpu.event().unwrap(), gpu.event().unwrap());
        first.record(&start).unwrap();
        assert_eq!(ask("fake_last_record_stream"), own(first.stream_handle()));
        // The special streams of DLPack have their own numbers in the driver too.
        for stream in [0, 1, 2, second.stream_handle()] {
            // SAFETY: the streams exist.
            unsafe { first.wait_on(stream, &start).unwrap() };
            assert_eq!(ask("fake_last_wait_stream"), own(stream));
            // SAFETY: as above.
            unsafe { first.wait_for_stream(stream).unwrap() };
            assert_eq!(ask("fake_last_record_stream"), own(stream));
            assert_eq!(ask("fake_last_wait_stream"), own(first.stream_handle()));
        }
        second.wait_for_event(&start).unwrap();
        second.record(&end).unwrap();
        end.wait(SOON).unwrap();
        assert!(end.query().unwrap() && end.milliseconds_since(&start).unwrap() > 0.0);
        assert_eq!(ask("fake_waits"), 9);
    });
}

#[test]
fn threads_share_a_gpu_and_a_module_is_compiled_once() {
    with_driver("threads_share_a_gpu_and_a_module_is_compiled_once", &[], || {
        let gpu = Gpu::open(0, &options()).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut compute = gpu.compute().unwrap();
                    for round in 0..50_u8 {
                        let memory = compute.allocate(64).unwrap();
                        compute.fill(&memory, 0, 64, round).unwrap();
                        launch(&mut compute, 0).unwrap();
                        let mut out = [0; 64];
                        compute.download(&memory, 0, &mut out).unwrap();
                        assert_eq!(out, [round; 64]);
                    }
                });
            }
        });
        assert_eq!((gpu.modules_compiled(), gpu.bytes_allocated().device_bytes), (1, 0));
        drop(gpu);
        assert_eq!(ask("fake_live"), 0);
    });
}

#[test]
fn a_kernel_gets_more_shared_memory_than_the_default() {
    with_driver("a_kernel_gets_more_shared_memory_than_the_default", &[], || {
        let gpu = Gpu::open(0, &options()).unwrap();
        let mut compute = gpu.compute().unwrap();
        launch(&mut compute, 48 << 10).unwrap();
        assert_eq!(ask("fake_shared_max") as i32, 0);
        launch(&mut compute, 100 << 10).unwrap();
        // Shared memory that the kernel declares itself is not available to the launch.
        assert_eq!(ask("fake_shared_max") as i32, 232_448 - 1024);
    });
}

#[test]
fn kernels_are_compiled_once_per_machine_and_again_when_a_file_is_damaged() {
    let name = "kernels_are_compiled_once_per_machine_and_again_when_a_file_is_damaged";
    with_driver(name, &[], || {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cubin");
        let compiled = |cache: &Path| {
            let options = Options { cache: Some(cache.to_path_buf()), ..options() };
            let gpu = Gpu::open(0, &options).unwrap();
            launch(&mut gpu.compute().unwrap(), 0).unwrap();
            gpu.modules_compiled()
        };
        assert_eq!([compiled(&cache), compiled(&cache)], [1, 0]);
        let file = std::fs::read_dir(&cache).unwrap().next().unwrap().unwrap().path();
        let mut content = std::fs::read(&file).unwrap();
        assert!(content.ends_with(b"fake probe.cu for sm_90\0"));
        *content.last_mut().unwrap() = 1;
        std::fs::write(&file, content).unwrap();
        assert_eq!([compiled(&cache), compiled(&cache)], [1, 0]);
        let unwritable = Path::new("/proc/cubin");
        assert_eq!([compiled(unwritable), compiled(unwritable)], [1, 1]);
    });
}

#[test]
fn a_newer_gpu_than_the_compiler_knows_gets_ptx() {
    with_driver("a_newer_gpu_than_the_compiler_knows_gets_ptx", &[("FAKE_CUDA_SM", "120")], || {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { cache: Some(folder.path().to_path_buf()), ..options() };
        let gpu = Gpu::open(0, &options).unwrap();
        launch(&mut gpu.compute().unwrap(), 0).unwrap();
        let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        assert!(std::fs::read(file).unwrap().ends_with(b"fake probe.cu for compute_90\0"));
    });
}

#[test]
fn every_module_is_compiled_by_nvidias_compiler_where_there_is_one() {
    let name = "every_module_is_compiled_by_nvidias_compiler_where_there_is_one";
    if Options::from_environment().nvrtc.is_none() {
        return println!("skipped: MEETPOINT_NVRTC names no compiler");
    }
    with_driver(name, &[], || {
        let options = Options { cache: None, ..Options::from_environment() };
        let gpu = Gpu::open(0, &options).unwrap();
        gpu.load_kernels(&|| false).unwrap();
        assert_eq!(gpu.modules_compiled(), MODULES.len() as u64);
    });
}

#[test]
fn failures_of_the_compiler_name_module_architecture_and_log() {
    let name = "failures_of_the_compiler_name_module_architecture_and_log";
    with_driver(name, &[("FAKE_NVRTC_FAIL", "error: a type is unknown")], || {
        let gpu = Gpu::open(0, &options()).unwrap();
        match launch(&mut gpu.compute().unwrap(), 0) {
            Err(Error::Compile { module: "probe", architecture, log }) => {
                assert_eq!(architecture, "sm_90");
                assert_eq!(log, "probe.cu: error: a type is unknown");
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_compiler_that_is_not_found_is_an_error_and_an_older_gpu_than_it_knows_too() {
    let name = "a_compiler_that_is_not_found_is_an_error_and_an_older_gpu_than_it_knows_too";
    with_driver(name, &[("FAKE_CUDA_SM", "70")], || {
        let options_without =
            Options { nvrtc: Some("/nowhere/libnvrtc.so.12".into()), ..Options::default() };
        let gpu = Gpu::open(0, &options_without).unwrap();
        assert!(matches!(gpu.compiler(), Err(Error::NoCompiler { .. })));
        let gpu = Gpu::open(0, &options()).unwrap();
        assert_eq!(gpu.compiler().unwrap().version, Version { major: 12, minor: 9 });
        let result = launch(&mut gpu.compute().unwrap(), 0);
        assert!(matches!(result, Err(Error::Compile { .. })), "{result:?}");
    });
}

#[test]
fn a_compiler_for_a_newer_cuda_than_the_drivers_is_not_taken() {
    let name = "a_compiler_for_a_newer_cuda_than_the_drivers_is_not_taken";
    with_driver(name, &[("FAKE_NVRTC_MAJOR", "13")], || {
        // Found by the dynamic loader, as no variable names it.
        let gpu = Gpu::open(0, &Options::default()).unwrap();
        let is_other = |path: &Path| !path.starts_with(libraries());
        assert!(gpu.compiler().map_or(true, |found| is_other(&found.path)));
    });
}

#[test]
fn a_kernel_that_computes_nothing_fails_the_self_test() {
    with_driver("a_kernel_that_computes_nothing_fails_the_self_test", &[], || {
        let gpu = Gpu::open(0, &options()).unwrap();
        assert!(matches!(gpu.self_test(&|| false), Err(Error::WrongResults { .. })));
    });
}

#[test]
fn in_a_forked_child_every_call_is_refused_and_nothing_is_freed() {
    let name = "in_a_forked_child_every_call_is_refused_and_nothing_is_freed";
    with_driver(name, &[], || {
        let gpu = Gpu::open(0, &options()).unwrap();
        let mut compute = gpu.compute().unwrap();
        let memory = compute.allocate(100).unwrap();
        let live = ask("fake_live");
        // SAFETY: the child only calls the functions under test, and ends without exit handlers.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_forked = |result: Result<(), Error>| matches!(result, Err(Error::Forked));
            let all = is_forked(compute.wait(SOON))
                && is_forked(compute.allocate(1).map(|_| ()))
                && is_forked(launch(&mut compute, 0))
                && is_forked(gpu.event().map(|_| ()))
                && is_forked(Gpu::open(0, &options()).map(|_| ()));
            drop((memory, compute));
            drop(Arc::try_unwrap(gpu));
            let code = if all && ask("fake_live") == live { 0 } else { 1 };
            // SAFETY: it ends this process.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: the pointer is to a local variable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child has seen something else");
        drop(memory);
        compute.wait(SOON).unwrap();
        drop(compute);
        drop(gpu);
        assert_eq!(ask("fake_live"), 0);
    });
}
