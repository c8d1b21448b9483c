//! What the machine reports to a process about itself, and signals of a process to itself.
#![expect(unsafe_code, reason = "replaces functions of the C library")]

use crate::machine::{Wait, block, current, with, yield_now};
use crate::real;
use libc::{c_int, c_uint, c_void, ssize_t};

/// Processors of the machine.
const PROCESSORS: usize = 4;

/// Memory of the machine, in bytes.
const MEMORY_BYTES: u64 = 16 << 30;

/// The id of the first simulated process.
const FIRST_PROCESS_ID: libc::pid_t = 4000;

#[unsafe(no_mangle)]
unsafe extern "C" fn getpid() -> libc::pid_t {
    match current() {
        // The id of this program differs from run to run.
        Some(own) => {
            let process = with(|machine| machine.process_of(own));
            FIRST_PROCESS_ID + libc::pid_t::try_from(process.0).expect("there are few processes")
        }
        // SAFETY: the call has no conditions.
        None => unsafe { real::getpid() },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getsockopt(
    descriptor: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut libc::socklen_t,
) -> c_int {
    // SAFETY: the caller keeps the conditions.
    let status = unsafe { real::getsockopt(descriptor, level, name, value, length) };
    let is_peer = level == libc::SOL_SOCKET && name == libc::SO_PEERCRED;
    if current().is_some() && status == 0 && is_peer {
        // SAFETY: the value of this option has this structure.
        unsafe { (*value.cast::<libc::ucred>()).pid = FIRST_PROCESS_ID };
    }
    status
}

/// # Safety
///
/// `buffer` has `bytes` bytes.
pub(super) unsafe fn fill_random(buffer: *mut u8, bytes: usize) -> ssize_t {
    yield_now();
    // SAFETY: as the caller says.
    let buffer = unsafe { std::slice::from_raw_parts_mut(buffer, bytes) };
    with(|machine| machine.entropy().fill(buffer));
    bytes.cast_signed()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut c_void, bytes: usize, flags: c_uint) -> ssize_t {
    if current().is_none() {
        // SAFETY: the caller keeps the conditions.
        return unsafe { real::getrandom(buffer, bytes, flags) };
    }
    // SAFETY: the caller passes a buffer of this length.
    unsafe { fill_random(buffer.cast(), bytes) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sched_getaffinity(
    process: libc::pid_t,
    bytes: usize,
    set: *mut libc::cpu_set_t,
) -> c_int {
    if current().is_none() {
        // SAFETY: the caller keeps the conditions.
        return unsafe { real::sched_getaffinity(process, bytes, set) };
    }
    // SAFETY: the caller passes a set of this size.
    unsafe { std::ptr::write_bytes(set.cast::<u8>(), 0, bytes) };
    // SAFETY: as above, and 0 is a value of every bit.
    let set = unsafe { &mut *set };
    for processor in 0..PROCESSORS {
        // SAFETY: a set has far more bits.
        unsafe { libc::CPU_SET(processor, set) };
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sysinfo(info: *mut libc::sysinfo) -> c_int {
    // SAFETY: the caller keeps the conditions.
    let status = unsafe { real::sysinfo(info) };
    if current().is_some() && status == 0 {
        // SAFETY: the call has filled the structure.
        let info = unsafe { &mut *info };
        info.mem_unit = 1;
        info.totalram = MEMORY_BYTES;
        info.freeram = MEMORY_BYTES / 2;
        info.bufferram = 0;
        info.totalswap = 0;
        info.freeswap = 0;
    }
    status
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kill(process: libc::pid_t, signal: c_int) -> c_int {
    let Some(own) = current() else {
        // SAFETY: the call has no conditions.
        return unsafe { real::kill(process, signal) };
    };
    assert_eq!(signal, libc::SIGKILL, "programs send themselves no other signal");
    with(|machine| {
        machine.note("kills its own process");
        machine.kill(machine.process_of(own));
    });
    // This thread has ended, and never continues.
    block(Wait::Deadline, None);
    unreachable!("a thread that was killed does not run");
}
