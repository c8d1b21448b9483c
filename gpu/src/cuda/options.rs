//! Where the compiler and compiled kernels are, and how long the GPU may take.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Environment variable with the file of the run-time compiler.
const NVRTC: &str = "MEETPOINT_NVRTC";
/// Folders of installed Python packages, separated as in `PATH`.
const PACKAGES: &str = "MEETPOINT_PYTHON_PACKAGES";
/// Environment variable with the folder of compiled kernels.
const CACHE: &str = "MEETPOINT_CUBIN_CACHE";

/// Options of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// File of the run-time compiler; `None`: it is searched for.
    pub nvrtc: Option<PathBuf>,
    /// Folders of installed Python packages, which may contain NVIDIA's compiler.
    pub package_folders: Vec<PathBuf>,
    /// The folder of compiled kernels; `None`: they are compiled in every process.
    pub cache: Option<PathBuf>,
    /// How long calls without a limit argument wait for the GPU.
    pub hang_limit: Duration,
}

impl Default for Options {
    /// Searches for the compiler in the usual folders only, and stores nothing.
    fn default() -> Self {
        let hang_limit = Duration::from_secs(60);
        Self { nvrtc: None, package_folders: Vec::new(), cache: None, hang_limit }
    }
}

impl Options {
    /// Reads the environment variables `MEETPOINT_NVRTC`, `MEETPOINT_PYTHON_PACKAGES` and
    /// `MEETPOINT_CUBIN_CACHE`, by default `meetpoint/cubin` in the user's cache folder.
    pub fn from_environment() -> Self {
        Self::of(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
    }

    fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let user = || {
            let home = || variable("HOME").map(|home| PathBuf::from(home).join(".cache"));
            let folder = variable("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
            Some(folder.join("meetpoint/cubin"))
        };
        let packages = variable(PACKAGES);
        Self {
            nvrtc: variable(NVRTC).map(PathBuf::from),
            package_folders: packages.iter().flat_map(std::env::split_paths).collect(),
            cache: variable(CACHE).map(PathBuf::from).or_else(user),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CACHE, NVRTC, Options, PACKAGES};
    use std::path::PathBuf;

    fn of(variables: &[(&str, &str)]) -> Options {
        Options::of(|name| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn the_cache_is_in_the_folder_of_the_user_unless_a_variable_names_another() {
        assert_eq!(of(&[]), Options::default());
        let home = ("HOME", "/home/a");
        assert_eq!(of(&[home]).cache, Some(PathBuf::from("/home/a/.cache/meetpoint/cubin")));
        let xdg = ("XDG_CACHE_HOME", "/cache");
        assert_eq!(of(&[home, xdg]).cache, Some(PathBuf::from("/cache/meetpoint/cubin")));
        assert_eq!(of(&[home, xdg, (CACHE, "/c")]).cache, Some(PathBuf::from("/c")));
    }

    #[test]
    fn the_compiler_and_the_folders_of_packages_come_from_variables() {
        let options = of(&[(NVRTC, "/opt/libnvrtc.so"), (PACKAGES, "/a/site-packages:/b")]);
        assert_eq!(options.nvrtc, Some(PathBuf::from("/opt/libnvrtc.so")));
        assert_eq!(options.package_folders, [PathBuf::from("/a/site-packages"), "/b".into()]);
    }
}
