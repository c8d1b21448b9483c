//! Selects the device on which tests run kernels: the CPU, or a GPU that an environment variable
//! names.

use crate::{Compute, Error, Shim};
use std::path::Path;

/// Environment variable with the index of the GPU for tests; without it, they run on the CPU.
pub const TEST_GPU: &str = "MEETPOINT_TEST_GPU";

/// The CPU, whose kernels are compiled into `folder`; or the GPU that [`TEST_GPU`] names.
///
/// # Panics
///
/// If the variable is not a number, or this build does not have the feature `cuda`.
pub fn subject(folder: &Path) -> Result<Box<dyn Compute>, Error> {
    let Some(index) = std::env::var_os(TEST_GPU) else {
        return Ok(Box::new(Shim::start(folder)?));
    };
    let index = index.to_str().and_then(|index| index.parse().ok());
    gpu(index.unwrap_or_else(|| panic!("{TEST_GPU} is the index of a GPU")))
}

#[cfg(feature = "cuda")]
fn gpu(index: u32) -> Result<Box<dyn Compute>, Error> {
    use crate::cuda::{Gpu, Options};
    use std::sync::{Arc, Mutex, PoisonError};

    /// Opened by the first test; the others use it at the same time.
    static OPENED: Mutex<Option<Arc<Gpu>>> = Mutex::new(None);
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let gpu = match &*opened {
        Some(gpu) => Arc::clone(gpu),
        None => Arc::clone(opened.insert(Gpu::open(index, &Options::default())?)),
    };
    Ok(Box::new(gpu.compute()?))
}

#[cfg(not(feature = "cuda"))]
fn gpu(_index: u32) -> Result<Box<dyn Compute>, Error> {
    panic!("this build has no feature cuda")
}
