//! Progress bars: on standard error, only on a terminal, only for what takes over a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// A bar that stays unseen while the work is short.
pub(crate) struct Progress {
    bar: ProgressBar,
    begun: Instant,
    shown: bool,
}

impl Progress {
    /// A bar for `total` things (0: not known yet) called `unit`, as in "12/300 pictures".
    pub(crate) fn new(title: &'static str, unit: &'static str, total: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let template =
            format!("{{prefix}} {{wide_bar}} {{pos}}/{{len}} {unit}, {{per_sec}}, {{eta}} left");
        let style = ProgressStyle::with_template(&template).expect("the template is well formed");
        bar.set_style(style.progress_chars("=> "));
        bar.set_prefix(title);
        Self { bar, begun: Instant::now(), shown: false }
    }

    /// Says how far the work is.
    pub(crate) fn set(&mut self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        if !self.shown && self.begun.elapsed() >= SHOWN_AFTER {
            self.shown = true;
            if std::io::stderr().is_terminal() {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
