//! Messages between engines and SPDK's thread about single transfers.
#![expect(unsafe_code, reason = "memory travels to another thread as an address")]

use std::ffi::c_void;
use std::sync::mpsc::SyncSender;

/// What a transfer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// From the device to memory.
    Read,
    /// From memory to the device.
    Write,
    /// Makes completed writes durable; no bytes.
    Flush,
}

/// Memory that SPDK's thread reads or writes.
#[derive(Debug)]
pub struct Memory {
    start: *mut c_void,
    bytes: usize,
}

// SAFETY: its creator promised that the memory may be accessed by another thread.
unsafe impl Send for Memory {}

impl Memory {
    /// The `bytes` bytes from `start`.
    ///
    /// # Safety
    /// The bytes must be initialised, readable and, for reads, writable, and no other code may use
    /// them, until the [`Done`] of the transfer was received; forever, if it never is.
    pub unsafe fn new(start: *mut c_void, bytes: usize) -> Self {
        Self { start, bytes }
    }

    /// No memory, for [`Operation::Flush`].
    pub fn none() -> Self {
        Self { start: std::ptr::null_mut(), bytes: 0 }
    }

    pub(crate) fn start(&self) -> *mut c_void {
        self.start
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A transfer of whole blocks of a device.
#[derive(Debug)]
pub struct Transfer {
    /// What it does.
    pub operation: Operation,
    /// First byte of the device; a multiple of its block.
    pub offset: u64,
    /// Memory; its length is a multiple of the device's block.
    pub memory: Memory,
    /// Returned in [`Done`].
    pub token: u64,
    /// Receives [`Done`]. A full or closed channel loses it, so there must be room for every
    /// transfer in flight.
    pub reply: SyncSender<Done>,
}

/// A transfer has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The transfer's.
    pub token: u64,
    /// Whether all of its bytes were transferred.
    pub result: Result<(), Failure>,
}

/// Why a transfer failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// An error of the operating system, or of SPDK itself.
    Os(i32),
    /// The status of an NVMe command: its status field without the phase bit.
    Nvme(u16),
}
