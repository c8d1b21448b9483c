//! Runs the built program as a process: small datasets, job files, bounded waits, leftovers.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Limit of each run of the program, reached only if it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The program under test.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_meetpoint-under-test"))
}

/// The output and status of a finished process.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Panics with both streams unless the program succeeded.
    pub(crate) fn success(self) -> Self {
        assert!(
            self.status.success(),
            "{}\nstdout:\n{}\nstderr:\n{}",
            self.status,
            self.stdout,
            self.stderr
        );
        self
    }

    /// Panics unless it ended with exit code 1, one `error:` line, no backtrace, and every word.
    pub(crate) fn refused(self, words: &[&str]) -> Self {
        assert_eq!(self.code(), Some(1), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        assert_eq!(self.stderr.matches("error:").count(), 1, "one error line:\n{}", self.stderr);
        for absent in ["panicked", "backtrace", "RUST_BACKTRACE"] {
            assert!(!self.stderr.contains(absent), "{absent} in:\n{}", self.stderr);
        }
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is not in:\n{}", self.stderr);
        }
        self
    }
}

/// The program with arguments, in a folder, without colours.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(arguments).current_dir(folder).env("NO_COLOR", "1").env_remove("RUST_BACKTRACE");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs to the end, or panics when it takes longer than [`PATIENCE`].
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Finished {
    finish(command(folder, arguments).spawn().expect("the program starts"))
}

/// Waits for a process, reading both of its streams, at most [`PATIENCE`].
pub(crate) fn finish(mut child: Child) -> Finished {
    let drain = |stream: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(mut stream) = stream {
                let _ = stream.read_to_end(&mut text);
            }
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let stdout = drain(child.stdout.take().map(|s| Box::new(s) as Box<dyn Read + Send>));
    let stderr = drain(child.stderr.take().map(|s| Box::new(s) as Box<dyn Read + Send>));
    let status = wait(&mut child, PATIENCE).unwrap_or_else(|| {
        let _ = child.kill();
        let _ = child.wait();
        panic!("the program hangs: no end after {PATIENCE:?}");
    });
    Finished {
        status,
        stdout: stdout.join().expect("the reader ends"),
        stderr: stderr.join().expect("the reader ends"),
    }
}

/// Waits for the end of a process; `None` when it lasts longer than `limit`.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let mut status = None;
    until(limit, || {
        status = child.try_wait().expect("a child can be waited for");
        status.is_some()
    });
    status
}

/// Polls `condition` until it holds, for at most `limit`; returns whether it holds.
pub(crate) fn until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes whose command line contains `mark`, this one left out.
pub(crate) fn processes_with(mark: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("/proc reads").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if pid != std::process::id() && line.contains(mark) {
            found.push(pid);
        }
    }
    found
}

/// A small JPEG with structure, a function of `seed`.
pub(crate) fn jpeg(seed: u32, width: u16, height: u16) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut pixels = Vec::with_capacity(usize::from(width) * usize::from(height) * 3);
    for y in 0..u32::from(height) {
        for x in 0..u32::from(width) {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            let grain = state & 15;
            pixels.push(((x * 3 + seed * 7) & 0xe0) as u8 | (grain as u8));
            pixels.push(((y * 5 + seed * 3) & 0xe0) as u8 | (grain as u8));
            pixels.push(((x + y + seed) & 0xe0) as u8 | (grain as u8));
        }
    }
    let mut out = Vec::new();
    jpeg_encoder::Encoder::new(&mut out, 90)
        .encode(&pixels, width, height, jpeg_encoder::ColorType::Rgb)
        .expect("a picture encodes");
    out
}

/// A folder of `count` JPEGs in two classes.
pub(crate) fn pictures(folder: &Path, count: u32) -> PathBuf {
    let root = folder.join("pictures");
    for index in 0..count {
        let class = root.join(["cat", "dog"][index as usize % 2]);
        std::fs::create_dir_all(&class).expect("a folder");
        let bytes = jpeg(index, 96 + (index % 5) as u16 * 8, 80 + (index % 3) as u16 * 8);
        std::fs::write(class.join(format!("{index}.jpg")), bytes).expect("a file");
    }
    root
}

/// A packed dataset of `count` samples at `folder/small.set`.
pub(crate) fn packed(folder: &Path, count: u32) -> PathBuf {
    let source = pictures(folder, count);
    run(folder, &["pack", &source.display().to_string(), "small.set"]).success();
    folder.join("small.set")
}
