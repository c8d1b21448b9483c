//! The coverage of a meter as a value; `Display` writes the sentence.

use super::Scope;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The parts of a machine whose energy a meter counts, for all processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Coverage {
    /// A processor package.
    Package,
    /// The cores of a package.
    Cores,
    /// The parts of a package that are not cores.
    Uncore,
    /// The GPU of a package.
    IntegratedGpu,
    /// Memory modules of a package.
    PackageMemory,
    /// The platform domain of a processor (psys), which each maker wires differently.
    Platform,
    /// A graphics board, by NVML.
    NvmlBoard {
        /// The product name of the board.
        board: String,
    },
    /// A graphics board, by the driver `amdgpu`.
    AmdgpuBoard,
    /// The power inlet of the machine.
    PowerInlet,
    /// A supply rail of a board.
    Rail,
    /// The machine while its battery discharges.
    Battery,
}

impl Coverage {
    /// What a RAPL domain covers, by the kernel's name: `package-0`, `core`, `uncore`, `dram` and
    /// `psys` in powercap, `energy-pkg`, `energy-cores`, `energy-gpu` and so on in perf.
    pub(super) fn of_rapl_domain(name: &str) -> Self {
        match name.strip_prefix("energy-").unwrap_or(name) {
            "core" | "cores" => Self::Cores,
            "uncore" => Self::Uncore,
            "gpu" => Self::IntegratedGpu,
            "dram" | "ram" => Self::PackageMemory,
            "psys" => Self::Platform,
            _ => Self::Package,
        }
    }

    /// The scope of such figures.
    pub fn scope(&self) -> Scope {
        match self {
            Self::Package => Scope::Package,
            Self::Cores => Scope::Cores,
            Self::Uncore | Self::IntegratedGpu => Scope::Uncore,
            Self::PackageMemory => Scope::Dram,
            Self::Platform => Scope::Platform,
            Self::NvmlBoard { .. } | Self::AmdgpuBoard => Scope::Gpu,
            Self::PowerInlet | Self::Battery => Scope::Machine,
            Self::Rail => Scope::Rail,
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Package => {
                "a processor package, whatever runs on it; no memory modules, drives, fans"
            }
            Self::Cores => "the cores of a package, whatever runs on them",
            Self::Uncore => "an integrated GPU and what else is not a core",
            Self::IntegratedGpu => "an integrated GPU",
            Self::PackageMemory => "memory modules of a package",
            Self::Platform => "what the maker wired to it: package and parts of the board",
            Self::NvmlBoard { board } => {
                return write!(
                    f,
                    "{board} with its memory, for all processes; some boards (A100, H100) sample \
                     power a quarter of the time, so short loads may be missed"
                );
            }
            Self::AmdgpuBoard => "the graphics board, for all processes",
            Self::PowerInlet => "the whole machine, by its ACPI power meter",
            Self::Rail => "one supply rail; see the board's manual for its consumers",
            Self::Battery => "the whole machine, display included, while it runs from the battery",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Coverage;
    use crate::energy::Scope;

    #[test]
    fn a_coverage_survives_json_and_has_the_scope_of_its_parts() {
        let board = Coverage::NvmlBoard { board: "NVIDIA H100".to_owned() };
        let json = serde_json::to_value(&board).unwrap();
        assert_eq!(json, serde_json::json!({"kind": "nvml_board", "board": "NVIDIA H100"}));
        assert_eq!(serde_json::from_value::<Coverage>(json).unwrap(), board);
        assert_eq!((board.scope(), Coverage::Battery.scope()), (Scope::Gpu, Scope::Machine));
        assert_eq!(Coverage::of_rapl_domain("energy-ram"), Coverage::PackageMemory);
        assert_eq!(Coverage::of_rapl_domain("package-1"), Coverage::Package);
    }
}
