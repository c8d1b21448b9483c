//! The instruction set that kernels may use, passed in so that tests can loop over all of them.

/// An instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Cpu {
    /// What every machine has; the meaning of every kernel.
    Portable,
    /// x86-64 with AVX2.
    Avx2,
}

impl Cpu {
    /// All that there is code for, on whatever machine, from the simplest to the best.
    pub const ALL: [Self; 2] = [Self::Portable, Self::Avx2];

    /// The best that this machine has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return Self::Avx2;
        }
        Self::Portable
    }

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
        }
    }

    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        self <= Self::detect()
    }
}
