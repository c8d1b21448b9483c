//! The NVIDIA GPU to which batches are delivered.

use super::split::Split;
use super::stage::{DeliveryStage, GpuBatch};
use meetpoint_gpu::cuda::{CudaCompute, Gpu, Options};
use meetpoint_gpu::delivery::{DeliveryLimits, DeviceBatch};
use meetpoint_gpu::{Error, GpuIndex};
use std::path::PathBuf;

/// A stage that delivers batches to an NVIDIA GPU.
pub type CudaStage = DeliveryStage<CudaCompute>;

/// A batch on an NVIDIA GPU.
pub type CudaBatch = GpuBatch<CudaCompute>;

/// The memory of such a batch.
pub type CudaMemory = DeviceBatch<CudaCompute>;

/// Opens a GPU for batches of the head of a divided recipe. Also searches `package_folders`,
/// folders of Python packages, for the run-time compiler. A request to stop ends its waits.
pub fn open_cuda(
    device: GpuIndex,
    split: &Split,
    limits: DeliveryLimits,
    package_folders: Vec<PathBuf>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<CudaStage, Error> {
    let mut options = Options::from_environment();
    options.package_folders.extend(package_folders);
    let gpu = Gpu::shared(device, &options)?;
    DeliveryStage::new_unless(gpu.compute()?, split, limits, is_stopped)
}
