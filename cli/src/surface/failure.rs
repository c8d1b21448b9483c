//! Errors as people read them, and the exit codes: 0 done, 1 failed, 2 wrong usage.

use super::output::{self, Closed};
use std::io::Write;
use std::process::ExitCode;

/// Stopped by a signal.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Something was found wrong that has been reported already: exit code 1 without another line.
#[derive(Debug, thiserror::Error)]
#[error("found wrong")]
pub(crate) struct Reported;

/// Prints what failed, and says which exit code that is.
pub(crate) fn exit_code(outcome: &anyhow::Result<()>) -> ExitCode {
    let Err(error) = outcome else { return ExitCode::SUCCESS };
    if error.downcast_ref::<Closed>().is_some() {
        return ExitCode::SUCCESS;
    }
    if error.downcast_ref::<Reported>().is_none() {
        let text = if error.downcast_ref::<Interrupted>().is_some() {
            "interrupted\n".to_owned()
        } else {
            describe(error, output::colour_on_stderr())
        };
        // A closed standard error leaves nobody to tell.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
    ExitCode::FAILURE
}

/// `error: …`, each cause that says something more on an indented line of its own.
pub(crate) fn describe(error: &anyhow::Error, colour: bool) -> String {
    let title = if colour { "\u{1b}[1;31merror:\u{1b}[0m" } else { "error:" };
    let mut said = error.to_string();
    let mut text = format!("{title} {said}\n");
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        // Many errors quote their cause; saying it twice helps nobody.
        if !said.contains(&cause) {
            text.push_str(&format!("  because: {}\n", cause.replace('\n', "\n    ")));
            said = cause;
        }
    }
    text
}

/// Makes a panic one readable report instead of a backtrace.
pub(crate) fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map_or_else(String::new, |place| format!(" at {place}"));
        let payload = info.payload();
        let message = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        let version = env!("CARGO_PKG_VERSION");
        let text = format!(
            "error: this is a defect in Meetpoint, please report it with the command you typed\n  \
             because: {message} (meetpoint {version}{place})\n"
        );
        // A closed standard error leaves nobody to tell.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }));
}

#[cfg(test)]
mod tests {
    use super::describe;
    use anyhow::Context;

    #[test]
    fn a_cause_that_is_quoted_is_not_said_twice() {
        let inner = anyhow::anyhow!("no such file");
        let error = inner.context("failed to open a.toml: no such file");
        assert_eq!(describe(&error, false), "error: failed to open a.toml: no such file\n");
    }

    #[test]
    fn a_cause_that_says_more_is_indented_below() {
        let failed: anyhow::Result<()> = Err(anyhow::anyhow!("permission denied"));
        let error = failed.context("failed to write report.html").unwrap_err();
        let text = "error: failed to write report.html\n  because: permission denied\n";
        assert_eq!(describe(&error, false), text);
    }
}
