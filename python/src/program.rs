//! The command line of the package: the same program as the binary `meetpoint`.

use crate::guarded;
use meetpoint_cli::OwnCommand;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs a command line; `again` starts this program again. Returns the exit code.
#[guarded]
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>, again: Vec<OsString>) -> u8 {
    let mut words = again.into_iter();
    let again = words
        .next()
        .map(|program| OwnCommand { program: PathBuf::from(program), arguments: words.collect() });
    py.detach(|| meetpoint_cli::run(arguments, again))
}

/// The options of every command as JSON.
#[guarded]
#[pyfunction]
pub(crate) fn declaration() -> String {
    meetpoint_cli::declaration()
}

/// The version of the package.
#[guarded]
#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
