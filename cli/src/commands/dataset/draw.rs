//! `meetpoint dataset shuffle` and `sample`: random orders and random samples.

use super::{WriteArguments, with_bar, written};
use crate::surface::{Output, Stop};
use meetpoint_datasets::operations::{self, Amount, Share};
use std::path::PathBuf;

/// Write a dataset in random order.
///
/// The order is that of epoch 0 with the same seed; it does not depend on --memory.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: meetpoint dataset shuffle photos.set mixed.set --seed 7")]
pub(super) struct ShuffleArguments {
    /// Folder of the dataset.
    dataset: PathBuf,
    /// Folder of the dataset to create.
    destination: PathBuf,
    /// Seed of the order.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    write: WriteArguments,
}

/// Write some samples of a dataset, drawn at random without replacement.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint dataset sample photos.set few.set -n 1000
  meetpoint dataset sample photos.set tenth.set --fraction 10% --per-class")]
#[command(group = clap::ArgGroup::new("amount").required(true).args(["n", "fraction"]))]
pub(super) struct SampleArguments {
    /// Folder of the dataset.
    dataset: PathBuf,
    /// Folder of the dataset to create.
    destination: PathBuf,
    /// Number of samples; with --per-class, of each label.
    #[arg(short, long)]
    n: Option<u64>,
    /// Share of the samples: 0.1, 10%.
    #[arg(long, value_name = "SHARE", value_parser = fraction)]
    fraction: Option<Share>,
    /// Draw from each label separately, and from the samples without a label; a label with fewer
    /// than -n samples contributes all of them.
    #[arg(long)]
    per_class: bool,
    /// Seed of the draw.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    write: WriteArguments,
}

fn fraction(text: &str) -> Result<Share, String> {
    let wrong = || format!("\"{text}\" is not a fraction; write for example 0.1 or 10%, at most 1");
    Share::parse(text).filter(|share| *share <= Share::ONE).ok_or_else(wrong)
}

pub(super) fn shuffle(arguments: &ShuffleArguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let options = arguments.write.options(&stop);
    let (from, to) = (&arguments.dataset, &arguments.destination);
    let summary = with_bar("shuffling", |progress| {
        operations::shuffle(from, to, arguments.seed, &options, progress)
    })?;
    output.result(&summary, || written(&summary))
}

pub(super) fn sample(arguments: &SampleArguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let options = arguments.write.options(&stop);
    let amount = match (arguments.n, arguments.fraction) {
        (Some(samples), _) => Amount::Samples(samples),
        (None, Some(share)) => Amount::Fraction(share),
        (None, None) => unreachable!("clap wants one of them"),
    };
    let (from, to) = (&arguments.dataset, &arguments.destination);
    let summary = with_bar("sampling", |progress| {
        let (per_class, seed) = (arguments.per_class, arguments.seed);
        operations::sample(from, to, amount, per_class, seed, &options, progress)
    })?;
    output.result(&summary, || written(&summary))
}
