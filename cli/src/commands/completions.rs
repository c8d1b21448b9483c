//! `meetpoint completions`: a script that completes commands and options in a shell.

use super::Arguments as Root;
use crate::surface::Output;
use clap::CommandFactory;
use clap_complete::Shell;

/// Print a shell script that completes commands and options.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: meetpoint completions bash > \
                        ~/.local/share/bash-completion/completions/meetpoint")]
pub(crate) struct Arguments {
    /// The shell.
    shell: Shell,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Root::command(), "meetpoint", &mut script);
    let script = String::from_utf8_lossy(&script);
    output.result(&serde_json::json!({ "script": script }), || script.to_string())
}
