//! NVIDIA GPUs as CUDA sees them: driver, GPUs, compiler, a kernel that runs, page-locked memory.

use super::{Finding, System};
use crate::surface::units;
use meetpoint_diagnose::shown;
use std::path::PathBuf;

/// What CUDA reports.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    not(any(feature = "cuda", test)),
    expect(dead_code, reason = "made only by what asks CUDA")
)]
pub(crate) enum Cuda {
    /// There is no working driver.
    Unusable(Problem),
    /// The driver works.
    Driver {
        /// The newest version of CUDA that it supports.
        version: String,
        /// Each GPU, or why it cannot be opened.
        gpus: Vec<Result<Gpu, Problem>>,
        /// The folder of compiled kernels, and why it cannot be written to.
        cache: Option<(PathBuf, Result<(), String>)>,
    },
}

/// What is wrong, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// What is wrong.
    pub reason: String,
    /// The remedy.
    pub remedy: Option<String>,
}

/// A GPU that was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gpu {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Compute capability, such as `9.0`.
    pub capability: String,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Free bytes of its memory.
    pub free_bytes: u64,
    /// All bytes of its memory.
    pub total_bytes: u64,
    /// Address on the PCI bus.
    pub pci_bus: String,
    /// The compiler's path and version.
    pub compiler: Result<(PathBuf, String), Problem>,
    /// Whether a kernel compiled, ran and returned correct results; not tested without a compiler.
    pub kernel: Option<Result<(), Problem>>,
    /// Bytes of page-locked memory that were requested, and why they could not be allocated.
    pub pinned: (u64, Result<(), Problem>),
}

const USED: &str = "decoding on the GPU and batches in its memory, for loaders that ask for it";
const UNUSED: &str = "the CPU decodes; batches are in host memory";

impl Finding {
    fn problem(self, problem: &Problem) -> Self {
        problem.remedy.iter().fold(self, |finding, remedy| finding.remedy(remedy))
    }
}

/// Everything about CUDA; `None`: this program was built without it.
pub(super) fn findings(system: &System, cuda: Option<&Cuda>) -> Vec<Finding> {
    let topic = "CUDA";
    let (version, gpus, cache) = match cuda {
        None => {
            let found = "this program was built without the feature `cuda`";
            let remedy = "cargo install --path cli --locked --features full, or install the wheel";
            return vec![Finding::missing(topic, found, UNUSED).remedy(remedy)];
        }
        Some(Cuda::Unusable(problem)) => {
            return vec![Finding::missing(topic, &problem.reason, UNUSED).problem(problem)];
        }
        Some(Cuda::Driver { version, gpus, cache }) => (version, gpus, cache),
    };
    let count = match gpus.len() {
        1 => "1 GPU".to_owned(),
        count => format!("{count} GPUs"),
    };
    let found = format!("driver for CUDA {version}, {count}");
    let mut findings = vec![Finding::ready(topic, found, USED)];
    for gpu in gpus {
        match gpu {
            Err(problem) => {
                let finding = Finding::missing("CUDA GPU", &problem.reason, UNUSED);
                findings.push(finding.problem(problem));
            }
            Ok(gpu) => findings.extend(of_gpu(system, gpu)),
        }
    }
    let used = "compiled kernels; without it, every process compiles them again";
    findings.push(match cache {
        Some((folder, Ok(()))) => {
            Finding::ready("CUDA kernel cache", shown(folder).to_string(), used)
        }
        Some((folder, Err(reason))) => {
            let found = format!("{}: {reason}", shown(folder));
            Finding::limited("CUDA kernel cache", found, used)
                .remedy("set MEETPOINT_CUBIN_CACHE to a folder that can be written to")
        }
        None => Finding::limited("CUDA kernel cache", "no folder of the user is known", used)
            .remedy("set HOME or MEETPOINT_CUBIN_CACHE"),
    });
    findings
}

fn of_gpu(system: &System, gpu: &Gpu) -> Vec<Finding> {
    let found = format!(
        "{}: {}, {} of {} free, compute capability {}, {} multiprocessors, {}",
        gpu.index,
        gpu.name,
        units::bytes(gpu.free_bytes),
        units::bytes(gpu.total_bytes),
        gpu.capability,
        gpu.multiprocessors,
        pcie(system, &gpu.pci_bus),
    );
    let mut findings = vec![Finding::ready("CUDA GPU", found, USED)];
    let used = "compiles the kernels when they are first used";
    findings.push(match &gpu.compiler {
        Ok((path, version)) => {
            let found = format!("{} (CUDA {version})", shown(path));
            Finding::ready("CUDA compiler", found, used)
        }
        Err(problem) => Finding::missing("CUDA compiler", &problem.reason, UNUSED).problem(problem),
    });
    if let Some(kernel) = &gpu.kernel {
        findings.push(match kernel {
            Ok(()) => {
                Finding::ready("CUDA kernel", "a test kernel computes the right results", USED)
            }
            Err(problem) => {
                Finding::missing("CUDA kernel", &problem.reason, UNUSED).problem(problem)
            }
        });
    }
    let (bytes, pinned) = &gpu.pinned;
    let used = "buffers that the GPU copies from and to; limited by the memory of the process";
    findings.push(match pinned {
        Ok(()) => {
            let found = format!("{} could be locked", units::bytes(*bytes));
            Finding::ready("CUDA pinned memory", found, used)
        }
        Err(problem) => {
            Finding::limited("CUDA pinned memory", &problem.reason, used).problem(problem)
        }
    });
    findings
}

/// Where a GPU is, and how fast its link is now.
fn pcie(system: &System, bus: &str) -> String {
    let read = |file: &str| {
        system.read(&format!("sys/bus/pci/devices/{}/{file}", bus.to_lowercase())).ok()
    };
    match (read("current_link_speed"), read("current_link_width")) {
        (Some(speed), Some(width)) => format!("PCIe {bus} ({speed}, x{width})"),
        _ => format!("PCIe {bus}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Cuda, Gpu, Problem, findings};
    use crate::doctor::State;
    use crate::doctor::system::made_up;

    fn problem(reason: &str) -> Problem {
        Problem { reason: reason.to_owned(), remedy: Some("do something".to_owned()) }
    }

    fn gpu() -> Gpu {
        Gpu {
            index: 0,
            name: "GPU".to_owned(),
            capability: "9.0".to_owned(),
            multiprocessors: 132,
            free_bytes: 1 << 30,
            total_bytes: 2 << 30,
            pci_bus: "0000:1B:00.0".to_owned(),
            compiler: Ok(("/lib/libnvrtc.so.12".into(), "12.9".to_owned())),
            kernel: Some(Ok(())),
            pinned: (64 << 20, Ok(())),
        }
    }

    fn driver(gpus: Vec<Result<Gpu, Problem>>) -> Cuda {
        Cuda::Driver { version: "12.8".to_owned(), gpus, cache: Some(("/c".into(), Ok(()))) }
    }

    #[test]
    fn without_the_feature_or_a_driver_one_finding_has_the_remedy() {
        let (_folder, system) = made_up(&[]);
        for cuda in [None, Some(Cuda::Unusable(problem("no driver")))] {
            let found = findings(&system, cuda.as_ref());
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].state, State::Missing);
            assert!(found[0].remedy.is_some());
        }
    }

    #[test]
    fn a_gpu_that_works_is_ready_throughout_and_its_link_is_named() {
        let folder = "sys/bus/pci/devices/0000:1b:00.0";
        let (speed, width) =
            (format!("{folder}/current_link_speed"), format!("{folder}/current_link_width"));
        let (_folder, system) = made_up(&[(&speed, "32.0 GT/s PCIe\n"), (&width, "16\n")]);
        let found = findings(&system, Some(&driver(vec![Ok(gpu())])));
        assert_eq!(found.len(), 6);
        assert_eq!(found[0].found, "driver for CUDA 12.8, 1 GPU");
        let two = findings(&system, Some(&driver(vec![Ok(gpu()), Ok(gpu())])));
        assert_eq!(two[0].found, "driver for CUDA 12.8, 2 GPUs");
        assert!(found.iter().all(|finding| finding.state == State::Ready), "{found:?}");
        assert!(found[1].found.ends_with("PCIe 0000:1B:00.0 (32.0 GT/s PCIe, x16)"), "{found:?}");
    }

    #[test]
    fn each_thing_that_is_missing_has_its_remedy() {
        let (_folder, system) = made_up(&[]);
        let broken = Gpu {
            compiler: Err(problem("no compiler")),
            kernel: Some(Err(problem("wrong results"))),
            pinned: (1, Err(problem("no memory"))),
            ..gpu()
        };
        let found = findings(&system, Some(&driver(vec![Ok(broken), Err(problem("lost"))])));
        let with_remedy = found.iter().filter(|finding| finding.remedy.is_some());
        let topics: Vec<_> = with_remedy.map(|finding| finding.topic).collect();
        let expected = ["CUDA compiler", "CUDA kernel", "CUDA pinned memory", "CUDA GPU"];
        assert_eq!(topics, expected);
    }
}
