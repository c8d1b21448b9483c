//! Results of system calls.

use super::System;
use super::cuda::Cuda;
use meetpoint_storage::RingRefusal;
use meetpoint_storage::probe::{
    DirectSupport, NvmeSupport, UringSupport, probe_direct, probe_memlock, probe_nvme, probe_uring,
};
use std::path::{Path, PathBuf};

/// What the kernel reports.
#[derive(Debug, Clone)]
pub(crate) struct Probes {
    /// Features of io_uring, or why a ring cannot be set up.
    pub io_uring: Result<UringSupport, RingRefusal>,
    /// The folder in which direct access was tested.
    pub direct_path: PathBuf,
    /// Direct reads and writes there, or why they could not be tested.
    pub direct: Result<DirectSupport, String>,
    /// Limit of locked memory in bytes; `None`: no limit.
    pub memlock_bytes: Option<u64>,
    /// What NVMe drives say about their command sets.
    pub nvme: Vec<NvmeSupport>,
    /// NVIDIA GPUs; `None`: this program was built without CUDA.
    pub cuda: Option<Cuda>,
    /// Cores that this process may run on.
    pub cores_allowed: usize,
}

impl Probes {
    /// Queries the kernel; `path` is the folder in which direct access is tested.
    pub(crate) fn take(path: &Path) -> Self {
        Self {
            io_uring: probe_uring(),
            direct_path: path.to_path_buf(),
            direct: probe_direct(path).map_err(|error| error.to_string()),
            memlock_bytes: probe_memlock().current,
            nvme: probe_nvme(System::this().names("sys/class/nvme")),
            cuda: cuda(),
            cores_allowed: crate::surface::cores_allowed(),
        }
    }
}

#[cfg(feature = "cuda")]
fn cuda() -> Option<Cuda> {
    Some(Cuda::take())
}

#[cfg(not(feature = "cuda"))]
fn cuda() -> Option<Cuda> {
    None
}

/// The folder to test for `path`: itself, or its nearest existing ancestor.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    absolute
        .ancestors()
        .find(|ancestor| ancestor.is_dir())
        .map_or_else(|| PathBuf::from("/"), Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::folder_of;

    #[test]
    fn a_missing_folder_is_checked_by_its_parent() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(folder_of(&folder.path().join("new/deep")), folder.path());
        assert_eq!(folder_of(folder.path()), folder.path());
    }
}
