//! The kernels: their sources, by module.

/// The common beginning of all sources.
pub(crate) const COMMON: &str = include_str!("../cuda/common.cuh");

/// A kernel of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KernelName {
    /// Name of its module.
    pub module: &'static str,
    /// Its name, which is unique among all modules.
    pub name: &'static str,
}

/// Kernels that are compiled together.
#[derive(Debug)]
pub struct Module {
    /// Its name, that of the file in the folder `cuda`.
    pub name: &'static str,
    /// CUDA C++ without the common beginning.
    pub source: &'static str,
}

/// All modules. A further one is a file in the folder `cuda` and a line here.
pub const MODULES: &[Module] = &[
    Module { name: "probe", source: include_str!("../cuda/probe.cu") },
    Module {
        name: "jpeg_entropy",
        source: concat!(
            include_str!("../cuda/jpeg.cuh"),
            include_str!("../cuda/jpeg_codes.cuh"),
            include_str!("../cuda/jpeg_entropy.cu")
        ),
    },
    Module {
        name: "jpeg_streams",
        source: concat!(
            include_str!("../cuda/jpeg.cuh"),
            include_str!("../cuda/jpeg_codes.cuh"),
            include_str!("../cuda/jpeg_streams.cu")
        ),
    },
    Module {
        name: "jpeg_form",
        source: concat!(include_str!("../cuda/jpeg.cuh"), include_str!("../cuda/jpeg_form.cu")),
    },
    Module {
        name: "jpeg_samples",
        source: concat!(include_str!("../cuda/jpeg.cuh"), include_str!("../cuda/jpeg_samples.cu")),
    },
    Module {
        name: "jpeg_pixels",
        source: concat!(
            include_str!("../cuda/picture.cuh"),
            include_str!("../cuda/jpeg.cuh"),
            include_str!("../cuda/jpeg_pixels.cu")
        ),
    },
    Module {
        name: "stages",
        source: concat!(include_str!("../cuda/spaces.cuh"), include_str!("../cuda/stages.cu")),
    },
    Module { name: "colour", source: include_str!("../cuda/colour.cu") },
    Module { name: "blur", source: include_str!("../cuda/blur.cu") },
    Module { name: "warp", source: include_str!("../cuda/warp.cu") },
    Module { name: "finish", source: include_str!("../cuda/finish.cu") },
    Module { name: "delivery", source: include_str!("../cuda/delivery.cu") },
];

impl Module {
    /// The complete source for the compiler.
    pub fn text(&self) -> String {
        format!("{COMMON}\n{}", self.source)
    }

    /// The names of its kernels in the order of the source, which declares each as
    /// `extern "C" __global__ void name(`, at the beginning of a line, on one line.
    pub fn kernels(&self) -> impl Iterator<Item = KernelName> + use<'_> {
        let module = self.name;
        self.source.lines().filter_map(move |line| {
            let rest = line.strip_prefix("extern \"C\" __global__ void ")?;
            let rest = rest
                .strip_prefix("__launch_bounds__")
                .map_or(rest, |rest| rest.split_once(") ").map_or(rest, |(_, name)| name));
            Some(KernelName { module, name: rest.split_once('(')?.0 })
        })
    }

    /// The module with a name.
    #[cfg(feature = "cuda")]
    pub(crate) fn named(name: &str) -> &'static Self {
        let found = MODULES.iter().find(|module| module.name == name);
        found.expect("kernels name a module of the list")
    }
}

#[cfg(test)]
mod tests {
    use super::MODULES;
    use std::collections::HashSet;

    #[test]
    fn every_kernel_has_a_name_of_its_own() {
        let mut names = HashSet::new();
        for module in MODULES {
            assert!(module.kernels().next().is_some(), "{} has kernels", module.name);
            assert_eq!(
                module.kernels().count(),
                module.source.matches("__global__").count(),
                "{} declares each kernel on a line of its own",
                module.name
            );
            for kernel in module.kernels() {
                assert!(names.insert(kernel.name), "{} is declared twice", kernel.name);
            }
        }
    }
}
