//! One program: `meetpoint`, as a library, so that tests and benches can build it too.
//!
//! It is thin: it reads arguments and job files, calls the other crates, and tells the result. In
//! reading order: `commands` (one file per command), `surface` (how it meets its user),
//! `runner` (a job under several strategies), `report`, `doctor`, `power`, `generate`, `npy`,
//! `row_values`.

mod commands;
mod doctor;
mod generate;
mod npy;
mod plots;
mod power;
mod report;
mod row_values;
mod runner;
mod surface;

use clap::Parser;
use std::process::ExitCode;

/// What the binary does: reads the command line, runs the command, tells how it ended.
pub fn main() -> ExitCode {
    surface::failure::install_panic_hook();
    surface::limits::raise_open_files();
    let arguments = match commands::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let json = std::env::args_os().any(|argument| argument == "--json");
            return surface::failure::usage(&error, json);
        }
    };
    let json = arguments.is_json();
    // The hook has said what happened; nobody continues with what the panic left behind.
    let outcome = std::panic::catch_unwind(|| commands::dispatch(arguments));
    outcome.map_or(ExitCode::FAILURE, |outcome| surface::failure::exit_code(&outcome, json))
}
