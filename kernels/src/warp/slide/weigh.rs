//! Lines of bytes beside one another, weighed.

use super::portable;
use crate::Cpu;
use crate::vector::BLOCK;

/// As many lines as pixels are weighed, and their weights.
pub(super) struct Weighed<'a, const TAPS: usize> {
    /// Each goes on for a block behind the end of the output.
    pub(super) lines: [&'a [u8]; TAPS],
    pub(super) weights: [f32; TAPS],
    /// More than the sums differ from Pillow's.
    pub(super) error: f32,
    pub(super) out: &'a mut [u8],
    /// Gets the positions of values that are doubtful.
    pub(super) doubtful: &'a mut Vec<usize>,
}

/// Fills the output with weighted means. Panics when this machine lacks `cpu`.
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
