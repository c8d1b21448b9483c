//! A device whose calls a test observes, changes or lets fail.

use crate::{Compute, DeviceMemory, Error, Fence, HostMemory, Launch, PageLock};
use std::time::Duration;

/// What a test does at the calls of a [`Hooked`] device. By default nothing.
pub trait Hooks: Send {
    /// Before memory of the device is allocated.
    fn allocate(&mut self, _bytes: usize) -> Result<(), Error> {
        Ok(())
    }

    /// Before bytes are copied to the device.
    fn upload(&mut self, _from: &[u8]) {}

    /// After bytes were copied from the device.
    fn downloaded(&mut self, _to: &mut [u8]) {}

    /// Before memory of the device is filled.
    fn fill(&mut self) {}

    /// Before a kernel is started; `false`: it is not started.
    fn launch(&mut self, _launch: &Launch<'_>) -> Result<bool, Error> {
        Ok(true)
    }

    /// Whether kernels that were not started never end.
    fn is_hung(&self) -> bool {
        false
    }

    /// Before a wait for all work.
    fn wait(&mut self, _limit: Duration, _is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        Ok(())
    }
}

/// A device with hooks.
pub struct Hooked<H> {
    inner: Box<dyn Compute>,
    /// The hooks.
    pub hooks: H,
}

impl<H: Hooks> Hooked<H> {
    /// The calls of a device with these hooks.
    pub fn new(inner: Box<dyn Compute>, hooks: H) -> Self {
        Self { inner, hooks }
    }
}

impl<H: Hooks> Compute for Hooked<H> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn allocate(&mut self, bytes: usize) -> Result<DeviceMemory, Error> {
        self.hooks.allocate(bytes)?;
        self.inner.allocate(bytes)
    }

    fn allocate_host(&mut self, bytes: usize) -> Result<HostMemory, Error> {
        self.inner.allocate_host(bytes)
    }

    fn lock_pages(&mut self, memory: &[u8]) -> Result<PageLock, Error> {
        self.inner.lock_pages(memory)
    }

    fn upload(&mut self, from: &[u8], to: &DeviceMemory, offset: usize) -> Result<(), Error> {
        self.hooks.upload(from);
        self.inner.upload(from, to, offset)
    }

    fn download(&mut self, from: &DeviceMemory, offset: usize, to: &mut [u8]) -> Result<(), Error> {
        self.inner.download(from, offset, to)?;
        self.hooks.downloaded(to);
        Ok(())
    }

    fn copy(
        &mut self,
        from: &DeviceMemory,
        from_offset: usize,
        to: &DeviceMemory,
        to_offset: usize,
        bytes: usize,
    ) -> Result<(), Error> {
        self.inner.copy(from, from_offset, to, to_offset, bytes)
    }

    fn fill(
        &mut self,
        memory: &DeviceMemory,
        offset: usize,
        bytes: usize,
        value: u8,
    ) -> Result<(), Error> {
        self.hooks.fill();
        self.inner.fill(memory, offset, bytes, value)
    }

    fn fence(&mut self) -> Result<Fence, Error> {
        self.inner.fence()
    }

    fn wait_for_fence(&mut self, fence: &Fence) -> Result<(), Error> {
        self.inner.wait_for_fence(fence)
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), Error> {
        if self.hooks.launch(launch)? { self.inner.launch(launch) } else { Ok(()) }
    }

    fn is_done(&mut self) -> Result<bool, Error> {
        Ok(!self.hooks.is_hung() && self.inner.is_done()?)
    }

    fn wait_unless(&mut self, limit: Duration, is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        self.hooks.wait(limit, is_stopped)?;
        self.inner.wait_unless(limit, is_stopped)
    }
}
