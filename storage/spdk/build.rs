//! Finds the system's SPDK with pkg-config, generates the bindings from its headers, and links its
//! static libraries, if the feature is enabled. Downloads and compiles nothing.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=wrapper.h");
    #[cfg(feature = "spdk")]
    if let Err(problem) = system::spdk() {
        // Fails the build after the script has ended.
        println!("cargo::error=feature spdk: {problem}");
    }
}

#[cfg(feature = "spdk")]
mod system {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    /// Releases whose headers this crate compiles against: (year, month). The contract tests ran
    /// on the last one.
    const FIRST: (u32, u32) = (25, 9);
    const LAST: (u32, u32) = (26, 5);

    /// The packages of SPDK. What they need comes with them.
    const PACKAGES: [&str; 9] = [
        "spdk_bdev",
        "spdk_bdev_aio",
        "spdk_bdev_nvme",
        "spdk_env_dpdk",
        "spdk_env_dpdk_rpc",
        "spdk_event_bdev",
        "spdk_init",
        "spdk_sock_posix",
        "spdk_syslibs",
    ];

    /// Only where SPDK was configured with liburing.
    const OPTIONAL: [&str; 1] = ["spdk_bdev_uring"];

    const REMEDY: &str = "run scripts/spdk.sh SPDK_SOURCE_TREE, or set PKG_CONFIG_PATH to the \
                          folders with spdk_bdev.pc and libdpdk.pc";

    pub(crate) fn spdk() -> Result<(), String> {
        println!("cargo::rerun-if-env-changed=PKG_CONFIG_PATH");
        if std::env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
            return Err("SPDK is used on Linux only; build without the feature".to_owned());
        }
        let found = probe("spdk_bdev")?;
        let version = version(&found.include_paths)?;
        let shown = |(year, month)| format!("{year}.{month:02}");
        if !(FIRST..=LAST).contains(&version) {
            return Err(format!(
                "SPDK {} is outside of the supported releases {} to {}; install one of these and \
                 set PKG_CONFIG_PATH",
                shown(version),
                shown(FIRST),
                shown(LAST)
            ));
        }
        println!("cargo::rustc-env=MEETPOINT_SPDK_RELEASE={}", shown(version));
        let mut linked = Linked::default();
        for package in PACKAGES.into_iter().chain(["libdpdk"]) {
            linked.add(&probe(package)?);
        }
        for package in OPTIONAL {
            if let Ok(library) = probe(package) {
                linked.add(&library);
            }
        }
        linked.print()?;
        bindings(&found.include_paths)
    }

    fn probe(package: &str) -> Result<pkg_config::Library, String> {
        let mut config = pkg_config::Config::new();
        config.cargo_metadata(false).env_metadata(true).statik(true).print_system_libs(false);
        config.probe(package).map_err(|error| {
            let reason = match error {
                pkg_config::Error::Command { .. } => "pkg-config is not installed".to_owned(),
                _ => format!("pkg-config does not find {package}"),
            };
            format!("{reason}; {REMEDY}")
        })
    }

    /// The release of the headers. The versions that pkg-config prints are those of the libraries'
    /// interfaces.
    fn version(include_paths: &[PathBuf]) -> Result<(u32, u32), String> {
        let headers = include_paths.iter().map(|path| path.join("spdk/version.h"));
        let header = headers
            .chain([PathBuf::from("/usr/include/spdk/version.h")])
            .find(|header| header.is_file())
            .ok_or_else(|| format!("there is no header spdk/version.h; {REMEDY}"))?;
        println!("cargo::rerun-if-changed={}", header.display());
        let text = std::fs::read_to_string(&header)
            .map_err(|error| format!("failed to read {}: {error}", header.display()))?;
        let number = |name: &str| {
            let mut lines = text.lines().map(str::split_whitespace);
            let line = lines.find_map(|mut words| {
                (words.next() == Some("#define") && words.next() == Some(name)).then_some(words)
            });
            line.and_then(|mut words| words.next()?.parse().ok())
        };
        let version = (number("SPDK_VERSION_MAJOR"), number("SPDK_VERSION_MINOR"));
        let (Some(year), Some(month)) = version else {
            return Err(format!("{} has no SPDK_VERSION_MAJOR", header.display()));
        };
        Ok((year, month))
    }

    /// Libraries of several packages, each once.
    #[derive(Default)]
    struct Linked {
        folders: BTreeSet<PathBuf>,
        libraries: BTreeSet<String>,
        files: BTreeSet<PathBuf>,
    }

    impl Linked {
        fn add(&mut self, library: &pkg_config::Library) {
            self.folders.extend(library.link_paths.iter().cloned());
            // DPDK names archives, as `-l:librte_eal.a`.
            let plain = |name: &String| {
                let file = name.strip_prefix(":lib").and_then(|name| name.strip_suffix(".a"));
                file.unwrap_or(name).to_owned()
            };
            self.libraries.extend(library.libs.iter().map(plain));
            self.files.extend(library.link_files.iter().cloned());
        }

        /// Modules and drivers register themselves in constructors that nothing refers to, so every
        /// object of SPDK and DPDK is linked. Other libraries are linked as usual.
        fn print(&self) -> Result<(), String> {
            let mut folders = self.folders.clone();
            let mut whole = BTreeSet::new();
            let mut others = BTreeSet::new();
            for name in &self.libraries {
                let is_own = name.starts_with("spdk_") || name.starts_with("rte_");
                (if is_own { &mut whole } else { &mut others }).insert(name.clone());
            }
            for file in &self.files {
                let (folder, name) = archive(file)
                    .ok_or_else(|| format!("pkg-config names {}, no archive", file.display()))?;
                folders.insert(folder);
                let is_own = name.starts_with("spdk_") || name.starts_with("rte_");
                (if is_own { &mut whole } else { &mut others }).insert(name);
            }
            for folder in &folders {
                println!("cargo::rustc-link-search=native={}", folder.display());
            }
            for name in &whole {
                let archive = format!("lib{name}.a");
                if folders.iter().any(|folder| folder.join(&archive).is_file()) {
                    println!("cargo::rustc-link-lib=static:+whole-archive,-bundle={name}");
                } else {
                    return Err(format!(
                        "there is no static library {archive}; build SPDK and DPDK with static \
                         libraries, which is their default"
                    ));
                }
            }
            // After those that need them.
            for name in &others {
                let archive = format!("lib{name}.a");
                if folders.iter().any(|folder| folder.join(&archive).is_file()) {
                    println!("cargo::rustc-link-lib=static:-bundle={name}");
                } else {
                    println!("cargo::rustc-link-lib={name}");
                }
            }
            Ok(())
        }
    }

    /// The folder of an archive, and the name by which it is linked.
    fn archive(file: &Path) -> Option<(PathBuf, String)> {
        let name = file.file_stem()?.to_str()?.strip_prefix("lib")?.to_owned();
        Some((file.parent()?.to_path_buf(), name))
    }

    fn bindings(include_paths: &[PathBuf]) -> Result<(), String> {
        const FUNCTIONS: &str = "spdk_bdev_(close|flush|free_io|get_block_size|get_buf_align|\
            get_io_channel|get_module_name|get_num_blocks|get_opts|\
            has_write_cache|io_type_supported|\
            io_get_aio_status|io_get_nvme_status|open_ext|desc_get_bdev|read|set_opts|write)|\
            spdk_env_(fini|init|opts_init)|spdk_(free|malloc|put_io_channel|set_thread)|\
            spdk_iobuf_(get|set)_opts|spdk_log_set_level|\
            spdk_rpc_(get_method_state_mask|set_state)|\
            spdk_subsystem_(fini|init|load_config)|\
            spdk_thread_(create|destroy|exit|is_exited|lib_fini|lib_init|poll)";
        let bindings = std::panic::catch_unwind(|| {
            bindgen::Builder::default()
                .header("wrapper.h")
                .clang_args(include_paths.iter().map(|path| format!("-I{}", path.display())))
                .allowlist_function(FUNCTIONS)
                .allowlist_var("SPDK_(MALLOC_DMA|RPC_RUNTIME|RPC_STARTUP)")
                .generate_comments(false)
                .derive_copy(false)
                .derive_debug(false)
                .layout_tests(true)
                .merge_extern_blocks(true)
                .wrap_unsafe_ops(true)
                .generate()
        });
        let generated = match bindings {
            Ok(Ok(generated)) => generated,
            Ok(Err(error)) => {
                return Err(format!(
                    "the headers of SPDK do not parse: {error}; check its installation"
                ));
            }
            Err(_) => {
                return Err("bindgen finds no libclang; on Debian and Ubuntu: apt install \
                            libclang-dev, or set LIBCLANG_PATH"
                    .to_owned());
            }
        };
        let folder = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
        generated.write_to_file(folder.join("bindings.rs")).map_err(|error| error.to_string())
    }
}
