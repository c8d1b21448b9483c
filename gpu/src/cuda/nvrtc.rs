#![expect(unsafe_code, reason = "the run-time compiler is a C library")]
//! The run-time compiler: where it is searched for, and how it is called.

use super::driver::Version;
use super::options::Options;
use super::regular;
use crate::{Error, Module};
use libloading::Library;
use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

/// The oldest major version that supports the options below.
const MAJOR_MIN: u32 = 12;

/// Options besides the architecture. Products and sums are rounded separately, as on the CPU.
const OPTIONS: [&str; 2] = ["--std=c++17", "--fmad=false"];

/// The run-time compiler that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompilerInfo {
    /// Its library.
    pub path: PathBuf,
    /// Its CUDA version.
    pub version: Version,
}

/// The run-time compiler.
pub(super) struct Compiler {
    /// Never closed: it has threads and exit handlers of its own.
    library: ManuallyDrop<Library>,
    pub(super) info: CompilerInfo,
    /// What it compiles for: 90 for compute capability 9.0.
    architectures: Vec<u32>,
}

/// What kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A cubin for exactly this compute capability.
    Cubin(u32),
    /// PTX for this one, which the driver compiles for a newer GPU.
    Ptx(u32),
}

impl Target {
    pub(super) fn architecture(self) -> String {
        match self {
            Self::Cubin(capability) => format!("sm_{capability}"),
            Self::Ptx(capability) => format!("compute_{capability}"),
        }
    }

    /// All options of the compiler.
    pub(super) fn options(self) -> Vec<String> {
        let architecture = format!("--gpu-architecture={}", self.architecture());
        [architecture].into_iter().chain(OPTIONS.map(str::to_owned)).collect()
    }

    /// The best for a GPU, among what a compiler knows.
    fn among(architectures: &[u32], capability: u32) -> Option<Self> {
        let older = architectures.iter().copied().filter(|known| *known <= capability);
        older.max().map(|newest| match newest == capability {
            true => Self::Cubin(newest),
            false => Self::Ptx(newest),
        })
    }
}

/// Files and names to try, the best first. Those for a newer CUDA than the driver's would compile
/// what it does not load.
fn candidates(options: &Options, driver: Version, root: &Path) -> Vec<PathBuf> {
    if let Some(path) = &options.nvrtc {
        return vec![path.clone()];
    }
    let majors = || (MAJOR_MIN..=driver.major).rev();
    let mut found: Vec<PathBuf> =
        majors().map(|major| format!("libnvrtc.so.{major}").into()).collect();
    found.push("libnvrtc.so".into());
    let local = root.join("usr/local");
    let mut toolkits: Vec<PathBuf> = std::fs::read_dir(&local)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"cuda"))
        })
        .collect();
    toolkits.sort_by_key(|path| numbers(path));
    let machine = if cfg!(target_arch = "aarch64") { "sbsa-linux" } else { "x86_64-linux" };
    let mut folders: Vec<PathBuf> = toolkits
        .iter()
        .rev()
        .flat_map(|folder| [folder.join("lib64"), folder.join("targets").join(machine).join("lib")])
        .collect();
    for packages in &options.package_folders {
        let nvidia = packages.join("nvidia");
        folders.extend(majors().map(|major| nvidia.join(format!("cu{major}/lib"))));
        folders.push(nvidia.join("cuda_nvrtc/lib"));
    }
    for folder in folders {
        found.extend(majors().map(|major| folder.join(format!("libnvrtc.so.{major}"))));
    }
    // The loader searches for names; a file that is not there need not be tried.
    found.retain(|path| path.components().count() == 1 || regular::is_readable(path));
    found
}

/// The numbers in the name of a folder, so that 12.10 comes after 12.9.
fn numbers(path: &Path) -> (Vec<u64>, PathBuf) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let digits = name.split(|it: char| !it.is_ascii_digit());
    (digits.filter_map(|digits| digits.parse().ok()).collect(), path.to_path_buf())
}

impl Compiler {
    /// Loads the first one that works.
    pub(super) fn find(options: &Options, driver: Version) -> Result<Self, Error> {
        let candidates = candidates(options, driver, Path::new("/"));
        let is_named = options.nvrtc.is_some();
        let mut names = Vec::new();
        for path in &candidates {
            names.push(match Self::load(path) {
                Ok(found) if is_named || found.info.version.major <= driver.major => {
                    return Ok(found);
                }
                Ok(_) => format!("{} (newer than the driver)", path.display()),
                Err(Some(reason)) => format!("{} ({reason})", path.display()),
                Err(None) => path.display().to_string(),
            });
        }
        Err(Error::NoCompiler { names: names.join(", ") })
    }

    /// Loads a library. The error is the reason; `None` if there is no such file.
    fn load(path: &Path) -> Result<Self, Option<String>> {
        // Loading anything but a regular file may block forever.
        if path.components().count() > 1 && !regular::is_readable(path) {
            let is_there = path.symlink_metadata().is_ok();
            return Err(is_there.then(|| "not a readable file".to_owned()));
        }
        // The compiler loads its built-in functions by name; one that is loaded already is found.
        for builtins in builtins_beside(path) {
            // SAFETY: it is a library of CUDA without initialisation of its own.
            std::mem::forget(unsafe { Library::new(&builtins) });
        }
        // SAFETY: it is the run-time compiler, which any thread may load.
        let library = ManuallyDrop::new(unsafe { Library::new(path) }.map_err(|error| {
            // The system does not say whether a name was found in one of its folders.
            (path.components().count() > 1).then(|| error.to_string())
        })?);
        let unusable = || Some("not a usable compiler".to_owned());
        let (mut major, mut minor) = (0, 0);
        let version: Function<'_, unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int> =
            function(&library, "nvrtcVersion").ok_or_else(unusable)?;
        // SAFETY: the pointers are to local variables.
        if unsafe { version(&raw mut major, &raw mut minor) } != 0 {
            return Err(unusable());
        }
        let architectures = architectures(&library).ok_or_else(unusable)?;
        let version = Version { major: major.cast_unsigned(), minor: minor.cast_unsigned() };
        let info = CompilerInfo { path: loaded_path(path), version };
        Ok(Self { library, info, architectures })
    }

    /// What to compile for a GPU with this compute capability; `None`: the compiler does not know
    /// so old a GPU.
    pub(super) fn target(&self, capability: u32) -> Option<Target> {
        Target::among(&self.architectures, capability)
    }

    /// Compiles a module.
    pub(super) fn compile(&self, module: &Module, target: Target) -> Result<Vec<u8>, Error> {
        let failed = |log: String| Error::Compile {
            module: module.name,
            architecture: target.architecture(),
            log,
        };
        let missing = || failed("the compiler lacks a function".to_owned());
        let calls = Calls::of(&self.library).ok_or_else(missing)?;
        calls.compile(module, target).map_err(failed)
    }
}

type Program = *mut c_void;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Content = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Function<'a, F> = libloading::Symbol<'a, F>;

fn function<'a, F>(library: &'a Library, name: &str) -> Option<Function<'a, F>> {
    // SAFETY: the callers name functions of NVRTC with the types of its documentation.
    unsafe { library.get(name) }.ok()
}

/// Libraries of built-in functions in the folder of a compiler.
fn builtins_beside(path: &Path) -> Vec<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = folder.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten();
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_builtins = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        let is_named = name.as_encoded_bytes().starts_with(b"libnvrtc-builtins.so.");
        is_named && regular::is_readable(path)
    };
    files.filter(is_builtins).collect()
}

/// Where the loader found a library, as far as this process knows.
fn loaded_path(path: &Path) -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut files = maps.lines().filter_map(|line| line.split_once('/').map(|(_, file)| file));
    let found = files.find(|file| file.rsplit('/').next().is_some_and(|it| it.starts_with(&*name)));
    match found {
        Some(file) if path.components().count() == 1 => Path::new("/").join(file),
        Some(_) | None => path.to_path_buf(),
    }
}

fn architectures(library: &Library) -> Option<Vec<u32>> {
    let number: Function<'_, unsafe extern "C" fn(*mut c_int) -> c_int> =
        function(library, "nvrtcGetNumSupportedArchs")?;
    let list: Function<'_, unsafe extern "C" fn(*mut c_int) -> c_int> =
        function(library, "nvrtcGetSupportedArchs")?;
    let mut count = 0;
    // SAFETY: the pointer is to a local variable.
    let is_known = unsafe { number(&raw mut count) } == 0;
    let mut found = vec![0; usize::try_from(count).ok().filter(|_| is_known)?];
    // SAFETY: there is room for as many as the compiler knows.
    let is_listed = unsafe { list(found.as_mut_ptr()) } == 0;
    is_listed.then(|| found.into_iter().map(c_int::cast_unsigned).collect())
}

/// The functions that compile a program.
struct Calls<'a> {
    create: Function<
        'a,
        unsafe extern "C" fn(
            *mut Program,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> c_int,
    >,
    destroy: Function<'a, unsafe extern "C" fn(*mut Program) -> c_int>,
    compile: Function<'a, unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int>,
    log: (Function<'a, Size>, Function<'a, Content>),
    ptx: (Function<'a, Size>, Function<'a, Content>),
    cubin: (Function<'a, Size>, Function<'a, Content>),
}

impl<'a> Calls<'a> {
    fn of(library: &'a Library) -> Option<Self> {
        Some(Self {
            create: function(library, "nvrtcCreateProgram")?,
            destroy: function(library, "nvrtcDestroyProgram")?,
            compile: function(library, "nvrtcCompileProgram")?,
            log: (
                function(library, "nvrtcGetProgramLogSize")?,
                function(library, "nvrtcGetProgramLog")?,
            ),
            ptx: (function(library, "nvrtcGetPTXSize")?, function(library, "nvrtcGetPTX")?),
            cubin: (function(library, "nvrtcGetCUBINSize")?, function(library, "nvrtcGetCUBIN")?),
        })
    }

    fn compile(&self, module: &Module, target: Target) -> Result<Vec<u8>, String> {
        let c_string = |text: String| CString::new(text).expect("sources have no byte 0");
        let (source, name) = (c_string(module.text()), c_string(format!("{}.cu", module.name)));
        let options: Vec<CString> = target.options().into_iter().map(c_string).collect();
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let (mut program, none) = (std::ptr::null_mut(), std::ptr::null());
        let text = (source.as_ptr(), name.as_ptr());
        // SAFETY: the texts end with 0 and outlive the call; there are no headers.
        let code = unsafe { (self.create)(&raw mut program, text.0, text.1, 0, none, none) };
        if code != 0 {
            return Err(format!("nvrtcCreateProgram fails with {code}"));
        }
        let count = c_int::try_from(options.len()).expect("a few options");
        // SAFETY: the program exists; the options end with 0 and outlive the call.
        let code = unsafe { (self.compile)(program, count, options.as_ptr()) };
        let (what, content) = match (code, target) {
            (0, Target::Cubin(_)) => ("a cubin", content(program, &self.cubin)),
            (0, Target::Ptx(_)) => ("PTX", content(program, &self.ptx)),
            _ => ("a log", content(program, &self.log)),
        };
        // SAFETY: the program exists and is destroyed once.
        unsafe { (self.destroy)(&raw mut program) };
        let content = content.map_err(|code| format!("{what} is refused with {code}"))?;
        match code {
            0 => Ok(content),
            _ => Err(String::from_utf8_lossy(&content).trim_end_matches('\0').trim().to_owned()),
        }
    }
}

/// A result of a program, by the functions for its size and for itself.
fn content(
    program: Program,
    (size, get): &(Function<'_, Size>, Function<'_, Content>),
) -> Result<Vec<u8>, c_int> {
    let mut bytes = 0;
    // SAFETY: the program exists; the pointer is to a local variable.
    let code = unsafe { size(program, &raw mut bytes) };
    if code != 0 {
        return Err(code);
    }
    let mut content = vec![0; bytes];
    // SAFETY: there is room for as many bytes as were announced.
    let code = unsafe { get(program, content.as_mut_ptr().cast()) };
    if code == 0 { Ok(content) } else { Err(code) }
}

#[cfg(test)]
mod tests {
    use super::{Compiler, Target, candidates};
    use crate::Error;
    use crate::cuda::{Options, Version};
    use std::path::Path;
    use std::process::Command;

    const DRIVER: Version = Version { major: 13, minor: 0 };

    #[test]
    fn a_newer_gpu_than_the_compiler_knows_gets_ptx() {
        let known = [75, 80, 90];
        assert_eq!(Target::among(&known, 80), Some(Target::Cubin(80)));
        assert_eq!(Target::among(&known, 86), Some(Target::Ptx(80)));
        assert_eq!(Target::among(&known, 100), Some(Target::Ptx(90)));
        assert_eq!(Target::among(&known, 70), None);
    }

    #[test]
    fn toolkits_come_before_packages_and_no_compiler_is_newer_than_the_driver() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            "usr/local/cuda-12.4/lib64/libnvrtc.so.12",
            "usr/local/cuda-13.0/lib64/libnvrtc.so.13",
            "site-packages/nvidia/cu13/lib/libnvrtc.so.13",
            "site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        ];
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let options = Options {
            package_folders: vec![folder.path().join("site-packages")],
            ..Options::default()
        };
        let found = |driver| {
            let found = candidates(&options, driver, folder.path());
            let below = |path: &Path| path.strip_prefix(folder.path()).unwrap_or(path).to_owned();
            found.iter().map(|path| below(path).display().to_string()).collect::<Vec<_>>()
        };
        let names = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];
        let expected = [&names[..], &[files[1], files[0], files[2], files[3]]].concat();
        assert_eq!(found(DRIVER), expected);
        let old = Version { major: 12, minor: 8 };
        assert_eq!(found(old), [&names[1..], &[files[0], files[3]]].concat());
    }

    #[test]
    fn newer_toolkits_come_first_by_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["cuda-12", "cuda-12.10", "cuda-12.9", "cuda-12.1", "cuda"];
        for name in names {
            let path = folder.path().join("usr/local").join(name).join("lib64/libnvrtc.so.12");
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = candidates(&Options::default(), DRIVER, folder.path());
        let toolkits: Vec<_> = found
            .iter()
            .filter_map(|path| path.strip_prefix(folder.path().join("usr/local")).ok())
            .map(|path| path.iter().next().unwrap().to_str().unwrap())
            .collect();
        assert_eq!(toolkits, ["cuda-12.10", "cuda-12.9", "cuda-12.1", "cuda-12", "cuda"]);
    }

    #[test]
    fn a_pipe_in_the_place_of_the_compiler_is_no_compiler() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("libnvrtc.so.12");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let options = Options { nvrtc: Some(pipe), ..Options::default() };
        let found = Compiler::find(&options, DRIVER).map(|found| found.info);
        assert!(matches!(found, Err(Error::NoCompiler { .. })), "{found:?}");
    }

    #[test]
    fn a_named_compiler_that_is_not_there_is_an_error_that_names_it() {
        let options =
            Options { nvrtc: Some("/nowhere/libnvrtc.so.12".into()), ..Options::default() };
        match Compiler::find(&options, DRIVER).map(|found| found.info) {
            Err(Error::NoCompiler { names }) => assert_eq!(names, "/nowhere/libnvrtc.so.12"),
            other => panic!("{other:?}"),
        }
    }
}
