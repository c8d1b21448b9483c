//! A device on which a test can observe calls, change their data or make them fail.

use crate::{Compute, DeviceMemory, Error, Fence, HostMemory, Launch, PageLock};
use std::time::Duration;

/// Functions that a [`Hooked`] device calls. By default, they do nothing.
pub trait Hooks: Send {
    /// Called before memory of the device is allocated.
    fn allocate(&mut self, _bytes: usize) -> Result<(), Error> {
        Ok(())
    }

    /// Called before bytes are copied to the device.
    fn upload(&mut self, _from: &[u8]) {}

    /// Called after bytes were copied from the device.
    fn downloaded(&mut self, _to: &mut [u8]) {}

    /// Called before memory of the device is filled.
    fn fill(&mut self) {}

    /// Called before a kernel is started; if it returns `false`, the kernel is not started.
    fn launch(&mut self, _launch: &Launch<'_>) -> Result<bool, Error> {
        Ok(true)
    }

    /// Whether the device reports that its work is not done.
    fn is_hung(&self) -> bool {
        false
    }

    /// Called before a wait for all work.
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
    /// The device `inner` with these hooks.
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
