//! `meetpoint dataset merge`: several datasets into one.

use super::{WriteArguments, with_bar, written};
use crate::surface::choice::choice;
use crate::surface::{Output, Stop};
use meetpoint_datasets::operations::{self, MergeOrder};
use std::path::PathBuf;

/// Merge datasets into one.
///
/// Columns must be equal; labels are merged by name. A key that occurs in two datasets is an error
/// that names both locations, unless prefixes make the keys distinct.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint dataset merge cats.set dogs.set pets.set
  meetpoint dataset merge a.set b.set both.set --order interleave --prefix a/ --prefix b/")]
pub(super) struct Arguments {
    /// Folders of two or more datasets, followed by the folder of the dataset to create.
    #[arg(required = true, num_args = 3.., value_name = "DATASET")]
    datasets: Vec<PathBuf>,
    /// How to combine the datasets: one after another, or each spread evenly over the result.
    #[arg(long, default_value = "concat", value_name = "HOW",
          value_parser = choice::<MergeOrder>())]
    order: MergeOrder,
    /// Prefix for the keys of a dataset; give one for each dataset, in their order.
    #[arg(long, value_name = "TEXT")]
    prefix: Vec<String>,
    #[command(flatten)]
    write: WriteArguments,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let options = arguments.write.options(&stop);
    let (to, from) = arguments.datasets.split_last().expect("clap wants three or more");
    let summary = with_bar("merging", |progress| {
        operations::merge(from, to, arguments.order, &arguments.prefix, &options, progress)
    })?;
    output.result(&summary, || written(&summary))
}
