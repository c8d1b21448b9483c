//! Causes and remedies of what can go wrong with a GPU.

use crate::Error;
use meetpoint_diagnose::{Diagnose, Remedy};

impl Diagnose for Error {
    fn cause(&self) -> &'static str {
        match self {
            Self::NoDriver => "gpu_no_driver",
            Self::OldDriver { .. } => "gpu_old_driver",
            Self::NoDevice { .. } => "gpu_not_found",
            Self::NoCompiler { .. } => "gpu_no_compiler",
            Self::Compile { .. } => "gpu_kernel_not_compiled",
            Self::OutOfMemory { .. } => "gpu_out_of_memory",
            Self::NoPinnedMemory { .. } => "gpu_no_pinned_memory",
            Self::Hung { .. } => "gpu_hung",
            Self::Stopped => "interrupted",
            Self::Forked => "gpu_forked",
            Self::WrongResults { .. } => "gpu_wrong_results",
            Self::Driver { .. } => "gpu_failed",
            Self::Shim { .. } => "gpu_shim",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::NoDriver => Remedy::advice("install NVIDIA's driver")
                .or("start the container with its GPUs (docker: --gpus all)"),
            Self::OldDriver { .. } => "install a driver of version 525 or later".into(),
            Self::NoDevice { count: 0, .. } => {
                Remedy::advice("start the container with its GPUs (docker: --gpus all)")
                    .or("check CUDA_VISIBLE_DEVICES and nvidia-smi")
            }
            Self::NoDevice { .. } => "choose a smaller index, or check CUDA_VISIBLE_DEVICES".into(),
            Self::NoCompiler { .. } => {
                Remedy::advice("set MEETPOINT_NVRTC to the path of libnvrtc.so")
                    .or("pip install nvidia-cuda-nvrtc-cu12, where the Python package finds it")
            }
            Self::Compile { .. } => Remedy::advice(
                "use a run-time compiler that knows the GPU (pip install -U \
                 nvidia-cuda-nvrtc-cu12); GPUs below compute capability 7.5 are not supported",
            ),
            Self::OutOfMemory { .. } => {
                Remedy::advice("use smaller batches").or("free memory of the GPU")
            }
            Self::NoPinnedMemory { .. } => Remedy::advice("use smaller batches or fewer workers")
                .or("raise the limit of locked memory: ulimit -l unlimited"),
            Self::Hung { .. } => {
                "look for errors of the GPU in the kernel's log (dmesg: Xid), and \
                                  restart the process"
                    .into()
            }
            Self::Forked => {
                "start worker processes with the method \"spawn\" or \"forkserver\"".into()
            }
            Self::WrongResults { .. } => "update the driver, and check the GPU's memory".into(),
            Self::Driver { call: "cuInit", .. } => {
                "check with nvidia-smi that the driver, its kernel module and, where the GPUs are \
                 linked, the fabric manager have the same version and run"
                    .into()
            }
            Self::Driver { .. } => "restart the process, and look for errors of the GPU in the \
                                    kernel's log (dmesg: Xid)"
                .into(),
            Self::Stopped | Self::Shim { .. } => return None,
        })
    }
}
