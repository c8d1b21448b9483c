//! What a GPU does: copies, memory, streams, launches, threads.

use crate::{SOON, ask, launch, options, with_driver};
use meetpoint_gpu::cuda::{Allocated, Gpu};
use meetpoint_gpu::{Compute, Error};

#[test]
fn copies_and_fills_arrive_and_everything_is_freed() {
    with_driver(named!("copies_and_fills_arrive_and_everything_is_freed"), &[], || {
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
    let name = named!("memory_of_others_is_locked_until_the_lock_is_dropped");
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
    let name = named!("too_large_an_allocation_reports_what_is_free");
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
fn streams_of_others_are_waited_for_in_both_directions() {
    with_driver(named!("streams_of_others_are_waited_for_in_both_directions"), &[], || {
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
    with_driver(named!("threads_share_a_gpu_and_a_module_is_compiled_once"), &[], || {
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
    with_driver(named!("a_kernel_gets_more_shared_memory_than_the_default"), &[], || {
        let gpu = Gpu::open(0, &options()).unwrap();
        let mut compute = gpu.compute().unwrap();
        launch(&mut compute, 48 << 10).unwrap();
        assert_eq!(ask("fake_shared_max") as i32, 0);
        launch(&mut compute, 100 << 10).unwrap();
        // Shared memory that the kernel declares itself is not available to the launch.
        assert_eq!(ask("fake_shared_max") as i32, 232_448 - 1024);
    });
}
