//! The program `meetpoint` as a library, so that tests and benches can call it too.
//!
//! It is thin: it reads arguments and job files, calls the other crates, and prints the result. In
//! reading order: `commands` (one file per command), `surface` (output, errors and signals),
//! `runner` (a job under several strategies), `torture` (random jobs with faults), `report`,
//! `doctor`, `emulation` (what this machine can emulate), `power`, `generate`.

mod commands;
mod doctor;
mod emulation;
mod generate;
mod power;
mod runner;
mod surface;
mod torture;

use clap::Parser;
pub use runner::OwnCommand;
use std::ffi::OsString;
use std::process::ExitCode;

/// Entry point of the binary: reads the command line, runs the command, returns its exit code.
pub fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os().collect(), None))
}

/// The options of every command as a JSON document, for tests that compare other interfaces with
/// them.
pub fn declaration() -> String {
    let declared = commands::declaration::declaration();
    serde_json::to_string(&declared).expect("texts and booleans are JSON")
}

/// Runs the command line `arguments`, the program's name first; returns the exit code.
///
/// `again` is the command line that starts this program again, for its own devices; `None` uses the
/// executable of the running process. The first call sets it for the whole process.
pub fn run(arguments: Vec<OsString>, again: Option<OwnCommand>) -> u8 {
    surface::failure::install_panic_hook();
    surface::limits::raise_open_files();
    surface::limits::survive_file_size();
    if let Some(again) = again {
        again.keep();
    }
    let json = arguments.iter().any(|argument| argument == "--json");
    let arguments = match commands::Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return surface::failure::usage(&error, json),
    };
    let json = arguments.is_json();
    // The hook has printed the panic, and no state that it may have left inconsistent is used.
    let outcome = std::panic::catch_unwind(|| commands::dispatch(arguments));
    outcome.map_or(surface::failure::FAILED, |outcome| surface::failure::exit_code(&outcome, json))
}
