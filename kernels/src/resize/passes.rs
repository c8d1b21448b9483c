//! The two passes on the selected instruction set, and the count of their work.

#[cfg(target_arch = "x86_64")]
use super::avx2;
use super::coefficients::Coefficients;
use super::line::Line;
use super::portable;
use crate::Cpu;

/// Multiplications between two calls of `pause`, a fraction of a millisecond.
const WORK_PER_PAUSE: usize = 1 << 19;

/// The passes, with the weights in the order for the instruction set.
#[derive(Debug)]
pub(super) struct Passes {
    pub(super) cpu: Cpu,
    #[cfg(target_arch = "x86_64")]
    packed: avx2::Packed,
    /// Pairs of rows of a long run.
    #[cfg(target_arch = "x86_64")]
    pairs: Vec<avx2::Pair>,
}

impl Passes {
    pub(super) fn new(cpu: Cpu) -> Self {
        Self {
            cpu,
            #[cfg(target_arch = "x86_64")]
            packed: avx2::Packed::default(),
            #[cfg(target_arch = "x86_64")]
            pairs: Vec::new(),
        }
    }

    /// Prepares [`Passes::across`] with these weights.
    pub(super) fn pack(&mut self, coefficients: &Coefficients) {
        match self.cpu {
            #[cfg(target_arch = "x86_64")]
            Cpu::Avx2 | Cpu::Avx512 => self.packed.pack(coefficients),
            _ => {
                let _: &Coefficients = coefficients;
            }
        }
    }

    /// The pass along the rows. The bytes of `out` after the end of a row, up to the next multiple
    /// of 32, may be overwritten.
    pub(super) fn across(&self, coefficients: &Coefficients, lines: &[Line<'_>], out: &mut [u8]) {
        match self.cpu {
            #[cfg(target_arch = "x86_64")]
            Cpu::Avx2 | Cpu::Avx512 => self.packed.across(lines, out),
            _ => {
                for line in lines {
                    portable::across(coefficients, line.from, &mut out[line.to..]);
                }
            }
        }
    }

    /// The pass along the columns: one output row, a multiple of 32 bytes, from the rows of `from`
    /// at the offsets `taps`, one per weight.
    pub(super) fn down(&mut self, from: &[u8], taps: &[usize], weights: &[i32], out: &mut [u8]) {
        match self.cpu {
            #[cfg(target_arch = "x86_64")]
            Cpu::Avx2 | Cpu::Avx512 => avx2::down(from, taps, weights, &mut self.pairs, out),
            _ => portable::down(from, taps, weights, out),
        }
    }
}

/// Counts the work since the last pause.
#[derive(Debug, Default)]
pub(super) struct Work {
    since_pause: usize,
}

impl Work {
    /// Counts finished multiplications.
    pub(super) fn done(&mut self, multiplications: usize, pause: &mut dyn FnMut()) {
        self.since_pause += multiplications;
        if self.since_pause >= WORK_PER_PAUSE {
            self.since_pause = 0;
            pause();
        }
    }
}
