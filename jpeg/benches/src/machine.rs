//! The machine on which a value was measured.

use anyhow::{Context, bail};
use meetpoint_kernels::Cpu;
use serde::Serialize;

/// The description of a machine for a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// Instruction sets beyond the baseline of this architecture.
    pub instructions: Vec<&'static str>,
    /// Operating system and its version.
    pub system: String,
}

impl Machine {
    /// The machine that this runs on.
    pub fn here() -> Self {
        let uname = rustix::system::uname();
        let system = [uname.sysname(), uname.release(), uname.machine()];
        Self {
            processor: processor().unwrap_or_else(|| "unknown processor".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            instructions: instructions(),
            system: system.map(|part| part.to_string_lossy().into_owned()).join(" "),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { processor, cores, instructions, system } = self;
        write!(f, "{processor}, {cores} cores, {}, {system}", instructions.join(" "))
    }
}

fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(target_arch = "x86_64")]
fn instructions() -> Vec<&'static str> {
    let all = [
        ("sse4.1", is_x86_feature_detected!("sse4.1")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("bmi2", is_x86_feature_detected!("bmi2")),
        ("avx512bw", is_x86_feature_detected!("avx512bw")),
        ("avx512vbmi", is_x86_feature_detected!("avx512vbmi")),
    ];
    all.into_iter().filter_map(|(name, there)| there.then_some(name)).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn instructions() -> Vec<&'static str> {
    vec!["baseline"]
}

/// The instruction set of a name, or the best one; an error where this machine lacks it.
pub fn instruction_set(name: Option<&str>) -> anyhow::Result<Cpu> {
    let Some(name) = name else { return Ok(Cpu::detect()) };
    let found = Cpu::ALL.into_iter().find(|cpu| cpu.name() == name);
    let names = Cpu::ALL.map(Cpu::name).join(", ");
    let cpu = found.with_context(|| format!("no instruction set {name}; there are {names}"))?;
    match cpu.unavailable() {
        Some(reason) => bail!("instruction set {name}: {reason}"),
        None => Ok(cpu),
    }
}
