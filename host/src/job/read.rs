//! Reads a job from TOML; every error has the line and column of the offending key or value.

use super::marks::Marks;
use super::table::{Source, Table};
use super::values::{BYTES, BYTES_OR_NONE, TIME, positive_time, required};
use super::{
    AcceleratorJob, Choice, JobError, JobFile, Replacements, StoreSettings, collate, devices, gpu,
    plan, recipe, sampler, strategy,
};
use crate::config::{LoaderConfig, SpoolConfig, SpoolKind, Tune};
use meetpoint_format::column::ColumnNames;
use meetpoint_format::recipe::Recipe;
use meetpoint_format::units::{parse_bytes, parse_duration};
use meetpoint_prepare::cache::CacheSettings;
use meetpoint_prepare::{Action, DatasetPaths, is_url};
use meetpoint_storage::{EngineKind, MemoryLimit};
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Maximum number of samples in a batch.
const BATCH_SIZE_MAX: u32 = 1 << 24;

/// Maximum number of ranks of a job.
const RANKS_MAX: u32 = 1024;

/// Keys of the file itself, beside the tables of strategies.
const KEYS: [&str; 44] = [
    "dataset",
    "cache_dir",
    "cache_size",
    "anonymous",
    "recipe",
    "columns",
    "collate",
    "batch_size",
    "epochs",
    "seed",
    "shuffle",
    "sampler",
    "drop_last",
    "strategy",
    "replay",
    "ranks",
    "run_ahead",
    "reuse",
    "choice",
    "workers",
    "prefetch",
    "tune",
    "memory_budget",
    "small_samples",
    "cache",
    "cache_after",
    "gpu_decode",
    "gpu_share",
    "gpu_memory",
    "engine",
    "read_depth",
    "stall_timeout",
    "profile_batches",
    "host_cores",
    "on_error",
    "max_errors",
    "quarantine",
    "verify",
    "device",
    "shared",
    "spool",
    "accelerator",
    "plan",
    "description",
];

/// Reads a job from `text`, the content of the file at `path`. Replaced keys are not read.
pub(super) fn read(
    text: &str,
    path: &Path,
    replacements: Replacements,
) -> Result<JobFile, JobError> {
    let has_others = replacements.has_strategies || !replacements.devices.is_empty();
    let source = Source { file: path, text };
    let document = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let problem = format!("the job is not TOML: {}", error.message().replace('\n', ", "));
        source.fault(offset, problem, "correct the text; https://toml.io has the grammar")
    })?;
    let table = Table::of_file(source, document.get_ref());
    recipe::refuse_at_top(&table)?;
    table.allow(&KEYS.into_iter().chain(strategy::keys()).collect::<Vec<_>>())?;
    table.text("description", "a text; it is for readers only")?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let dataset = replacements.dataset.clone().map_or_else(|| dataset(&table, folder), Ok)?;
    let batch_size = table.whole("batch_size", 1..=u64::from(BATCH_SIZE_MAX))?;
    let missing = || table.missing("batch_size", "the number of samples in a batch");
    let batch_size = batch_size.ok_or_else(missing)?;
    let devices = devices::read(&table, folder)?;
    let options = strategy::options(&table)?;
    let (strategy, replay) = strategy::choice(&table, has_others || !devices.is_empty())?;
    let on_error = Action::ALL.map(|action| (action.as_str(), action));
    let choices = [("tail", Choice::Tail), ("saving", Choice::Saving)];
    let recipe = replacements.recipe.clone().map_or_else(|| recipe::read(&table, folder), Ok)?;
    let mut job = JobFile {
        path: path.to_path_buf(),
        dataset,
        store: store(&table, folder)?,
        columns: columns(&table, &recipe)?,
        recipe,
        batch_size: u32::try_from(batch_size).expect("at most BATCH_SIZE_MAX"),
        epochs: table.small("epochs", 1..=u32::MAX, 1)?,
        seed: table.whole("seed", 0..=u64::MAX)?.unwrap_or(0),
        sampler: sampler::read(&table)?,
        drop_last: table.flag("drop_last", false)?,
        strategy,
        replay,
        options,
        ranks: table.small("ranks", 1..=RANKS_MAX, 1)?,
        run_ahead: table.flag("run_ahead", false)?,
        reuse: table.flag("reuse", false)?,
        choice: table.word("choice", &choices)?.unwrap_or(Choice::Tail),
        workers: table.small("workers", 0..=1024, 0)?,
        prefetch: table.small("prefetch", 1..=1024, 2)?,
        tune: table.word("tune", &Tune::ALL.map(|tune| (tune.as_str(), tune)))?.unwrap_or_default(),
        memory_budget_bytes: table.quantity("memory_budget", parse_bytes, BYTES)?.unwrap_or_else(
            || LoaderConfig::memory_budget_default(&MemoryLimit::of_this_process()),
        ),
        small_samples_bytes: table.quantity("small_samples", small_samples, BYTES_OR_NONE)?,
        cache: cache(&table)?,
        gpu_decode: gpu::read(&table)?,
        engine: table
            .word("engine", &EngineKind::ALL.map(|kind| (kind.as_str(), kind)))?
            .unwrap_or(EngineKind::Auto),
        read_depth: table.small("read_depth", 1..=1024, 32)? as usize,
        stall_timeout: positive_time(&table, "stall_timeout")?.unwrap_or(Duration::from_secs(2)),
        profile_batches: table.small("profile_batches", 1..=1 << 20, 3)?,
        host_cores: host_cores(&table)?,
        on_error: table.word("on_error", &on_error)?.unwrap_or(Action::Raise),
        errors_max: table.whole("max_errors", 0..=u64::MAX)?,
        quarantine: quarantine(&table, folder)?,
        verify: table.flag("verify", true)?,
        shared: table.flag("shared", devices::have_copies(&devices))?,
        devices,
        spool: spool(&table, folder)?,
        accelerator: accelerator(&table)?,
        plan: plan::read(&table, folder)?,
        marks: Marks::of(source, document.get_ref()),
    };
    job.apply(replacements);
    Ok(job)
}

/// A path, or a list of them.
fn dataset(table: &Table<'_>, folder: &Path) -> Result<DatasetPaths, JobError> {
    let what = "the path of a packed dataset, or a list of them";
    if !matches!(table.value("dataset").map(Spanned::get_ref), Some(DeValue::Array(_))) {
        return Ok(beside(folder, required(table, "dataset", what)?).into());
    }
    let paths = table.texts("dataset", what)?.unwrap_or_default();
    if paths.is_empty() || paths.iter().any(String::is_empty) {
        return Err(table.wrong_at("dataset", what));
    }
    Ok(paths.into_iter().map(|path| beside(folder, &path)).collect::<Vec<_>>().into())
}

/// A path relative to the folder of the job, or a URL.
fn beside(folder: &Path, path: &str) -> PathBuf {
    if is_url(Path::new(path)) { PathBuf::from(path) } else { folder.join(path) }
}

/// How datasets in stores are read.
fn store(table: &Table<'_>, folder: &Path) -> Result<StoreSettings, JobError> {
    let cache_dir = table.text("cache_dir", "the path of a folder")?;
    Ok(StoreSettings {
        cache_dir: cache_dir.map(|path| folder.join(path)),
        cache_bytes: table.quantity("cache_size", parse_bytes, BYTES)?,
        anonymous: table.flag("anonymous", false)?,
    })
}

fn columns(table: &Table<'_>, recipe: &Recipe) -> Result<ColumnNames, JobError> {
    let what = "a list of names of columns, such as [\"image\", \"label\"]";
    let collate = collate::read(table)?;
    match table.texts("columns", what)? {
        None => Ok(ColumnNames::of_collated(recipe, collate)),
        Some(names) if names.is_empty() => Err(table.fault_at(
            "columns",
            "`columns` is an empty list, and a batch needs a column",
            "name one or more, or leave the key out for [\"image\", \"label\"]",
        )),
        Some(names) => match (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
            None => Ok(ColumnNames::from(names).collated(collate)),
            Some(at) => Err(table.fault_in(
                "columns",
                at,
                format!("`columns` names {:?} twice", names[at]),
                "name each column once",
            )),
        },
    }
}

/// Bytes for small samples.
fn small_samples(text: &str) -> Option<u64> {
    if text.trim() == "0" { Some(0) } else { parse_bytes(text) }
}

/// The cache of prepared samples.
fn cache(table: &Table<'_>) -> Result<Option<CacheSettings>, JobError> {
    let bytes = table.quantity("cache", parse_bytes, BYTES)?;
    let operations = table.whole("cache_after", 1..=255)?;
    match (bytes, operations) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(table.missing("cache", BYTES)),
        (Some(0), _) => Err(table.wrong_at("cache", BYTES)),
        (Some(bytes), operations) => {
            let operations = operations.map(|it| usize::try_from(it).expect("at most 255"));
            Ok(Some(CacheSettings { bytes, operations }))
        }
    }
}

fn quarantine(table: &Table<'_>, folder: &Path) -> Result<Option<PathBuf>, JobError> {
    let what = "the path of a file to which damaged samples are added";
    match table.text("quarantine", what)? {
        Some("") => Err(table.wrong_at("quarantine", what)),
        path => Ok(path.map(|path| folder.join(path))),
    }
}

fn host_cores(table: &Table<'_>) -> Result<Option<Vec<usize>>, JobError> {
    match table.wholes("host_cores", "a list of core numbers, such as [0, 1]")? {
        Some(cores) if cores.is_empty() => Err(table.fault_at(
            "host_cores",
            "`host_cores` is an empty list, and the host needs a core",
            "name one or more, such as [0, 1], or leave the key out for all of them",
        )),
        cores => Ok(cores),
    }
}

fn spool(table: &Table<'_>, folder: &Path) -> Result<SpoolConfig, JobError> {
    let Some(spool) = table.table("spool")? else { return Ok(SpoolConfig::default()) };
    let is_file = spool.word("kind", &[("memory", false), ("file", true)])?.unwrap_or(false);
    let kind = if is_file {
        spool.allow(&["kind", "directory", "quota"])?;
        let what = "a directory on the device's storage";
        SpoolKind::File { directory: folder.join(required(&spool, "directory", what)?) }
    } else {
        spool.allow(&["kind", "quota"])?;
        SpoolKind::Memory
    };
    let quota = spool.quantity("quota", parse_bytes, BYTES)?;
    let default = || SpoolConfig::quota_default(&kind, &MemoryLimit::of_this_process());
    let quota_bytes = quota.unwrap_or_else(default);
    Ok(SpoolConfig { kind, quota_bytes })
}

fn accelerator(table: &Table<'_>) -> Result<AcceleratorJob, JobError> {
    let Some(accelerator) = table.table("accelerator")? else { return Ok(AcceleratorJob::Null) };
    let kinds = [("emulated", true), ("null", false)];
    if !accelerator.word("kind", &kinds)?.unwrap_or(true) {
        accelerator.allow(&["kind"])?;
        return Ok(AcceleratorJob::Null);
    }
    accelerator.allow(&["kind", "step"])?;
    let step = accelerator.quantity("step", parse_duration, TIME)?;
    let step = step.ok_or_else(|| accelerator.missing("step", TIME))?;
    Ok(AcceleratorJob::Emulated { step })
}
