//! Files: opening, reading and writing, with the faults of the process's storage.
#![expect(unsafe_code, reason = "replaces functions of the C library")]

use super::waits::add;
use super::{failed, failed_bytes, time};
use crate::machine::{DescriptorKind, Event, StorageFaults, current, with, yield_now};
use crate::real;
use libc::{c_char, c_int, c_void, mode_t, off_t, ssize_t};
use std::ffi::CStr;

/// Whether the simulated machine lacks a file. Files in which the kernel reports about processes
/// and hardware are absent, because their content differs between runs.
///
/// # Safety
///
/// `path` is a string that ends with a zero byte.
unsafe fn is_absent(path: *const c_char) -> bool {
    // SAFETY: as the caller says.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    path.starts_with(b"/proc/") || path.starts_with(b"/sys/")
}

fn opened(descriptor: c_int, flags: c_int) -> c_int {
    let is_spool = flags & libc::O_TMPFILE == libc::O_TMPFILE;
    let error = real::error();
    add(descriptor, DescriptorKind::File { is_spool });
    real::set_error(error);
    descriptor
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller passes a path.
    if current().is_some() && unsafe { is_absent(path) } {
        return failed(libc::ENOENT);
    }
    // SAFETY: the caller keeps the conditions.
    opened(unsafe { real::open(path, flags, mode) }, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller keeps the conditions.
    unsafe { open(path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn openat(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    // SAFETY: the caller passes a path.
    if current().is_some() && unsafe { is_absent(path) } {
        return failed(libc::ENOENT);
    }
    // SAFETY: the caller keeps the conditions.
    opened(unsafe { real::openat(folder, path, flags, mode) }, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn openat64(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    // SAFETY: the caller keeps the conditions.
    unsafe { openat(folder, path, flags, mode) }
}

/// The faults of a descriptor that apply now, after the delay of slow storage.
fn storage_after_delay(descriptor: c_int) -> (StorageFaults, u64) {
    yield_now();
    let (faults, now_ns) = with(|machine| (machine.own_storage(), machine.now_ns()));
    if faults.slow_until_ns > now_ns {
        time::sleep_until(now_ns + faults.delay_ns);
    }
    let (faults, now_ns) = with(|machine| (machine.own_storage(), machine.now_ns()));
    let kind = with(|machine| machine.descriptor(descriptor)).map(|found| found.kind);
    let is_spool = matches!(kind, Some(DescriptorKind::File { is_spool: true }));
    let has_faults = is_spool || !faults.is_of_spool;
    (if has_faults { faults } else { StorageFaults::default() }, now_ns)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pread(
    descriptor: c_int,
    buffer: *mut c_void,
    bytes: usize,
    offset: off_t,
) -> ssize_t {
    if current().is_none() {
        // SAFETY: the caller keeps the conditions.
        return unsafe { real::pread(descriptor, buffer, bytes, offset) };
    }
    let (faults, now_ns) = storage_after_delay(descriptor);
    if faults.fail_until_ns > now_ns {
        return failed_bytes(libc::EIO);
    }
    // SAFETY: the caller keeps the conditions.
    let read = unsafe { real::pread(descriptor, buffer, bytes, offset) };
    if faults.corrupt_until_ns > now_ns
        && let Ok(length @ 1..) = u64::try_from(read)
    {
        let at = with(|machine| machine.random().below(length));
        let at = usize::try_from(at).expect("it is below a length");
        // SAFETY: the call has filled the buffer up to this length.
        unsafe { *buffer.cast::<u8>().add(at) ^= 4 };
    }
    with(|machine| machine.event(Event::Read, read.unsigned_abs() as u64, offset.unsigned_abs()));
    read
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pread64(
    descriptor: c_int,
    buffer: *mut c_void,
    bytes: usize,
    offset: off_t,
) -> ssize_t {
    // SAFETY: the caller keeps the conditions.
    unsafe { pread(descriptor, buffer, bytes, offset) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite(
    descriptor: c_int,
    buffer: *const c_void,
    bytes: usize,
    offset: off_t,
) -> ssize_t {
    if current().is_none() {
        // SAFETY: the caller keeps the conditions.
        return unsafe { real::pwrite(descriptor, buffer, bytes, offset) };
    }
    let (faults, now_ns) = storage_after_delay(descriptor);
    if faults.full_until_ns > now_ns {
        return failed_bytes(libc::ENOSPC);
    }
    if faults.fail_until_ns > now_ns {
        return failed_bytes(libc::EIO);
    }
    // SAFETY: the caller keeps the conditions.
    let written = unsafe { real::pwrite(descriptor, buffer, bytes, offset) };
    let (length, offset) = (written.unsigned_abs() as u64, offset.unsigned_abs());
    with(|machine| machine.event(Event::Written, length, offset));
    written
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(
    descriptor: c_int,
    buffer: *const c_void,
    bytes: usize,
    offset: off_t,
) -> ssize_t {
    // SAFETY: the caller keeps the conditions.
    unsafe { pwrite(descriptor, buffer, bytes, offset) }
}
