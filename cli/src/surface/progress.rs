//! Progress bars: on standard error, only on a terminal, only for work of more than a second.
//! Without a terminal, long work can print lines instead.

use super::output::notice;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// Time between two lines if standard error is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// A bar that is hidden if the work is short.
pub(crate) struct Progress {
    bar: ProgressBar,
    unit: &'static str,
    begun: Instant,
    shown: bool,
    title: &'static str,
    /// Time of the last line, if lines are printed.
    last_line: Option<Instant>,
}

impl Progress {
    /// A bar for `total` items (0: not known yet) called `unit`, as in "12/300 pictures", with
    /// their rate and the remaining time.
    pub(crate) fn new(title: &'static str, unit: &'static str, total: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let template = match unit {
            "bytes" => "{prefix} {wide_bar} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left",
            _ => "{prefix} {wide_bar} {human_pos}/{human_len} UNIT, {per_sec:.1}, {eta} left",
        };
        bar.set_style(style(template, unit).progress_chars("=> "));
        bar.set_prefix(title);
        Self { bar, unit, begun: Instant::now(), shown: false, title, last_line: None }
    }

    /// Prints a line every 10 s if standard error is not a terminal.
    #[must_use]
    pub(crate) fn in_lines(mut self) -> Self {
        if !std::io::stderr().is_terminal() {
            self.last_line = Some(self.begun);
        }
        self
    }

    /// Sets the progress of work whose total is not known.
    pub(crate) fn set_open(&mut self, done: u64) {
        if self.bar.length().is_some() {
            self.bar.unset_length();
            self.bar.set_style(style("{prefix} {human_pos} UNIT, {per_sec:.1}", self.unit));
        }
        self.bar.set_position(done);
        self.show();
    }

    /// Sets the progress.
    pub(crate) fn set(&mut self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.show();
        if let Some(last) = &mut self.last_line
            && last.elapsed() >= LINE_EVERY
        {
            *last = Instant::now();
            notice(&format!("{}: {done} of {total} {} done", self.title, self.unit));
        }
    }

    /// Hides the bar while `write` writes to standard error.
    pub(crate) fn suspend(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    fn show(&mut self) {
        if !self.shown && self.begun.elapsed() >= SHOWN_AFTER {
            self.shown = true;
            if std::io::stderr().is_terminal() {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
        }
    }
}

/// A style of that template, `UNIT` being the unit.
fn style(template: &str, unit: &str) -> ProgressStyle {
    ProgressStyle::with_template(&template.replace("UNIT", unit))
        .expect("the template is well formed")
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
