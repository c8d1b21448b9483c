//! Libraries name no option of the command line: they return settings and commands as values, which
//! each surface spells in its own way.

use crate::cycles::tokens::{TokenKind, tokens};
use crate::layers::root;
use crate::tidy::sources;
use std::path::Path;

/// Folders whose crates are a surface, or that only tests, benches and people run.
const SURFACES: [&str; 7] =
    ["cli", "python", "python-macros", "benches", "machine", "tests", "fuzz"];

/// Files that spell options, and why.
const FILES: [(&str, &str); 6] = [
    ("diagnose/src/command.rs", "the names of commands on each surface"),
    ("diagnose/src/setting.rs", "the names of settings on each surface"),
    ("link/src/command.rs", "arguments with which a device's process is started"),
    ("host/src/device_link/spawn.rs", "arguments with which a device's process is started"),
    ("planner/src/plan/write.rs", "commands in a plan, which is a file for the command line"),
    ("gpu/src/cuda/nvrtc.rs", "options of NVIDIA's compiler"),
];

/// Options of programs that are not part of this project: file, program, options.
const FOREIGN: [(&str, &str, &[&str]); 15] = [
    ("datasets/src/error/remote.rs", "cargo", &["--path", "--locked", "--features"]),
    ("datasets/src/source/tar/members.rs", "tar", &["--sparse"]),
    (
        "datasets/src/source/tar/samples.rs",
        "tar",
        &["--dereference", "--hard-dereference", "--sparse", "--sort"],
    ),
    ("datasets/src/source/zip.rs", "zip", &["--symlinks"]),
    ("device/src/cgroup.rs", "systemd-run", &["--user", "--scope"]),
    (
        "format/src/recipe/shipped/mod.rs",
        "torchvision's training script",
        &[
            "--use-v",
            "--auto-augment",
            "--random-erase",
            "--mixup-alpha",
            "--cutmix-alpha",
            "--train-crop-size",
            "--val-resize-size",
        ],
    ),
    ("gpu/src/diagnose.rs", "docker", &["--gpus"]),
    ("host/src/notice.rs", "cargo", &["--release"]),
    ("kernels/src/text/no_tokenizer.rs", "cargo", &["--features"]),
    ("link/src/tls/mod.rs", "cargo", &["--features"]),
    ("prepare/src/gpu/refusal.rs", "cargo", &["--path", "--locked", "--features"]),
    ("storage/spdk/src/ffi.rs", "SPDK", &["--log-level"]),
    ("storage/spdk/src/reactor.rs", "configure of SPDK", &["--with-uring"]),
    ("storage/src/choose.rs", "cargo", &["--release", "--features"]),
    ("storage/src/extents/error.rs", "cp", &["--reflink", "--sparse"]),
];

/// Options in string literals outside tests, each with its line.
fn options(source: &str) -> Vec<(usize, String)> {
    let body = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut found = Vec::new();
    for token in tokens(body) {
        let TokenKind::Text(text) = token.kind else { continue };
        for (at, _) in text.match_indices("--") {
            // `var(--colour)` is CSS, and a longer line of dashes is not an option.
            let is_start = !["-", "var("].iter().any(|before| text[..at].ends_with(before));
            let name = &text[at + 2..];
            let end = name.find(|c: char| !(c.is_ascii_lowercase() || c == '-'));
            let name = &name[..end.unwrap_or(name.len())];
            if is_start && name.starts_with(|c: char| c.is_ascii_lowercase()) {
                found.push((token.line, format!("--{name}")));
            }
        }
    }
    found
}

/// Whether a file belongs to the sources of a library.
fn is_of_a_library(path: &Path) -> bool {
    let folders: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    let is_test = path.ends_with("tests.rs") || folders.iter().any(|part| *part == "tests");
    let is_surface = |part: &str| SURFACES.contains(&part);
    folders.iter().any(|part| *part == "src")
        && !is_test
        && !folders.iter().take(2).any(|part| is_surface(part))
}

#[test]
fn libraries_name_no_option_of_the_command_line() {
    let (mut complaints, mut used) = (Vec::new(), Vec::new());
    for path in sources() {
        let relative = path.strip_prefix(root()).expect("below the root");
        if !is_of_a_library(relative) {
            continue;
        }
        let file = relative.display().to_string();
        let text = std::fs::read_to_string(&path).expect("a source reads");
        for (line, option) in options(&text) {
            if FILES.iter().any(|(name, _)| *name == file) {
                used.push((file.clone(), String::new()));
            } else if FOREIGN.iter().any(|(name, _, of)| *name == file && of.contains(&&*option)) {
                used.push((file.clone(), option));
            } else {
                complaints.push(format!("{file}:{line}: {option}"));
            }
        }
    }
    assert!(complaints.is_empty(), "return a Setting or a Command:\n{}", complaints.join("\n"));
    for (file, reason) in FILES {
        assert!(used.iter().any(|(name, _)| name == file), "{file} has none: {reason}");
    }
    for (file, program, listed) in FOREIGN {
        for option in listed {
            let is_used = used.iter().any(|(name, other)| name == file && other == option);
            assert!(is_used, "{file} does not name {option} of {program}");
        }
    }
}

#[test]
fn options_are_found_in_literals_and_not_in_comments_code_or_tests() {
    let names =
        |source: &str| options(source).into_iter().map(|(_, option)| option).collect::<Vec<_>>();
    assert_eq!(names("f(\"replace it (--force)\")"), ["--force"]);
    assert_eq!(names("f(\"a \\\n--user \\\n --on-error=skip\")"), ["--user", "--on-error"]);
    assert_eq!(names("// \"--force\"\nlet a = x --y; \"---\"; \"var(--series)\""), [""; 0]);
    assert_eq!(names("fn f() {}\n#[cfg(test)]\nmod tests {\n\"--force\"}"), [""; 0]);
    assert!(is_of_a_library(Path::new("host/src/job/mod.rs")));
    for other in ["cli/src/main.rs", "prepare/src/cache/tests.rs", "jpeg/benches/src/lib.rs"] {
        assert!(!is_of_a_library(Path::new(other)), "{other}");
    }
}
