//! Prints errors as text and JSON, and determines the exit code: 0 done, 1 failed, 2 wrong usage.
//!
//! If the reader of standard output exits early, as `head` does, this is not a failure: exit code
//! 0.

pub(crate) use super::fault::{FAILED, Fault};

use super::fault::WRONG_USAGE;
use super::output::{self, Closed};
use meetpoint_diagnose::{Diagnose, Remedy, Step, Surface};
use meetpoint_storage::open_files_limit_behind;
use serde::Serialize;
use std::error::Error as StdError;

/// Exit code of a successful command.
const DONE: u8 = 0;

/// Stopped by a signal.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

impl Diagnose for Interrupted {
    fn cause(&self) -> &'static str {
        "interrupted"
    }

    /// None: the user asked for it.
    fn remedy(&self) -> Option<Remedy> {
        None
    }
}

/// A failure that was already reported: exit code 1 without another message.
#[derive(Debug, thiserror::Error)]
#[error("found wrong")]
pub(crate) struct Reported;

/// The document on standard output with `--json`, instead of a result.
#[derive(Debug, Serialize)]
struct Document {
    error: Failure,
}

#[derive(Debug, Serialize)]
struct Failure {
    /// Stable identifier of the error; `failed` if it has none.
    cause: &'static str,
    message: String,
    /// Causes that the message does not contain.
    because: Vec<String>,
    /// The steps of the remedy as one instruction; `None` if no remedy is known.
    remedy: Option<String>,
    /// The steps as values, the best first.
    steps: Vec<Step>,
    exit_code: u8,
}

/// Prints the error, and returns the exit code.
pub(crate) fn exit_code(outcome: &anyhow::Result<()>, json: bool) -> u8 {
    let Err(error) = outcome else { return DONE };
    if error.downcast_ref::<Closed>().is_some() {
        return DONE;
    }
    if error.downcast_ref::<Reported>().is_none() {
        if json {
            output::failure_document(&document(error));
        }
        match error.downcast_ref() {
            Some(stopped @ meetpoint_datasets::Error::Stopped { .. }) => {
                output::error("", &format!("{}\n", stopped.in_full(Surface::CommandLine)));
            }
            _ if error.is::<Interrupted>() => {
                output::error("", &format!("{}\n", error.root_cause()));
            }
            _ => output::error(title(output::colour_on_stderr()), &describe(error)),
        }
    }
    code_of(error)
}

/// The exit code of a command that ended with this error.
fn code_of(error: &anyhow::Error) -> u8 {
    error.downcast_ref::<Fault>().map_or(FAILED, |fault| fault.exit_code())
}

/// Prints an error of usage, or the requested help, and returns the exit code.
pub(crate) fn usage(error: &clap::Error, json: bool) -> u8 {
    if !error.use_stderr() {
        // If the stream is closed, the help is lost.
        let _ = error.print();
        return DONE;
    }
    let text = error.render();
    output::usage_error(&text.ansi().to_string(), &text.to_string());
    if json {
        let text = text.to_string();
        let said: Vec<&str> =
            text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
        let said = said.join(" ");
        let message = said.trim_start_matches("error: ");
        output::failure_document(&Document {
            error: Failure::of(
                "usage",
                message.to_owned(),
                Vec::new(),
                Some("list commands and options with `meetpoint --help`".into()),
                WRONG_USAGE,
            ),
        });
    }
    WRONG_USAGE
}

impl Failure {
    fn of(
        cause: &'static str,
        message: String,
        because: Vec<String>,
        remedy: Option<Remedy>,
        exit_code: u8,
    ) -> Self {
        let steps = remedy.as_ref().map_or_else(Vec::new, |remedy| remedy.steps().to_vec());
        let remedy = remedy.map(|remedy| remedy.spelled(Surface::CommandLine));
        Self { cause, message, because, remedy, steps, exit_code }
    }
}

fn document(error: &anyhow::Error) -> Document {
    let Description { cause, message, because, remedy } = explain(error);
    Document { error: Failure::of(cause, message, because, remedy, code_of(error)) }
}

/// The [`Diagnose`] implementation of an error; `None` for errors of other libraries.
fn diagnosed<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e dyn Diagnose> {
    macro_rules! first_of {
        ($($kind:ty),* $(,)?) => {
            None $(.or_else(|| error.downcast_ref::<$kind>().map(|it| it as &'e dyn Diagnose)))*
        };
    }
    first_of!(
        Fault,
        Interrupted,
        meetpoint_host::Error,
        meetpoint_host::job::JobError,
        meetpoint_host::collective::CollectiveError,
        meetpoint_datasets::Error,
        meetpoint_datasets::PreviewError,
        meetpoint_datasets::extents::MapError,
        meetpoint_prepare::Error,
        meetpoint_prepare::RecipeFileError,
        meetpoint_kernels::Error,
        meetpoint_device::Error,
        meetpoint_device::ProfileError,
        meetpoint_link::AddressFileError,
        meetpoint_link::SettingError,
        meetpoint_storage::Error,
        meetpoint_format::recipe::RecipeError,
        meetpoint_format::recipe::ChangeError,
        meetpoint_format::recipe::UnknownRecipe,
        meetpoint_format::sampler::SamplerError,
        meetpoint_format::dataset::DatasetError,
        meetpoint_planner::Error,
        meetpoint_planner::decide::DecideError,
        meetpoint_planner::plan::PlanError,
        meetpoint_planner::results::CsvError,
        meetpoint_lab::Error,
        meetpoint_sim::Error,
        meetpoint_sim::power::PowerError,
        meetpoint_report::write::WriteError,
    )
}

/// An error as the command line reports it.
#[derive(Debug)]
pub(crate) struct Description {
    /// Stable identifier of the error.
    pub(crate) cause: &'static str,
    /// What failed.
    pub(crate) message: String,
    /// Causes that the message does not contain.
    pub(crate) because: Vec<String>,
    /// The remedy.
    pub(crate) remedy: Option<Remedy>,
}

/// Describes an error. A [`Diagnose`] error quotes its own causes, so the chain ends with it.
pub(crate) fn explain(error: &anyhow::Error) -> Description {
    let fault = error.downcast_ref::<Fault>();
    let mut known: Option<&dyn Diagnose> = fault.map(|fault| fault as &dyn Diagnose);
    let whole: &(dyn std::error::Error + 'static) = error.as_ref();
    let limit = open_files_limit_behind(whole);
    let mut lines = Vec::new();
    for cause in error.chain() {
        lines.push(cause.to_string());
        if let Some(found) = diagnosed(cause) {
            known = known.or(Some(found));
            break;
        }
    }
    let message = lines.remove(0);
    let remedy = limit.map(Remedy::from).or_else(|| known.and_then(Diagnose::remedy));
    Description { cause: known.map_or("failed", Diagnose::cause), message, because: lines, remedy }
}

/// The start of an error message.
fn title(colour: bool) -> &'static str {
    if colour { "\u{1b}[1;31merror:\u{1b}[0m " } else { "error: " }
}

/// The message, each further cause on a separate indented line, and the remedy.
pub(crate) fn describe(error: &anyhow::Error) -> String {
    let Description { message, because, remedy, .. } = explain(error);
    let mut text = format!("{}\n", output::continued(&message));
    for cause in because {
        text.push_str(&format!("  because: {}\n", cause.replace('\n', "\n    ")));
    }
    if let Some(remedy) = remedy {
        let remedy = remedy.spelled(Surface::CommandLine);
        text.push_str(&format!("  remedy: {}\n", output::continued(&remedy)));
    }
    text
}

/// Prints a panic as a short message instead of a backtrace.
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
            "a defect of Meetpoint\n  because: {message} (meetpoint {version}{place})\n  \
             remedy: report it with the command that you typed\n"
        );
        output::error(title(false), &text);
    }));
}

#[cfg(test)]
mod tests {
    use super::{Fault, describe, document, exit_code};
    use anyhow::Context;
    use meetpoint_host::JobFile;
    use std::path::Path;

    fn as_json(error: &anyhow::Error) -> serde_json::Value {
        serde_json::to_value(document(error)).unwrap()["error"].clone()
    }

    #[test]
    fn a_failure_is_a_document_with_cause_remedy_and_exit_code() {
        let parsed = JobFile::parse("seed = -1", Path::new("job.toml"));
        let error = anyhow::Error::from(meetpoint_host::Error::Job(parsed.unwrap_err()));
        let document = as_json(&error);
        assert_eq!(document["exit_code"], 1);
        assert_eq!(document["cause"], "job");
        assert!(document["message"].as_str().unwrap().starts_with("job.toml:1:"));
        assert!(document["remedy"].as_str().unwrap().starts_with("set `"));
        assert_eq!(document["steps"][0]["action"], "advice");
    }

    #[test]
    fn a_remedy_is_spelled_with_options_and_not_repeated_in_the_message() {
        let endpoint = meetpoint_link::Endpoint::Socket("/run/d.sock".into());
        let problem = "no device is listening there".to_owned();
        let error = meetpoint_host::Error::DeviceUnreachable { endpoint, problem, limit: None };
        let document = as_json(&anyhow::Error::from(error).context("strategy mte failed"));
        assert_eq!(document["cause"], "device_unreachable");
        assert_eq!(document["steps"][0]["command"], "serve_device");
        let remedy = document["remedy"].as_str().unwrap();
        assert!(remedy.contains("meetpoint device serve --socket /run/d.sock"), "{remedy}");
        assert!(!document["because"].to_string().contains("meetpoint device"), "{document}");
    }

    #[test]
    fn wrong_usage_is_exit_code_two_whenever_it_is_found() {
        let error = anyhow::Error::from(Fault::usage("--x means nothing", "leave it out"));
        assert_eq!(as_json(&error)["exit_code"], 2);
        assert_eq!(as_json(&error)["remedy"], "leave it out");
        assert_eq!(exit_code(&Err(error), false), 2);
    }

    #[test]
    fn an_error_of_ours_quotes_its_causes_and_ends_the_chain() {
        let (path, source) = ("p.set".into(), std::io::ErrorKind::NotFound.into());
        let error = meetpoint_prepare::Error::Open { path, source };
        let text = describe(&anyhow::Error::from(error));
        assert!(!text.contains("because:"), "{text}");
        assert!(text.contains("\n  remedy: name the readable folder of a dataset"), "{text}");
    }

    #[test]
    fn a_limit_of_open_files_is_the_remedy() {
        let limit = || std::io::Error::from(rustix::io::Errno::MFILE);
        let text = describe(&anyhow::Error::from(limit()).context("no report"));
        assert_eq!(text.matches("ulimit -n").count(), 1, "{text}");
        let path = "p.set".into();
        let typed = meetpoint_prepare::Error::Open { path, source: limit() };
        let text = describe(&anyhow::Error::from(typed).context("sample 3"));
        assert_eq!(text.matches("ulimit -n").count(), 1, "{text}");
        let program = "meetpoint".into();
        let typed = meetpoint_host::Error::DeviceStart { program, source: limit() };
        let text = describe(&anyhow::Error::from(typed));
        assert_eq!(text.matches("ulimit -n").count(), 1, "{text}");
    }

    #[test]
    fn a_cause_that_says_more_is_indented_below() {
        let failed: anyhow::Result<()> = Err(anyhow::anyhow!("permission denied"));
        let error = failed.context("failed to write report.html").unwrap_err();
        let text = "failed to write report.html\n  because: permission denied\n";
        assert_eq!(describe(&error), text);
    }

    #[test]
    fn a_fault_behind_a_context_retains_its_cause_and_remedy() {
        let failed: anyhow::Result<()> = Err(Fault::new("no_record", "no record", "run").into());
        let error = failed.context("a.json cannot be replayed").unwrap_err();
        assert_eq!(as_json(&error)["cause"], "no_record");
        let text = "a.json cannot be replayed\n  because: no record\n  remedy: run\n";
        assert_eq!(describe(&error), text);
    }
}
