//! Runs that are held in the middle of their second epoch until the test releases them, so that
//! what happens to a device in the background cannot come too late.

use super::support::{Finished, PATIENCE, command, finish, until};
use rustix::fs::{CWD, Mode, OFlags};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Child;

/// Capacity of the pipe: one page, the smallest.
const PIPE_BYTES: usize = 4096;

/// Bytes of the line of a batch with 4 samples, on average and at most.
const LINE_BYTES: usize = 165;
const LINE_BYTES_MAX: usize = 200;

/// Batches until the run is held: the first epoch and half of the second.
const BATCHES_BEFORE: usize = 18;

/// A run whose ledger is a pipe. Its consumer waits when the pipe is full.
pub(crate) struct HeldRun {
    child: Child,
    reader: File,
    writer: File,
}

impl HeldRun {
    /// Starts `run` with these arguments.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        let path = folder.join("pipe");
        let _ = std::fs::remove_file(&path);
        rustix::fs::mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).expect("a pipe");
        let open = |flags| {
            let opened = rustix::fs::open(&path, flags | OFlags::CLOEXEC, Mode::empty());
            File::from(opened.expect("a pipe opens"))
        };
        // Opening an end blocks until the other one is open, unless it is to be read without
        // blocking.
        let reader = open(OFlags::RDONLY | OFlags::NONBLOCK);
        let mut writer = open(OFlags::WRONLY);
        rustix::fs::fcntl_setfl(&reader, OFlags::empty()).expect("its flags are set");
        let bytes = rustix::pipe::fcntl_setpipe_size(&reader, PIPE_BYTES).expect("a small pipe");
        writer
            .write_all(&vec![b' '; bytes - BATCHES_BEFORE * LINE_BYTES])
            .expect("the pipe has room");
        let mut host = command(folder, &[&["run"], arguments, &["--ledger", "pipe"]].concat());
        let child = host.spawn().expect("the program starts");
        Self { child, reader, writer }
    }

    /// Waits until its consumer waits; returns the number of bytes in the pipe.
    pub(crate) fn await_held(&self) -> usize {
        let mut bytes = 0;
        let is_full = || {
            let count = rustix::io::ioctl_fionread(&self.reader).expect("a pipe has a length");
            bytes = usize::try_from(count).expect("it is small");
            bytes > PIPE_BYTES - LINE_BYTES_MAX
        };
        assert!(until(PATIENCE, is_full), "the second epoch begins");
        bytes
    }

    /// Lets a run that is held continue for two epochs, to the middle of the fourth.
    pub(crate) fn advance(&mut self) {
        // Only an empty page is filled again.
        let mut page = vec![0; self.await_held()];
        self.reader.read_exact(&mut page).expect("a pipe reads");
    }

    /// Lets it run to its end.
    pub(crate) fn release(self) -> Finished {
        let Self { child, mut reader, writer } = self;
        let draining = std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
        let finished = finish(child);
        drop(writer);
        draining.join().expect("the reader ends").expect("a pipe reads");
        finished
    }
}
