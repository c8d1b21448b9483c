//! Waits for descriptors: poll, epoll and blocking calls.
#![expect(unsafe_code, reason = "replaces functions of the C library")]

use super::time;
use crate::machine::{DescriptorKind, Outcome, Wait, block, current, with, yield_now};
use crate::real;
use libc::{c_int, c_short, c_void, nfds_t, sigset_t, timespec};

/// Waits until one of these descriptors is ready, or until the deadline.
fn wait_for(descriptors: &mut [libc::pollfd], deadline_ns: Option<u64>) -> Outcome {
    yield_now();
    if real::poll_now(descriptors) {
        return Outcome::Happened;
    }
    if deadline_ns.is_some_and(|deadline_ns| deadline_ns <= with(|machine| machine.now_ns())) {
        return Outcome::TimedOut;
    }
    block(Wait::Descriptors(descriptors.to_vec()), deadline_ns)
}

/// Waits, before a call on a descriptor, until the call would not block; `false` if the timeout of
/// the socket has passed. `flags` are those of the call.
pub(super) fn wait_before(descriptor: c_int, events: c_short, flags: c_int) -> bool {
    yield_now();
    let Some(found) = with(|machine| machine.descriptor(descriptor)) else { return true };
    let is_file = matches!(found.kind, DescriptorKind::File { .. });
    if is_file || flags & libc::MSG_DONTWAIT != 0 || !real::is_blocking(descriptor) {
        return true;
    }
    let limit_ns =
        if events & libc::POLLIN != 0 { found.read_limit_ns } else { found.write_limit_ns };
    let deadline_ns = limit_ns.map(|limit_ns| with(|machine| machine.now_ns()) + limit_ns);
    let mut wanted = [libc::pollfd { fd: descriptor, events, revents: 0 }];
    wait_for(&mut wanted, deadline_ns) == Outcome::Happened
}

#[unsafe(no_mangle)]
unsafe extern "C" fn poll(
    descriptors: *mut libc::pollfd,
    count: nfds_t,
    timeout_ms: c_int,
) -> c_int {
    if current().is_some() {
        let count = usize::try_from(count).expect("nfds_t has the bits of usize");
        // SAFETY: the caller passes an array of this length.
        let all = unsafe { std::slice::from_raw_parts_mut(descriptors, count) };
        wait_for(all, time::deadline_after_ms(timeout_ms));
        // SAFETY: as above; without waiting.
        return unsafe { real::poll(all.as_mut_ptr(), count as nfds_t, 0) };
    }
    // SAFETY: the caller keeps the conditions.
    unsafe { real::poll(descriptors, count, timeout_ms) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ppoll(
    descriptors: *mut libc::pollfd,
    count: nfds_t,
    timeout: *const timespec,
    _signals: *const sigset_t,
) -> c_int {
    // SAFETY: the caller passes the address of a time, or null.
    let timeout = unsafe { timeout.as_ref() };
    let timeout_ms = timeout.map_or(-1, |timeout| {
        c_int::try_from(time::to_ns(timeout).div_ceil(1_000_000)).unwrap_or(c_int::MAX)
    });
    // SAFETY: the caller keeps the conditions.
    unsafe { poll(descriptors, count, timeout_ms) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_wait(
    set: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    timeout_ms: c_int,
) -> c_int {
    if current().is_some() {
        let mut wanted = [libc::pollfd { fd: set, events: libc::POLLIN, revents: 0 }];
        wait_for(&mut wanted, time::deadline_after_ms(timeout_ms));
        // SAFETY: the caller passes an array of this length; without waiting.
        return unsafe { real::epoll_wait(set, events, most, 0) };
    }
    // SAFETY: the caller keeps the conditions.
    unsafe { real::epoll_wait(set, events, most, timeout_ms) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: the call has no conditions.
    let set = unsafe { real::epoll_create1(flags) };
    add(set, DescriptorKind::Events)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eventfd(count: libc::c_uint, flags: c_int) -> c_int {
    // SAFETY: the call has no conditions.
    let counter = unsafe { real::eventfd(count, flags) };
    add(counter, DescriptorKind::Events)
}

/// Adds the descriptor that a call returned to those of the running process, and returns it.
pub(super) fn add(descriptor: c_int, kind: DescriptorKind) -> c_int {
    if descriptor >= 0
        && let Some(own) = current()
    {
        with(|machine| machine.opened(descriptor, machine.process_of(own), kind));
    }
    descriptor
}

/// Copies an address that a call returns.
///
/// # Safety
///
/// `to` is null or has `length` bytes; `length` is null or the address of that number.
pub(super) unsafe fn copy_address(from: &[u8], to: *mut c_void, length: *mut libc::socklen_t) {
    // SAFETY: as the caller says.
    let Some(length) = (unsafe { length.as_mut() }) else { return };
    let bytes = from.len().min(*length as usize);
    if !to.is_null() {
        // SAFETY: at most the bytes that there are at either end.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.cast(), bytes) };
    }
    *length = libc::socklen_t::try_from(from.len()).expect("an address is short");
}
