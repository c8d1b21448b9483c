//! Computes weighted means of lines of bytes with an instruction set.

use super::portable;
use super::weighted_lines::WeightedLines;
use crate::Cpu;
use crate::vector::BLOCK;

/// Fills the output with weighted means. Panics if this machine lacks `cpu`.
pub(super) fn weighted_mean<const TAPS: usize>(cpu: Cpu, weighted: WeightedLines<'_, TAPS>) {
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    let needed = weighted.out.len().next_multiple_of(BLOCK);
    let is_long = weighted.lines.iter().all(|line| line.len() >= needed);
    assert!(is_long, "a line goes on for a block behind the end of the output");
    match cpu {
        #[cfg(target_arch = "x86_64")]
        Cpu::Avx2 | Cpu::Avx512 => super::avx2::weighted_mean(weighted),
        _ => portable::weighted_mean(weighted),
    }
}
