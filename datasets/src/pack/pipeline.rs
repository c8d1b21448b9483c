//! Many files are checked and converted at once; their verdicts arrive in order and the memory is
//! bounded.

use super::PackOptions;
use super::check::{Scratch, Verdict, check};
use super::scan::SourceFile;
use crate::Error;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Bytes of files that may be read ahead of the writer; one file may be longer. What is stored of
/// them takes at most some two times as much.
const BYTES_AHEAD_MAX: u64 = 64 << 20;
/// Files that each thread may be ahead of the writer.
const FILES_AHEAD_PER_THREAD: usize = 8;

/// What the threads and the writer share.
struct Shared {
    state: Mutex<State>,
    /// Told when a verdict is there or a thread has gone.
    arrived: Condvar,
    /// Told when there is room ahead of the writer, or nothing more to do.
    taken: Condvar,
}

struct State {
    /// Next file that a thread takes.
    next: usize,
    /// Next file that the writer wants.
    wanted: usize,
    /// Bytes that are being read or wait for the writer.
    bytes_ahead: u64,
    /// Verdicts from `wanted` on, by file modulo length.
    verdicts: Vec<Option<Verdict>>,
    /// The writer has failed, or a thread has panicked.
    is_over: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding the state")
    }
}

/// Wakes the writer when its thread panics, so that it does not wait for a verdict for ever.
struct Alarm<'a>(&'a Shared);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().is_over = true;
        }
        self.0.arrived.notify_all();
    }
}

/// Stops the threads when the writer leaves, however it leaves.
struct Stop<'a>(&'a Shared);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.taken.notify_all();
    }
}

/// Checks every file on `threads` threads and hands the verdicts to `write` in order.
pub(super) fn check_all(
    from: &Path,
    files: &[SourceFile],
    options: &PackOptions,
    threads: usize,
    write: &mut dyn FnMut(usize, Verdict) -> Result<(), Error>,
) -> Result<(), Error> {
    let threads = threads.clamp(1, files.len().max(1));
    let window = threads * FILES_AHEAD_PER_THREAD;
    let shared = Shared {
        state: Mutex::new(State {
            next: 0,
            wanted: 0,
            bytes_ahead: 0,
            verdicts: (0..window).map(|_| None).collect(),
            is_over: false,
        }),
        arrived: Condvar::new(),
        taken: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work(&shared, from, files, options));
        }
        let _stop = Stop(&shared);
        for (index, file) in files.iter().enumerate() {
            let Some(verdict) = receive(&shared, index) else {
                // A thread has panicked; leaving the scope passes the panic on.
                return Ok(());
            };
            write(index, verdict)?;
            shared.lock().bytes_ahead -= file.bytes;
            shared.taken.notify_all();
        }
        Ok(())
    })
}

fn receive(shared: &Shared, index: usize) -> Option<Verdict> {
    let mut state = shared.lock();
    loop {
        let slot = index % state.verdicts.len();
        if let Some(verdict) = state.verdicts[slot].take() {
            state.wanted = index + 1;
            return Some(verdict);
        }
        if state.is_over {
            return None;
        }
        state = shared.arrived.wait(state).expect("nobody panics while holding the state");
    }
}

fn work(shared: &Shared, from: &Path, files: &[SourceFile], options: &PackOptions) {
    let _alarm = Alarm(shared);
    let mut scratch = Scratch::default();
    while let Some(index) = take(shared, files) {
        let path = from.join(&files[index].key);
        let verdict = check(&path, options.check, &options.jpeg, &mut scratch);
        let mut state = shared.lock();
        let slot = index % state.verdicts.len();
        state.verdicts[slot] = Some(verdict);
        drop(state);
        shared.arrived.notify_all();
    }
}

/// Waits for room and takes the next file; `None` when there is nothing more to do.
fn take(shared: &Shared, files: &[SourceFile]) -> Option<usize> {
    let mut state = shared.lock();
    loop {
        let index = state.next;
        if state.is_over || index == files.len() {
            return None;
        }
        let bytes = files[index].bytes;
        let has_room = index < state.wanted + state.verdicts.len()
            && (state.bytes_ahead == 0 || state.bytes_ahead + bytes <= BYTES_AHEAD_MAX);
        if has_room {
            state.next += 1;
            state.bytes_ahead += bytes;
            return Some(index);
        }
        state = shared.taken.wait(state).expect("nobody panics while holding the state");
    }
}
