//! Runs long work on a separate thread while Python's signals and progress functions are served.

use crate::errors;
use meetpoint_datasets::Error;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Longest time between two checks of signals and progress.
const SLICE: Duration = Duration::from_millis(50);

/// The progress of work. Counts that do not apply are 0 of `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Step {
    pub(crate) samples_done: u64,
    pub(crate) samples: Option<u64>,
    pub(crate) bytes_done: u64,
    pub(crate) bytes: Option<u64>,
}

/// Runs `work` and returns its result.
///
/// The work is asked to stop through `stop` when a signal arrives or `progress` raises an
/// exception, which is raised once the work has ended. The first step is awaited, so that work that
/// is shorter than a slice can be stopped as well. A panic of the work is propagated.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(Step)) -> Result<T, Error> + Send,
) -> PyResult<T> {
    run_with(py, (stop, progress), errors::of_datasets, work)
}

/// As [`run`], for work whose errors another function converts to exceptions.
pub(crate) fn run_with<T: Send, E: Send>(
    py: Python<'_>,
    (stop, progress): (&AtomicBool, Option<&Py<PyAny>>),
    of_error: fn(Python<'_>, &E) -> PyErr,
    work: impl FnOnce(&mut dyn FnMut(Step)) -> Result<T, E> + Send,
) -> PyResult<T> {
    let latest = Mutex::new(None);
    let take = || latest.lock().unwrap_or_else(PoisonError::into_inner).take();
    let serve = |step: Option<Step>| {
        Python::attach(|py| -> PyResult<()> {
            py.check_signals()?;
            if let (Some(progress), Some(step)) = (progress, step) {
                let Step { samples_done, samples, bytes_done, bytes } = step;
                progress.call1(py, (samples_done, samples, bytes_done, bytes))?;
            }
            Ok(())
        })
    };
    let (outcome, raised) = py.detach(|| {
        std::thread::scope(|scope| {
            let (running, events) = mpsc::sync_channel::<()>(0);
            let (serve_first, first_served) = mpsc::sync_channel::<()>(1);
            let worker = scope.spawn(|| {
                // Both live as long as the work does.
                let (running, first_served) = (running, first_served);
                let mut is_first = true;
                let outcome = work(&mut |step| {
                    *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(step);
                    if std::mem::take(&mut is_first) && running.send(()).is_ok() {
                        // Fails only if the other side panicked, which ends the call.
                        let _ = first_served.recv();
                    }
                });
                drop(running);
                outcome
            });
            let mut raised: Option<PyErr> = None;
            loop {
                let event = events.recv_timeout(SLICE);
                if raised.is_none()
                    && let Err(error) = serve(take())
                {
                    stop.store(true, Ordering::Relaxed);
                    raised = Some(error);
                }
                match event {
                    Ok(()) => {
                        // The worker is waiting for it.
                        let _ = serve_first.send(());
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return (worker.join(), raised),
                }
            }
        })
    });
    match (outcome, raised) {
        (Err(panic), _) => std::panic::resume_unwind(panic),
        (Ok(_), Some(error)) => Err(error),
        (Ok(Err(error)), None) => Err(of_error(py, &error)),
        (Ok(Ok(done)), None) => Ok(done),
    }
}

/// A result as the JSON document from which the package creates an object.
pub(crate) fn json(result: &impl serde::Serialize) -> String {
    serde_json::to_string(result).expect("results are of numbers, texts, lists and maps of them")
}

/// Panics on the calling thread, or on one that it waits for.
#[cfg(debug_assertions)]
#[crate::guarded]
#[pyfunction]
pub(crate) fn panic_for_tests(py: Python<'_>, on_thread: bool) -> PyResult<()> {
    if on_thread {
        return run(py, &AtomicBool::new(false), None, |_| {
            panic!("a panic on a thread, for a test")
        });
    }
    panic!("a panic, for a test")
}
