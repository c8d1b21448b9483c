//! Processes of a job: this program again, marked, in a process group of its own, with its output
//! in files.

use super::processes::{self, MARK};
use crate::runner::OwnCommand;
use anyhow::Context;
use rustix::process::Signal;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often an end is awaited.
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// A running process. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    status: Option<ExitStatus>,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Running {
    /// Starts this program with arguments in the folder of a job. Output goes to `NAME.out` and
    /// `NAME.err` there; files in the way are replaced.
    pub(super) fn start(folder: &Path, name: &str, arguments: &[&str]) -> anyhow::Result<Self> {
        let OwnCommand { program, arguments: first } = OwnCommand::current()?;
        let (stdout, stderr) =
            (folder.join(format!("{name}.out")), folder.join(format!("{name}.err")));
        let create = |path: &Path| {
            File::create(path).with_context(|| format!("failed to create {}", path.display()))
        };
        let child = Command::new(&program)
            .args(first)
            .args(arguments)
            .current_dir(folder)
            .env(MARK, folder)
            .env("XDG_RUNTIME_DIR", folder.join("r"))
            .env("TMPDIR", folder.join("t"))
            .env("NO_COLOR", "1")
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null())
            .stdout(create(&stdout)?)
            .stderr(create(&stderr)?)
            // A terminal's Ctrl-C then reaches only the campaign.
            .process_group(0)
            .spawn()
            .with_context(|| format!("failed to start {}", program.display()))?;
        Ok(Self { child, status: None, stdout, stderr })
    }

    /// Its process id.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait().context("failed to wait for a process")?;
        }
        Ok(self.status)
    }

    /// Waits for its end, at most for this time.
    pub(super) fn wait(&mut self, limit: Duration) -> anyhow::Result<Option<ExitStatus>> {
        let until = Instant::now() + limit;
        loop {
            match self.ended()? {
                None if Instant::now() < until => std::thread::sleep(LOOK_EVERY),
                ended => return Ok(ended),
            }
        }
    }

    /// Sends it a signal, unless it has ended and been waited for.
    pub(super) fn signal(&mut self, signal: Signal) {
        if self.status.is_none() {
            processes::signal(self.child.id(), signal);
        }
    }

    /// What it wrote to standard output so far.
    pub(super) fn stdout(&self) -> String {
        read(&self.stdout)
    }

    /// What it wrote to standard error so far.
    pub(super) fn stderr(&self) -> String {
        read(&self.stderr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}
