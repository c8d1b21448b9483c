#![expect(unsafe_code, reason = "the driver is a C library")]
//! The driver's library, its version and its error codes.

use crate::Error;
use cudarc::driver::sys::{self, CUresult};
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

/// The number that a function of the driver returns. It is compared as a number, because a newer
/// driver has codes that the enumeration lacks.
pub(super) type Code = u32;

pub(super) const SUCCESS: Code = CUresult::CUDA_SUCCESS as Code;
pub(super) const OUT_OF_MEMORY: Code = CUresult::CUDA_ERROR_OUT_OF_MEMORY as Code;
pub(super) const NOT_READY: Code = CUresult::CUDA_ERROR_NOT_READY as Code;
/// In a forked child: the driver was initialised in the parent process.
const NOT_INITIALIZED: Code = CUresult::CUDA_ERROR_NOT_INITIALIZED as Code;
/// The library found is the stub for linking, without a driver.
const STUB_LIBRARY: Code = CUresult::CUDA_ERROR_STUB_LIBRARY as Code;
const NO_DEVICE: Code = CUresult::CUDA_ERROR_NO_DEVICE as Code;
/// `CUDA_ERROR_CONTAINED`, which [`CUresult`] has from CUDA 12.8 on: an exception that the GPU's
/// error containment stopped.
pub(super) const CONTAINED: Code = 226;
/// `CUDA_ERROR_TENSOR_MEMORY_LEAK`, also new in CUDA 12.8.
pub(super) const TENSOR_MEMORY_LEAK: Code = 721;

/// The oldest driver that is used.
const NEEDED: Version = Version { major: 12, minor: 0 };

/// A version of CUDA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Of `12.9`: 12.
    pub major: u32,
    /// Of `12.9`: 9.
    pub minor: u32,
}

impl std::fmt::Display for Version {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

/// The driver of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Driver {
    /// The newest version of CUDA that it supports.
    pub version: Version,
    /// GPUs that this process sees.
    pub gpu_count: u32,
}

impl Driver {
    /// Loads the driver when it is called for the first time.
    pub fn load() -> Result<Self, Error> {
        static INITIALIZED: OnceLock<u32> = OnceLock::new();
        let process = std::process::id();
        if INITIALIZED.get().is_some_and(|first| *first != process) {
            return Err(Error::Forked);
        }
        if !is_present() {
            return Err(Error::NoDriver);
        }
        if let Some(call) = missing_function() {
            let (name, what) = ("not found", "this libcuda.so.1 is not a usable driver");
            return Err(Error::Driver { call, name: name.to_owned(), what: what.to_owned() });
        }
        let mut number = 0;
        // SAFETY: the library is present; the pointer is to a local variable.
        let result = unsafe { sys::cuDriverGetVersion(&raw mut number) };
        check("cuDriverGetVersion", result)?;
        let number = number.cast_unsigned();
        let version = Version { major: number / 1000, minor: number % 1000 / 10 };
        if version < NEEDED {
            let (found_major, found_minor) = (version.major, version.minor);
            return Err(Error::OldDriver { found_major, found_minor });
        }
        // SAFETY: its only argument is a reserved 0.
        let result = unsafe { sys::cuInit(0) };
        match result as Code {
            STUB_LIBRARY => return Err(Error::NoDriver),
            NOT_INITIALIZED => return Err(Error::Forked),
            NO_DEVICE => return Ok(Self { version, gpu_count: 0 }),
            _ => check("cuInit", result)?,
        }
        INITIALIZED.get_or_init(|| process);
        let mut count = 0;
        // SAFETY: the driver is initialised; the pointer is to a local variable.
        check("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&raw mut count) })?;
        Ok(Self { version, gpu_count: count.cast_unsigned() })
    }
}

/// Functions of the driver that are called. One that the library lacks would panic.
const FUNCTIONS: &[&str] = &[
    "cuCtxGetCurrent",
    "cuCtxPopCurrent_v2",
    "cuCtxPushCurrent_v2",
    "cuCtxSynchronize",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDeviceGetPCIBusId",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime",
    "cuEventQuery",
    "cuEventRecord",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuInit",
    "cuLaunchKernel",
    "cuMemAlloc_v2",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

/// The first function that the library lacks.
fn missing_function() -> Option<&'static str> {
    static MISSING: OnceLock<Option<&str>> = OnceLock::new();
    // SAFETY: the library is present; the functions are looked up, not called.
    let is_missing = |name: &&&str| unsafe {
        sys::culib().get::<unsafe extern "C" fn()>(name.as_bytes()).is_err()
    };
    *MISSING.get_or_init(|| FUNCTIONS.iter().find(is_missing).copied())
}

/// Whether the dynamic linker finds the library. Without it, every function of it panics.
fn is_present() -> bool {
    static IS_PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: the library is the driver's, whose initialisation may run in any thread.
    *IS_PRESENT.get_or_init(|| unsafe { sys::is_culib_present() })
}

/// The error of a result other than success.
pub(super) fn check(call: &'static str, result: sys::CUresult) -> Result<(), Error> {
    if result as Code == SUCCESS {
        return Ok(());
    }
    let name = text(sys::cuGetErrorName, result);
    let what = text(sys::cuGetErrorString, result);
    let code = result as Code;
    Err(Error::Driver {
        call,
        name: name.unwrap_or_else(|| format!("CUDA error {code}")),
        what: what.unwrap_or_else(|| "no description".to_owned()),
    })
}

/// What the driver calls a result, or says about it.
fn text(
    describe: unsafe fn(sys::CUresult, *mut *const c_char) -> sys::CUresult,
    result: sys::CUresult,
) -> Option<String> {
    let mut text = std::ptr::null();
    // SAFETY: the pointer is to a local variable.
    let found = unsafe { describe(result, &raw mut text) };
    if found as Code != SUCCESS || text.is_null() {
        return None;
    }
    // SAFETY: it is a constant of the library, which is never closed.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
