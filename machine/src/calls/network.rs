//! Network sockets. They are Unix sockets with abstract names, because the kernel delivers bytes
//! sent over these at once, in the sending thread.
#![expect(unsafe_code, reason = "replaces functions of the C library")]

use super::failed;
use super::waits::{add, copy_address, wait_before};
use crate::machine::{DescriptorKind, current, with, yield_now};
use crate::real;
use libc::{c_int, sockaddr, sockaddr_in, sockaddr_un, socklen_t};

/// Time between two attempts of a call that connects.
const RETRY_NS: u64 = 1_000_000;

/// The address `127.0.0.1` with a port.
fn network_address(port: u16) -> sockaddr_in {
    sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    }
}

fn bytes_of(address: &sockaddr_in) -> [u8; size_of::<sockaddr_in>()] {
    // SAFETY: the structure has no padding.
    unsafe { std::mem::transmute(*address) }
}

/// The port of an address, if it is a network address.
///
/// # Safety
///
/// `address` has `length` bytes.
unsafe fn port_of(address: *const sockaddr, length: socklen_t) -> Option<u16> {
    if (length as usize) < size_of::<sockaddr_in>() {
        return None;
    }
    // SAFETY: as the caller says.
    let family = unsafe { (*address).sa_family };
    if c_int::from(family) != libc::AF_INET {
        return None;
    }
    // SAFETY: an address of this family has this structure.
    let address = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
    Some(u16::from_be(address.sin_port))
}

/// The socket name for a port. It has the process id, which differs between simulations.
fn name_of(port: u16) -> (sockaddr_un, socklen_t) {
    // SAFETY: the call has no conditions.
    let own = unsafe { real::getpid() };
    let name = format!("\0meetpoint-machine-{own}-{port}");
    // SAFETY: all bytes may be 0.
    let mut address: sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in address.sun_path.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    let length = size_of::<libc::sa_family_t>() + name.len();
    (address, socklen_t::try_from(length).expect("a name is short"))
}

/// The ports of a descriptor, if it is a network socket.
fn ports_of(descriptor: c_int) -> Option<(u16, u16)> {
    match with(|machine| machine.descriptor(descriptor))?.kind {
        DescriptorKind::Network { port, peer } => Some((port, peer)),
        _ => None,
    }
}

fn set_ports(descriptor: c_int, port: u16, peer: u16) {
    with(|machine| {
        if let Some(found) = machine.descriptor_mut(descriptor) {
            found.kind = DescriptorKind::Network { port, peer };
        }
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    if current().is_none() {
        // SAFETY: the call has no conditions.
        return unsafe { real::socket(domain, kind, protocol) };
    }
    yield_now();
    match domain {
        // SAFETY: as above.
        libc::AF_INET => add(
            unsafe { real::socket(libc::AF_UNIX, kind, 0) },
            DescriptorKind::Network { port: 0, peer: 0 },
        ),
        // The machine has no other network.
        libc::AF_INET6 => failed(libc::EAFNOSUPPORT),
        // SAFETY: as above.
        _ => add(unsafe { real::socket(domain, kind, protocol) }, DescriptorKind::Socket),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bind(descriptor: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    if current().is_some() {
        // SAFETY: the caller passes an address of this length.
        if let Some(port) = unsafe { port_of(address, length) } {
            let port = if port == 0 { with(|machine| machine.next_port()) } else { port };
            let (name, name_length) = name_of(port);
            set_ports(descriptor, port, 0);
            // SAFETY: the name has this length.
            return unsafe { real::bind(descriptor, (&raw const name).cast(), name_length) };
        }
    }
    // SAFETY: the caller keeps the conditions.
    unsafe { real::bind(descriptor, address, length) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn connect(
    descriptor: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> c_int {
    if current().is_none() {
        // SAFETY: the caller keeps the conditions.
        return unsafe { real::connect(descriptor, address, length) };
    }
    yield_now();
    // SAFETY: the caller passes an address of this length.
    let peer = unsafe { port_of(address, length) };
    let named = peer.map(name_of);
    let (address, length) = match &named {
        Some((name, length)) => ((&raw const *name).cast(), *length),
        None => (address, length),
    };
    let waits = real::is_blocking(descriptor);
    set_waits(descriptor, false);
    let status = loop {
        // SAFETY: the address has this length.
        let status = unsafe { real::connect(descriptor, address, length) };
        with(|machine| machine.descriptors_changed());
        if status == 0 || real::error() != libc::EAGAIN || !waits {
            break status;
        }
        super::time::sleep_until(with(|machine| machine.now_ns()) + RETRY_NS);
    };
    let error = real::error();
    set_waits(descriptor, waits);
    if let Some(peer) = peer {
        let port = with(|machine| machine.next_port());
        set_ports(descriptor, port, peer);
    }
    real::set_error(error);
    status
}

/// Sets whether calls on a descriptor block.
fn set_waits(descriptor: c_int, waits: bool) {
    // SAFETY: the command takes no argument.
    let flags = unsafe { real::fcntl(descriptor, libc::F_GETFL, 0) };
    let flags = if waits { flags & !libc::O_NONBLOCK } else { flags | libc::O_NONBLOCK };
    // SAFETY: the argument is a number.
    unsafe { real::fcntl(descriptor, libc::F_SETFL, flags as usize) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn accept4(
    descriptor: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    if current().is_none() {
        // SAFETY: the caller keeps the conditions.
        return unsafe { real::accept4(descriptor, address, length, flags) };
    }
    if !wait_before(descriptor, libc::POLLIN, 0) {
        return failed(libc::EAGAIN);
    }
    let Some((port, _)) = ports_of(descriptor) else {
        // SAFETY: the caller keeps the conditions.
        let accepted = unsafe { real::accept4(descriptor, address, length, flags) };
        return accept(accepted, DescriptorKind::Socket);
    };
    let (no_address, no_length) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: without an address, the call stores none.
    let accepted = unsafe { real::accept4(descriptor, no_address, no_length, flags) };
    let peer = with(|machine| machine.next_port());
    let accepted = accept(accepted, DescriptorKind::Network { port, peer });
    if accepted >= 0 {
        // SAFETY: the caller passes room for an address.
        unsafe { copy_address(&bytes_of(&network_address(peer)), address.cast(), length) };
    }
    accepted
}

fn accept(accepted: c_int, kind: DescriptorKind) -> c_int {
    let error = real::error();
    with(|machine| machine.descriptors_changed());
    add(accepted, kind);
    real::set_error(error);
    accepted
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getsockname(
    descriptor: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    if current().is_some()
        && let Some((port, _)) = ports_of(descriptor)
    {
        // SAFETY: the caller passes room for an address.
        unsafe { copy_address(&bytes_of(&network_address(port)), address.cast(), length) };
        return 0;
    }
    // SAFETY: the caller keeps the conditions.
    unsafe { real::getsockname(descriptor, address, length) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getpeername(
    descriptor: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    if current().is_some()
        && let Some((_, peer)) = ports_of(descriptor)
    {
        if peer == 0 {
            return failed(libc::ENOTCONN);
        }
        // SAFETY: the caller passes room for an address.
        unsafe { copy_address(&bytes_of(&network_address(peer)), address.cast(), length) };
        return 0;
    }
    // SAFETY: the caller keeps the conditions.
    unsafe { real::getpeername(descriptor, address, length) }
}
