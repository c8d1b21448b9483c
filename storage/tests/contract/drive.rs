//! A namespace whose contents tests may replace, in extents that stand in for files.

use crate::harness::{read, write};
use meetpoint_storage::threads::ThreadsEngine;
use meetpoint_storage::{Access, Engine};
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// Names the namespace, such as /dev/ng0n1.
const VARIABLE: &str = "MEETPOINT_TEST_NVME_OVERWRITE";

/// Names a device of SPDK, such as `spdk:trtype:TCP traddr:127.0.0.1 subnqn:NQN`.
#[cfg(feature = "spdk")]
const SPDK_DEVICE: &str = "MEETPOINT_TEST_SPDK_DEVICE";

/// Names the file or block device with the contents of the device of SPDK.
#[cfg(feature = "spdk")]
const SPDK_BACKING: &str = "MEETPOINT_TEST_SPDK_OVERWRITE";

/// Where extents begin: multiples of this.
const ALIGNMENT: u64 = 1 << 20;

/// A namespace, and where its next extent begins.
pub(crate) struct Drive {
    namespace: PathBuf,
    block_device: PathBuf,
    next: Cell<u64>,
}

impl Drive {
    /// The namespace of the environment; `None` and a message on standard error without one.
    pub(crate) fn of_environment() -> Option<Self> {
        let Some(namespace) = std::env::var_os(VARIABLE) else {
            eprintln!("skipped: the engine nvme: {VARIABLE} names no namespace");
            return None;
        };
        let namespace = PathBuf::from(namespace);
        let name = namespace.file_name().unwrap().to_str().unwrap();
        let block_device = namespace.with_file_name(name.replacen("ng", "nvme", 1));
        Some(Self { namespace, block_device, next: Cell::new(0) })
    }

    /// The device of SPDK that the environment names; `None` and a message on standard error
    /// without one.
    #[cfg(feature = "spdk")]
    pub(crate) fn of_spdk() -> Option<Self> {
        let variables = [SPDK_DEVICE, SPDK_BACKING].map(std::env::var_os);
        let [Some(namespace), Some(block_device)] = variables else {
            eprintln!("skipped: a device of SPDK: {SPDK_DEVICE} and {SPDK_BACKING} name none");
            return None;
        };
        let (namespace, block_device) = (namespace.into(), block_device.into());
        Some(Self { namespace, block_device, next: Cell::new(0) })
    }

    /// A device of SPDK over a file in a folder.
    #[cfg(feature = "spdk")]
    pub(crate) fn of_file(module: &str, folder: &Path) -> Self {
        let block_device = folder.join(format!("{module}.img"));
        std::fs::File::create(&block_device).unwrap().set_len(64 << 20).unwrap();
        let namespace = format!("{module}:{}", block_device.display()).into();
        Self { namespace, block_device, next: Cell::new(0) }
    }

    pub(crate) fn namespace(&self) -> &Path {
        &self.namespace
    }

    /// The block device of the same namespace.
    pub(crate) fn block_device(&self) -> PathBuf {
        self.block_device.clone()
    }

    /// The address of a fresh extent with these bytes, written through the block device. When the
    /// namespace is full, extents are reused from its beginning.
    pub(crate) fn put(&self, bytes: &[u8]) -> PathBuf {
        let mut engine = ThreadsEngine::new(1).unwrap();
        let device = engine.open(&self.block_device(), Access::ReadWrite).unwrap();
        let room = (bytes.len() as u64).next_multiple_of(ALIGNMENT).max(ALIGNMENT);
        let whole = engine.file_bytes(device).unwrap();
        let begin = if self.next.get() + room > whole { 0 } else { self.next.get() };
        self.next.set(begin + room);
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(4096), 0xee);
        write(&mut engine, device, begin, &padded).unwrap();
        PathBuf::from(format!("{}@{begin}+{}", self.namespace.display(), bytes.len()))
    }

    /// The content of an extent, read through the block device.
    pub(crate) fn contents(&self, path: &Path) -> Vec<u8> {
        let (_, extent) = path.to_str().unwrap().rsplit_once('@').unwrap();
        let (begin, bytes) = extent.split_once('+').unwrap();
        let mut engine = ThreadsEngine::new(1).unwrap();
        let device = engine.open(&self.block_device(), Access::Read).unwrap();
        read(&mut engine, device, begin.parse().unwrap(), bytes.parse().unwrap()).unwrap()
    }
}
