#![expect(unsafe_code, reason = "the driver is a C library")]
//! A GPU that is open in this process, shared by all threads.

use super::context::{Allocated, Context};
use super::driver::{self, Driver, Version};
use super::event::Event;
use super::kernels::Kernels;
use super::memory;
use super::nvrtc::CompilerInfo;
use super::options::Options;
use crate::{Error, HostMemory, MODULES};
use cudarc::driver::sys;
use std::ffi::{CStr, c_char};
use std::sync::Arc;
use std::time::Duration;

/// The properties of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuInfo {
    /// Its index among the GPUs that are visible to this process.
    pub index: u32,
    /// Such as `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// Its compute capability, 9.0 as `(9, 0)`.
    pub capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Maximum shared memory of a block.
    pub shared_bytes_max: u32,
    /// Bytes of its memory.
    pub total_bytes: u64,
    /// Its address on the PCI bus, such as `0000:1b:00.0`.
    pub pci_bus: String,
    /// The newest version of CUDA that the driver supports.
    pub driver: Version,
}

/// A GPU that is open in this process.
///
/// After a failure from which CUDA cannot recover, every call returns that failure. In a forked
/// child, every call returns [`Error::Forked`], and nothing is freed.
pub struct Gpu {
    info: GpuInfo,
    // Before the context, in which its modules are unloaded.
    pub(super) kernels: Kernels,
    pub(super) context: Arc<Context>,
    pub(super) hang_limit: Duration,
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Gpu").field(&self.info).finish()
    }
}

impl Gpu {
    /// Opens a GPU by its index among those that are visible to this process.
    pub fn open(index: u32, options: &Options) -> Result<Arc<Self>, Error> {
        let driver = Driver::load()?;
        if index >= driver.gpu_count {
            return Err(Error::NoDevice { index, count: driver.gpu_count });
        }
        let mut device = 0;
        // SAFETY: the driver is loaded; the pointer is to a local variable.
        let result = unsafe { sys::cuDeviceGet(&raw mut device, index.cast_signed()) };
        driver::check("cuDeviceGet", result)?;
        let info = describe(index, device, driver.version)?;
        let context = Arc::new(Context::retain(device)?);
        let capability = info.capability.0 * 10 + info.capability.1;
        let shared = info.shared_bytes_max;
        let kernels = Kernels::new(&context, options, driver.version, capability, shared);
        Ok(Arc::new(Self { info, kernels, context, hang_limit: options.hang_limit }))
    }

    /// Its properties.
    pub fn info(&self) -> &GpuInfo {
        &self.info
    }

    /// Free and all bytes of its memory; other processes use it too.
    pub fn free_and_total_bytes(&self) -> Result<(u64, u64), Error> {
        memory::free_and_total(&self.context)
    }

    /// Its current allocations.
    pub fn bytes_allocated(&self) -> Allocated {
        self.context.allocated()
    }

    /// Whether calls are possible: not in a forked process, and not after a fatal failure.
    pub fn check(&self) -> Result<(), Error> {
        self.context.check_usable()
    }

    /// Compiles and loads all kernels, which are otherwise loaded when they are first used. Calls
    /// `is_stopped` before each module and returns [`Error::Stopped`] if it returns true.
    pub fn load_kernels(&self, is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        MODULES.iter().try_for_each(|module| match is_stopped() {
            true => Err(Error::Stopped),
            false => self.kernels.load(module),
        })
    }

    /// The run-time compiler. The first call searches for it.
    pub fn compiler(&self) -> Result<CompilerInfo, Error> {
        self.kernels.compiler()
    }

    /// Modules that this process compiled for it; those in the cache are not compiled.
    pub fn modules_compiled(&self) -> u64 {
        self.kernels.compiled()
    }

    /// Creates an event with timing enabled.
    pub fn event(&self) -> Result<Event, Error> {
        Event::new(&self.context)
    }

    /// Allocates page-locked memory of the host, zeroed.
    pub fn allocate_host(&self, bytes: usize) -> Result<HostMemory, Error> {
        memory::allocate_pinned(&self.context, bytes)
    }
}

/// Asks the driver about a device.
fn describe(index: u32, device: sys::CUdevice, driver: Version) -> Result<GpuInfo, Error> {
    use sys::CUdevice_attribute_enum as Attribute;
    let attribute = |which| {
        let mut value = 0;
        // SAFETY: the device exists; the pointer is to a local variable.
        let result = unsafe { sys::cuDeviceGetAttribute(&raw mut value, which, device) };
        driver::check("cuDeviceGetAttribute", result).map(|()| value.cast_unsigned())
    };
    let mut name = [0; 256];
    // SAFETY: the device exists; the text has room for as many bytes as are named.
    let result = unsafe { sys::cuDeviceGetName(name.as_mut_ptr(), 256, device) };
    driver::check("cuDeviceGetName", result)?;
    let mut pci_bus = [0; 32];
    // SAFETY: as above.
    let result = unsafe { sys::cuDeviceGetPCIBusId(pci_bus.as_mut_ptr(), 32, device) };
    driver::check("cuDeviceGetPCIBusId", result)?;
    let mut total = 0;
    // SAFETY: the device exists; the pointer is to a local variable.
    let result = unsafe { sys::cuDeviceTotalMem_v2(&raw mut total, device) };
    driver::check("cuDeviceTotalMem", result)?;
    Ok(GpuInfo {
        index,
        name: text_of(&name),
        capability: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        shared_bytes_max: attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )?,
        total_bytes: total as u64,
        pci_bus: text_of(&pci_bus),
        driver,
    })
}

/// The text before the byte 0.
fn text_of(characters: &[c_char]) -> String {
    // A character has a sign on some machines.
    let bytes: Vec<u8> = characters.iter().flat_map(|character| character.to_ne_bytes()).collect();
    let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
    text.to_string_lossy().into_owned()
}
