//! Which GPU batches are brought to.

use std::fmt;
use std::str::FromStr;

/// A GPU, `cuda` or `cuda:INDEX`, which may be followed by nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceOut {
    /// Index among the GPUs that this process sees.
    pub index: u32,
}

/// A text that names no GPU.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a GPU")]
pub struct DeviceOutSyntax {
    /// The text.
    pub text: String,
}

impl DeviceOutSyntax {
    /// What is expected.
    pub const EXPECTED: &'static str = "\"cuda\" or \"cuda:INDEX\", such as \"cuda:0\"";
}

impl FromStr for DeviceOut {
    type Err = DeviceOutSyntax;

    fn from_str(text: &str) -> Result<Self, DeviceOutSyntax> {
        let index = match text.strip_prefix("cuda") {
            Some("") => Some(0),
            Some(rest) => rest.strip_prefix(':').and_then(|digits| {
                // No signs, which a number may have.
                let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
                digits.parse().ok().filter(|index: &u32| are_digits && *index < 1 << 16)
            }),
            None => None,
        };
        index.map(|index| Self { index }).ok_or_else(|| DeviceOutSyntax { text: text.to_owned() })
    }
}

impl fmt::Display for DeviceOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{}", self.index)
    }
}

/// A stage that brings batches to an NVIDIA GPU.
#[cfg(feature = "cuda")]
pub type CudaStage = super::stage::DeliveryStage<meetpoint_gpu::cuda::CudaCompute>;

/// A batch on an NVIDIA GPU.
#[cfg(feature = "cuda")]
pub type CudaBatch = super::stage::GpuBatch<meetpoint_gpu::cuda::CudaCompute>;

/// Its memory.
#[cfg(feature = "cuda")]
pub type CudaMemory = meetpoint_gpu::delivery::DeviceBatch<meetpoint_gpu::cuda::CudaCompute>;

/// Opens a GPU for batches, divided as given, or as they are. The run-time compiler is also
/// searched for in these folders of Python packages.
#[cfg(feature = "cuda")]
pub fn open_cuda(
    device: DeviceOut,
    split: Option<&super::split::Split>,
    limits: meetpoint_gpu::delivery::DeliveryLimits,
    package_folders: Vec<std::path::PathBuf>,
) -> Result<CudaStage, meetpoint_gpu::Error> {
    use meetpoint_gpu::cuda::{Gpu, Options};
    let mut options = Options::from_environment();
    options.package_folders.extend(package_folders);
    let gpu = Gpu::open(device.index, &options)?;
    super::stage::DeliveryStage::new(gpu.compute()?, split, limits)
}

#[cfg(test)]
mod tests {
    use super::DeviceOut;

    #[test]
    fn a_gpu_is_named_as_in_torch() {
        assert_eq!("cuda".parse(), Ok(DeviceOut { index: 0 }));
        assert_eq!("cuda:3".parse::<DeviceOut>().unwrap().to_string(), "cuda:3");
        for wrong in ["", "cuda:", "cuda:x", "cuda:-1", "cuda:+1", "cuda:99999", "tpu", "cuda0"] {
            assert_eq!(wrong.parse::<DeviceOut>().unwrap_err().text, wrong);
        }
    }
}
