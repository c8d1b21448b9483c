//! The inner loops of unpacking, for each instruction set.
//!
//! Rows of the compact form become rows of the fast form by [`mod@coded`], and blocks of these are
//! unpacked by [`mod@groups`].

#[cfg(target_arch = "x86_64")]
mod avx2;
mod coded;
mod groups;
mod portable;

use super::geometry::GROUPS;
use crate::Cpu;
pub(super) use coded::{
    OVERRUN as CODED_OVERRUN, find_escapes, group_contexts, portable as portable_contexts,
    read as read_coded, width_contexts,
};
pub(super) use groups::{GroupedBlocks, group_bytes, prefix_sums, sum, unpack_groups};

/// An available instruction set for which these loops exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernel {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Kernel {
    /// The loops for an instruction set.
    pub(super) fn new(cpu: Cpu) -> Self {
        assert!(cpu.is_available(), "this machine has no {}", cpu.name());
        match cpu {
            #[cfg(target_arch = "x86_64")]
            Cpu::Avx2 | Cpu::Avx512 => Self::Avx2,
            #[cfg(target_arch = "aarch64")]
            Cpu::Neon => Self::Neon,
            _ => Self::Portable,
        }
    }
}

/// Splits bytes into their low and high halves, and returns the largest.
pub(super) fn nibbles(kernel: Kernel, from: &[u8], to: &mut [u8]) -> u8 {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => avx2::nibbles(from, to),
        _ => portable::nibbles(from, to),
    }
}

/// The eight numbers of a group of a width up to 16. `data` has eight bytes more.
#[inline]
pub(super) fn wide_group(kernel: Kernel, width: u8, data: &[u8]) -> [i16; GROUPS] {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => avx2::wide_group(width, data),
        _ => portable::wide_group(width, data),
    }
}
