//! A GPU that fails or hangs, and a forked child.

use crate::{SOON, ask, launch, options, with_driver};
use libloading::Library;
use meetpoint_gpu::cuda::{Gpu, Options};
use meetpoint_gpu::delivery::{
    Consumers, Conversion, Delivery, DeliveryLimits, ElementBytes, Order, Streams,
};
use meetpoint_gpu::{Compute, Error, GpuIndex, KernelName, Launch, MODULES};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn after_a_fault_of_a_kernel_every_call_is_that_error() {
    let name = named!("after_a_fault_of_a_kernel_every_call_is_that_error");
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
fn errors_that_end_the_use_of_a_context_lose_the_gpu_and_others_do_not() {
    let name = named!("errors_that_end_the_use_of_a_context_lose_the_gpu_and_others_do_not");
    with_driver(name, &[], || {
        let is_lost_after = |code: i32| {
            let gpu = Gpu::open(0, &options()).unwrap();
            // SAFETY: the library is loaded already; its function has this type.
            unsafe {
                let library = Library::new("libcuda.so.1").unwrap();
                library.get::<unsafe extern "C" fn(i32)>("fake_fail").unwrap()(code);
            }
            assert!(matches!(gpu.event(), Err(Error::Driver { .. })), "error {code}");
            ask("fake_recover");
            gpu.check().is_err()
        };
        // Numbers of `CUresult` in NVIDIA's reference.
        let fatal = [
            4, 46, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911,
            999,
        ];
        assert_eq!(fatal.map(is_lost_after), [true; 19]);
        let harmless = [1, 2, 201, 304, 400, 401, 701, 712, 713, 720, 801, 807, 900, 909];
        assert_eq!(harmless.map(is_lost_after), [false; 14]);
    });
}

#[test]
fn a_shared_gpu_is_opened_once_and_again_after_a_failure() {
    let name = named!("a_shared_gpu_is_opened_once_and_again_after_a_failure");
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
    with_driver(named!("a_refused_launch_does_not_lose_the_gpu"), &[], || {
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
    let name = named!("a_hanging_gpu_is_an_error_after_the_limit_and_blocks_no_destructor");
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
fn a_stop_while_the_first_kernels_hang_frees_nothing() {
    let name = named!("a_stop_while_the_first_kernels_hang_frees_nothing");
    with_driver(name, &[("FAKE_CUDA_HANG_LAUNCH", "1")], || {
        let gpu = Gpu::open(0, &options()).unwrap();
        assert!(matches!(gpu.self_test(&|| true), Err(Error::Stopped)));
        let squares = ask("fake_device_bytes");
        assert_ne!(squares, 0, "the driver would wait for the GPU");
        let (order, channels) = (Order::Planes, 3);
        let elements = ElementBytes::Table32(Box::new([0; 768]));
        let conversion = Conversion { elements, order, channels };
        let (compute, limits) = (gpu.compute().unwrap(), DeliveryLimits::default());
        let opened = Delivery::new_unless(compute, &[conversion], limits, &|| true);
        assert!(matches!(opened, Err(Error::Stopped)), "{opened:?}");
        assert!(ask("fake_device_bytes") > squares);
    });
}

#[test]
fn nothing_is_freed_until_the_work_that_was_late_has_ended() {
    let name = named!("nothing_is_freed_until_the_work_that_was_late_has_ended");
    with_driver(name, &[("FAKE_CUDA_HANG_LAUNCH", "1")], || {
        let gpu = Gpu::open(0, &options()).unwrap();
        let (mut late, mut other) = (gpu.compute().unwrap(), gpu.compute().unwrap());
        let [first, second] = [100, 30].map(|bytes| late.allocate(bytes).unwrap());
        let before = gpu.event().unwrap();
        other.record(&before).unwrap();
        launch(&mut late, 0).unwrap();
        assert!(matches!(late.wait(SOON), Err(Error::Hung { .. })));
        // Another wait that ends well says nothing about the late work.
        before.wait(SOON).unwrap();
        drop(first);
        assert_eq!(ask("fake_device_bytes"), 130);
        ask("fake_finish");
        drop(second);
        assert_eq!(ask("fake_device_bytes"), 100);
    });
}

#[test]
fn a_wait_for_all_work_ends_at_its_limit_and_nothing_is_freed_before_the_work_ends() {
    let name =
        named!("a_wait_for_all_work_ends_at_its_limit_and_nothing_is_freed_before_the_work_ends");
    with_driver(name, &[("FAKE_CUDA_HANG_LAUNCH", "1")], || {
        let gpu = Gpu::open(0, &options()).unwrap();
        let mut compute = gpu.compute().unwrap();
        let consumers = compute.consumers();
        consumers.settle(SOON, &|| false).unwrap();
        let [first, second] = [100, 30].map(|bytes| compute.allocate(bytes).unwrap());
        launch(&mut compute, 0).unwrap();
        assert!(matches!(consumers.settle(SOON, &|| false), Err(Error::Hung { .. })));
        let never = Duration::from_secs(3600);
        assert!(matches!(consumers.settle(never, &|| true), Err(Error::Stopped)));
        drop(first);
        assert_eq!(ask("fake_device_bytes"), 130);
        ask("fake_finish");
        consumers.settle(never, &|| false).unwrap();
        // The two threads that still wait return now; until they have, nothing is freed.
        let mut frees = || {
            let before = ask("fake_device_bytes");
            drop(compute.allocate(1).unwrap());
            ask("fake_device_bytes") == before
        };
        let start = Instant::now();
        while !frees() {
            assert!(start.elapsed() < Duration::from_secs(60), "the threads did not return");
        }
        let before = ask("fake_device_bytes");
        drop(second);
        assert_eq!(ask("fake_device_bytes"), before - 30);
    });
}

#[test]
fn in_a_forked_child_every_call_is_refused_and_nothing_is_freed() {
    let name = named!("in_a_forked_child_every_call_is_refused_and_nothing_is_freed");
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
