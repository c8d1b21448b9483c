//! Reading from and writing to sockets, and closing descriptors.
#![expect(unsafe_code, reason = "replaces functions of the C library")]

use super::failed_bytes;
use super::waits::{add, wait_before};
use crate::machine::{DescriptorKind, Event, current, with, yield_now};
use crate::real;
use libc::{c_int, c_void, iovec, msghdr, sockaddr, socklen_t, ssize_t};

/// After a call: other threads may now find a descriptor ready.
fn after(event: Event, descriptor: c_int, bytes: ssize_t) -> ssize_t {
    let error = real::error();
    let is_stream = with(|machine| {
        let kind = machine.descriptor(descriptor).map(|found| found.kind);
        let is_stream =
            matches!(kind, Some(DescriptorKind::Socket | DescriptorKind::Network { .. }));
        if !matches!(kind, Some(DescriptorKind::File { .. })) {
            machine.descriptors_changed();
        }
        is_stream
    });
    if is_stream && bytes >= 0 {
        with(|machine| machine.event(event, bytes.unsigned_abs() as u64, 0));
    }
    real::set_error(error);
    bytes
}

/// Functions that read: wait until there is something, then call the C library.
macro_rules! receives {
    ($($name:ident($descriptor:ident, $($argument:ident: $type:ty),*; $flags:expr);)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($descriptor: c_int, $($argument: $type),*) -> ssize_t {
            if current().is_none() {
                // SAFETY: the caller keeps the conditions.
                return unsafe { real::$name($descriptor, $($argument),*) };
            }
            if !wait_before($descriptor, libc::POLLIN, $flags) {
                return failed_bytes(libc::EAGAIN);
            }
            // SAFETY: the caller keeps the conditions.
            let bytes = unsafe { real::$name($descriptor, $($argument),*) };
            after(Event::Received, $descriptor, bytes)
        }
    )*};
}

/// Functions that write, likewise.
macro_rules! sends {
    ($($name:ident($descriptor:ident, $($argument:ident: $type:ty),*; $flags:expr);)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($descriptor: c_int, $($argument: $type),*) -> ssize_t {
            if current().is_none() {
                // SAFETY: the caller keeps the conditions.
                return unsafe { real::$name($descriptor, $($argument),*) };
            }
            if !wait_before($descriptor, libc::POLLOUT, $flags) {
                return failed_bytes(libc::EAGAIN);
            }
            // SAFETY: the caller keeps the conditions.
            let bytes = unsafe { real::$name($descriptor, $($argument),*) };
            after(Event::Sent, $descriptor, bytes)
        }
    )*};
}

receives! {
    read(descriptor, buffer: *mut c_void, bytes: usize; 0);
    readv(descriptor, pieces: *const iovec, count: c_int; 0);
    recv(descriptor, buffer: *mut c_void, bytes: usize, flags: c_int; flags);
    recvfrom(
        descriptor,
        buffer: *mut c_void,
        bytes: usize,
        flags: c_int,
        address: *mut sockaddr,
        length: *mut socklen_t;
        flags
    );
}

sends! {
    write(descriptor, buffer: *const c_void, bytes: usize; 0);
    writev(descriptor, pieces: *const iovec, count: c_int; 0);
    send(descriptor, buffer: *const c_void, bytes: usize, flags: c_int; flags);
    sendmsg(descriptor, message: *const msghdr, flags: c_int; flags);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recvmsg(descriptor: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    if current().is_none() {
        // SAFETY: the caller keeps the conditions.
        return unsafe { real::recvmsg(descriptor, message, flags) };
    }
    if !wait_before(descriptor, libc::POLLIN, flags) {
        return failed_bytes(libc::EAGAIN);
    }
    // SAFETY: the caller keeps the conditions.
    let bytes = unsafe { real::recvmsg(descriptor, message, flags) };
    let bytes = after(Event::Received, descriptor, bytes);
    if bytes >= 0 {
        // SAFETY: the call has filled the message.
        for received in unsafe { descriptors_in(message) } {
            add(received, DescriptorKind::File { is_spool: true });
        }
    }
    bytes
}

/// The descriptors that came with a message.
///
/// # Safety
///
/// `message` was filled by `recvmsg`.
pub(crate) unsafe fn descriptors_in(message: *const msghdr) -> Vec<c_int> {
    let mut found = Vec::new();
    // SAFETY: as the caller says.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: the macros return headers inside the message, or null.
    while let Some(control) = unsafe { header.as_ref() } {
        if control.cmsg_level == libc::SOL_SOCKET && control.cmsg_type == libc::SCM_RIGHTS {
            // SAFETY: the data of the header begins there.
            let data = unsafe { libc::CMSG_DATA(header) };
            let before = data as usize - header as usize;
            let count = (control.cmsg_len - before) / size_of::<c_int>();
            for at in 0..count {
                // SAFETY: the header gives the number of descriptors.
                found.push(unsafe { data.cast::<c_int>().add(at).read_unaligned() });
            }
        }
        // SAFETY: as above.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    found
}

#[unsafe(no_mangle)]
unsafe extern "C" fn shutdown(descriptor: c_int, how: c_int) -> c_int {
    if current().is_some() {
        yield_now();
        with(|machine| machine.descriptors_changed());
    }
    // SAFETY: the call has no conditions.
    unsafe { real::shutdown(descriptor, how) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn close(descriptor: c_int) -> c_int {
    if current().is_some() {
        yield_now();
        with(|machine| machine.closed(descriptor));
    }
    // SAFETY: the caller owns the descriptor.
    unsafe { real::close(descriptor) }
}

/// Its third argument is a number, an address or absent.
#[unsafe(no_mangle)]
unsafe extern "C" fn fcntl(descriptor: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the caller keeps the conditions.
    let result = unsafe { real::fcntl(descriptor, command, argument) };
    if current().is_some() && matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
        let error = real::error();
        let original = with(|machine| machine.descriptor(descriptor));
        let kind = original.map_or(DescriptorKind::File { is_spool: false }, |found| found.kind);
        add(result, kind);
        real::set_error(error);
    }
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fcntl64(descriptor: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the caller keeps the conditions.
    unsafe { fcntl(descriptor, command, argument) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    pair: *mut c_int,
) -> c_int {
    // SAFETY: the caller passes room for two descriptors.
    let status = unsafe { real::socketpair(domain, kind, protocol, pair) };
    if status == 0 {
        for at in 0..2 {
            // SAFETY: the call has stored both.
            add(unsafe { *pair.add(at) }, DescriptorKind::Socket);
        }
    }
    status
}

#[unsafe(no_mangle)]
unsafe extern "C" fn setsockopt(
    descriptor: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    if current().is_some() {
        let found = with(|machine| machine.descriptor(descriptor));
        let is_network =
            found.is_some_and(|found| matches!(found.kind, DescriptorKind::Network { .. }));
        if is_network && level != libc::SOL_SOCKET {
            return 0;
        }
        let is_limit = matches!(name, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO);
        if level == libc::SOL_SOCKET && is_limit && length as usize == size_of::<libc::timeval>() {
            // SAFETY: the value of these options is such a time.
            let time = unsafe { value.cast::<libc::timeval>().read_unaligned() };
            let ns =
                time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1000;
            let limit_ns = (ns > 0).then_some(ns);
            with(|machine| {
                let Some(found) = machine.descriptor_mut(descriptor) else { return };
                match name {
                    libc::SO_RCVTIMEO => found.read_limit_ns = limit_ns,
                    _ => found.write_limit_ns = limit_ns,
                }
            });
        }
    }
    // SAFETY: the caller keeps the conditions.
    unsafe { real::setsockopt(descriptor, level, name, value, length) }
}
