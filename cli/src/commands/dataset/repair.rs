//! `meetpoint dataset repair`: saves the undamaged samples of a dataset.

use super::{with_bar, written};
use crate::surface::{Output, Stop, units};
use meetpoint_datasets::operations::{self, LabelsFrom, ManifestState, RepairSummary, RepairTo};
use std::path::PathBuf;

/// Save every undamaged sample of a dataset that is damaged or has lost its dataset.json.
///
/// Writes a dataset with the samples that checksums prove unchanged, and lists all others. The
/// damaged dataset is only read. Without dataset.json, the parts are those in the folder, and
/// labels are named after the folders in the keys, or by numbers.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint dataset repair broken.set saved.set
  meetpoint dataset repair broken.set --in-place")]
#[command(group = clap::ArgGroup::new("where").required(true).args(["destination", "in_place"]))]
pub(super) struct Arguments {
    /// Folder of the dataset.
    dataset: PathBuf,
    /// Folder of the dataset to create.
    destination: Option<PathBuf>,
    /// Replace the damaged dataset, after the repaired one is complete.
    #[arg(long)]
    in_place: bool,
    /// Replace an existing dataset at the destination.
    #[arg(long)]
    force: bool,
    /// Size after which a new part begins.
    #[arg(long, default_value = "256MiB", value_name = "SIZE", value_parser = units::parse_bytes)]
    part_size: u64,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let options = operations::CopyOptions {
        force: arguments.force,
        part_bytes_target: arguments.part_size,
        stop: stop.flag(),
        ..operations::CopyOptions::default()
    };
    let to = match &arguments.destination {
        Some(path) => RepairTo::Dataset(path.clone()),
        None => RepairTo::InPlace,
    };
    let summary = with_bar("repairing", |progress| {
        operations::repair(&arguments.dataset, &to, &options, progress)
    })?;
    output.result(&summary, || text(&summary))
}

fn text(summary: &RepairSummary) -> String {
    let mut text = match &summary.repaired {
        Some(repaired) => written(repaired),
        None if summary.keys_indexed => "keys.idx was rebuilt; nothing else is wrong\n".into(),
        None => "nothing is wrong; nothing was written\n".to_owned(),
    };
    match summary.manifest {
        ManifestState::Sound => {}
        ManifestState::Damaged => text.push_str("dataset.json was damaged\n"),
        ManifestState::Unreadable => {
            text.push_str("dataset.json did not parse; its contents are lost\n");
        }
        ManifestState::Lost => text.push_str("dataset.json was missing\n"),
    }
    text.push_str(match summary.labels_from {
        LabelsFrom::Manifest | LabelsFrom::Nowhere => "",
        LabelsFrom::DamagedManifest => "names of labels are from it: check them\n",
        LabelsFrom::Keys => "names of labels are the folders in the keys\n",
        LabelsFrom::Numbers => "names of labels are lost; their numbers are used instead\n",
    });
    if !summary.lost.is_empty() {
        let samples = units::count(summary.samples_lost, "sample");
        text.push_str(&format!("{samples} lost, {} saved:\n", summary.samples));
    }
    for lost in &summary.lost {
        let rows = match (&lost.key, lost.samples) {
            (Some(key), _) => format!("row {}, key {key}", lost.first_row),
            (None, 0) => "whole file, samples unknown".to_owned(),
            (None, samples) => {
                format!("rows {} to {}", lost.first_row, lost.first_row + samples - 1)
            }
        };
        text.push_str(&format!("  {}, {rows}: {}\n", lost.part, lost.reason));
    }
    text
}
