//! The instruction set that kernels may use, passed in so that tests can loop over all of them.

/// An instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Cpu {
    /// What every machine has; the meaning of every kernel.
    Portable,
    /// x86-64 with AVX2.
    Avx2,
    /// x86-64 with AVX2 and AVX-512 F, BW and VL.
    Avx512,
    /// AArch64 with NEON.
    Neon,
}

impl Cpu {
    /// All that there is code for, on whatever machine, from the simplest to the best of each.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Avx2, Self::Avx512, Self::Neon];

    /// The best that this machine has.
    pub fn detect() -> Self {
        let best = Self::ALL.iter().rev().find(|cpu| cpu.is_available());
        *best.expect("every machine has the portable one")
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

    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && std::arch::is_x86_feature_detected!("avx512f")
                    && std::arch::is_x86_feature_detected!("avx512bw")
                    && std::arch::is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            _ => false,
        }
    }
}
