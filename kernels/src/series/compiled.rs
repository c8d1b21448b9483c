//! Compiles one source for several instruction sets.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "calls behind a CPU check"))]

use crate::Cpu;

/// A computation on arrays of float32 or float64, whose loops the compiler vectorises.
///
/// Each operation is rounded separately and sums have a fixed order, so every instruction set gives
/// the same bits. [`Self::run`] and the functions that it calls are `#[inline(always)]`; otherwise
/// they would be compiled only for the baseline instruction set.
pub(crate) trait Kernel {
    /// Runs the computation.
    fn run(&mut self);
}

/// Executes a kernel with the code for an instruction set, which the machine must have.
pub(crate) fn execute(cpu: Cpu, kernel: &mut impl Kernel) {
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `SeriesPreparer::new` has asserted that the machine has the instruction set.
        Cpu::Avx2 | Cpu::Avx512 => unsafe { avx2(kernel) },
        _ => kernel.run(),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(kernel: &mut impl Kernel) {
    kernel.run();
}
