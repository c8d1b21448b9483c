//! Compiles the shim to the system's libjpeg-turbo, if the feature is enabled.

fn main() {
    println!("cargo::rerun-if-changed=src/libjpeg/shim.c");
    #[cfg(feature = "libjpeg-turbo")]
    libjpeg_turbo();
}

#[cfg(feature = "libjpeg-turbo")]
fn libjpeg_turbo() {
    let found = pkg_config::Config::new().cargo_metadata(false).probe("libjpeg");
    let library = found.unwrap_or_else(|error| {
        panic!(
            "feature libjpeg-turbo: no libjpeg with headers was found; on Debian and Ubuntu: \
             apt install gcc pkg-config libjpeg62-turbo-dev ({error})"
        )
    });
    println!("cargo::rustc-env=LIBJPEG_VERSION={}", library.version);
    cc::Build::new()
        .file("src/libjpeg/shim.c")
        .includes(&library.include_paths)
        .warnings(true)
        .compile("meetpoint_libjpeg_shim");
    for path in &library.link_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    // Linked after the shim, which needs it.
    println!("cargo::rustc-link-lib=jpeg");
}
