//! Clocks and sleeps.
#![expect(unsafe_code, reason = "replaces functions of the C library")]

use crate::machine::{self, Wait, block, current, with, yield_now};
use crate::real;
use libc::{c_int, timespec};

/// The real-time clock at the beginning of a simulation: 1 January 2026.
const REAL_TIME_NS: u64 = 1_767_225_600_000_000_000;

fn to_timespec(time_ns: u64) -> timespec {
    timespec {
        tv_sec: i64::try_from(time_ns / 1_000_000_000).expect("it has fewer than 63 bits"),
        tv_nsec: i64::try_from(time_ns % 1_000_000_000).expect("it is below a second"),
    }
}

/// A time in nanoseconds, at least 0.
pub(super) fn to_ns(time: &timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// The time of a clock.
fn time_of(clock: c_int) -> u64 {
    let own = current().expect("only simulated threads have simulated clocks");
    with(|machine| match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => REAL_TIME_NS + machine.now_ns(),
        libc::CLOCK_THREAD_CPUTIME_ID | libc::CLOCK_PROCESS_CPUTIME_ID => machine.cpu_ns(own),
        _ => machine.now_ns(),
    })
}

/// Sleeps until a time of the monotonic clock.
pub(super) fn sleep_until(deadline_ns: u64) {
    block(Wait::Deadline, Some(deadline_ns));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut timespec) -> c_int {
    if current().is_none() {
        // SAFETY: the caller keeps the conditions.
        return unsafe { real::clock_gettime(clock, time) };
    }
    yield_now();
    // SAFETY: the caller passes the address of a time.
    unsafe { *time = to_timespec(time_of(clock)) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nanosleep(time: *const timespec, left: *mut timespec) -> c_int {
    if current().is_none() {
        // SAFETY: the caller keeps the conditions.
        return unsafe { real::nanosleep(time, left) };
    }
    // SAFETY: the caller passes the address of a time.
    let duration_ns = to_ns(unsafe { &*time });
    sleep_until(with(|machine| machine.now_ns()).saturating_add(duration_ns));
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_nanosleep(
    clock: c_int,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    if current().is_none() {
        // SAFETY: the caller keeps the conditions.
        return unsafe { real::clock_nanosleep(clock, flags, time, left) };
    }
    // SAFETY: the caller passes the address of a time.
    let time_ns = to_ns(unsafe { &*time });
    let now_ns = with(|machine| machine.now_ns());
    sleep_until(match (flags & libc::TIMER_ABSTIME != 0, clock) {
        (false, _) => now_ns.saturating_add(time_ns),
        (true, libc::CLOCK_REALTIME) => time_ns.saturating_sub(REAL_TIME_NS),
        (true, _) => time_ns,
    });
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sched_yield() -> c_int {
    if current().is_none() {
        // SAFETY: the call has no conditions.
        return unsafe { real::sched_yield() };
    }
    sleep_until(with(|machine| machine.now_ns()));
    0
}

/// A deadline `timeout_ms` from now; `None` for a negative timeout, which never ends.
pub(super) fn deadline_after_ms(timeout_ms: c_int) -> Option<u64> {
    let timeout_ns = u64::try_from(timeout_ms).ok()? * 1_000_000;
    Some(machine::with(|machine| machine.now_ns()) + timeout_ns)
}
