//! Converts panics, which are bugs, to the exception `meetpoint.InternalError`.

use crate::exceptions;
use pyo3::prelude::*;
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// Maximum number of panics that are recorded.
const REMEMBERED_MAX: usize = 16;

/// The panics of this process.
struct Panics {
    /// Number of panics.
    count: u64,
    /// The most recent ones: location and message.
    last: VecDeque<String>,
}

static PANICS: Mutex<Panics> = Mutex::new(Panics { count: 0, last: VecDeque::new() });

fn panics() -> MutexGuard<'static, Panics> {
    PANICS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records every panic from now on, in addition to the previous hook.
pub(crate) fn remember() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            add(info);
            before(info);
        }));
    });
}

fn add(info: &PanicHookInfo<'_>) {
    let message = message_of(info.payload());
    let text = match info.location() {
        Some(place) => format!("{place}: {message}"),
        None => message.to_owned(),
    };
    let mut panics = panics();
    panics.count += 1;
    if panics.last.len() == REMEMBERED_MAX {
        panics.last.pop_front();
    }
    panics.last.push_back(text);
}

fn message_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic")
}

/// Runs the body of a native function; `#[guarded]` wraps each body in it.
pub(crate) fn guard<T>(body: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let before = panics().count;
    // Only Rust code uses what the body had borrowed, and poisoned locks are accepted, since the
    // state is consistent whenever a lock is held.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        let mut places = since(before);
        if places.is_empty() {
            places.push(message_of(&*payload).to_owned());
        }
        Err(Python::attach(|py| internal(py, &places)))
    })
}

/// The exception for a thread of the runtime that panicked, with the last panic.
pub(crate) fn of_thread(py: Python<'_>) -> PyErr {
    let last = panics().last.back().cloned();
    internal(py, &last.into_iter().collect::<Vec<_>>())
}

/// The panics after the first `before` of them, on any thread: a thread that waits for another one
/// panics with a message that says only that the other did.
fn since(before: u64) -> Vec<String> {
    let panics = panics();
    let new = usize::try_from(panics.count - before).unwrap_or(usize::MAX);
    let skipped = panics.last.len().saturating_sub(new);
    panics.last.iter().skip(skipped).cloned().collect()
}

fn internal(py: Python<'_>, places: &[String]) -> PyErr {
    let what = match places {
        [] => "a thread of the runtime ended".to_owned(),
        places => format!("panicked at {}", places.join(", then at ")),
    };
    let version = env!("CARGO_PKG_VERSION");
    let message = format!("a defect of meetpoint {version}: {what}");
    exceptions::plain(py, "InternalError", (message, "report it with this message and your code"))
}
