//! A device as a child process: started and ended with the link, without leaving anything behind.

use crate::causes::{Loss, LossCause, ProcessEnd};
use crate::{DeviceName, Error, SpawnDevice, StopHandle};
use std::collections::VecDeque;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How many of the last bytes of standard error are retained.
const STDERR_BYTES_MAX: usize = 4096;

/// How long the process may take to exit once its link has closed.
const GOING_LIMIT: Duration = Duration::from_secs(1);

/// Exit code of a Rust program that panicked.
const PANIC_EXIT_CODE: i32 = 101;

/// How often it is polled until then.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A running device process and the folder of its socket. Dropping it ends the process.
///
/// The process asks the kernel to be killed when the thread that started it ends, so this must be
/// started and dropped in the thread that runs the link.
#[derive(Debug)]
pub(crate) struct DeviceProcess {
    child: Child,
    program: PathBuf,
    socket: PathBuf,
    /// Removed once the link is open.
    folder: Option<tempfile::TempDir>,
    said: Arc<Mutex<VecDeque<u8>>>,
    listener: Option<JoinHandle<()>>,
}

impl DeviceProcess {
    /// Starts `program arguments… --socket S --root DATASET --once --parent PID`, with a `--root`
    /// for each dataset, and `--hosts N` for more than one.
    pub(crate) fn start<P: AsRef<Path>>(
        spawn: &SpawnDevice,
        datasets: &[P],
        hosts: u32,
    ) -> Result<Self, Error> {
        let failed = |source| Error::DeviceStart { program: spawn.program.clone(), source };
        let folder = socket_folder()?;
        let socket = folder.path().join("device.sock");
        let mut command = Command::new(&spawn.program);
        command.args(&spawn.arguments).arg("--socket").arg(&socket);
        command.arg("--once");
        for dataset in datasets {
            command.arg("--root").arg(dataset.as_ref());
        }
        // A dataset in place has its content elsewhere. If one does not open here, the device
        // reports the error.
        if let Ok(opened) = meetpoint_prepare::Dataset::open_all(datasets) {
            for root in opened.content_roots() {
                command.arg("--root").arg(root);
            }
        }
        command.arg("--parent").arg(std::process::id().to_string());
        if hosts > 1 {
            command.arg("--hosts").arg(hosts.to_string());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let said = Arc::new(Mutex::new(VecDeque::new()));
        let mut stderr = child.stderr.take().expect("standard error was asked for as a pipe");
        let retained = Arc::clone(&said);
        let listener = std::thread::Builder::new()
            .name("device-stderr".to_owned())
            .spawn(move || keep_end(&mut stderr, &retained));
        let mut process = Self {
            child,
            program: spawn.program.clone(),
            socket,
            folder: Some(folder),
            said,
            listener: None,
        };
        // On failure the process is dropped, which ends it.
        process.listener = Some(listener.map_err(Error::Thread)?);
        Ok(process)
    }

    /// Id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its name in errors.
    pub(crate) fn name(&self) -> DeviceName {
        DeviceName::Program(self.program.clone())
    }

    /// The socket on which it listens.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// The link is open, and the name of the socket is not needed any more. Removing it now leaves
    /// nothing behind if this process is killed.
    pub(crate) fn forget_socket(&mut self) {
        self.folder.take();
    }

    /// An error that describes its exit, once it has exited. A process that was killed or panicked
    /// is lost. Any other exit means that it will not serve, unless it `has_answered` before.
    pub(crate) fn check_alive(&mut self, has_answered: bool) -> Result<(), Error> {
        match self.child.try_wait() {
            Ok(Some(status)) => {
                let end = ProcessEnd { exit: status.into(), detail: self.last_words() };
                let is_lost = has_answered
                    || status.signal().is_some()
                    || status.code() == Some(PANIC_EXIT_CODE);
                if is_lost {
                    let device = self.name();
                    let loss = Loss { cause: LossCause::ProcessEnded, process: Some(end) };
                    return Err(Error::DeviceLost { device, loss });
                }
                Err(Error::DeviceEnded { program: self.program.clone(), end })
            }
            Ok(None) => Ok(()),
            Err(source) => Err(Error::DeviceStart { program: self.program.clone(), source }),
        }
    }

    /// How it ended, if it did so within `limit`.
    pub(crate) fn ending(&mut self, limit: Duration) -> Option<ProcessEnd> {
        let exit = self.wait(limit)?.into();
        Some(ProcessEnd { exit, detail: self.last_words() })
    }

    /// Its exit status, if it exited within `limit`.
    pub(crate) fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The end of what it wrote to standard error, in one line. Only for a process that has ended.
    fn last_words(&mut self) -> String {
        // The pipe is drained shortly after the process ended, unless a child of it holds the pipe
        // open.
        let deadline = Instant::now() + Duration::from_millis(200);
        while let Some(listener) = &self.listener
            && !listener.is_finished()
            && Instant::now() < deadline
        {
            std::thread::sleep(LOOK_EVERY);
        }
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = said.iter().copied().collect();
        let lines = String::from_utf8_lossy(&bytes);
        let errors = lines.lines().map(|line| line.trim().trim_start_matches("error: "));
        errors.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
    }

    /// Waits a while for it to exit, then kills it; reaps it in any case.
    pub(crate) fn end(&mut self, stop: &StopHandle) {
        let limit = if stop.is_stopped() { GOING_LIMIT / 4 } else { GOING_LIMIT };
        if self.wait(limit).is_none() {
            // It may have exited just now; there is then nothing to kill.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Drop for DeviceProcess {
    fn drop(&mut self) {
        // For a process that has already exited, this only reaps it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where folders of sockets are created if there is no runtime directory. Names of sockets are
/// limited to 107 bytes, so the temporary folder, which a user may set, is not used.
const FALLBACK_PARENT: &str = "/tmp";

/// A new folder that only this user can enter.
fn socket_folder() -> Result<tempfile::TempDir, Error> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("meetpoint-");
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty());
    if let Some(folder) = runtime.and_then(|path| builder.tempdir_in(path).ok()) {
        return Ok(folder);
    }
    builder.tempdir_in(FALLBACK_PARENT).map_err(|error| Error::SocketFolder {
        parent: FALLBACK_PARENT.into(),
        // Without the name that was tried, which means nothing to a user.
        source: error.kind().into(),
    })
}

/// Reads to the end and retains the last bytes.
fn keep_end(stream: &mut impl Read, retained: &Mutex<VecDeque<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
        let mut retained = retained.lock().unwrap_or_else(PoisonError::into_inner);
        retained.extend(&buffer[..bytes]);
        let surplus = retained.len().saturating_sub(STDERR_BYTES_MAX);
        retained.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::Exit;

    fn shell(script: &str) -> SpawnDevice {
        let arguments = ["-c", script].map(std::ffi::OsString::from).to_vec();
        SpawnDevice { program: "/bin/sh".into(), arguments }
    }

    #[test]
    fn a_program_that_ends_is_reported_with_its_last_output() {
        let spawn = shell("echo first >&2; echo error: no such knob >&2; exit 3");
        let mut process = DeviceProcess::start(&spawn, &["/data"], 1).unwrap();
        assert!(process.wait(Duration::from_secs(60)).is_some());
        let error = process.check_alive(false).unwrap_err();
        assert!(matches!(error, Error::DeviceEnded { .. }));
        let error = error.to_string();
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(error.ends_with("first; no such knob"), "{error}");
    }

    #[test]
    fn a_program_that_is_killed_or_panics_is_lost_and_one_that_refuses_is_not() {
        for (script, has_answered, is_loss) in [
            ("kill -9 $$", false, true),
            ("exit 101", false, true),
            ("exit 2", false, false),
            ("exit 0", false, false),
            ("exit 0", true, true),
        ] {
            let mut process = DeviceProcess::start(&shell(script), &["/data"], 1).unwrap();
            assert!(process.wait(Duration::from_secs(60)).is_some());
            let error = process.check_alive(has_answered).unwrap_err();
            assert_eq!(error.is_loss(), is_loss, "{script}: {error}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_that_names_it() {
        let spawn = SpawnDevice { program: "/no/such/program".into(), arguments: vec![] };
        let error = DeviceProcess::start(&spawn, &["/data"], 1).unwrap_err().to_string();
        assert!(error.contains("/no/such/program"), "{error}");
    }

    #[test]
    fn a_process_that_does_not_end_is_killed_and_its_folder_removed() {
        let spawn = shell("trap '' TERM; while :; do sleep 1; done");
        let mut process = DeviceProcess::start(&spawn, &["/data"], 1).unwrap();
        let folder = process.socket().parent().unwrap().to_path_buf();
        assert!(folder.is_dir());
        let stop = StopHandle::new();
        stop.stop();
        process.end(&stop);
        let exit = process.ending(Duration::ZERO).unwrap().exit;
        assert!(matches!(exit, Exit::Signal { signal: 9, .. }), "{exit}");
        drop(process);
        assert!(!folder.exists());
    }

    #[test]
    fn only_the_end_of_a_flood_is_retained() {
        let retained = Mutex::new(VecDeque::new());
        let flood: Vec<u8> = (0..100_000u32).map(|number| b'0' + (number % 10) as u8).collect();
        keep_end(&mut &flood[..], &retained);
        let retained = retained.into_inner().unwrap();
        assert_eq!(retained.len(), STDERR_BYTES_MAX);
        assert_eq!(retained.back(), Some(&b'9'));
    }
}
