//! The contract of `Compute`, tested on the CPU or on the GPU that a variable selects, and
//! properties that only a GPU has. Without a GPU, tests that need one are reported as skipped.
#![cfg(all(feature = "cuda", feature = "shim"))]

use meetpoint_gpu::cuda::{Driver, Gpu, Options};
use meetpoint_gpu::{Argument, Compute, Error, KernelName, Launch, Shim, subject};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const SQUARES: KernelName = KernelName { module: "probe", name: "probe_squares" };

/// The first GPU, unless there is none.
fn gpu() -> Option<Arc<Gpu>> {
    let count = Driver::load().map_or(0, |driver| driver.gpu_count);
    if count == 0 {
        println!("skipped: there is no GPU");
        return None;
    }
    Some(Gpu::open(0, &Options::from_environment()).expect("the GPU opens"))
}

/// The implementation under test.
fn subjects() -> [Box<dyn Compute>; 1] {
    [subject(env!("CARGO_TARGET_TMPDIR").as_ref()).expect("the kernels compile, or the GPU opens")]
}

/// Writes the squares of 0, 1, … to memory. Its arguments are the memory and their number, at most
/// 256.
fn squares(arguments: &[Argument]) -> Launch<'_> {
    Launch { kernel: SQUARES, grid: [4, 1, 1], block: [64, 1, 1], shared_bytes: 0, arguments }
}

#[test]
fn memory_is_aligned_and_host_memory_is_zeroed() {
    for mut compute in subjects() {
        for bytes in [0, 1, 1000] {
            let memory = compute.allocate(bytes).unwrap();
            assert_eq!((memory.bytes(), memory.address() % 256), (bytes, 0));
            let host = compute.allocate_host(bytes).unwrap();
            assert_eq!(*host, vec![0; bytes], "{}", compute.name());
        }
    }
}

#[test]
fn copies_and_fills_take_place_in_the_order_of_the_calls() {
    for mut compute in subjects() {
        let memory = compute.allocate(1000).unwrap();
        let mut pinned = compute.allocate_host(300).unwrap();
        pinned.fill(7);
        compute.fill(&memory, 0, 1000, 3).unwrap();
        compute.upload(&pinned, &memory, 100).unwrap();
        compute.fill(&memory, 350, 10, 4).unwrap();
        compute.upload(&[9; 5], &memory, 352).unwrap();
        compute.upload(&[], &memory, 1000).unwrap();
        compute.fill(&memory, 1000, 0, 1).unwrap();
        let mut found = vec![0; 1000];
        compute.download(&memory, 0, &mut found).unwrap();
        let mut expected = [3; 1000];
        expected[100..400].fill(7);
        expected[350..360].fill(4);
        expected[352..357].fill(9);
        assert_eq!(found, expected, "{}", compute.name());
        let mut part = compute.allocate_host(20).unwrap();
        compute.download(&memory, 345, &mut part).unwrap();
        assert_eq!(*part, expected[345..365], "{}", compute.name());
        compute.wait(LIMIT).unwrap();
        assert!(compute.is_done().unwrap());
    }
}

#[test]
fn kernels_see_their_arguments_and_write_inside_of_their_memory() {
    for mut compute in subjects() {
        let memory = compute.allocate(4 * 300).unwrap();
        compute.fill(&memory, 0, 4 * 300, 0xff).unwrap();
        let arguments = [(&memory).into(), 250.into()];
        let launch = squares(&arguments);
        compute.launch(&launch).unwrap();
        // A launch without a block does nothing.
        compute.launch(&Launch { grid: [0, 1, 1], ..launch }).unwrap();
        let mut found = vec![0; 4 * 300];
        compute.download(&memory, 0, &mut found).unwrap();
        for (at, word) in found.as_chunks().0.iter().enumerate() {
            let at = at as u32;
            let expected = if at < 250 { at * at } else { u32::MAX };
            assert_eq!(u32::from_le_bytes(*word), expected, "{} at {at}", compute.name());
        }
    }
}

#[test]
fn on_the_cpu_an_access_outside_of_an_allocation_is_an_error() {
    let mut compute = Shim::start(env!("CARGO_TARGET_TMPDIR").as_ref()).unwrap();
    let memory = compute.allocate(4 * 249).unwrap();
    let arguments = [(&memory).into(), 250.into()];
    let launch = squares(&arguments);
    compute.launch(&launch).unwrap();
    let error = compute.wait(LIMIT).unwrap_err();
    assert!(matches!(error, Error::Shim { .. }), "{error}");
}

#[test]
fn a_gpu_passes_its_self_test_and_is_described() {
    let Some(gpu) = gpu() else { return };
    gpu.self_test(&|| false).unwrap();
    gpu.load_kernels(&|| false).unwrap();
    let info = gpu.info();
    println!("{info:?}, {:?}", gpu.compiler());
    assert!(info.multiprocessors > 0 && info.total_bytes > 1 << 30 && info.capability.0 >= 7);
    assert_eq!(gpu.bytes_allocated().device_bytes, 0);
}

#[test]
fn a_gpu_without_the_memory_reports_what_is_free() {
    let Some(gpu) = gpu() else { return };
    let mut compute = gpu.compute().unwrap();
    let total = gpu.info().total_bytes;
    match compute.allocate(usize::try_from(2 * total).unwrap()) {
        Err(Error::OutOfMemory { bytes, free, total: found }) => {
            assert_eq!(bytes, 2 * total);
            assert!(free <= found && found <= total);
        }
        other => panic!("{other:?}"),
    }
    gpu.self_test(&|| false).unwrap();
}

#[test]
fn streams_of_a_gpu_wait_for_each_other_and_events_measure_time() {
    let Some(gpu) = gpu() else { return };
    let (mut first, mut second) = (gpu.compute().unwrap(), gpu.compute().unwrap());
    let bytes = 64 << 20;
    let memory = first.allocate(bytes).unwrap();
    let (start, end) = (gpu.event().unwrap(), gpu.event().unwrap());
    for value in 0..20_u8 {
        first.record(&start).unwrap();
        first.fill(&memory, 0, bytes, value).unwrap();
        first.record(&end).unwrap();
        second.wait_for_event(&end).unwrap();
        let host = gpu.allocate_host(1000).unwrap();
        let download = second.download_async(&memory, bytes - 1000, host).unwrap();
        let host = download.into_memory(LIMIT).unwrap();
        assert!(host.iter().all(|byte| *byte == value), "{value}");
        assert!(end.query().unwrap() && end.milliseconds_since(&start).unwrap() > 0.0);
    }
}

#[test]
fn after_an_illegal_address_every_call_to_the_gpu_is_that_error() {
    let name = "after_an_illegal_address_every_call_to_the_gpu_is_that_error";
    // The failure affects the whole process, so this test runs in a separate one.
    if std::env::var_os("ILLEGAL_ADDRESS").is_none() {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env("ILLEGAL_ADDRESS", "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        return print!("{text}");
    }
    let Some(gpu) = gpu() else { return };
    let mut compute = gpu.compute().unwrap();
    let memory = compute.allocate(100).unwrap();
    compute
        .launch(&Launch {
            kernel: SQUARES,
            grid: [1, 1, 1],
            block: [32, 1, 1],
            shared_bytes: 0,
            arguments: &[meetpoint_gpu::Argument::Address(0), 32.into()],
        })
        .unwrap();
    let is_that = |result: Result<(), Error>| match result {
        Err(Error::Driver { name, .. }) => assert_eq!(name, "CUDA_ERROR_ILLEGAL_ADDRESS"),
        other => panic!("{other:?}"),
    };
    is_that(compute.wait(LIMIT));
    is_that(compute.fill(&memory, 0, 100, 1));
    is_that(gpu.self_test(&|| false));
    drop((memory, compute, gpu));
}
