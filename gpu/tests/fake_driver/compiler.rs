//! Compiles kernels: once per machine, for newer and older GPUs, and with failures.

use crate::{launch, libraries, options, with_driver};
use meetpoint_gpu::cuda::{Gpu, Options, Version};
use meetpoint_gpu::{Error, MODULES};
use std::path::Path;

#[test]
fn kernels_are_compiled_once_per_machine_and_again_when_a_file_is_damaged() {
    let name = named!("kernels_are_compiled_once_per_machine_and_again_when_a_file_is_damaged");
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
    with_driver(
        named!("a_newer_gpu_than_the_compiler_knows_gets_ptx"),
        &[("FAKE_CUDA_SM", "120")],
        || {
            let folder = tempfile::tempdir().unwrap();
            let options = Options { cache: Some(folder.path().to_path_buf()), ..options() };
            let gpu = Gpu::open(0, &options).unwrap();
            launch(&mut gpu.compute().unwrap(), 0).unwrap();
            let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
            assert!(std::fs::read(file).unwrap().ends_with(b"fake probe.cu for compute_90\0"));
        },
    );
}

#[test]
fn every_module_is_compiled_by_nvidias_compiler_where_there_is_one() {
    let name = named!("every_module_is_compiled_by_nvidias_compiler_where_there_is_one");
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
    let name = named!("failures_of_the_compiler_name_module_architecture_and_log");
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
    let name =
        named!("a_compiler_that_is_not_found_is_an_error_and_an_older_gpu_than_it_knows_too");
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
    let name = named!("a_compiler_for_a_newer_cuda_than_the_drivers_is_not_taken");
    with_driver(name, &[("FAKE_NVRTC_MAJOR", "13")], || {
        // Found by the dynamic loader, as no variable names it.
        let gpu = Gpu::open(0, &Options::default()).unwrap();
        let is_other = |path: &Path| !path.starts_with(libraries());
        assert!(gpu.compiler().map_or(true, |found| is_other(&found.path)));
    });
}

#[test]
fn a_kernel_that_computes_nothing_fails_the_self_test() {
    with_driver(named!("a_kernel_that_computes_nothing_fails_the_self_test"), &[], || {
        let gpu = Gpu::open(0, &options()).unwrap();
        assert!(matches!(gpu.self_test(&|| false), Err(Error::WrongResults { .. })));
    });
}
