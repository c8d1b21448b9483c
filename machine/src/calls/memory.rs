//! Futex waits: mutexes, condition variables and parked threads of the standard library.
//!
//! See futex(2). The standard library waits with an absolute deadline of the monotonic clock.
#![expect(unsafe_code, reason = "replaces functions of the C library")]

use super::{process, time};
use crate::machine::{Outcome, Wait, block, current, with, yield_now};
use crate::real;
use libc::{c_int, c_long, timespec};
use std::sync::atomic::{AtomicU32, Ordering};

#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    if current().is_some() {
        match number {
            libc::SYS_futex => {
                // SAFETY: the caller passes the arguments of the system call.
                return unsafe { futex(a, b, c, d, f) };
            }
            libc::SYS_getrandom => {
                // SAFETY: the caller passes a buffer and its length.
                return unsafe { process::fill_random(a as *mut u8, b) } as c_long;
            }
            _ => {}
        }
    }
    // SAFETY: the caller keeps the conditions of the system call.
    unsafe { real::syscall(number, a, b, c, d, e, f) }
}

/// # Safety
///
/// The arguments are those of the system call.
unsafe fn futex(
    address: usize,
    operation: usize,
    value: usize,
    time: usize,
    bits: usize,
) -> c_long {
    let operation = c_int::try_from(operation).unwrap_or(-1);
    let value = value as u32;
    match operation & libc::FUTEX_CMD_MASK {
        libc::FUTEX_WAIT => {
            // SAFETY: the caller passes the address of a time, or 0.
            let timeout_ns = unsafe { read_time(time) };
            let deadline_ns = timeout_ns.map(|timeout_ns| now_ns().saturating_add(timeout_ns));
            // SAFETY: the caller passes the address of a word.
            unsafe { wait(address, value, u32::MAX, deadline_ns) }
        }
        libc::FUTEX_WAIT_BITSET => {
            // SAFETY: the caller passes the address of a time, or 0.
            let deadline_ns = unsafe { read_time(time) };
            // SAFETY: the caller passes the address of a word.
            unsafe { wait(address, value, bits as u32, deadline_ns) }
        }
        libc::FUTEX_WAKE => wake(address, u32::MAX, value),
        libc::FUTEX_WAKE_BITSET => wake(address, bits as u32, value),
        _ => super::failed(libc::ENOSYS).into(),
    }
}

fn now_ns() -> u64 {
    with(|machine| machine.now_ns())
}

/// # Safety
///
/// `time` is the address of a time, or 0.
unsafe fn read_time(time: usize) -> Option<u64> {
    // SAFETY: as the caller says.
    let time = unsafe { (time as *const timespec).as_ref() };
    time.map(time::to_ns)
}

/// # Safety
///
/// `address` is that of a word.
unsafe fn wait(address: usize, value: u32, bits: u32, deadline_ns: Option<u64>) -> c_long {
    yield_now();
    // SAFETY: as the caller says; other threads change the word atomically.
    let found = unsafe { AtomicU32::from_ptr(address as *mut u32) }.load(Ordering::SeqCst);
    if found != value {
        return super::failed(libc::EAGAIN).into();
    }
    if with(|machine| machine.is_spurious()) {
        return 0;
    }
    match block(Wait::Address { address, bits }, deadline_ns) {
        Outcome::Happened => 0,
        Outcome::TimedOut => super::failed(libc::ETIMEDOUT).into(),
    }
}

fn wake(address: usize, bits: u32, most: u32) -> c_long {
    let woken = with(|machine| machine.wake(address, bits, most as usize));
    yield_now();
    c_long::try_from(woken).expect("there are fewer threads")
}
