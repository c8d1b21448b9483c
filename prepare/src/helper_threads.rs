//! Threads for work that cannot be interrupted, which an interrupted caller abandons.
//!
//! An abandoned thread and the memory of its work remain until the work ends; the end of the
//! process does not wait for it. The number of abandoned threads is limited: beyond it, callers wait
//! until one ends, or until they are interrupted themselves.

use meetpoint_kernels::jpeg::Error as Interrupted;
use meetpoint_kernels::{Helper, Interrupt};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Maximum number of abandoned threads of a process when another thread starts. The callers of that
/// moment may each abandon one more.
const ABANDONED_MAX: usize = 8;

/// How often a waiting caller polls its interrupt.
const WAIT_SLICE: Duration = Duration::from_millis(10);

/// Work of one thread.
type Work = Box<dyn FnOnce() + Send>;

/// Starts a thread for each piece of work, and counts those that were abandoned. Clones share the
/// count.
#[derive(Debug, Clone)]
struct HelperThreads(Arc<AbandonedThreads>);

/// The threads whose callers do not wait any more.
#[derive(Debug)]
struct AbandonedThreads {
    abandoned_max: usize,
    abandoned: Mutex<usize>,
    ended: Condvar,
}

/// Whether the caller still waits for a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Running,
    Ended,
    Abandoned,
}

/// An interrupt whose callers do not wait for decoders that cannot poll it: these run in threads
/// that an interrupted caller abandons.
pub fn abandoning(interrupt: Interrupt) -> Interrupt {
    static OF_PROCESS: LazyLock<HelperThreads> =
        LazyLock::new(|| HelperThreads::new(ABANDONED_MAX));
    interrupt.with_helper(Arc::new(OF_PROCESS.clone()))
}

impl HelperThreads {
    fn new(abandoned_max: usize) -> Self {
        let abandoned = Mutex::new(0);
        Self(Arc::new(AbandonedThreads { abandoned_max, abandoned, ended: Condvar::new() }))
    }

    fn abandoned(&self) -> MutexGuard<'_, usize> {
        lock(&self.0.abandoned)
    }

    /// Waits until so few threads are abandoned that another may start.
    fn wait_for_turn(&self, interrupt: &Interrupt) -> Result<(), Interrupted> {
        let mut abandoned = self.abandoned();
        loop {
            interrupt.check()?;
            if *abandoned < self.0.abandoned_max {
                return Ok(());
            }
            let waited = self.0.ended.wait_timeout(abandoned, WAIT_SLICE);
            abandoned = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// If no thread can be started, the calling thread does the work.
impl Helper for HelperThreads {
    fn run(&self, work: Work, interrupt: &Interrupt) -> Result<(), Interrupted> {
        self.wait_for_turn(interrupt)?;
        let (done, result) = sync_channel(1);
        let progress = Arc::new(Mutex::new(Progress::Running));
        let work = Arc::new(Mutex::new(Some(work)));
        let (threads, of_thread, handed) = (self.clone(), Arc::clone(&progress), Arc::clone(&work));
        let body = move || {
            let work = lock(&handed).take();
            let panicked = work.and_then(|work| catch_unwind(AssertUnwindSafe(work)).err());
            let mut progress = lock(&of_thread);
            match *progress {
                Progress::Abandoned => {
                    *threads.abandoned() -= 1;
                    threads.0.ended.notify_all();
                }
                Progress::Running | Progress::Ended => *progress = Progress::Ended,
            }
            drop(progress);
            // The caller may have abandoned this thread.
            let _ = done.send(panicked);
        };
        if thread::Builder::new().name("decode".to_owned()).spawn(body).is_err() {
            if let Some(work) = lock(&work).take() {
                work();
            }
            return Ok(());
        }
        loop {
            match result.recv_timeout(WAIT_SLICE) {
                Ok(None) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(Some(panic)) => resume_unwind(panic),
                Err(RecvTimeoutError::Timeout) if interrupt.is_raised() => {
                    let mut progress = lock(&progress);
                    if *progress == Progress::Running {
                        *progress = Progress::Abandoned;
                        *self.abandoned() += 1;
                    }
                    return Err(Interrupted::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc::{Sender, channel};

    /// Work that blocks until the sender is used or dropped, as a decoder that takes long would.
    fn blocked() -> (Work, Sender<()>) {
        let (release, released) = channel::<()>();
        (Box::new(move || released.recv().unwrap_or_default()), release)
    }

    #[test]
    fn an_interrupted_caller_does_not_wait_for_the_work() {
        let threads = HelperThreads::new(1);
        let (work, release) = blocked();
        let interrupt = Interrupt::when(|| true);
        // The interrupt must not be raised before the work starts.
        let polls = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&polls);
        let later = Interrupt::when(move || counter.fetch_add(1, Ordering::Relaxed) > 0);
        assert_eq!(threads.run(work, &later), Err(Interrupted::Interrupted));
        assert_eq!(*threads.abandoned(), 1);
        // Another caller waits for its turn, and can be interrupted too.
        assert_eq!(
            threads.run(Box::new(|| unreachable!()), &interrupt),
            Err(Interrupted::Interrupted)
        );
        drop(release);
        // After the abandoned work has ended, it is the turn of the next.
        let done = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&done);
        let work = Box::new(move || flag.store(true, Ordering::Relaxed));
        threads.run(work, &Interrupt::default()).unwrap();
        assert!(done.load(Ordering::Relaxed));
        assert_eq!(*threads.abandoned(), 0);
    }

    #[test]
    fn a_caller_beyond_the_limit_waits_until_an_abandoned_thread_ends() {
        let threads = HelperThreads::new(1);
        let (work, release) = blocked();
        let polls = AtomicUsize::new(0);
        let later = Interrupt::when(move || polls.fetch_add(1, Ordering::Relaxed) > 0);
        assert_eq!(threads.run(work, &later), Err(Interrupted::Interrupted));
        // It polls at least once before it gets its turn; the poll releases the abandoned work.
        let release = Mutex::new(Some(release));
        let polled = Interrupt::when(move || {
            drop(lock(&release).take());
            false
        });
        threads.run(Box::new(|| ()), &polled).unwrap();
        assert_eq!(*threads.abandoned(), 0);
    }

    #[test]
    fn a_panic_of_the_work_reaches_the_caller() {
        let threads = HelperThreads::new(1);
        let call = || threads.run(Box::new(|| panic!("of the work")), &Interrupt::default());
        let panic = meetpoint_kernels::contain_panic(call).unwrap_err();
        assert_eq!(panic.message, "of the work");
    }
}
