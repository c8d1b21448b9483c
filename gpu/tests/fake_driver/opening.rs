//! Opens GPUs: without a driver, with one that is unsuitable, and with one that works.

use crate::{compile, options, with_driver, with_path};
use meetpoint_gpu::Error;
use meetpoint_gpu::cuda::{Driver, Gpu, Version};
use std::path::Path;

#[test]
fn without_a_driver_opening_is_a_typed_error() {
    let empty = tempfile::tempdir().unwrap();
    with_path(named!("without_a_driver_opening_is_a_typed_error"), empty.path(), &[], || {
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
    let name = named!("a_library_that_lacks_functions_is_an_error_that_names_one");
    with_path(name, folder.path(), &[], || match Gpu::open(0, &options()) {
        Err(Error::Driver { call, .. }) => assert_eq!(call, "cuCtxGetCurrent"),
        other => panic!("{other:?}"),
    });
}

#[test]
fn the_library_for_linking_alone_is_no_driver() {
    let name = named!("the_library_for_linking_alone_is_no_driver");
    with_driver(name, &[("FAKE_CUDA_NO_INIT", "34")], || {
        assert!(matches!(Driver::load(), Err(Error::NoDriver)));
    });
}

#[test]
fn an_old_driver_is_refused_with_its_version() {
    let name = named!("an_old_driver_is_refused_with_its_version");
    with_driver(name, &[("FAKE_CUDA_VERSION", "11080")], || {
        let error = Gpu::open(0, &options()).unwrap_err();
        assert!(matches!(error, Error::OldDriver { found_major: 11, found_minor: 8 }), "{error}");
    });
}

#[test]
fn a_driver_without_a_gpu_is_refused() {
    let name = named!("a_driver_without_a_gpu_is_refused");
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
    let name = named!("a_driver_that_does_not_start_is_an_error_with_its_name");
    with_driver(name, &[("FAKE_CUDA_NO_INIT", "999")], || match Driver::load() {
        Err(Error::Driver { call: "cuInit", name, .. }) => assert_eq!(name, "CUDA_ERROR_UNKNOWN"),
        other => panic!("{other:?}"),
    });
}

#[test]
fn a_gpu_is_described() {
    with_driver(named!("a_gpu_is_described"), &[("FAKE_CUDA_DEVICES", "2")], || {
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
