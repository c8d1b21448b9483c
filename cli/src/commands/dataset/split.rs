//! `meetpoint dataset split`: splits a dataset into disjoint ones.

use super::{WriteArguments, with_bar, written};
use crate::surface::{Output, Stop};
use meetpoint_datasets::operations::{self, Share, SplitBy};
use std::path::PathBuf;

/// Split a dataset into several disjoint ones that together contain all of it.
///
/// Splits at random, by shares, or by the values of a column. The order of samples does not change.
/// Every result has the names of all labels, so that a label has the same number in each. Sizes are
/// rounded by the largest-remainder method. Results appear one after another, each complete or not
/// at all.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint dataset split photos.set train.set=0.8 val.set=0.2 --stratify
  meetpoint dataset split photos.set a=8,b=1,c=1 --seed 7
  meetpoint dataset split photos.set --by fold --to folds")]
#[command(override_usage = "meetpoint dataset split [OPTIONS] <DATASET> <PATH=SHARE>...
       meetpoint dataset split [OPTIONS] <DATASET> --by <COLUMN> --to <FOLDER>")]
#[command(group = clap::ArgGroup::new("how").required(true).args(["parts", "by"]))]
pub(super) struct Arguments {
    /// Folder of the dataset.
    dataset: PathBuf,
    /// Datasets to create, each with its share, relative to the sum of all shares.
    #[arg(value_name = "PATH=SHARE", value_delimiter = ',', value_parser = part)]
    parts: Vec<(PathBuf, Share)>,
    /// Stratify: split the samples of each label by these shares. Cannot be combined with --by.
    #[arg(long, conflicts_with = "by")]
    stratify: bool,
    /// Seed of the draw.
    #[arg(long, default_value_t = 0, conflicts_with = "by")]
    seed: u64,
    /// Split by the values of this column, or by `label`: one dataset for each value, named after
    /// it.
    #[arg(long, value_name = "COLUMN", requires = "to")]
    by: Option<String>,
    /// Folder for the datasets of --by.
    #[arg(long, value_name = "FOLDER", requires = "by")]
    to: Option<PathBuf>,
    #[command(flatten)]
    write: WriteArguments,
}

fn part(text: &str) -> Result<(PathBuf, Share), String> {
    let wrong = || format!("\"{text}\" is not a part; write for example train.set=0.8");
    let (path, share) = text.rsplit_once('=').ok_or_else(wrong)?;
    let share = Share::parse(share).filter(|_| !path.is_empty()).ok_or_else(wrong)?;
    Ok((PathBuf::from(path), share))
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let options = arguments.write.options(&stop);
    let by = match (&arguments.by, &arguments.to) {
        (Some(column), Some(folder)) => {
            SplitBy::Column { column: column.clone(), folder: folder.clone() }
        }
        _ => SplitBy::Shares {
            parts: arguments.parts.clone(),
            stratify: arguments.stratify,
            seed: arguments.seed,
        },
    };
    let summaries = with_bar("splitting", |progress| {
        operations::split(&arguments.dataset, &by, &options, progress)
    })?;
    output.result(&summaries, || summaries.iter().map(written).collect())
}

#[cfg(test)]
mod tests {
    use super::part;
    use std::path::Path;

    #[test]
    fn a_part_is_a_path_and_a_share() {
        assert_eq!(part("a=b=0.5").unwrap().0, Path::new("a=b"));
        for wrong in ["a", "a=", "=1", "a=0", "a=-1", "a=x"] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }
}
