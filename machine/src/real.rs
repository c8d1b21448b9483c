//! The original functions of the C library, and those that the machine itself calls.
#![expect(unsafe_code, reason = "calls the C library")]

use libc::{c_char, c_int, c_long, c_uint, c_void, iovec, mode_t, msghdr, off_t, sockaddr};
use libc::{socklen_t, ssize_t, timespec};
use std::ffi::CStr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

/// Finds the definition of a function in the libraries (`RTLD_NEXT`).
fn find(found: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = found.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the name ends with a zero byte.
    let address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if address.is_null() {
        abort("the C library lacks a function that this program replaces");
    }
    found.store(address, Ordering::Relaxed);
    address
}

/// Functions that call the C library.
macro_rules! real {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        /// # Safety
        ///
        /// As the function of this name in the C library.
        pub(crate) unsafe fn $name($($argument: $type),*) -> $result {
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            let name = concat!(stringify!($name), "\0");
            let name = CStr::from_bytes_with_nul(name.as_bytes()).expect("one zero byte");
            let found = find(&FOUND, name);
            type Function = unsafe extern "C" fn($($type),*) -> $result;
            // SAFETY: the C library's function of this name has this type.
            let function: Function = unsafe { std::mem::transmute(found) };
            // SAFETY: the caller keeps the conditions of the function.
            unsafe { function($($argument),*) }
        }
    )*};
}

/// What a thread executes.
pub(crate) type Routine = extern "C" fn(*mut c_void) -> *mut c_void;

real! {
    clock_gettime(clock: c_int, time: *mut timespec) -> c_int;
    clock_nanosleep(
        clock: c_int,
        flags: c_int,
        time: *const timespec,
        left: *mut timespec
    ) -> c_int;
    nanosleep(time: *const timespec, left: *mut timespec) -> c_int;
    sched_yield() -> c_int;
    syscall(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long;
    getrandom(buffer: *mut c_void, bytes: usize, flags: c_uint) -> ssize_t;
    pthread_create(
        thread: *mut libc::pthread_t,
        attributes: *const libc::pthread_attr_t,
        routine: Routine,
        argument: *mut c_void
    ) -> c_int;
    pthread_join(thread: libc::pthread_t, result: *mut *mut c_void) -> c_int;
    pthread_setname_np(thread: libc::pthread_t, name: *const c_char) -> c_int;
    sched_getaffinity(process: libc::pid_t, bytes: usize, set: *mut libc::cpu_set_t) -> c_int;
    poll(descriptors: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> c_int;
    epoll_create1(flags: c_int) -> c_int;
    epoll_wait(set: c_int, events: *mut libc::epoll_event, most: c_int, timeout: c_int) -> c_int;
    eventfd(count: c_uint, flags: c_int) -> c_int;
    read(descriptor: c_int, buffer: *mut c_void, bytes: usize) -> ssize_t;
    readv(descriptor: c_int, pieces: *const iovec, count: c_int) -> ssize_t;
    recv(descriptor: c_int, buffer: *mut c_void, bytes: usize, flags: c_int) -> ssize_t;
    recvfrom(
        descriptor: c_int,
        buffer: *mut c_void,
        bytes: usize,
        flags: c_int,
        address: *mut sockaddr,
        length: *mut socklen_t
    ) -> ssize_t;
    recvmsg(descriptor: c_int, message: *mut msghdr, flags: c_int) -> ssize_t;
    write(descriptor: c_int, buffer: *const c_void, bytes: usize) -> ssize_t;
    writev(descriptor: c_int, pieces: *const iovec, count: c_int) -> ssize_t;
    send(descriptor: c_int, buffer: *const c_void, bytes: usize, flags: c_int) -> ssize_t;
    sendmsg(descriptor: c_int, message: *const msghdr, flags: c_int) -> ssize_t;
    socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int;
    bind(descriptor: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
    connect(descriptor: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
    accept4(
        descriptor: c_int,
        address: *mut sockaddr,
        length: *mut socklen_t,
        flags: c_int
    ) -> c_int;
    getsockname(descriptor: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    getpeername(descriptor: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    setsockopt(
        descriptor: c_int,
        level: c_int,
        name: c_int,
        value: *const c_void,
        length: socklen_t
    ) -> c_int;
    shutdown(descriptor: c_int, how: c_int) -> c_int;
    close(descriptor: c_int) -> c_int;
    fcntl(descriptor: c_int, command: c_int, argument: usize) -> c_int;
    open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    openat(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    pread(descriptor: c_int, buffer: *mut c_void, bytes: usize, offset: off_t) -> ssize_t;
    pwrite(descriptor: c_int, buffer: *const c_void, bytes: usize, offset: off_t) -> ssize_t;
    getpid() -> libc::pid_t;
    getsockopt(
        descriptor: c_int,
        level: c_int,
        name: c_int,
        value: *mut c_void,
        length: *mut socklen_t
    ) -> c_int;
    kill(process: libc::pid_t, signal: c_int) -> c_int;
    sysinfo(info: *mut libc::sysinfo) -> c_int;
}

/// Sets the error of the calling thread.
pub(crate) fn set_error(error: c_int) {
    // SAFETY: the C library returns the address of the calling thread's own error.
    unsafe { *libc::__errno_location() = error };
}

/// The error of the calling thread.
pub(crate) fn error() -> c_int {
    // SAFETY: as in `set_error`.
    unsafe { *libc::__errno_location() }
}

/// Waits in real time until a word differs from `value`.
pub(crate) fn wait(word: &AtomicU32, value: u32) {
    let address = word.as_ptr() as usize;
    let operation = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: the word outlives the call.
    unsafe { syscall(libc::SYS_futex, address, operation, value as usize, 0, 0, 0) };
}

/// Wakes the real thread that waits for a word.
pub(crate) fn wake(word: &AtomicU32) {
    let address = word.as_ptr() as usize;
    let operation = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: the kernel only uses the address to find waiting threads.
    unsafe { syscall(libc::SYS_futex, address, operation, 1, 0, 0, 0) };
}

/// Whether one of these descriptors is ready now.
pub(crate) fn poll_now(descriptors: &mut [libc::pollfd]) -> bool {
    let count = descriptors.len() as libc::nfds_t;
    // SAFETY: the slice has that many entries.
    unsafe { poll(descriptors.as_mut_ptr(), count, 0) != 0 }
}

/// Closes a descriptor of a process that was killed.
pub(crate) fn close_now(descriptor: c_int) {
    // SAFETY: no thread that could use the descriptor ever runs again.
    unsafe { close(descriptor) };
}

/// Whether calls on a descriptor block.
pub(crate) fn is_blocking(descriptor: c_int) -> bool {
    // SAFETY: the command takes no argument.
    let flags = unsafe { fcntl(descriptor, libc::F_GETFL, 0) };
    flags >= 0 && flags & libc::O_NONBLOCK == 0
}

/// Where the result of a simulation is written.
static REPORT: AtomicI32 = AtomicI32::new(libc::STDERR_FILENO);

/// Sets the descriptor to which results are written.
pub(crate) fn set_report(descriptor: c_int) {
    REPORT.store(descriptor, Ordering::Relaxed);
}

/// Writes the result of a simulation.
pub(crate) fn report(text: &str) {
    write_all(REPORT.load(Ordering::Relaxed), text.as_bytes());
}

/// Writes a line of the trace.
pub(crate) fn print(line: &str) {
    write_all(libc::STDOUT_FILENO, line.as_bytes());
}

fn write_all(descriptor: c_int, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the slice has that many bytes.
        let written = unsafe { write(descriptor, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(written) if written > 0 => bytes = &bytes[written..],
            // The reader has gone.
            _ => return,
        }
    }
}

/// Ends this program at once, with all its threads.
pub(crate) fn end_program(status: c_int) -> ! {
    // SAFETY: ends the program without running anything else.
    unsafe { libc::_exit(status) }
}

fn abort(why: &str) -> ! {
    write_all(libc::STDERR_FILENO, why.as_bytes());
    std::process::abort();
}
