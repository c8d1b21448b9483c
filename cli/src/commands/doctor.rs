//! `meetpoint doctor`: what this machine has and what Meetpoint will use.

use crate::doctor::{self, Probes, System};
use crate::surface::Output;
use std::path::PathBuf;

/// List the features of this machine, those that Meetpoint will use, and remedies for missing ones.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: meetpoint doctor --path /mnt/nvme")]
pub(crate) struct Arguments {
    /// Folder in which direct reads and writes (O_DIRECT) are tried; no files remain there.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    path: PathBuf,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let probes = Probes::take(&doctor::folder_of(&arguments.path));
    let findings = doctor::examine(&System::this(), &probes);
    output.result(&findings, || doctor::text(&findings))
}
