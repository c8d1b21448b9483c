//! Errors of plans, shards and commits.

use crate::message::Message;
use crate::sink_kind::SinkKind;
use meetpoint_diagnose::{Change, Command, Remedy, Setting, shown};
use std::path::{Path, PathBuf};

/// Maximum number of shards that a message names.
const NAMED_MAX: usize = 10;

/// Errors of plans, shards and commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShardError {
    /// A folder without a plan, or with one that cannot be read.
    NoPlan {
        /// The folder.
        folder: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A plan of another version of the program, which may write other bytes.
    Tool {
        /// The folder.
        folder: PathBuf,
        /// Version that made the plan.
        before: String,
        /// This version.
        now: String,
    },
    /// The folder for a plan contains something else, or a damaged plan.
    NotAPlan {
        /// The folder.
        folder: PathBuf,
    },
    /// A file in the folder of a plan that does not belong to it.
    Foreign {
        /// The file.
        file: PathBuf,
    },
    /// A path that a plan cannot store.
    NotUtf8 {
        /// The path.
        path: PathBuf,
    },
    /// A number of shards that is out of range.
    Shards {
        /// The number.
        shards: u64,
        /// Maximum number of shards.
        most: u64,
    },
    /// A part without samples or bytes.
    EmptyRule {
        /// The option.
        setting: Setting,
    },
    /// A shard that does not exist.
    Index {
        /// The given index.
        shard: u64,
        /// Number of shards.
        shards: u64,
    },
    /// The folder of the plan exists.
    PlanExists {
        /// The folder.
        folder: PathBuf,
        /// Number of its shards; 0 for a command that runs in one process.
        shards: u64,
    },
    /// Another process runs the command of this folder.
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// A source that does not exist where the plan expects it.
    SourceMissing {
        /// The source, or the table or root of its options.
        source: PathBuf,
    },
    /// A source that changed since it was planned.
    SourceChanged {
        /// The source.
        source: PathBuf,
        /// A file that is new or changed; `None` if files were only removed.
        file: Option<PathBuf>,
        /// Number of files when it was planned, and now.
        files: (u64, u64),
    },
    /// A part of the listing that changed since it was planned.
    PartChanged {
        /// The source.
        source: PathBuf,
        /// Index of the part.
        part: u64,
    },
    /// Some parts are not finished.
    Missing {
        /// The folder of the plan.
        folder: PathBuf,
        /// Each shard with the number of its parts that are missing.
        shards: Vec<(u64, u64)>,
    },
    /// A finished part of another plan.
    OtherPlan {
        /// Its record.
        file: PathBuf,
        /// The shard that produces this part in this plan.
        shard: u64,
    },
    /// A finished part that differs from its record.
    Damaged {
        /// The file.
        file: PathBuf,
        /// The problem.
        problem: String,
        /// The shard that produces it.
        shard: u64,
    },
    /// The folder of the plan was removed while a shard or a commit ran: another process
    /// committed it.
    Gone {
        /// The folder.
        folder: PathBuf,
    },
    /// A sink that writes a single file, or one file per key.
    SinkWithoutShards {
        /// The sink.
        sink: SinkKind,
    },
}

impl ShardError {
    /// Stable name of the error.
    pub(crate) fn cause(&self) -> &'static str {
        match self {
            Self::NoPlan { .. } => "no_shard_plan",
            Self::Tool { .. } => "shard_plan_of_other_version",
            Self::NotAPlan { .. } => "not_a_shard_plan",
            Self::Foreign { .. } => "foreign_file",
            Self::NotUtf8 { .. } => "path_not_utf8",
            Self::Shards { .. } => "shards_out_of_range",
            Self::EmptyRule { .. } => "empty_parts",
            Self::Index { .. } => "no_such_shard",
            Self::PlanExists { .. } => "shard_plan_exists",
            Self::InUse { .. } => "in_use",
            Self::SourceMissing { .. } => "source_missing",
            Self::SourceChanged { .. } | Self::PartChanged { .. } => "source_changed",
            Self::Missing { .. } => "shards_missing",
            Self::OtherPlan { .. } => "part_of_other_plan",
            Self::Damaged { .. } => "part_damaged",
            Self::Gone { .. } => "shard_plan_gone",
            Self::SinkWithoutShards { .. } => "sink_without_shards",
        }
    }

    /// The message.
    pub(crate) fn message(&self) -> Message {
        match self {
            Self::NoPlan { folder, problem } => format!("{}: {problem}", shown(folder)),
            Self::Tool { folder, before, now } => {
                format!("{} was planned by {before}, this is {now}", shown(folder))
            }
            Self::NotAPlan { folder } => {
                format!("{} exists, but is not a complete plan", shown(folder))
            }
            Self::Foreign { file } => format!("{} does not belong to the plan", shown(file)),
            Self::NotUtf8 { path } => {
                format!("{} cannot be planned: its name is not UTF-8", shown(path))
            }
            Self::Shards { shards, most } => {
                format!("a plan has 1 to {most} shards, not {shards}")
            }
            Self::EmptyRule { setting } => {
                return Message::default().name(*setting) + " is 0, so that parts would be empty";
            }
            Self::Index { shard, shards } => {
                format!("shard index {shard} out of range 0..{shards}")
            }
            Self::PlanExists { folder, shards: 0 } => {
                format!("{} was left by a command that can be resumed", shown(folder))
            }
            Self::PlanExists { folder, shards } => {
                format!("{} holds a plan of {shards} shards", shown(folder))
            }
            Self::InUse { folder } => {
                format!("{} is in use by another process", shown(folder))
            }
            Self::SourceMissing { source } => {
                format!("{}, which the plan reads, does not exist on this host", shown(source))
            }
            Self::SourceChanged { source, file: Some(file), .. } => format!(
                "{} changed since it was planned: {} is new or was changed",
                shown(source),
                shown(file)
            ),
            Self::SourceChanged { source, file: None, files: (before, now) } => format!(
                "{} changed since it was planned: {before} files then, {now} now",
                shown(source)
            ),
            Self::PartChanged { source, part } => format!(
                "{} changed since it was planned: the samples of part {part} differ",
                shown(source)
            ),
            Self::Missing { folder, shards } => {
                let named: Vec<String> = shards
                    .iter()
                    .take(NAMED_MAX)
                    .map(|(shard, parts)| {
                        let noun = if *parts == 1 { "part" } else { "parts" };
                        format!("\n  shard {shard}: {parts} {noun}")
                    })
                    .collect();
                let more = shards.len().saturating_sub(NAMED_MAX);
                let more =
                    if more > 0 { format!("\n  and {more} more shards") } else { String::new() };
                format!("{} is not finished; missing:{}{more}", shown(folder), named.concat())
            }
            Self::OtherPlan { file, .. } => {
                format!("{} is of another plan", shown(file))
            }
            Self::Damaged { file, problem, .. } => format!("{}: {problem}", shown(file)),
            Self::Gone { folder } => {
                format!("{} was removed, probably by a commit in another process", shown(folder))
            }
            Self::SinkWithoutShards { sink } => {
                return Message::default().set_to(Setting::To, sink.name())
                    + " cannot be divided into parts, because it cannot write a file for each part";
            }
        }
        .into()
    }

    /// The remedy.
    pub(crate) fn remedy(&self) -> Option<Remedy> {
        let run = |folder: Option<&Path>, shard: u64| {
            Remedy::run(Command::RunShard { folder: folder.map(Path::to_path_buf), shard })
        };
        Some(match self {
            Self::NoPlan { .. } => Remedy::run(Command::PlanShards),
            Self::Tool { .. } => {
                Remedy::advice("use the same version on all hosts").or_run(Command::PlanShards)
            }
            Self::NotAPlan { .. } => "remove it, or choose another destination".into(),
            Self::Foreign { .. } => "move it to another folder".into(),
            Self::NotUtf8 { .. } => "rename it".into(),
            Self::Shards { most, .. } => {
                format!("set the number of shards to at most {most}, and at least 1").into()
            }
            Self::EmptyRule { setting } => Remedy::set(*setting, Change::AtLeast("1".to_owned())),
            Self::Index { shards, .. } => {
                format!("choose a shard from 0 to {}", shards.saturating_sub(1)).into()
            }
            Self::PlanExists { shards: 0, .. } => {
                Remedy::by("resume it", Setting::Resume, Change::On).or("remove the folder")
            }
            Self::PlanExists { .. } => {
                Remedy::run(Command::CommitShards).or("remove the folder to start over")
            }
            Self::InUse { .. } => Remedy::advice("wait for it").or("stop it"),
            Self::SourceMissing { .. } => {
                Remedy::advice("mount or restore it under the same path on every host")
                    .or("remove the folder of the plan, and plan again")
            }
            Self::SourceChanged { .. } | Self::PartChanged { .. } => {
                Remedy::advice("restore the source")
                    .or("remove the folder of the plan, and plan again")
            }
            Self::Missing { folder, shards } => {
                run(Some(folder), shards.first().map_or(0, |(shard, _)| *shard))
            }
            // The files are in the folder of the plan.
            Self::OtherPlan { file, shard } | Self::Damaged { file, shard, .. } => {
                run(file.parent(), *shard)
            }
            Self::Gone { .. } => "check the destination, which is complete if it exists".into(),
            Self::SinkWithoutShards { .. } => {
                Remedy::by("choose a format with several files", Setting::To, Change::Other)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ShardError;
    use meetpoint_diagnose::Surface;

    #[test]
    fn a_missing_shard_is_run_with_the_folder_of_its_plan() {
        let missing = ShardError::Missing { folder: "a.set.shards".into(), shards: vec![(3, 1)] };
        let remedy = missing.remedy().map(|remedy| remedy.spelled(Surface::CommandLine));
        let expected = "run the shard with `meetpoint shards run a.set.shards --shard 3`";
        assert_eq!(remedy.as_deref(), Some(expected));
    }
}
