//! Tests CUDA: opens every GPU, compiles and runs a test kernel, locks memory.

use super::cuda::{Cuda, Gpu, Problem};
use meetpoint_diagnose::{Diagnose as _, Surface};
use meetpoint_gpu::Error;
use meetpoint_gpu::cuda::{self, Driver, Options};
use std::path::Path;

/// Bytes of page-locked memory to request: the buffers of a few batches.
const PINNED_BYTES: u64 = 64 << 20;

impl Problem {
    fn of(error: &Error) -> Self {
        let remedy = error.remedy().map(|remedy| remedy.spelled(Surface::CommandLine));
        Self { reason: error.to_string(), remedy }
    }
}

impl Cuda {
    /// Queries the driver.
    pub(super) fn take() -> Self {
        let driver = match Driver::load() {
            Ok(driver) => driver,
            Err(error) => return Self::Unusable(Problem::of(&error)),
        };
        if driver.gpu_count == 0 {
            return Self::Unusable(Problem::of(&Error::NoDevice { index: 0, count: 0 }));
        }
        let options = Options::from_environment();
        let opened = (0..driver.gpu_count).map(|index| {
            cuda::Gpu::open(index, &options)
                .and_then(|gpu| describe(&gpu))
                .map_err(|error| Problem::of(&error))
        });
        let gpus = opened.collect();
        let cache = options.cache.map(|folder| {
            let writable = try_folder(&folder).map_err(|error| error.to_string());
            (folder, writable)
        });
        Self::Driver { version: driver.version.to_string(), gpus, cache }
    }
}

fn describe(gpu: &std::sync::Arc<cuda::Gpu>) -> Result<Gpu, Error> {
    let info = gpu.info();
    let (free_bytes, total_bytes) = gpu.free_and_total_bytes()?;
    let problem = |error| Problem::of(&error);
    let compiler = gpu.compiler().map_err(problem);
    let kernel = compiler.is_ok().then(|| gpu.self_test(&|| false).map_err(problem));
    let pinned = gpu.allocate_host(PINNED_BYTES as usize).map(drop).map_err(problem);
    Ok(Gpu {
        index: info.index,
        name: info.name.clone(),
        capability: format!("{}.{}", info.capability.0, info.capability.1),
        multiprocessors: info.multiprocessors,
        free_bytes,
        total_bytes,
        pci_bus: info.pci_bus.clone(),
        compiler: compiler.map(|found| (found.path, found.version.to_string())),
        kernel,
        pinned: (PINNED_BYTES, pinned),
    })
}

/// Whether files can be created in a folder, which is created if it does not exist.
fn try_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    tempfile::tempfile_in(folder).map(drop)
}
