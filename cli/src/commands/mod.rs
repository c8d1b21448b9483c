//! The commands, one file each: arguments, help and the call of the library.

mod agent;
mod bench;
mod calibrate;
mod completions;
mod convert;
mod dataset;
pub(crate) mod declaration;
mod demo;
mod device;
mod doctor;
mod hosts_study;
mod index;
mod inspect;
mod keys;
pub(crate) mod pack;
mod part_rule;
mod plan;
mod prepare;
mod profile;
mod recipe;
mod reproduce;
mod run;
mod serving;
mod shards;
mod show;
mod simulate;
mod source_arguments;
mod torture;
mod unpack;
mod validate;
mod verify;

use crate::surface::Output;
use clap::{Parser, Subcommand};

const ABOUT: &str = "A deep-learning data loader that prepares each epoch from both ends";

const LONG_ABOUT: &str = "A deep-learning data loader that prepares each epoch from both ends.

The host prepares batches from the front. A computational storage device (a drive with its own
processor, or the bundled emulation of one) prepares them from the back, until the two meet.

Start with `meetpoint demo`: it generates pictures, packs them, and compares the strategies.";

const AFTER_HELP: &str = "Exit codes: 0 success, 1 failure, 2 wrong usage. It is not a failure if a
reader closes standard output early, as head does. With --json a failure is a document too:
{\"error\": {\"cause\", \"message\", \"because\", \"remedy\", \"steps\", \"exit_code\"}}.
NO_COLOR=1 turns colours off.";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "meetpoint", version, about = ABOUT, long_about = LONG_ABOUT)]
#[command(after_help = AFTER_HELP, propagate_version = true, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Print one JSON document on standard output instead of text.
    #[arg(long, global = true)]
    json: bool,
}

impl Arguments {
    /// Whether standard output gets one JSON document.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    Pack(pack::Arguments),
    Index(index::Arguments),
    Unpack(unpack::Arguments),
    Convert(convert::Arguments),
    Inspect(inspect::Arguments),
    Verify(verify::Arguments),
    Shards(Box<shards::Arguments>),
    Dataset(dataset::Arguments),
    Show(show::Arguments),
    Recipe(recipe::Arguments),
    Run(Box<run::Arguments>),
    Profile(profile::Arguments),
    Plan(plan::Arguments),
    Prepare(prepare::Arguments),
    Demo(demo::Arguments),
    Device(device::Arguments),
    Agent(Box<agent::Arguments>),
    Simulate(simulate::Arguments),
    Validate(validate::Arguments),
    Reproduce(reproduce::Arguments),
    Torture(torture::Arguments),
    /// Consume a job's batches, and resume from its ledger.
    #[command(hide = true)]
    Consume(torture::ConsumeArguments),
    Doctor(doctor::Arguments),
    Completions(completions::Arguments),
}

/// Runs the command.
pub(crate) fn dispatch(arguments: Arguments) -> anyhow::Result<()> {
    let output = Output::new(arguments.json);
    match arguments.command {
        Command::Pack(arguments) => pack::run(&arguments, output),
        Command::Index(arguments) => index::run(&arguments, output),
        Command::Unpack(arguments) => unpack::run(&arguments, output),
        Command::Convert(arguments) => convert::run(&arguments, output),
        Command::Inspect(arguments) => inspect::run(&arguments, output),
        Command::Verify(arguments) => verify::run(&arguments, output),
        Command::Shards(arguments) => shards::run(&arguments, output),
        Command::Dataset(arguments) => dataset::run(&arguments, output),
        Command::Show(arguments) => show::run(&arguments, output),
        Command::Recipe(arguments) => recipe::run(&arguments, output),
        Command::Run(arguments) => run::run(&arguments, output),
        Command::Profile(arguments) => profile::run(&arguments, output),
        Command::Plan(arguments) => plan::run(&arguments, output),
        Command::Prepare(arguments) => prepare::run(&arguments, output),
        Command::Demo(arguments) => demo::run(&arguments, output),
        Command::Device(arguments) => device::run(arguments, output),
        Command::Agent(arguments) => agent::run(*arguments, output),
        Command::Validate(arguments) => validate::run(&arguments, output),
        Command::Reproduce(arguments) => reproduce::run(&arguments, output),
        Command::Simulate(arguments) => simulate::run(&arguments, output),
        Command::Torture(arguments) => torture::run(&arguments, output),
        Command::Consume(arguments) => torture::consume(&arguments, output),
        Command::Doctor(arguments) => doctor::run(&arguments, output),
        Command::Completions(arguments) => completions::run(&arguments, output),
    }
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory;

    #[test]
    fn the_tree_of_commands_is_consistent() {
        Arguments::command().debug_assert();
    }
}
