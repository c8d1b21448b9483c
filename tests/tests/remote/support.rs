//! Runs the program with a remote source, and checks the remaining files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options for the size and folder of the cache.
pub(crate) const CACHE: [&str; 2] = ["--cache", "cache"];

/// The output of a finished process.
#[derive(Debug)]
pub(crate) struct ProcessOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl ProcessOutput {
    /// Panics unless it succeeded.
    pub(crate) fn success(self) -> Self {
        assert_eq!(self.code, Some(0), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Panics unless it failed with each word in its output, and without a panic.
    pub(crate) fn refused(self, words: &[&str]) -> Self {
        assert_eq!(self.code, Some(1), "{}\n{}", self.stdout, self.stderr);
        assert!(!self.stderr.contains("defect in Meetpoint"), "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is not in:\n{}", self.stderr);
        }
        self
    }
}

/// The program in a folder, without the store settings of the test environment.
pub(crate) fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meetpoint-under-test"));
    command.args(arguments).current_dir(folder).env("NO_COLOR", "1");
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let prefixes = ["AWS_", "GOOGLE_", "AZURE_", "SERVICE_ACCOUNT"];
        let is_proxy = name.to_ascii_lowercase().ends_with("_proxy");
        if is_proxy || prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs it to its end.
pub(crate) fn run(mut command: Command) -> ProcessOutput {
    let output = command.output().expect("the program starts");
    ProcessOutput {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Packs a local folder.
pub(crate) fn pack_here(folder: &Path, source: &Path, to: &str, further: &[&str]) {
    let source = source.display().to_string();
    let arguments = [&["pack", source.as_str(), to], further].concat();
    run(program(folder, &arguments)).success();
}

/// Panics unless two datasets have the same parts, byte for byte, and no fetched files remain.
pub(crate) fn assert_same(folder: &Path, one: &str, other: &str) {
    let parts = |name: &str| {
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(folder.join(name)).unwrap().flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            if file.ends_with(".arrow") {
                files.insert(file, std::fs::read(entry.path()).unwrap());
            }
        }
        files
    };
    let (one, other) = (parts(one), parts(other));
    assert!(!one.is_empty());
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    assert!(one == other, "the same files with other bytes");
    assert_cache_is_empty(folder);
}

/// Panics if fetched files remain.
pub(crate) fn assert_cache_is_empty(folder: &Path) {
    let left: Vec<_> = std::fs::read_dir(folder.join("cache")).into_iter().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A small JPEG that depends on the seed.
pub(crate) fn jpeg(seed: u32) -> Vec<u8> {
    let pixels: Vec<u8> = (0..32 * 24 * 3_u32)
        .map(|at| (at.wrapping_mul(seed.wrapping_mul(2_654_435_761) | 1) >> 24) as u8)
        .collect();
    let mut out = Vec::new();
    jpeg_encoder::Encoder::new(&mut out, 90)
        .encode(&pixels, 32, 24, jpeg_encoder::ColorType::Rgb)
        .expect("a picture encodes");
    out
}

/// A JPEG of about 40 KB that depends on the seed: noise compresses badly.
fn long_jpeg(seed: u32) -> Vec<u8> {
    let (width, height) = (160, 120);
    let mut state = u64::from(seed) + 1;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
        (state >> 56) as u8
    };
    let pixels: Vec<u8> = (0..u32::from(width) * u32::from(height) * 3).map(|_| noise()).collect();
    let mut out = Vec::new();
    jpeg_encoder::Encoder::new(&mut out, 95)
        .encode(&pixels, width, height, jpeg_encoder::ColorType::Rgb)
        .expect("a picture encodes");
    out
}

/// A folder with a given number of JPEGs of about 40 KB each.
pub(crate) fn long_pictures(root: &Path, count: u32) -> PathBuf {
    std::fs::create_dir_all(root).unwrap();
    for number in 0..count {
        std::fs::write(root.join(format!("{number:04}.jpg")), long_jpeg(number)).unwrap();
    }
    root.to_path_buf()
}

/// Class folders with a given number of JPEGs.
pub(crate) fn pictures(root: &Path, count: u32) -> PathBuf {
    for number in 0..count {
        let class = root.join(["cat", "großer Hund"][number as usize % 2]);
        std::fs::create_dir_all(&class).unwrap();
        std::fs::write(class.join(format!("{number}.jpg")), jpeg(number)).unwrap();
    }
    root.to_path_buf()
}

/// The golden files of sources.
pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../datasets/tests/golden/sources").join(name)
}

/// Copies a file or a folder.
pub(crate) fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap().flatten() {
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(from, to).unwrap();
    }
}
