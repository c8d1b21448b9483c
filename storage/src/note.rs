//! What a storage engine works without, as values that reports contain.

use crate::SystemError;
use meetpoint_diagnose::Remedy;
use serde::{Deserialize, Serialize};
use std::io;

/// A feature that is missing to a storage engine, and why. `Display` gives the sentence, without
/// the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "missing", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EngineNote {
    /// Threads with blocking calls replace io_uring.
    #[error("reading with threads: io_uring is not available: {refusal}")]
    IoUring {
        /// Why io_uring is not available.
        refusal: RingRefusal,
    },
    /// io_uring works without registered buffers.
    #[error("io_uring works without registered buffers: {}", not_registered(error))]
    RegisteredBuffers {
        /// The error of the kernel.
        error: SystemError,
    },
}

/// Why io_uring is not available. `Display` gives the sentence, without the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RingRefusal {
    /// The system call does not exist.
    #[error("this kernel has no io_uring, or a sandbox hides it")]
    NoSystemCall,
    /// `kernel.io_uring_disabled` is 2.
    #[error("sysctl kernel.io_uring_disabled is 2")]
    DisabledForAll,
    /// `kernel.io_uring_disabled` is 1, and this process is not in the group that may use it.
    #[error("sysctl kernel.io_uring_disabled is 1")]
    DisabledOutsideGroup,
    /// The kernel does not permit it, usually because of a seccomp profile.
    #[error("the kernel does not permit it")]
    NotPermitted,
    /// There is no memory for the ring.
    #[error("no memory for the ring")]
    NoMemory,
    /// The kernel is too old to wait with a time limit.
    #[error("the kernel cannot wait with a time limit")]
    NoTimedWait,
    /// Another error of io_uring_setup.
    #[error("io_uring_setup failed: {error}")]
    Failed {
        /// The error of the kernel.
        error: SystemError,
    },
}

/// Whether the limit of locked memory is the cause: registered buffers count as locked memory.
fn is_memlock(error: &SystemError) -> bool {
    error.errno == Some(libc::ENOMEM)
}

fn not_registered(error: &SystemError) -> String {
    let why = match is_memlock(error) {
        true => "the limit of locked memory is reached",
        false => "the kernel refuses",
    };
    format!("{why} ({error})")
}

impl EngineNote {
    /// What makes the feature available; `None` if nothing is known to.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::IoUring { refusal } => refusal.remedy(),
            Self::RegisteredBuffers { error } => {
                is_memlock(error).then(|| "raise the limit of locked memory (ulimit -l)".into())
            }
        }
    }
}

impl RingRefusal {
    /// The meaning of an error of io_uring_setup, given the value of `kernel.io_uring_disabled`, if
    /// the kernel has it.
    pub(crate) fn of_setup(error: io::Error, disabled: Option<&str>) -> Self {
        match (error.raw_os_error(), disabled) {
            (Some(libc::ENOSYS), _) => Self::NoSystemCall,
            (Some(libc::EPERM | libc::EACCES), Some("2")) => Self::DisabledForAll,
            (Some(libc::EPERM | libc::EACCES), Some("1")) => Self::DisabledOutsideGroup,
            (Some(libc::EPERM | libc::EACCES), _) => Self::NotPermitted,
            (Some(libc::ENOMEM), _) => Self::NoMemory,
            _ => Self::Failed { error: error.into() },
        }
    }

    /// What makes io_uring available; `None` if nothing is known to.
    pub fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::NoSystemCall | Self::NoTimedWait => "use Linux 5.11 or later".into(),
            Self::DisabledForAll => "set it to 0 to allow io_uring".into(),
            Self::DisabledOutsideGroup => {
                "set it to 0, or join the group that kernel.io_uring_group names".into()
            }
            Self::NotPermitted => "allow io_uring_setup, io_uring_enter and io_uring_register in \
                                   the seccomp profile of the container"
                .into(),
            Self::NoMemory => "raise the limit of locked memory (ulimit -l)".into(),
            Self::Failed { .. } => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meetpoint_diagnose::Surface;

    fn refused(errno: i32, disabled: Option<&str>) -> RingRefusal {
        RingRefusal::of_setup(io::Error::from_raw_os_error(errno), disabled)
    }

    #[test]
    fn each_reason_for_having_no_ring_names_its_remedy() {
        for (errno, disabled, expected, word) in [
            (libc::ENOSYS, None, RingRefusal::NoSystemCall, "Linux 5.11"),
            (libc::EPERM, Some("2"), RingRefusal::DisabledForAll, "0"),
            (libc::EACCES, Some("1"), RingRefusal::DisabledOutsideGroup, "io_uring_group"),
            (libc::EPERM, Some("0"), RingRefusal::NotPermitted, "seccomp"),
            (libc::EPERM, None, RingRefusal::NotPermitted, "seccomp"),
            (libc::ENOMEM, Some("0"), RingRefusal::NoMemory, "ulimit -l"),
        ] {
            let refusal = refused(errno, disabled);
            assert_eq!(refusal, expected, "{errno}");
            let remedy = refusal.remedy().unwrap().spelled(Surface::CommandLine);
            assert!(remedy.contains(word), "{remedy}");
        }
        let other = refused(libc::EMFILE, Some("0"));
        let RingRefusal::Failed { error } = &other else { panic!("{other:?}") };
        assert_eq!((error.errno, other.remedy()), (Some(libc::EMFILE), None));
    }

    #[test]
    fn only_the_limit_of_locked_memory_has_a_remedy() {
        let with = |errno| {
            let error = io::Error::from_raw_os_error(errno).into();
            EngineNote::RegisteredBuffers { error }.remedy().is_some()
        };
        assert_eq!([with(libc::ENOMEM), with(libc::EINVAL)], [true, false]);
    }
}
