//! Commands of the program that remedies name, and the functions that do the same in Python.

use crate::{Surface, shown};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A command of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Packs a source into a dataset.
    Pack,
    /// Packs a source, including the content that its links lead to.
    PackFollowingLinks,
    /// Packs a source into smaller parts.
    PackSmallerParts,
    /// Indexes a source whose content stays in place.
    Index,
    /// Recreates the index of keys of a dataset.
    IndexKeys,
    /// Checks every byte of a dataset.
    Verify,
    /// Checks that every sample decodes.
    VerifyDeep,
    /// Rebuilds a dataset from its intact samples.
    Repair,
    /// Copies samples of a dataset to another.
    Select,
    /// Merges several datasets into one.
    Merge,
    /// Writes a source in another format.
    Convert,
    /// Summarises a dataset.
    Inspect,
    /// Lists the samples of a dataset.
    Cat,
    /// Starts a device.
    ServeDevice {
        /// The socket path; `None` for a path that the user chooses.
        socket: Option<PathBuf>,
    },
    /// Starts a device for hosts of a network.
    ListenDevice {
        /// The address that it listens on, as `tcp://HOST:PORT`.
        address: String,
    },
    /// Asks a device for its state.
    ProbeDevice {
        /// The socket path.
        socket: PathBuf,
    },
    /// Asks a device for its state over a network.
    ProbeRemote {
        /// The address that it listens on, as `tcp://HOST:PORT`.
        address: String,
    },
    /// Makes certificates for a device and a host.
    MakeKeys,
    /// Issues a device's certificate again.
    IssueServer {
        /// A name that hosts connect to; `None` for names that the user chooses.
        host: Option<String>,
    },
    /// Issues a host's certificate again.
    IssueClient,
    /// Predicts a run in virtual time.
    Simulate,
    /// Prints a recipe.
    ShowRecipe {
        /// The name of a shipped recipe.
        name: String,
    },
    /// Stores the results of the first operations of a recipe.
    Prepare,
    /// Measures forms of a dataset and writes the results to a file.
    ProfileResults,
    /// Divides a command into shards.
    PlanShards,
    /// Runs a shard of a plan.
    RunShard {
        /// The folder of the plan; `None` if the user knows it.
        folder: Option<PathBuf>,
        /// Its index.
        shard: u64,
    },
    /// Joins the results of all shards of a plan.
    CommitShards,
    /// Maps a dataset to extents of its block device.
    MapExtents,
    /// Reports the features of this machine.
    Doctor,
}

impl Command {
    /// The instruction, such as `find the damage with "meetpoint verify"`.
    pub(crate) fn spelled(&self, surface: Surface) -> String {
        let purpose = match self {
            Self::Pack => "make a dataset",
            Self::PackFollowingLinks => "copy its content",
            Self::PackSmallerParts => "pack the dataset into smaller parts",
            Self::Index => "index the source again",
            Self::IndexKeys => "recreate the index of keys",
            Self::Verify => "find the damage",
            Self::VerifyDeep => "list the damaged samples",
            Self::Repair => "rebuild the dataset",
            Self::Select => "select samples",
            Self::Merge => "merge the datasets into one",
            Self::Convert => "convert the source",
            Self::Inspect => "see its labels",
            Self::Cat => "list its keys and labels",
            Self::ServeDevice { .. } | Self::ListenDevice { .. } => "start a device",
            Self::ProbeDevice { .. } | Self::ProbeRemote { .. } => "query the device",
            Self::MakeKeys => "make certificates",
            Self::IssueServer { host: Some(_) } => "issue it for this name",
            Self::IssueServer { host: None } | Self::IssueClient => "issue it",
            Self::Simulate => "simulate the device",
            Self::ShowRecipe { .. } => "see the shipped recipe",
            Self::Prepare => "prepare the dataset again",
            Self::ProfileResults => "write a file of results",
            Self::PlanShards => "plan again",
            Self::RunShard { .. } => "run the shard",
            Self::CommitShards => "finish it",
            Self::MapExtents => "map the dataset again",
            Self::Doctor => "see what this machine permits",
        };
        format!("{purpose} with `{}`", self.call(surface))
    }

    fn call(&self, surface: Surface) -> String {
        let (program, function) = match self {
            Self::Pack => ("pack".to_owned(), Some("pack()")),
            Self::PackFollowingLinks => {
                ("pack --follow-links".to_owned(), Some("pack(follow_links=True)"))
            }
            Self::PackSmallerParts => ("pack --part-size".to_owned(), Some("pack(part_size=…)")),
            Self::Index => ("index".to_owned(), Some("index()")),
            Self::IndexKeys => ("index --keys".to_owned(), Some("index(keys=True)")),
            Self::Verify => ("verify".to_owned(), Some("verify()")),
            Self::VerifyDeep => ("verify --deep".to_owned(), Some("verify(deep=True)")),
            Self::Repair => ("dataset repair".to_owned(), Some("dataset.repair()")),
            Self::Select => ("dataset select".to_owned(), Some("dataset.select()")),
            Self::Merge => ("dataset merge".to_owned(), Some("dataset.merge()")),
            Self::Convert => ("convert".to_owned(), Some("convert()")),
            Self::Inspect => ("inspect".to_owned(), None),
            Self::Cat => ("dataset cat".to_owned(), Some("dataset.cat()")),
            Self::ServeDevice { socket } => {
                let socket = socket.as_ref().map(|path| format!(" --socket {}", shown(path)));
                let socket = socket.unwrap_or_else(|| " --socket SOCKET".to_owned());
                (format!("device serve{socket} --root FOLDER"), None)
            }
            Self::ProbeDevice { socket } => {
                (format!("device probe --socket {}", shown(socket)), None)
            }
            Self::ListenDevice { address } => {
                (format!("device serve --listen {address} --root NAME=FOLDER"), None)
            }
            Self::ProbeRemote { address } => (format!("device probe --device {address}"), None),
            Self::MakeKeys => ("device keys FOLDER --server HOST --client NAME".to_owned(), None),
            Self::IssueServer { host } => {
                let host = host.as_deref().unwrap_or("HOST");
                (format!("device keys FOLDER --server {host} --force"), None)
            }
            Self::IssueClient => ("device keys FOLDER --client NAME --force".to_owned(), None),
            Self::Simulate => ("simulate".to_owned(), None),
            Self::ShowRecipe { name } => (format!("recipe show {name}"), None),
            Self::Prepare => ("prepare".to_owned(), Some("prepare()")),
            Self::ProfileResults => ("profile --csv FILE".to_owned(), None),
            Self::PlanShards => ("shards plan".to_owned(), Some("shards.plan()")),
            Self::RunShard { folder, shard } => {
                let folder = folder.as_ref().map(|path| shown(path).to_string());
                let folder = folder.unwrap_or_else(|| "FOLDER".to_owned());
                let call = format!("shards run {folder} --shard {shard}");
                (call, Some("shards.run()"))
            }
            Self::CommitShards => ("shards commit".to_owned(), Some("shards.commit()")),
            Self::MapExtents => ("dataset extents".to_owned(), None),
            Self::Doctor => ("doctor".to_owned(), None),
        };
        match (surface, function) {
            (Surface::CommandLine, _) => format!("meetpoint {program}"),
            (Surface::Python, Some(function)) => format!("meetpoint.{function}"),
            (Surface::Python, None) => format!("python -m meetpoint {program}"),
        }
    }
}
