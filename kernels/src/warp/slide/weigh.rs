//! Weighs lines of bytes on an instruction set.

use super::portable;
use super::weighed::Weighed;
use crate::Cpu;
use crate::vector::BLOCK;

/// Fills the output with weighted means. Panics if this machine lacks `cpu`.
pub(super) fn weigh<const TAPS: usize>(cpu: Cpu, weighed: Weighed<'_, TAPS>) {
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    let needed = weighed.out.len().next_multiple_of(BLOCK);
    let is_long = weighed.lines.iter().all(|line| line.len() >= needed);
    assert!(is_long, "a line goes on for a block behind the end of the output");
    match cpu {
        #[cfg(target_arch = "x86_64")]
        Cpu::Avx2 | Cpu::Avx512 => super::avx2::weigh(weighed),
        _ => portable::weigh(weighed),
    }
}
