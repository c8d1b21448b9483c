#![expect(unsafe_code, reason = "the driver is a C library")]
//! Work of a GPU: copies and launches in a stream.

use super::context::Handle;
use super::event::Event;
use super::gpu::Gpu;
use super::kernels::{Kernel, SHARED_BYTES_DEFAULT};
use super::memory;
use crate::{
    Argument, Compute, DeviceMemory, Error, Fence, HostMemory, KernelName, Launch, PageLock,
};
use cudarc::driver::sys;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Arguments that a kernel has at most.
const ARGUMENTS_MAX: usize = 64;

/// How long dropping a pending copy waits for it. After that, its target is leaked.
const DROP_LIMIT: Duration = Duration::from_secs(2);

/// Work of a GPU in a separate, non-blocking stream.
#[derive(Debug)]
pub struct CudaCompute {
    gpu: Arc<Gpu>,
    stream: Handle<sys::CUstream_st>,
    /// Recorded by what waits.
    finished: Event,
    kernels: HashMap<KernelName, Kernel>,
}

/// A copy to the host that may still run.
#[derive(Debug)]
pub struct Download {
    memory: Option<HostMemory>,
    event: Event,
}

impl Gpu {
    /// Creates a stream.
    pub fn compute(self: &Arc<Self>) -> Result<CudaCompute, Error> {
        let finished = self.event()?;
        let _entered = self.context.enter()?;
        let mut stream = std::ptr::null_mut();
        let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the context is current; the pointer is to a local variable.
        let result = unsafe { sys::cuStreamCreate(&raw mut stream, flags) };
        self.context.check("cuStreamCreate", result)?;
        let gpu = Arc::clone(self);
        Ok(CudaCompute { gpu, stream: Handle(stream), finished, kernels: HashMap::new() })
    }
}

impl CudaCompute {
    /// The GPU.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// The handle of its stream, for DLPack and other libraries.
    pub fn stream_handle(&self) -> u64 {
        self.stream.0.addr() as u64
    }

    /// Records an event after the work so far.
    pub fn record(&mut self, event: &Event) -> Result<(), Error> {
        // SAFETY: the stream is this one's.
        unsafe { event.record(self.stream.0) }
    }

    /// Makes later work wait for an event, which another stream has recorded.
    pub fn wait_for_event(&mut self, event: &Event) -> Result<(), Error> {
        self.stream_waits(self.stream.0, event)
    }

    /// Makes later work in the stream of another library wait for an event. Streams are numbered as
    /// in DLPack: 1 is the legacy default stream, 2 the per-thread default stream, and any larger
    /// number a handle.
    ///
    /// # Safety
    ///
    /// The stream exists.
    pub unsafe fn wait_on(&self, raw_stream: u64, event: &Event) -> Result<(), Error> {
        self.stream_waits(raw(raw_stream), event)
    }

    /// Makes later work wait for the work so far in the stream of another library, which is
    /// numbered as for [`Self::wait_on`].
    ///
    /// # Safety
    ///
    /// The stream exists.
    pub unsafe fn wait_for_stream(&mut self, raw_stream: u64) -> Result<(), Error> {
        // SAFETY: the stream exists, as the caller says.
        unsafe { self.finished.record(raw(raw_stream))? };
        self.stream_waits(self.stream.0, &self.finished)
    }

    /// Starts a copy to the host that fills `to`, after all earlier work; [`Download::into_memory`]
    /// returns the memory.
    pub fn download_async(
        &mut self,
        from: &DeviceMemory,
        offset: usize,
        mut to: HostMemory,
    ) -> Result<Download, Error> {
        let event = self.gpu.event()?;
        let bytes = to.len();
        let address = from.place(offset, bytes);
        // SAFETY: the result owns the target until the copy is done.
        let copied = unsafe { self.start_download(address, to.as_mut_ptr(), bytes) };
        let download = Download { memory: Some(to), event };
        copied?;
        self.record(&download.event)?;
        Ok(download)
    }

    /// # Safety
    ///
    /// The target has as many bytes, and is neither freed nor read before the copy is done.
    unsafe fn start_download(&mut self, from: u64, to: *mut u8, bytes: usize) -> Result<(), Error> {
        let _entered = self.gpu.context.enter()?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: both sides have as many bytes, as the caller says.
        let result = unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, self.stream.0) };
        self.gpu.context.check("cuMemcpyDtoHAsync", result)
    }

    fn stream_waits(&self, stream: sys::CUstream, event: &Event) -> Result<(), Error> {
        let _entered = self.gpu.context.enter()?;
        // SAFETY: the event exists; the stream is this one's, or exists as the caller says.
        let result = unsafe { sys::cuStreamWaitEvent(stream, event.handle.0, 0) };
        self.gpu.context.check("cuStreamWaitEvent", result)
    }

    /// The kernel of a launch, with as much shared memory as it needs.
    fn kernel(&mut self, launch: &Launch<'_>) -> Result<Kernel, Error> {
        let kernel = match self.kernels.get_mut(&launch.kernel) {
            Some(kernel) => kernel,
            None => {
                let kernel = self.gpu.kernels.kernel(launch.kernel)?;
                self.kernels.entry(launch.kernel).or_insert(kernel)
            }
        };
        if launch.shared_bytes > SHARED_BYTES_DEFAULT {
            self.gpu.kernels.allow_large_shared(kernel)?;
        }
        Ok(*kernel)
    }
}

/// A stream by its number, the special ones included: the driver has the same numbers.
fn raw(stream: u64) -> sys::CUstream {
    std::ptr::without_provenance_mut(usize::try_from(stream).expect("a pointer has 64 bits"))
}

impl Compute for CudaCompute {
    fn name(&self) -> &str {
        &self.gpu.info().name
    }

    fn allocate(&mut self, bytes: usize) -> Result<DeviceMemory, Error> {
        memory::allocate(&self.gpu.context, bytes)
    }

    fn allocate_host(&mut self, bytes: usize) -> Result<HostMemory, Error> {
        self.gpu.allocate_host(bytes)
    }

    fn lock_pages(&mut self, memory: &[u8]) -> Result<PageLock, Error> {
        memory::lock_pages(&self.gpu.context, memory)
    }

    fn upload(&mut self, from: &[u8], to: &DeviceMemory, offset: usize) -> Result<(), Error> {
        let (target, source) = (to.place(offset, from.len()), from.as_ptr().cast());
        let _entered = self.gpu.context.enter()?;
        if from.is_empty() {
            return Ok(());
        }
        // SAFETY: both sides have as many bytes. Memory that is not page-locked is copied before
        // the call returns; what is page-locked is freed by the driver, which waits for the copy,
        // or stays locked until then: its pages get no other use.
        let result =
            unsafe { sys::cuMemcpyHtoDAsync_v2(target, source, from.len(), self.stream.0) };
        self.gpu.context.check("cuMemcpyHtoDAsync", result)
    }

    fn download(&mut self, from: &DeviceMemory, offset: usize, to: &mut [u8]) -> Result<(), Error> {
        let address = from.place(offset, to.len());
        // The copy is started when nothing before it can hang: the target is only borrowed.
        self.wait(self.gpu.hang_limit)?;
        // SAFETY: the copy is waited for below, whatever happens.
        let copied = unsafe { self.start_download(address, to.as_mut_ptr(), to.len()) };
        let _entered = self.gpu.context.enter()?;
        // SAFETY: the stream is this one's.
        let result = unsafe { sys::cuStreamSynchronize(self.stream.0) };
        copied?;
        self.gpu.context.check("cuStreamSynchronize", result)
    }

    fn copy(
        &mut self,
        from: &DeviceMemory,
        from_offset: usize,
        to: &DeviceMemory,
        to_offset: usize,
        bytes: usize,
    ) -> Result<(), Error> {
        let (source, target) = (from.place(from_offset, bytes), to.place(to_offset, bytes));
        let _entered = self.gpu.context.enter()?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: both sides have as many bytes. The driver frees memory after the work on it.
        let result = unsafe { sys::cuMemcpyDtoDAsync_v2(target, source, bytes, self.stream.0) };
        self.gpu.context.check("cuMemcpyDtoDAsync", result)
    }

    fn fence(&mut self) -> Result<Fence, Error> {
        let event = self.gpu.event()?;
        self.record(&event)?;
        Ok(Fence::new(event))
    }

    fn wait_for_fence(&mut self, fence: &Fence) -> Result<(), Error> {
        self.wait_for_event(fence.point().expect("a fence of a GPU is an event"))
    }

    fn fill(
        &mut self,
        memory: &DeviceMemory,
        offset: usize,
        bytes: usize,
        value: u8,
    ) -> Result<(), Error> {
        let address = memory.place(offset, bytes);
        let _entered = self.gpu.context.enter()?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the memory has as many bytes.
        let result = unsafe { sys::cuMemsetD8Async(address, value, bytes, self.stream.0) };
        self.gpu.context.check("cuMemsetD8Async", result)
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), Error> {
        if launch.grid.contains(&0) {
            return Ok(());
        }
        let kernel = self.kernel(launch)?;
        let _entered = self.gpu.context.enter()?;
        assert!(launch.arguments.len() <= ARGUMENTS_MAX, "kernels have few arguments");
        let mut values = [0_u64; ARGUMENTS_MAX];
        let mut pointers = [std::ptr::null_mut(); ARGUMENTS_MAX];
        for (at, argument) in launch.arguments.iter().enumerate() {
            // A word is the first half of its value: the byte order is that of the GPU.
            values[at] = match *argument {
                Argument::Address(address) => address,
                Argument::Word(word) => u64::from(word),
            };
            pointers[at] = (&raw mut values[at]).cast();
        }
        let Launch { grid, block, shared_bytes, .. } = *launch;
        // SAFETY: the kernel is loaded, and the driver copies the arguments, of which there are as
        // many as the kernel has. What a kernel does with them is up to the caller, as for every
        // implementation.
        let result = unsafe {
            sys::cuLaunchKernel(
                kernel.function.0,
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                shared_bytes,
                self.stream.0,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        self.gpu.context.check("cuLaunchKernel", result)
    }

    fn is_done(&mut self) -> Result<bool, Error> {
        let _entered = self.gpu.context.enter()?;
        // SAFETY: the stream is this one's.
        let result = unsafe { sys::cuStreamQuery(self.stream.0) };
        self.gpu.context.is_done("cuStreamQuery", result)
    }

    fn wait_unless(&mut self, limit: Duration, is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        // SAFETY: the stream is this one's.
        unsafe { self.finished.record(self.stream.0)? };
        self.finished.wait_unless(limit, is_stopped)
    }
}

impl Drop for CudaCompute {
    fn drop(&mut self) {
        if let Some(_entered) = self.gpu.context.enter_to_free() {
            // SAFETY: it is destroyed once; the driver does that after its work is done.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.stream.0) };
        }
    }
}

impl Download {
    /// Whether the copy is done.
    pub fn query(&self) -> Result<bool, Error> {
        self.event.query()
    }

    /// Waits for the copy; [`Error::Hung`] after `limit`.
    pub fn wait(&self, limit: Duration) -> Result<(), Error> {
        self.event.wait(limit)
    }

    /// Waits as [`Self::wait`] does and returns the memory with the copied bytes.
    pub fn into_memory(mut self, limit: Duration) -> Result<HostMemory, Error> {
        self.wait(limit)?;
        Ok(self.memory.take().expect("nothing else takes it"))
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        // The GPU writes to the memory until the copy is done.
        if let Some(memory) = self.memory.take()
            && self.event.wait(DROP_LIMIT).is_err()
        {
            std::mem::forget(memory);
        }
    }
}
