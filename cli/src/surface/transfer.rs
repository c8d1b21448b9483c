//! Shows how much of a remote source was downloaded, until its first sample is available.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use meetpoint_datasets::source::is_url;
use meetpoint_datasets::store::TransferMonitor;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Polling interval.
const LOOK: Duration = Duration::from_millis(250);
/// Polls before anything is shown, so that nothing appears for less than a second.
const LOOKS_UNSEEN: u32 = 4;

/// A line on standard error that is cleared when this value is dropped.
pub(crate) struct Transfer {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Transfer {
    /// Begins to poll, if the source is remote and standard error is a terminal.
    pub(crate) fn of(source: &Path, watch: &TransferMonitor) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let is_seen = is_url(source) && std::io::stderr().is_terminal();
        let thread = is_seen.then(|| {
            let (watch, is_over) = (watch.clone(), Arc::clone(&is_over));
            std::thread::spawn(move || show(&watch, &is_over))
        });
        Self { is_over, thread }
    }

    /// Clears the line.
    pub(crate) fn end(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It is not a failure if the line cannot be drawn.
            let _ = thread.join();
        }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.end();
    }
}

fn show(watch: &TransferMonitor, is_over: &AtomicBool) {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    let style = ProgressStyle::with_template("fetching {bytes}, {bytes_per_sec}; {msg}");
    bar.set_style(style.expect("the template is well formed"));
    for look in 0_u32.. {
        std::thread::park_timeout(LOOK);
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        if look == LOOKS_UNSEEN {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.set_message(format!("{} objects listed", watch.listed.load(Ordering::Relaxed)));
        bar.set_position(watch.fetched_bytes.load(Ordering::Relaxed));
    }
    bar.finish_and_clear();
}
