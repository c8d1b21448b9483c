//! Energy counters of the kernel's performance events: one system call.

#![expect(unsafe_code, reason = "perf_event_open has no wrapper in libc or rustix")]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd};

/// Opens counters; tests use their own implementation.
pub trait Counters: Send + Sync {
    /// A system-wide counter of a performance monitoring unit on a processor. Reading it gives its
    /// value as eight bytes in the machine's order.
    fn open(&self, unit: u32, event: u64, cpu: u32) -> io::Result<Box<dyn Read + Send>>;
}

/// The kernel of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kernel;

/// `struct perf_event_attr` in its first version (PERF_ATTR_SIZE_VER0 of linux/perf_event.h); the
/// kernel takes fields that a shorter version lacks as 0.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    unit: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

const ATTRIBUTES_BYTES: u32 = 64;
const _: () = assert!(size_of::<Attributes>() == ATTRIBUTES_BYTES as usize);

impl Counters for Kernel {
    fn open(&self, unit: u32, event: u64, cpu: u32) -> io::Result<Box<dyn Read + Send>> {
        let attributes =
            Attributes { unit, size: ATTRIBUTES_BYTES, config: event, ..Attributes::default() };
        let every_process: libc::pid_t = -1;
        let no_group: libc::c_int = -1;
        let cpu = libc::c_int::try_from(cpu).map_err(io::Error::other)?;
        let close_on_exec = libc::c_ulong::from(8_u32);
        // SAFETY: `attributes` lives through the call, has the size that it states, and the kernel
        // only reads it; the other arguments are plain numbers of the types in perf_event_open(2).
        let descriptor = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                every_process,
                cpu,
                no_group,
                close_on_exec,
            )
        };
        let descriptor = i32::try_from(descriptor).map_err(io::Error::other)?;
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just opened this descriptor for us, and nothing else owns it.
        let owned = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Box::new(File::from(owned)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Counters, Kernel};
    use std::io::ErrorKind;

    /// An event that every kernel with performance events supports: processor time.
    const SOFTWARE: u32 = 1;
    const CPU_CLOCK: u64 = 0;

    #[test]
    fn the_kernel_opens_a_counter_that_reads_eight_bytes_or_says_why_not() {
        match Kernel.open(SOFTWARE, CPU_CLOCK, 0) {
            Ok(mut counter) => {
                let mut value = [0; 8];
                counter.read_exact(&mut value).unwrap();
                let first = u64::from_ne_bytes(value);
                counter.read_exact(&mut value).unwrap();
                assert!(u64::from_ne_bytes(value) >= first);
            }
            Err(error) => {
                let refused = [ErrorKind::PermissionDenied, ErrorKind::Unsupported];
                let absent = error.raw_os_error() == Some(libc::ENOSYS);
                assert!(absent || refused.contains(&error.kind()), "{error}");
                eprintln!("SKIPPED: no performance events here: {error}");
            }
        }
    }

    #[test]
    fn a_unit_that_does_not_exist_is_an_error() {
        assert!(Kernel.open(u32::MAX, 0, 0).is_err());
    }
}
