#![expect(unsafe_code, reason = "the driver is a C library")]
//! A GPU in one process: its context, whether it is still usable, and its allocations.
//!
//! In a forked child, no function of the driver is called and nothing is freed.

use super::driver::{self, CONTAINED, Code, NOT_READY, SUCCESS, TENSOR_MEMORY_LEAK};
use crate::Error;
use cudarc::driver::sys::{self, CUresult};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Codes after which CUDA refuses every further call of the process, or the GPU is gone.
///
/// For most of them, NVIDIA's reference of `CUresult` says that the process must be terminated and
/// relaunched, or that the context can no longer be used. The others mean that the driver shuts
/// down, that the GPU is unavailable, that its memory or links failed, or that the cause is
/// unknown.
const FATAL: [Code; 19] = [
    CUresult::CUDA_ERROR_DEINITIALIZED as Code,
    CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE as Code,
    CUresult::CUDA_ERROR_ECC_UNCORRECTABLE as Code,
    CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE as Code,
    CONTAINED,
    CUresult::CUDA_ERROR_ILLEGAL_ADDRESS as Code,
    CUresult::CUDA_ERROR_LAUNCH_TIMEOUT as Code,
    CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED as Code,
    CUresult::CUDA_ERROR_ASSERT as Code,
    CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR as Code,
    CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION as Code,
    CUresult::CUDA_ERROR_MISALIGNED_ADDRESS as Code,
    CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE as Code,
    CUresult::CUDA_ERROR_INVALID_PC as Code,
    CUresult::CUDA_ERROR_LAUNCH_FAILED as Code,
    TENSOR_MEMORY_LEAK,
    CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED as Code,
    CUresult::CUDA_ERROR_EXTERNAL_DEVICE as Code,
    CUresult::CUDA_ERROR_UNKNOWN as Code,
];

/// Memory of a GPU that is allocated and not freed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allocated {
    /// Bytes of the GPU.
    pub device_bytes: u64,
    /// Bytes of page-locked memory of the host.
    pub pinned_bytes: u64,
    /// Number of allocations since the GPU was opened, including freed ones.
    pub allocations: u64,
}

/// A handle of the driver, which any thread may use.
#[derive(Debug)]
pub(super) struct Handle<T>(pub(super) *mut T);

// SAFETY: the functions of the driver may be called from any thread with any handle.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: as above; the driver locks what it must.
unsafe impl<T> Sync for Handle<T> {}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

/// The primary context of a GPU, which it shares with the other users of the process.
pub(super) struct Context {
    handle: Handle<sys::CUctx_st>,
    device: sys::CUdevice,
    process: u32,
    /// Call, name and description of the failure after which nothing works.
    lost: OnceLock<(&'static str, String, String)>,
    late: Mutex<Late>,
    device_bytes: AtomicU64,
    pinned_bytes: AtomicU64,
    allocations: AtomicU64,
}

/// Work that had not ended when the time limit of a wait was reached. Until it ends, nothing is
/// freed: the GPU may still use the memory, and the driver would wait for the GPU without a limit.
#[derive(Debug, Default)]
struct Late {
    /// Events that are not done. They are not destroyed.
    events: Vec<Handle<sys::CUevent_st>>,
    /// Number of threads that still wait for all work although their callers no longer do.
    settling: usize,
}

/// The context is that of this thread until this is dropped.
#[must_use]
pub(super) struct ContextGuard {
    is_pushed: bool,
    /// The context belongs to the thread, so this must stay there.
    _thread: PhantomData<*mut ()>,
}

impl Context {
    pub(super) fn retain(device: sys::CUdevice) -> Result<Self, Error> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the driver is initialised and named the device; the pointer is to a local
        // variable.
        let result = unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut handle, device) };
        driver::check("cuDevicePrimaryCtxRetain", result)?;
        Ok(Self {
            handle: Handle(handle),
            device,
            process: std::process::id(),
            lost: OnceLock::new(),
            late: Mutex::default(),
            device_bytes: AtomicU64::new(0),
            pinned_bytes: AtomicU64::new(0),
            allocations: AtomicU64::new(0),
        })
    }

    /// Makes the context that of this thread; refused in a forked process and after a failure.
    pub(super) fn enter(&self) -> Result<ContextGuard, Error> {
        self.check_usable()?;
        let mut current = std::ptr::null_mut();
        // SAFETY: the pointer is to a local variable.
        let result = unsafe { sys::cuCtxGetCurrent(&raw mut current) };
        self.check("cuCtxGetCurrent", result)?;
        let is_pushed = current != self.handle.0;
        if is_pushed {
            // SAFETY: the context is retained.
            let result = unsafe { sys::cuCtxPushCurrent_v2(self.handle.0) };
            self.check("cuCtxPushCurrent", result)?;
        }
        Ok(ContextGuard { is_pushed, _thread: PhantomData })
    }

    /// Whether calls are possible at all.
    pub(super) fn check_usable(&self) -> Result<(), Error> {
        if self.is_forked() {
            return Err(Error::Forked);
        }
        match self.lost.get() {
            None => Ok(()),
            Some((call, name, what)) => {
                Err(Error::Driver { call, name: name.clone(), what: what.clone() })
            }
        }
    }

    pub(super) fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    /// The error of a result other than success. After a fatal one, the GPU is lost.
    pub(super) fn check(&self, call: &'static str, result: sys::CUresult) -> Result<(), Error> {
        let code = result as Code;
        if code == SUCCESS {
            return Ok(());
        }
        let checked = driver::check(call, result);
        if let Err(Error::Driver { call, name, what }) = &checked
            && FATAL.contains(&code)
        {
            self.lost.get_or_init(|| (*call, name.clone(), what.clone()));
        }
        checked
    }

    /// Whether work is done, by the result of a query of it.
    pub(super) fn is_done(&self, call: &'static str, result: sys::CUresult) -> Result<bool, Error> {
        match result as Code {
            NOT_READY => Ok(false),
            _ => self.check(call, result).map(|()| true),
        }
    }

    /// Records that a wait for an event ended before the event was done.
    pub(super) fn add_late(&self, event: Handle<sys::CUevent_st>) {
        let mut late = self.lock_late();
        if !late.events.iter().any(|other| other.0 == event.0) {
            late.events.push(event);
        }
    }

    /// Records that a wait for all work ended early, while a thread still waits.
    pub(super) fn begin_settling(&self) {
        self.lock_late().settling += 1;
    }

    /// Records that the wait of such a thread has ended.
    pub(super) fn end_settling(&self) {
        self.lock_late().settling -= 1;
    }

    fn lock_late(&self) -> MutexGuard<'_, Late> {
        // No code that holds it panics.
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether [`Late`] work is still unfinished. The context must be current.
    fn is_late(&self) -> bool {
        let mut late = self.lock_late();
        // SAFETY: the events exist: while one is in the list, none is destroyed.
        late.events.retain(|event| unsafe { sys::cuEventQuery(event.0) } as Code == NOT_READY);
        late.settling > 0 || !late.events.is_empty()
    }

    /// Makes the context that of this thread to free something, unless that is impossible.
    pub(super) fn enter_to_free(&self) -> Option<ContextGuard> {
        self.enter().ok().filter(|_entered| !self.is_late())
    }

    pub(super) fn allocated(&self) -> Allocated {
        Allocated {
            device_bytes: self.device_bytes.load(Ordering::Relaxed),
            pinned_bytes: self.pinned_bytes.load(Ordering::Relaxed),
            allocations: self.allocations.load(Ordering::Relaxed),
        }
    }

    pub(super) fn count_device(&self, bytes: u64) {
        self.device_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.allocations.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_pinned(&self, bytes: u64) {
        self.pinned_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.allocations.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_freed_device(&self, bytes: u64) {
        self.device_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn count_freed_pinned(&self, bytes: u64) {
        self.pinned_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // A late GPU still works in its context: it stays, as does what was not freed.
        let is_late = self.enter().is_ok_and(|_entered| self.is_late());
        if !self.is_forked() && !is_late {
            // SAFETY: it was retained once. The result cannot be reported.
            let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
        }
    }
}

impl Drop for ContextGuard {
    fn drop(&mut self) {
        if self.is_pushed {
            let mut popped = std::ptr::null_mut();
            // SAFETY: the context was pushed on this thread; the pointer is to a local variable.
            let _ = unsafe { sys::cuCtxPopCurrent_v2(&raw mut popped) };
        }
    }
}
