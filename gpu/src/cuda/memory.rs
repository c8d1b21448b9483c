#![expect(unsafe_code, reason = "the driver is a C library")]
//! Memory of a GPU, and page-locked memory of the host.

use super::context::Context;
use super::driver::{Code, OUT_OF_MEMORY};
use crate::compute::HostBytes;
use crate::{DeviceMemory, Error, HostMemory, PageLock};
use cudarc::driver::sys;
use std::ptr::NonNull;
use std::sync::Arc;

/// Frees memory of a GPU.
struct DeviceAllocation {
    address: sys::CUdeviceptr,
    bytes: u64,
    context: Arc<Context>,
}

/// Allocates memory of a GPU; its addresses are multiples of 256.
pub(super) fn allocate(context: &Arc<Context>, bytes: usize) -> Result<DeviceMemory, Error> {
    let _entered = context.enter()?;
    let mut address = 0;
    // SAFETY: the context is current; the pointer is to a local variable.
    let result = unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes.max(1)) };
    if result as Code == OUT_OF_MEMORY {
        let (free, total) = free_and_total(context)?;
        return Err(Error::OutOfMemory { bytes: bytes as u64, free, total });
    }
    context.check("cuMemAlloc", result)?;
    let owner = DeviceAllocation { address, bytes: bytes as u64, context: Arc::clone(context) };
    context.count_device(bytes as u64);
    Ok(DeviceMemory::new(address, bytes, Box::new(owner)))
}

impl Drop for DeviceAllocation {
    fn drop(&mut self) {
        if let Some(_entered) = self.context.enter_to_free() {
            // SAFETY: it was allocated in this context and is freed once. The driver waits for the
            // work that was started before. The result cannot be reported.
            let _ = unsafe { sys::cuMemFree_v2(self.address) };
            self.context.count_freed_device(self.bytes);
        }
    }
}

/// Free and all bytes of a GPU.
pub(super) fn free_and_total(context: &Context) -> Result<(u64, u64), Error> {
    let _entered = context.enter()?;
    let (mut free, mut total) = (0, 0);
    // SAFETY: the context is current; the pointers are to local variables.
    let result = unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) };
    context.check("cuMemGetInfo", result)?;
    Ok((free as u64, total as u64))
}

/// Page-locked memory of the host.
struct PinnedBytes {
    start: NonNull<u8>,
    bytes: usize,
    context: Arc<Context>,
}

// SAFETY: it owns its memory, as a vector does.
unsafe impl Send for PinnedBytes {}
// SAFETY: as above.
unsafe impl Sync for PinnedBytes {}

/// Allocates page-locked memory, zeroed.
pub(super) fn allocate_pinned(context: &Arc<Context>, bytes: usize) -> Result<HostMemory, Error> {
    let _entered = context.enter()?;
    let mut start = std::ptr::null_mut();
    let flags = sys::CU_MEMHOSTALLOC_PORTABLE;
    // SAFETY: the context is current; the pointer is to a local variable.
    let result = unsafe { sys::cuMemHostAlloc(&raw mut start, bytes.max(1), flags) };
    if result as Code == OUT_OF_MEMORY {
        return Err(Error::NoPinnedMemory { bytes: bytes as u64 });
    }
    context.check("cuMemHostAlloc", result)?;
    let start = NonNull::new(start.cast::<u8>()).expect("memory that was allocated");
    // SAFETY: it was just allocated with this size.
    unsafe { start.write_bytes(0, bytes) };
    context.count_pinned(bytes as u64);
    Ok(HostMemory::new(PinnedBytes { start, bytes, context: Arc::clone(context) }))
}

impl HostBytes for PinnedBytes {
    fn bytes(&self) -> &[u8] {
        // SAFETY: it is allocated and initialised; no one else writes to it.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; it is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for PinnedBytes {
    fn drop(&mut self) {
        if let Some(_entered) = self.context.enter_to_free() {
            // SAFETY: it was allocated by the driver and is freed once. The driver waits for copies
            // that were started before. The result cannot be reported.
            let _ = unsafe { sys::cuMemFreeHost(self.start.as_ptr().cast()) };
            self.context.count_freed_pinned(self.bytes as u64);
        }
    }
}

/// Unlocks memory that others allocated.
struct LockedPages {
    address: usize,
    bytes: u64,
    context: Arc<Context>,
}

/// Page-locks memory for copies of every GPU. Its owner drops the lock before the memory; pages
/// that are locked have no other use until they are unlocked, even where their owner unmaps them.
pub(super) fn lock_pages(context: &Arc<Context>, memory: &[u8]) -> Result<PageLock, Error> {
    let _entered = context.enter()?;
    let (start, bytes) = (memory.as_ptr().cast_mut(), memory.len());
    let flags = sys::CU_MEMHOSTREGISTER_PORTABLE;
    // SAFETY: the memory is mapped; the call changes no byte of it.
    let result = unsafe { sys::cuMemHostRegister_v2(start.cast(), bytes, flags) };
    if result as Code == OUT_OF_MEMORY {
        return Err(Error::NoPinnedMemory { bytes: bytes as u64 });
    }
    context.check("cuMemHostRegister", result)?;
    context.count_pinned(bytes as u64);
    let address = start.expose_provenance();
    let owner = LockedPages { address, bytes: bytes as u64, context: Arc::clone(context) };
    Ok(PageLock::new(bytes, Box::new(owner)))
}

impl Drop for LockedPages {
    fn drop(&mut self) {
        if let Some(_entered) = self.context.enter_to_free() {
            let start = std::ptr::with_exposed_provenance_mut(self.address);
            // SAFETY: it was locked in this context and is unlocked once. The result cannot be
            // reported.
            let _ = unsafe { sys::cuMemHostUnregister(start) };
            self.context.count_freed_pinned(self.bytes);
        }
    }
}
