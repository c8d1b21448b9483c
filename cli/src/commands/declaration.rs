//! The options of every command as data, so that tests can compare other interfaces with them.

use clap::{Arg, ArgAction, CommandFactory};
use serde::Serialize;
use std::collections::BTreeMap;

/// The arguments of each command, by its words; global arguments are left out.
pub(crate) type Declaration = BTreeMap<String, Vec<Argument>>;

/// An argument of a command.
#[derive(Debug, Serialize)]
pub(crate) struct Argument {
    /// The long name of an option, or the name of a positional argument.
    name: String,
    is_positional: bool,
    is_required: bool,
    /// Whether it takes no value.
    is_flag: bool,
    /// Whether it takes several values.
    is_list: bool,
    /// The default, as typed on the command line.
    default: Option<String>,
    /// The values that it accepts; empty if it accepts any.
    values: Vec<String>,
}

/// Every command that runs something.
pub(crate) fn declaration() -> Declaration {
    let mut found = Declaration::new();
    let mut root = super::Arguments::command();
    root.build();
    add(&root, "", &mut found);
    found
}

fn add(command: &clap::Command, words: &str, found: &mut Declaration) {
    for child in command.get_subcommands().filter(|child| child.get_name() != "help") {
        let words = format!("{words} {}", child.get_name()).trim_start().to_owned();
        if child.has_subcommands() {
            add(child, &words, found);
        } else {
            let is_own = |arg: &&Arg| !arg.is_global_set() && !is_help(arg);
            found.insert(words, child.get_arguments().filter(is_own).map(argument).collect());
        }
    }
}

fn is_help(arg: &Arg) -> bool {
    use ArgAction::{Help, HelpLong, HelpShort, Version};
    matches!(arg.get_action(), Help | HelpShort | HelpLong | Version)
}

fn argument(arg: &Arg) -> Argument {
    let takes_values = arg.get_action().takes_values();
    let values = arg.get_possible_values().into_iter().filter(|_| takes_values);
    Argument {
        name: arg.get_long().unwrap_or_else(|| arg.get_id().as_str()).to_owned(),
        is_positional: arg.is_positional(),
        is_required: arg.is_required_set(),
        is_flag: !takes_values,
        is_list: matches!(arg.get_action(), ArgAction::Append)
            || arg.get_value_delimiter().is_some(),
        default: match takes_values {
            true => arg.get_default_values().first().map(|it| it.to_string_lossy().into_owned()),
            false => None,
        },
        values: values.map(|value| value.get_name().to_owned()).collect(),
    }
}
