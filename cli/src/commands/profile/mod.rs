//! `meetpoint profile`: which operations of a recipe are worth executing once in advance, measured
//! on part of a dataset.
//!
//! In reading order: this file (arguments and the call), [`words`] (tables and sentences),
//! [`picture`] (throughput against storage).

mod picture;
mod words;

use crate::surface::chart_files::{ChartFormat, check_file, file, kind};
use crate::surface::failure::{Fault, Interrupted};
use crate::surface::progress::Progress;
use crate::surface::{Output, Stop, cores_allowed, units};
use anyhow::Context;
use clap::ValueEnum;
use meetpoint_diagnose::{Command, Diagnose, Remedy, Surface, shown};
use meetpoint_format::recipe::Recipe;
use meetpoint_host::GpuIndex;
use meetpoint_planner::decide::DecideError;
use meetpoint_planner::enumerate::RefusedPoint;
use meetpoint_planner::profile::{Options, ProfiledGpu, Samples};
use meetpoint_planner::score::{Costs, ScoredStrategy};
use meetpoint_planner::{
    Codec, Decision, Error, Goal, Measured, Profile, Settings, StorageMeaning, Weights, decide,
    profile, read_csv, read_json, score, write_csv,
};
use meetpoint_prepare::Dataset;
use meetpoint_storage::MemoryLimit;
use meetpoint_storage::files::read_regular;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum size of a file with results, in bytes.
const RESULTS_BYTES_MAX: u64 = 64 << 20;

/// Measure which operations of a recipe to run once in advance, and choose the best strategy.
///
/// The recipe can be divided after any operation whose result is the same in each epoch: the first
/// part runs once, and its result is stored. Each division is measured with each codec, number of
/// threads and cache, on a sample of the dataset. The best is the one that finishes all epochs
/// first, including the time to prepare and store, within the limits of storage and memory.
///
/// With --gpu-decode, the forms from which a GPU can prepare samples are also measured with it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint profile train.toml photos.set --epochs 90 --csv results.csv
  meetpoint profile train.toml photos.set --storage-limit 200GB --plot profile.html
  meetpoint profile train.toml photos.set --gpu-decode cuda:0 --batch-size 256
  meetpoint profile --from results.csv --epochs 5 --weights 1,0,1")]
pub(crate) struct Arguments {
    /// Recipe in TOML, or the name of a shipped one.
    #[arg(required_unless_present = "from", value_name = "FILE|NAME")]
    recipe: Option<PathBuf>,
    /// Folder of the dataset.
    #[arg(required_unless_present = "from")]
    dataset: Option<PathBuf>,
    /// Number of epochs to plan for.
    #[arg(long, default_value_t = 10, value_name = "E",
          value_parser = clap::value_parser!(u32).range(1..))]
    epochs: u32,
    /// Rank by PRESTO's score instead, with these weights of preprocessing seconds, storage and
    /// throughput.
    #[arg(long, value_name = "P,S,T", value_parser = weights)]
    weights: Option<Weights>,
    /// Which storage the score counts for unchanged files.
    #[arg(long, value_enum, default_value_t = Storage::Extra, value_name = "MEANING")]
    storage: Storage,
    /// Runs of each strategy; the decision cannot be certain before two.
    #[arg(long, default_value_t = 3, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Samples to measure; `auto` increases their number until the best is certain.
    #[arg(long, default_value = "auto", value_name = "N", value_parser = samples)]
    samples: Samples,
    /// Numbers of threads; 0 for one per core.
    #[arg(long, value_delimiter = ',', default_values_t = [0], value_name = "N,…")]
    threads: Vec<usize>,
    /// GPU with which strategies are also measured, such as cuda:0. As in a run, it prepares a
    /// share of each batch, and each thread chooses this share by measurement.
    #[arg(long, value_name = "GPU")]
    gpu_decode: Option<GpuIndex>,
    /// Samples in each batch that is measured with --gpu-decode.
    #[arg(long, default_value_t = 32, value_name = "N", requires = "gpu_decode",
          value_parser = clap::value_parser!(u32).range(1..=65536))]
    batch_size: u32,
    /// Codecs of stored samples.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "none,lz4,zstd",
        value_enum,
        value_name = "CODEC,…"
    )]
    codecs: Vec<CodecName>,
    /// Maximum number of bytes to store in addition to the dataset.
    #[arg(long, value_name = "SIZE", value_parser = limit)]
    storage_limit: Option<u64>,
    /// Maximum memory for caches; by default the memory that this process can still allocate.
    #[arg(long, value_name = "SIZE", value_parser = limit)]
    memory_limit: Option<u64>,
    /// Confidence that is required to call the best certain.
    #[arg(long, default_value_t = 0.95, value_name = "SHARE", value_parser = confidence)]
    confidence: f64,
    /// Allow lossy forms to be chosen, in which pictures are encoded as JPEG again.
    #[arg(long)]
    allow_loss: bool,
    /// Seed for the choice of samples and for random parameters.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Folder for temporary files; by default the folder that contains the dataset.
    #[arg(long, value_name = "FOLDER")]
    temporary: Option<PathBuf>,
    /// Save all results to this file.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw a chart of throughput against storage: .svg, or .html with the tables.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Decide again with the results of this file, without measuring.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "recipe", "dataset", "csv", "runs", "samples", "threads", "codecs", "seed", "temporary",
        "gpu_decode",
    ])]
    from: Option<PathBuf>,
}

/// The name of a codec on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum CodecName {
    /// No compression.
    None,
    /// LZ4 blocks.
    Lz4,
    /// Zstandard, about level 1.
    Zstd,
}

impl From<CodecName> for Codec {
    fn from(name: CodecName) -> Self {
        match name {
            CodecName::None => Self::None,
            CodecName::Lz4 => Self::Lz4,
            CodecName::Zstd => Self::Zstd,
        }
    }
}

/// The definition of storage, as named on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Storage {
    /// Bytes stored besides the files.
    Extra,
    /// Bytes that the strategy reads.
    Total,
}

impl From<Storage> for StorageMeaning {
    fn from(storage: Storage) -> Self {
        match storage {
            Storage::Extra => Self::Extra,
            Storage::Total => Self::Total,
        }
    }
}

fn weights(text: &str) -> Result<Weights, String> {
    let wrong = || format!("\"{text}\" is not three numbers; write for example 0,0,1");
    let numbers: Vec<f64> = text
        .split(',')
        .map(|it| it.trim().parse().map_err(|_| wrong()))
        .collect::<Result<_, _>>()?;
    let [preprocessing, storage, throughput] = numbers[..] else { return Err(wrong()) };
    let weights = Weights::new(preprocessing, storage, throughput);
    weights.map_err(|error| error.in_full(Surface::CommandLine))
}

fn samples(text: &str) -> Result<Samples, String> {
    if text == "auto" {
        return Ok(Samples::Widening);
    }
    let count = text.parse().ok().filter(|count| *count > 1);
    let wrong = || format!("\"{text}\" is neither \"auto\" nor a number of 2 or more");
    count.map(Samples::Exactly).ok_or_else(wrong)
}

/// Parses a size that may be 0.
pub(super) fn limit(text: &str) -> Result<u64, String> {
    match text.trim() {
        "0" | "0B" => Ok(0),
        text => units::parse_bytes(text),
    }
}

pub(super) fn confidence(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| format!("\"{text}\" is not a number above 0 and below 1, such as 0.95"))
}

/// The output with `--json`.
#[derive(Debug, Serialize)]
struct Document {
    results: Vec<Measured>,
    decision: Decision,
    /// PRESTO's score, best first.
    scores: Vec<ScoredStrategy>,
    weights: Weights,
    score_storage: StorageMeaning,
    /// Whether the order of the table is that of the scores.
    #[serde(skip)]
    is_by_score: bool,
    /// Cuts that are not legal; empty with `--from`.
    refused_points: Vec<RefusedPoint>,
    /// Why no energy was measured; `None` if it was, or with `--from`.
    no_meters: Option<String>,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let plot = arguments.plot.as_deref().map(|path| Ok::<_, anyhow::Error>((path, kind(path)?)));
    let plot = plot.transpose()?;
    for path in arguments.plot.iter().chain(&arguments.csv) {
        check_file(path)?;
    }
    let (results, decision, refused_points, no_meters) = match (&arguments.from, paths(arguments)) {
        (Some(from), _) => {
            let results = load(from)?;
            let decision = decide(&results, &goal(arguments)).map_err(usage)?;
            (results, decision, Vec::new(), None)
        }
        (None, Some((recipe, dataset))) => {
            let Profile { results, decision, points, no_meters, .. } =
                measure(arguments, recipe, dataset)?;
            (results, decision, points.refused, no_meters)
        }
        (None, None) => unreachable!("the parser asks for both"),
    };
    if let Some(path) = &arguments.csv {
        file(path, &write_csv(&results)?)?;
    }
    let meaning = StorageMeaning::from(arguments.storage);
    let costs: Vec<Costs> = results.iter().map(|it| Costs::of(it, meaning)).collect();
    let weights = arguments.weights.unwrap_or(Weights::THROUGHPUT);
    let document = Document {
        scores: score(&costs, weights),
        weights,
        score_storage: meaning,
        is_by_score: arguments.weights.is_some(),
        refused_points,
        no_meters,
        results,
        decision,
    };
    if let Some((path, kind)) = plot {
        let picture = picture::of(&document);
        match kind {
            ChartFormat::Svg => file(path, &picture.file())?,
            ChartFormat::Html => file(path, &words::page(&document, &picture))?,
        }
    }
    output.result(&document, || words::text(&document))
}

fn paths(arguments: &Arguments) -> Option<(&Path, &Path)> {
    Some((arguments.recipe.as_deref()?, arguments.dataset.as_deref()?))
}

/// Results that `--csv` saved or `--json` printed.
pub(super) fn load(path: &Path) -> anyhow::Result<Vec<Measured>> {
    let bytes = read_regular(path, RESULTS_BYTES_MAX);
    let bytes = bytes.with_context(|| {
        let message = format!("failed to read {}", shown(path));
        Fault::new("results_unreadable", message, Remedy::run(Command::ProfileResults))
    })?;
    let text = String::from_utf8_lossy(&bytes);
    let results = match text.trim_start().starts_with('{') {
        true => read_json(&text),
        false => read_csv(&text),
    };
    results.with_context(|| shown(path).to_string())
}

fn goal(arguments: &Arguments) -> Goal {
    // A repeated decision may be for another machine, whose memory is not known.
    let available = || {
        let is_measured = arguments.from.is_none();
        is_measured.then(|| MemoryLimit::of_this_process().available_bytes)
    };
    Goal {
        epochs: arguments.epochs,
        storage_limit: arguments.storage_limit,
        memory_limit: arguments.memory_limit.or_else(available),
        confidence: arguments.confidence,
        allows_loss: arguments.allow_loss,
    }
}

/// Reports an invalid goal as wrong usage.
fn usage(error: DecideError) -> anyhow::Error {
    match error {
        DecideError::NoEpochs | DecideError::Confidence(_) => Fault::usage_of(&error).into(),
        DecideError::NoResults | DecideError::NothingFits { .. } => error.into(),
    }
}

fn measure(arguments: &Arguments, recipe: &Path, dataset: &Path) -> anyhow::Result<Profile> {
    let recipe = super::recipe::read(recipe, &[])?;
    let opened = Arc::new(Dataset::open(dataset)?);
    let threads = |&threads: &usize| if threads == 0 { cores_allowed() } else { threads };
    let mut threads: Vec<usize> = arguments.threads.iter().map(threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let mut codecs: Vec<Codec> = arguments.codecs.iter().map(|&it| it.into()).collect();
    codecs.sort_unstable();
    codecs.dedup();
    let options = Options {
        settings: Settings { codecs, threads },
        runs: arguments.runs,
        samples: arguments.samples,
        seed: arguments.seed,
        gpu: None,
        folder: folder(arguments.temporary.as_deref(), dataset),
        goal: goal(arguments),
    };
    let gpu = arguments.gpu_decode.map(|gpu| (gpu, arguments.batch_size));
    measured(&opened, &recipe, options, gpu)
}

/// The folder for temporary files: the named one, or the one that contains the dataset.
pub(super) fn folder(named: Option<&Path>, dataset: &Path) -> PathBuf {
    let beside = || {
        let path = std::path::absolute(dataset).unwrap_or_else(|_| dataset.to_path_buf());
        path.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
    };
    named.map_or_else(beside, Path::to_path_buf)
}

/// Measures, with a progress bar, until the measurement is complete or stopped. If a GPU is given,
/// also measures with it, in batches of the given size.
pub(super) fn measured(
    dataset: &Arc<Dataset>,
    recipe: &Recipe,
    options: Options,
    gpu: Option<(GpuIndex, u32)>,
) -> anyhow::Result<Profile> {
    let stop = Stop::install()?;
    let open = |(gpu, batch_size)| ProfiledGpu::open(gpu, batch_size, &|| stop.is_asked());
    let gpu = gpu.map(open).transpose();
    stop.check()?;
    let options = &Options { gpu: gpu?, ..options };
    let mut bar = Progress::new("measuring", "stored forms", 0);
    let found = profile(dataset, recipe, options, &stop.flag(), &mut |progress| {
        bar.set(progress.done, progress.total);
    });
    drop(bar);
    found.map_err(|error| match error {
        Error::Stopped => Interrupted.into(),
        Error::Decide(error) => usage(error),
        error @ (Error::Samples { .. } | Error::Number { .. }) => Fault::usage_of(&error).into(),
        error => anyhow::Error::from(error),
    })
}
