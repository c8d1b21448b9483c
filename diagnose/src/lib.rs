//! Causes and remedies of errors as values, written in the terms of the surface that shows them.
//!
//! A library never names an option or a command in a message: it returns a [`Remedy`], which the
//! command line writes with options and Python with arguments. In reading order: [`Diagnose`],
//! [`Remedy`], [`Setting`], [`Command`], [`printable()`].
//!
//! ```
//! use meetpoint_diagnose::{Change, Remedy, Setting, Surface};
//!
//! let remedy = Remedy::set(Setting::SpoolQuota, Change::Lower).or("keep the spool in a file");
//! let [shell, python] = [Surface::CommandLine, Surface::Python].map(|it| remedy.spelled(it));
//! assert_eq!(shell, "lower spool.quota, or keep the spool in a file");
//! assert_eq!(python, "lower spool_quota, or keep the spool in a file");
//! ```

mod command;
mod nearest;
mod printable;
mod remedy;
mod setting;

pub use command::Command;
pub use nearest::{known, nearest};
pub use printable::{Shown, printable, printable_lines, shown};
pub use remedy::{Change, Remedy, Step};
pub use setting::Setting;

/// The surface on which a remedy is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// Options are `--force`, settings are keys of a job file, commands are `meetpoint verify`.
    CommandLine,
    /// Settings are arguments, commands are functions of the package `meetpoint`.
    Python,
}

/// An error or event that a user can act on. Its `Display` says what is wrong, without the remedy.
pub trait Diagnose: std::fmt::Display {
    /// A stable name of the cause, for programs: `device_unreachable`.
    fn cause(&self) -> &'static str;

    /// What to do about it; `None` if the message leaves nothing to add.
    fn remedy(&self) -> Option<Remedy>;

    /// The message in the terms of a surface; only messages that name settings differ.
    fn message(&self, surface: Surface) -> String {
        let _ = surface;
        self.to_string()
    }

    /// The message and the remedy in the terms of a surface, as one line.
    fn in_full(&self, surface: Surface) -> String {
        let message = self.message(surface);
        match self.remedy() {
            Some(remedy) => format!("{message}; {}", remedy.spelled(surface)),
            None => message,
        }
    }
}
