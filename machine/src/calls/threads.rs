//! Creation and end of threads.
#![expect(unsafe_code, reason = "replaces functions of the C library")]

use crate::machine::{self, Gate, ThreadIndex, Wait, block, current, with, yield_now};
use crate::real;
use libc::{c_char, c_int, c_void, pthread_t};
use std::ffi::CStr;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a new thread executes once it runs.
struct Start {
    routine: real::Routine,
    argument: *mut c_void,
    thread: ThreadIndex,
    gate: &'static Gate,
}

/// The key whose destructor ends a thread, plus 1; 0 until it is created. The C library calls the
/// destructors of keys after those of Rust's thread-local values.
static KEY: AtomicU32 = AtomicU32::new(0);

fn key() -> libc::pthread_key_t {
    if KEY.load(Ordering::Relaxed) == 0 {
        let mut key = 0;
        // SAFETY: the destructor has the required type.
        let status = unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) };
        assert_eq!(status, 0, "a program has room for a key");
        KEY.store(key + 1, Ordering::Relaxed);
    }
    KEY.load(Ordering::Relaxed) - 1
}

/// The calling thread ends; the value of the key is the index of the thread, plus 1.
unsafe extern "C" fn ended(value: *mut c_void) {
    machine::end(ThreadIndex(value as usize - 1));
}

extern "C" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: the creator passes a box, once.
    let start = *unsafe { Box::from_raw(start.cast::<Start>()) };
    // It owns the machine only after the gate.
    start.gate.pass();
    machine::become_thread(start.thread);
    // SAFETY: the creator of this thread has created the key.
    unsafe { libc::pthread_setspecific(key(), (start.thread.0 + 1) as *const c_void) };
    (start.routine)(start.argument)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    native: *mut pthread_t,
    attributes: *const libc::pthread_attr_t,
    routine: real::Routine,
    argument: *mut c_void,
) -> c_int {
    let Some(own) = current() else {
        // SAFETY: the caller keeps the conditions.
        return unsafe { real::pthread_create(native, attributes, routine, argument) };
    };
    yield_now();
    key();
    let thread = with(|machine| machine.create_thread(own));
    let gate = with(|machine| machine.gate(thread));
    let start = Box::into_raw(Box::new(Start { routine, argument, thread, gate }));
    // SAFETY: the caller keeps the conditions, and the new thread takes the box.
    let status = unsafe { real::pthread_create(native, attributes, begin, start.cast()) };
    if status == 0 {
        // SAFETY: the call has stored the identity.
        let native = unsafe { *native };
        with(|machine| machine.set_native(thread, Some(native)));
        yield_now();
    } else {
        // SAFETY: no thread was created, so the box still belongs to this one.
        drop(unsafe { Box::from_raw(start) });
        with(|machine| machine.set_native(thread, None));
    }
    status
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_join(native: pthread_t, result: *mut *mut c_void) -> c_int {
    if current().is_some()
        && let Some(thread) = with(|machine| machine.thread_of(native))
    {
        yield_now();
        if !with(|machine| machine.has_ended(thread)) {
            block(Wait::End(thread), None);
        }
    }
    // The real thread of a simulated thread that has ended ends shortly after.
    // SAFETY: the caller keeps the conditions.
    unsafe { real::pthread_join(native, result) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_setname_np(native: pthread_t, name: *const c_char) -> c_int {
    if let Some(own) = current() {
        // SAFETY: the caller passes a string that ends with a zero byte.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
        with(|machine| machine.set_name(own, name));
    }
    // SAFETY: the caller keeps the conditions.
    unsafe { real::pthread_setname_np(native, name) }
}
