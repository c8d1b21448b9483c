//! The instruction set that kernels may use, passed in so that tests can loop over all of them.

/// An instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cpu {
    /// What every machine has; the meaning of every kernel.
    Portable,
    /// x86-64 with AVX2.
    Avx2,
    /// x86-64 with AVX2 and the AVX-512 of Ice Lake and Zen 4: F, BW, DQ, VL, VBMI and VBMI2.
    Avx512,
    /// AArch64 with NEON.
    Neon,
}

impl Cpu {
    /// All that there is code for, on whatever machine; of one architecture from the simplest to
    /// the best.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Avx2, Self::Avx512, Self::Neon];

    /// The best that this machine has.
    pub fn detect() -> Self {
        Self::available().last().unwrap_or(Self::Portable)
    }

    /// All that this machine has, from the simplest to the best.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|cpu| cpu.is_available())
    }

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
        }
    }

    /// Whether this machine has it. Cheap: the answer is kept after the first time.
    #[inline]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                std::arch::is_x86_feature_detected!("avx2")
                    && std::arch::is_x86_feature_detected!("avx512f")
                    && std::arch::is_x86_feature_detected!("avx512bw")
                    && std::arch::is_x86_feature_detected!("avx512dq")
                    && std::arch::is_x86_feature_detected!("avx512vl")
                    && std::arch::is_x86_feature_detected!("avx512vbmi")
                    && std::arch::is_x86_feature_detected!("avx512vbmi2")
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            _ => false,
        }
    }

    /// Whether code for AVX2 may run where this instruction set is chosen.
    #[inline]
    pub fn includes_avx2(self) -> bool {
        matches!(self, Self::Avx2 | Self::Avx512)
    }
}

#[cfg(test)]
mod tests {
    use super::Cpu;

    #[test]
    fn the_best_is_the_last_available() {
        assert!(Cpu::Portable.is_available());
        assert!(Cpu::detect().is_available());
        assert_eq!(Cpu::available().next(), Some(Cpu::Portable));
        assert_eq!(Cpu::available().last(), Some(Cpu::detect()));
    }

    #[test]
    fn what_includes_avx2_is_available_only_with_avx2() {
        for cpu in Cpu::available().filter(|cpu| cpu.includes_avx2()) {
            assert!(Cpu::Avx2.is_available(), "{}", cpu.name());
        }
    }
}
