//! The instruction set that kernels may use, passed in so that tests can loop over all of them.

use std::sync::LazyLock;

/// An instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cpu {
    /// Portable Rust for every machine; the reference for every kernel.
    Portable,
    /// x86-64 with AVX2 and the features of every processor that has it: BMI1, BMI2, LZCNT and
    /// POPCNT.
    Avx2,
    /// The same with the AVX-512 of Ice Lake and Zen 4: F, BW, DQ, VL, VBMI and VBMI2.
    Avx512,
    /// AArch64 with NEON.
    Neon,
}

/// Why code for an instruction set cannot run on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unavailable {
    /// The machine has a different architecture.
    Architecture(&'static str),
    /// The processor, or the virtual machine, lacks these features.
    Features(Vec<&'static str>),
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Architecture(needed) => {
                write!(f, "this machine is {}, not {needed}", std::env::consts::ARCH)
            }
            Self::Features(lacking) => write!(f, "this processor lacks {}", lacking.join(", ")),
        }
    }
}

/// How the kernels of an instruction set were tested against the portable ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// On a processor that has it.
    Hardware,
    /// Under an emulator of such a processor.
    Emulator,
}

impl Evidence {
    /// Name in the committed results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::Emulator => "emulator",
        }
    }
}

/// A processor feature: its name in Rust, and whether this machine has it.
type Feature = (&'static str, fn() -> bool);

#[cfg(target_arch = "x86_64")]
macro_rules! x86_features {
    ($($name:tt)*) => { &[$(($name, || std::arch::is_x86_feature_detected!($name))),*] };
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! x86_features {
    ($($name:tt)*) => { &[$(($name, || false)),*] };
}

#[cfg(target_arch = "aarch64")]
macro_rules! aarch64_features {
    ($($name:tt)*) => { &[$(($name, || std::arch::is_aarch64_feature_detected!($name))),*] };
}

#[cfg(not(target_arch = "aarch64"))]
macro_rules! aarch64_features {
    ($($name:tt)*) => { &[$(($name, || false)),*] };
}

const AVX2: &[Feature] = x86_features!("avx2" "bmi1" "bmi2" "lzcnt" "popcnt");

const AVX512: &[Feature] = x86_features!(
    "avx2" "bmi1" "bmi2" "lzcnt" "popcnt"
    "avx512f" "avx512bw" "avx512dq" "avx512vl" "avx512vbmi" "avx512vbmi2"
);

const NEON: &[Feature] = aarch64_features!("neon");

/// For each of [`Cpu::ALL`], whether this machine has it; cached, as kernels check it for each row.
static AVAILABLE: LazyLock<[bool; Cpu::ALL.len()]> = LazyLock::new(|| {
    Cpu::ALL.map(|cpu| cpu.required().iter().all(|(_, is_detected)| is_detected()))
});

impl Cpu {
    /// All instruction sets with kernels; within an architecture from the simplest to the best.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Avx2, Self::Avx512, Self::Neon];

    /// The best that this machine has among those with [`Cpu::evidence`].
    pub fn detect() -> Self {
        Self::best(Self::available(), Self::evidence)
    }

    fn best(
        available: impl Iterator<Item = Self>,
        evidence: impl Fn(Self) -> Option<Evidence>,
    ) -> Self {
        available.filter(|cpu| evidence(*cpu).is_some()).last().unwrap_or(Self::Portable)
    }

    /// All available on this machine, from the simplest to the best.
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

    /// How its kernels were tested. [`Cpu::detect`] never selects one with `None`.
    ///
    /// The results are in `docs/measurements/2026-11-22-instruction-sets.md`.
    pub fn evidence(self) -> Option<Evidence> {
        match self {
            Self::Portable | Self::Avx2 | Self::Avx512 => Some(Evidence::Hardware),
            Self::Neon => Some(Evidence::Emulator),
        }
    }

    /// The processor features that its kernels may enable, by their names in Rust.
    pub fn features(self) -> impl Iterator<Item = &'static str> {
        self.required().iter().map(|(name, _)| *name)
    }

    fn required(self) -> &'static [Feature] {
        match self {
            Self::Portable => &[],
            Self::Avx2 => AVX2,
            Self::Avx512 => AVX512,
            Self::Neon => NEON,
        }
    }

    /// Whether this machine has all of its [features](Cpu::features). Cheap: detected once.
    #[inline]
    pub fn is_available(self) -> bool {
        AVAILABLE[self as usize]
    }

    /// Why its kernels cannot run on this machine; `None` if they can.
    pub fn unavailable(self) -> Option<Unavailable> {
        let needed = match self {
            Self::Portable => return None,
            Self::Avx2 | Self::Avx512 => "x86_64",
            Self::Neon => "aarch64",
        };
        if needed != std::env::consts::ARCH {
            return Some(Unavailable::Architecture(needed));
        }
        let lacking = self.required().iter().filter(|(_, is_detected)| !is_detected());
        let lacking: Vec<_> = lacking.map(|(name, _)| *name).collect();
        (!lacking.is_empty()).then_some(Unavailable::Features(lacking))
    }
}

#[cfg(test)]
mod tests {
    use super::{Cpu, Evidence};

    #[test]
    fn the_best_is_the_last_available() {
        assert!(Cpu::Portable.is_available());
        assert!(Cpu::detect().is_available());
        assert_eq!(Cpu::available().next(), Some(Cpu::Portable));
        assert_eq!(Cpu::available().last(), Some(Cpu::detect()));
    }

    #[test]
    fn an_instruction_set_without_evidence_is_not_chosen() {
        let all = [Cpu::Portable, Cpu::Avx2, Cpu::Avx512];
        let best = |unproven: Option<Cpu>| {
            let evidence = |cpu| (Some(cpu) != unproven).then_some(Evidence::Hardware);
            Cpu::best(all.into_iter(), evidence)
        };
        assert_eq!(best(None), Cpu::Avx512);
        assert_eq!(best(Some(Cpu::Avx512)), Cpu::Avx2);
        assert_eq!(Cpu::best(all.into_iter(), |_| None), Cpu::Portable);
    }

    #[test]
    fn an_instruction_set_is_available_or_has_a_reason() {
        for (index, cpu) in Cpu::ALL.into_iter().enumerate() {
            assert_eq!(cpu as usize, index);
            assert_eq!(cpu.is_available(), cpu.unavailable().is_none(), "{}", cpu.name());
        }
    }

    #[test]
    fn instruction_sets_that_include_avx2_require_its_features() {
        for cpu in [Cpu::Avx2, Cpu::Avx512] {
            let missing = Cpu::Avx2.features().find(|avx2| cpu.features().all(|own| own != *avx2));
            assert_eq!(missing, None, "{}", cpu.name());
        }
    }
}
