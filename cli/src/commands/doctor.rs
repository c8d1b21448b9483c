//! `meetpoint doctor`: what this machine has and what Meetpoint will use.

use crate::doctor::{self, Probes, System};
use crate::surface::Output;
use meetpoint_diagnose::shown;
use std::path::PathBuf;

/// List the features of this machine, those that Meetpoint will use, and remedies for missing ones.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: meetpoint doctor --path /mnt/nvme")]
pub(crate) struct Arguments {
    /// Folder in which direct reads and writes (O_DIRECT) are tried; no files remain there. If it
    /// does not exist, the nearest folder above it is tried instead, and named.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    path: PathBuf,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let folder = doctor::folder_of(&arguments.path);
    if !arguments.path.is_dir() {
        eprintln!(
            "{} is not a folder; O_DIRECT is tried in {} instead",
            shown(&arguments.path),
            shown(&folder)
        );
    }
    let probes = Probes::take(&folder);
    let findings = doctor::examine(&System::this(), &probes);
    output.result(&findings, || doctor::text(&findings))
}
