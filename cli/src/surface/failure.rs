//! Errors as people and programs read them, and the exit codes: 0 done, 1 failed, 2 wrong usage.
//!
//! A reader of standard output that leaves early, as `head` does, is no failure: exit code 0.

use super::output::{self, Closed};
use crate::commands::simulate::load::{ScenarioFault, Unreadable};
use meetpoint_format::recipe::RecipeError;
use meetpoint_host::job::JobError;
use meetpoint_storage::open_files_limit;
use serde::Serialize;
use std::io::Write;

/// Exit code of a command that failed.
pub(crate) const FAILED: u8 = 1;
/// Exit code of a command that was done.
const DONE: u8 = 0;
const WRONG_USAGE: u8 = 2;

/// Stopped by a signal.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Something that was typed cannot be, as is known only after it was parsed: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WrongUsage(pub(crate) String);

/// Something was found wrong that has been reported already: exit code 1 without another line.
#[derive(Debug, thiserror::Error)]
#[error("found wrong")]
pub(crate) struct Reported;

/// What standard output gets under `--json` in place of a result.
#[derive(Debug, Serialize)]
struct Document {
    error: Failure,
}

#[derive(Debug, Serialize)]
struct Failure {
    message: String,
    /// Causes that say more than the message.
    because: Vec<String>,
    /// `None` where the message itself says it.
    remedy: Option<String>,
    exit_code: u8,
}

/// Prints what failed, and says which exit code that is.
pub(crate) fn exit_code(outcome: &anyhow::Result<()>, json: bool) -> u8 {
    let Err(error) = outcome else { return DONE };
    if error.downcast_ref::<Closed>().is_some() {
        return DONE;
    }
    if error.downcast_ref::<Reported>().is_none() {
        if json {
            output::failure_document(&document(error));
        }
        let is_stop = error.is::<Interrupted>()
            || matches!(error.downcast_ref(), Some(meetpoint_datasets::Error::Stopped { .. }));
        let text = match is_stop {
            true => format!("{}\n", error.root_cause()),
            false => describe(error, output::colour_on_stderr()),
        };
        // A closed standard error leaves nobody to tell.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
    code_of(error)
}

/// The exit code of a command that ended with this error.
fn code_of(error: &anyhow::Error) -> u8 {
    if error.downcast_ref::<WrongUsage>().is_some() { WRONG_USAGE } else { FAILED }
}

/// Prints what was typed wrong, or the help that was asked for, and says which exit code that is.
pub(crate) fn usage(error: &clap::Error, json: bool) -> u8 {
    // Closed streams leave nobody to tell.
    let _ = error.print();
    if !error.use_stderr() {
        return DONE;
    }
    if json {
        let text = error.render().to_string();
        let said: Vec<&str> =
            text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
        let said = said.join(" ");
        let message = said.trim_start_matches("error: ");
        output::failure_document(&Document {
            error: Failure {
                message: message.to_owned(),
                because: Vec::new(),
                remedy: Some("`meetpoint --help` lists commands and options".to_owned()),
                exit_code: WRONG_USAGE,
            },
        });
    }
    WRONG_USAGE
}

fn document(error: &anyhow::Error) -> Document {
    let remedy_of = |cause: &(dyn std::error::Error + 'static)| {
        let job = cause.downcast_ref::<JobError>().map(|job| &job.remedy);
        let of_job = || match cause.downcast_ref::<meetpoint_host::Error>() {
            Some(meetpoint_host::Error::Job(job)) => Some(&job.remedy),
            _ => None,
        };
        let of_recipe = || cause.downcast_ref::<RecipeError>().map(|recipe| &recipe.remedy);
        let of_file = || cause.downcast_ref::<Unreadable>().map(|it| &it.remedy);
        let of_scenario = || cause.downcast_ref::<ScenarioFault>().map(|fault| &fault.remedy);
        job.or_else(of_job).or_else(of_recipe).or_else(of_scenario).or_else(of_file).cloned()
    };
    let (message, because) = told(error);
    let remedy = error.chain().find_map(remedy_of);
    let exit_code = code_of(error);
    Document { error: Failure { message, because, remedy, exit_code } }
}

/// What failed, and the causes that say something more.
pub(crate) fn told(error: &anyhow::Error) -> (String, Vec<String>) {
    let message = error.to_string();
    let mut because: Vec<String> = Vec::new();
    for cause in error.chain().skip(1) {
        let limit = cause.downcast_ref::<std::io::Error>().and_then(open_files_limit);
        let remedy = limit.map(|limit| limit.to_string());
        let cause = cause.to_string();
        // Many errors quote their cause; saying it twice helps nobody.
        let news = remedy.as_ref().unwrap_or(&cause);
        if !because.last().unwrap_or(&message).contains(news) {
            because.push(remedy.map_or(cause.clone(), |remedy| format!("{cause}; {remedy}")));
        }
    }
    (message, because)
}

/// `error: …`, each cause that says something more on an indented line of its own.
pub(crate) fn describe(error: &anyhow::Error, colour: bool) -> String {
    let title = if colour { "\u{1b}[1;31merror:\u{1b}[0m" } else { "error:" };
    let (message, because) = told(error);
    let mut text = format!("{title} {message}\n");
    for cause in because {
        text.push_str(&format!("  because: {}\n", cause.replace('\n', "\n    ")));
    }
    text
}

/// Makes a panic one readable report instead of a backtrace.
pub(crate) fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        if meetpoint_kernels::note_contained(info) {
            return;
        }
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
    use super::{WrongUsage, describe, document, exit_code};
    use anyhow::Context;
    use meetpoint_host::JobFile;
    use std::path::Path;

    #[test]
    fn a_failure_is_a_document_with_its_remedy_and_exit_code() {
        let parsed = JobFile::parse("seed = -1", Path::new("job.toml"));
        let error = anyhow::Error::from(meetpoint_host::Error::Job(parsed.unwrap_err()));
        let document = serde_json::to_value(document(&error)).unwrap();
        assert_eq!(document["error"]["exit_code"], 1);
        assert!(document["error"]["message"].as_str().unwrap().starts_with("job.toml:1:"));
        assert!(document["error"]["remedy"].as_str().unwrap().starts_with("it takes"));
    }

    #[test]
    fn what_was_typed_wrong_is_exit_code_two_whenever_it_is_found() {
        let error = anyhow::Error::from(WrongUsage("--x means nothing; leave it out".to_owned()));
        let document = serde_json::to_value(document(&error)).unwrap();
        assert_eq!(document["error"]["exit_code"], 2);
        assert_eq!(exit_code(&Err(error), false), 2);
    }

    #[test]
    fn a_cause_that_is_quoted_is_not_said_twice() {
        let inner = anyhow::anyhow!("no such file");
        let error = inner.context("failed to open a.toml: no such file");
        assert_eq!(describe(&error, false), "error: failed to open a.toml: no such file\n");
    }

    #[test]
    fn a_limit_of_open_files_has_its_remedy_once() {
        let limit = || std::io::Error::from(rustix::io::Errno::MFILE);
        let text = describe(&anyhow::Error::from(limit()).context("no report"), false);
        assert_eq!(text.matches("ulimit -n").count(), 1, "{text}");
        let path = "p.set".into();
        let typed = meetpoint_datasets::Error::Source { path, source: limit() };
        let text = describe(&anyhow::Error::from(typed).context("sample 3"), false);
        assert_eq!(text.matches("ulimit -n").count(), 1, "{text}");
    }

    #[test]
    fn a_cause_that_says_more_is_indented_below() {
        let failed: anyhow::Result<()> = Err(anyhow::anyhow!("permission denied"));
        let error = failed.context("failed to write report.html").unwrap_err();
        let text = "error: failed to write report.html\n  because: permission denied\n";
        assert_eq!(describe(&error, false), text);
    }
}
