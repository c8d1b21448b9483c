//! The command line of the package: the same program as the binary `meetpoint`.

use meetpoint_cli::OwnCommand;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs a command line; `again` starts this program again. Returns the exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>, again: Vec<OsString>) -> u8 {
    let mut words = again.into_iter();
    let again = words
        .next()
        .map(|program| OwnCommand { program: PathBuf::from(program), arguments: words.collect() });
    py.detach(|| meetpoint_cli::run(arguments, again))
}

/// The version of the package.
#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
