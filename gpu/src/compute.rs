//! The interface to a device that runs kernels: memory, and a single queue of copies and launches.

use crate::{Error, KernelName};
use std::any::Any;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

/// Maximum time between two checks for a request to stop while waiting for a device.
pub const ASK_EVERY: Duration = Duration::from_millis(20);

/// How long to wait for work after a request to stop, before its memory is freed. Memory of work
/// that is still not done is never freed.
pub(crate) const END_AFTER_STOP: Duration = Duration::from_millis(50);

/// Runs kernels, one after another in the order of the calls, copies and fills included.
///
/// Calls return before the work is done; [`Compute::wait`] waits for it.
pub trait Compute: Send {
    /// Name of the device, such as that of the GPU.
    fn name(&self) -> &str;

    /// Allocates memory, aligned to 256 bytes. Its content is arbitrary.
    fn allocate(&mut self, bytes: usize) -> Result<DeviceMemory, Error>;

    /// Allocates page-locked memory of the host, which is the fastest for copies. It is zeroed.
    fn allocate_host(&mut self, bytes: usize) -> Result<HostMemory, Error>;

    /// Page-locks existing memory, so that copies access it directly. It
    /// must stay mapped until the lock is dropped.
    fn lock_pages(&mut self, memory: &[u8]) -> Result<PageLock, Error>;

    /// Copies to the device. Do not modify `from` before the copy is done.
    fn upload(&mut self, from: &[u8], to: &DeviceMemory, offset: usize) -> Result<(), Error>;

    /// Copies from the device after all earlier work; returns when the copy is done.
    fn download(&mut self, from: &DeviceMemory, offset: usize, to: &mut [u8]) -> Result<(), Error>;

    /// Copies between two allocations of the device. Do not free either before the copy is done.
    fn copy(
        &mut self,
        from: &DeviceMemory,
        from_offset: usize,
        to: &DeviceMemory,
        to_offset: usize,
        bytes: usize,
    ) -> Result<(), Error>;

    /// Sets bytes to a value.
    fn fill(
        &mut self,
        memory: &DeviceMemory,
        offset: usize,
        bytes: usize,
        value: u8,
    ) -> Result<(), Error>;

    /// A fence at the end of the work started so far.
    fn fence(&mut self) -> Result<Fence, Error>;

    /// Makes the device begin later work only after a fence, which a [`Compute`] of the same type
    /// on the same device made. The host does not wait.
    fn wait_for_fence(&mut self, fence: &Fence) -> Result<(), Error>;

    /// Starts a kernel. A launch without blocks has no effect.
    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), Error>;

    /// Whether all work is done, without waiting for it if the implementation can tell.
    fn is_done(&mut self) -> Result<bool, Error>;

    /// Waits until all work is done. Returns [`Error::Hung`] after `limit`. Calls `is_stopped` at
    /// least every [`ASK_EVERY`]; if it returns true, returns [`Error::Stopped`] while the work
    /// continues.
    fn wait_unless(&mut self, limit: Duration, is_stopped: &dyn Fn() -> bool) -> Result<(), Error>;

    /// Like [`Self::wait_unless`], for work whose memory is freed next: after a request to stop, it
    /// waits a little longer, so that memory of a device that is not hung can be freed.
    fn wait_before_free(
        &mut self,
        limit: Duration,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let waited = self.wait_unless(limit, is_stopped);
        if matches!(waited, Err(Error::Stopped)) {
            // If this fails, the memory is never freed.
            drop(self.wait(END_AFTER_STOP));
        }
        waited
    }

    /// Like [`Self::wait_unless`], without a request to stop.
    fn wait(&mut self, limit: Duration) -> Result<(), Error> {
        self.wait_unless(limit, &|| false)
    }
}

/// A point in the work of a [`Compute`], for which the work of others on the same device can wait.
#[derive(Clone)]
pub struct Fence(Arc<dyn Any + Send + Sync>);

impl Fence {
    /// A fence at a point, such as an event, of the implementation's own type.
    pub fn new(point: impl Any + Send + Sync) -> Self {
        Self(Arc::new(point))
    }

    /// The point; `None` if it has another type, as that of another implementation.
    pub fn point<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl std::fmt::Debug for Fence {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Fence").finish_non_exhaustive()
    }
}

/// A kernel with its launch configuration and arguments.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: KernelName,
    /// Blocks along each axis.
    pub grid: [u32; 3],
    /// Threads of a block along each axis.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// Its arguments, in their order.
    pub arguments: &'a [Argument],
}

/// An argument of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// A pointer: [`DeviceMemory::address`], optionally with an offset.
    Address(u64),
    /// A `u32`, or the bits of an `i32` or `float`.
    Word(u32),
}

impl From<&DeviceMemory> for Argument {
    fn from(memory: &DeviceMemory) -> Self {
        Self::Address(memory.address)
    }
}

impl From<u32> for Argument {
    fn from(word: u32) -> Self {
        Self::Word(word)
    }
}

/// Memory of the device, freed when it is dropped.
pub struct DeviceMemory {
    address: u64,
    bytes: usize,
    _owner: Box<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for DeviceMemory {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "DeviceMemory({:#x}, {} bytes)", self.address, self.bytes)
    }
}

impl DeviceMemory {
    /// Memory that `owner` frees when it is dropped.
    #[cfg(any(feature = "cuda", feature = "shim"))]
    pub(crate) fn new(address: u64, bytes: usize, owner: Box<dyn Any + Send + Sync>) -> Self {
        Self { address, bytes, _owner: owner }
    }

    /// Address of its first byte, as kernels see it.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Address of the `bytes` bytes from `offset` on.
    ///
    /// # Panics
    ///
    /// If the memory ends before them.
    pub(crate) fn place(&self, offset: usize, bytes: usize) -> u64 {
        let end = offset.checked_add(bytes);
        assert!(end.is_some_and(|end| end <= self.bytes), "the memory contains these bytes");
        self.address + offset as u64
    }
}

/// Keeps memory of the host page-locked until it is dropped.
pub struct PageLock {
    bytes: usize,
    _owner: Box<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for PageLock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "PageLock({} bytes)", self.bytes)
    }
}

impl PageLock {
    /// Memory that `owner` unlocks when it is dropped.
    pub fn new(bytes: usize, owner: Box<dyn Any + Send + Sync>) -> Self {
        Self { bytes, _owner: owner }
    }

    /// Number of locked bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Host memory for copies to and from a device.
pub struct HostMemory(Box<dyn HostBytes>);

/// Bytes of the host, with their allocation.
pub(crate) trait HostBytes: Send + Sync {
    fn bytes(&self) -> &[u8];
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl HostBytes for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl HostMemory {
    #[cfg(any(feature = "cuda", feature = "shim"))]
    pub(crate) fn new(bytes: impl HostBytes + 'static) -> Self {
        Self(Box::new(bytes))
    }
}

impl std::fmt::Debug for HostMemory {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "HostMemory({} bytes)", self.len())
    }
}

impl Deref for HostMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl DerefMut for HostMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}
