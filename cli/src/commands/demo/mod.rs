//! `meetpoint demo`: pictures, a dataset, an emulated device, and the strategies side by side.
//!
//! It uses only what other commands offer: it writes a recipe and a job file, and runs the job, so
//! that `--keep` retains everything that is needed to run it again. In reading order: this
//! file, [`calibrate`] (how slow the device is made), [`attempts`] (runs until the emulation held
//! its speed), [`conclusion`] (the closing sentence), [`temporary_folder`] (the temporary folder).

mod attempts;
pub(in crate::commands) mod calibrate;
mod conclusion;
pub(in crate::commands) mod temporary_folder;

use super::pack::pack_with_bar;
use crate::generate::{self, Generated};
use crate::runner::{self, RunPlan};
use crate::surface::fault::Fault;
use crate::surface::progress::Progress;
use crate::surface::report_files::ReportFiles;
use crate::surface::{Output, Stop, cores, output, units};
use anyhow::Context;
use calibrate::Calibration;
use meetpoint_datasets::{Check, OnError, PackOptions};
use meetpoint_diagnose::shown;
use meetpoint_format::batching::{BatchOptions, Batching};
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::Sampling;
use meetpoint_host::{JobFile, StrategyName};
use meetpoint_lab::bench::PHOTOGRAPHS;
use meetpoint_prepare::Dataset;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use temporary_folder::TemporaryFolder;

/// Samples in a batch, where there are enough.
const BATCH_SIZE: u32 = 8;
/// Minimum number of batches of an epoch, so that its start and end matter little.
const BATCHES_WANTED: u64 = 60;

/// Generate pictures, pack them, and run three strategies with an emulated device.
///
/// The device and the accelerator are emulated. Their speed is chosen for this machine: the device
/// takes twice as long for a batch as the host takes to prepare it and train on it. Times are
/// measured, samples are compared with those of the host alone, and the report includes the
/// predicted times.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint demo
  meetpoint demo --images holiday-photos --report out
  meetpoint demo --keep kept     then again: meetpoint run kept/job.toml --strategy all")]
pub(crate) struct Arguments {
    /// Use the pictures in this folder instead of generated ones.
    #[arg(long, value_name = "FOLDER")]
    images: Option<PathBuf>,
    /// Number of pictures to generate.
    #[arg(long, default_value_t = 960, value_name = "N", conflicts_with = "images",
          value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pictures: u32,
    /// Seed of the pictures, the order and the augmentation.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Keep pictures, dataset, recipe and job in this folder, which must be new or empty.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    #[command(flatten)]
    report: ReportFiles,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    arguments.report.check()?;
    let stop = Stop::install()?;
    // Both are dropped on errors and signals too: the temporary folder is removed with its content,
    // the folder of `--keep` only if it is empty.
    let (temporary, _kept);
    let folder = match &arguments.keep {
        Some(folder) => {
            _kept = OutputFolder::make(folder)?;
            folder.as_path()
        }
        None => {
            let (temporary_folder, cleared) = TemporaryFolder::new(&std::env::temp_dir())?;
            for folder in cleared {
                output::notice(&format!(
                    "cleared {}, left by a demo that was killed",
                    shown(&folder)
                ));
            }
            temporary = temporary_folder;
            temporary.path()
        }
    };
    let cores = cores();
    let dataset = make_dataset(arguments, folder, cores.len().max(1), &stop, output)?;
    let job = make_job(arguments, folder, &dataset, &cores, output)?;
    let mut job = JobFile::load(&job)?;
    let plan = RunPlan::of(&[StrategyName::HostOnly, StrategyName::Mte, StrategyName::Wrr]);
    let power = crate::power::model(None)?;
    let report = attempts::until_valid(job.epochs, output, |epochs| {
        job.epochs = epochs;
        runner::run(&job, &plan, &power, &stop, output)
    })?;
    runner::finish(&report, &arguments.report, output)?;
    output.line(&conclusion::text(&report, arguments.images.is_some()));
    if let Some(folder) = &arguments.keep {
        let job = folder.join("job.toml");
        output.line(&format!("kept; again: meetpoint run {} --strategy all", shown(&job)));
    }
    Ok(())
}

/// The folders that were created for `--keep`. Those that are empty are removed when it is dropped.
#[derive(Debug)]
struct OutputFolder {
    /// The innermost first.
    made: Vec<PathBuf>,
}

impl OutputFolder {
    /// Creates a folder and missing parents, or uses an existing empty one.
    fn make(folder: &Path) -> anyhow::Result<Self> {
        let failed = || {
            let message = format!("failed to create folder {}", shown(folder));
            Fault::new("folder_not_created", message, "name another with --keep")
        };
        let missing = folder.ancestors().take_while(|above| !above.as_os_str().is_empty());
        let made = missing.take_while(|above| !above.exists()).map(Path::to_path_buf).collect();
        // Also dropped on the errors below.
        let kept = Self { made };
        std::fs::create_dir_all(folder).with_context(failed)?;
        if std::fs::read_dir(folder).with_context(failed)?.next().is_some() {
            let message = format!("{} is not empty", shown(folder));
            return Err(
                Fault::new("folder_not_empty", message, "name a new one with --keep").into()
            );
        }
        Ok(kept)
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        for folder in &self.made {
            // Fails, as intended, if the folder is not empty.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Generates the pictures, or uses the user's, and packs them.
fn make_dataset(
    arguments: &Arguments,
    folder: &Path,
    cores: usize,
    stop: &Stop,
    output: Output,
) -> anyhow::Result<Arc<Dataset>> {
    let options = |check, on_error| PackOptions {
        check,
        on_error,
        threads: cores,
        stop: stop.flag(),
        ..PackOptions::default()
    };
    let packed = folder.join("photos.set");
    match &arguments.images {
        Some(images) => {
            let options = options(Check::Decode, OnError::Skip);
            let summary = pack_with_bar(images, &packed, &options)?;
            for file in &summary.unreadable {
                output::notice(&format!("left out {file}"));
            }
        }
        None => {
            let pictures = folder.join("pictures");
            let made = make_pictures(arguments, &pictures, cores, stop).inspect_err(|_| {
                // An incomplete set is not useful; files that cannot be removed remain.
                let _ = std::fs::remove_dir_all(&pictures);
            })?;
            output.line(&describe(&made));
            pack_with_bar(&pictures, &packed, &options(Check::Header, OnError::Fail))?;
            if arguments.keep.is_none() {
                // The dataset contains them; keeping both would double the space.
                std::fs::remove_dir_all(&pictures)
                    .with_context(|| format!("failed to remove {}", shown(&pictures)))?;
            }
        }
    }
    let dataset = Dataset::open(&packed)?;
    if dataset.len() < 2 {
        let remedy = "name a folder with at least 2 pictures that decode";
        return Err(Fault::new("too_few_pictures", "there are no two pictures", remedy).into());
    }
    let samples = units::count(dataset.len(), "sample");
    output.line(&format!("packed {samples} into {}", shown(&packed)));
    Ok(Arc::new(dataset))
}

fn make_pictures(
    arguments: &Arguments,
    folder: &Path,
    cores: usize,
    stop: &Stop,
) -> anyhow::Result<Generated> {
    let count = arguments.pictures;
    let mut bar = Progress::new("drawing", "pictures", u64::from(count));
    generate::generate(folder, count, arguments.seed, cores, stop, &mut |done| {
        bar.set(u64::from(done), u64::from(count));
    })
}

fn describe(made: &Generated) -> String {
    format!(
        "made {}: {}, {:.1} bits a pixel, {} of them 4:2:0 and {} 4:4:4",
        units::count(made.pictures.into(), "picture"),
        units::bytes(made.bytes),
        made.bits_per_pixel(),
        made.subsampled,
        made.pictures - made.subsampled
    )
}

/// Measures this host, chooses device and accelerator, and writes recipe.toml and job.toml.
fn make_job(
    arguments: &Arguments,
    folder: &Path,
    dataset: &Arc<Dataset>,
    cores: &[usize],
    output: Output,
) -> anyhow::Result<PathBuf> {
    let recipe = Arc::new(Recipe::from_toml(PHOTOGRAPHS).expect("a test parses the recipe"));
    let batch_size = batch_size(dataset.len());
    let batch_options = BatchOptions { batch_size, drop_last: true, seed: arguments.seed };
    let batching = Batching::alone(batch_options, Sampling::shuffled(dataset.len()));
    let batches = u32::try_from(batching.batches()).unwrap_or(u32::MAX);
    let chosen = calibrate::choose(calibrate::measure(dataset, &recipe, batching)?);
    output.line(&format!(
        "this host prepares a batch of {batch_size} in {}; so the accelerator's step is {} and the \
         device gets {:.3} of a core (t_s = 2 t_c)",
        units::seconds(chosen.prepare.as_secs_f64()),
        units::seconds(chosen.step.as_secs_f64()),
        chosen.cpu_ratio
    ));
    if cores.len() < 2 {
        output::notice(
            "only one core is available: the host and the emulated device share it, so their \
             times are less accurate",
        );
    }
    write(folder, "recipe.toml", PHOTOGRAPHS)?;
    let epochs = attempts::epochs_for(batches, chosen.prepare + chosen.step);
    let text = job_text(batch_size, arguments.seed, chosen, epochs, cores);
    write(folder, "job.toml", &text)
}

/// Eight, or fewer where there are few pictures.
fn batch_size(samples: u64) -> u32 {
    u32::try_from(samples / BATCHES_WANTED).unwrap_or(BATCH_SIZE).clamp(1, BATCH_SIZE)
}

/// Reserves the last core for the device, because a drive has its own processor.
fn job_text(
    batch_size: u32,
    seed: u64,
    chosen: Calibration,
    epochs: u32,
    cores: &[usize],
) -> String {
    let Calibration { step, cpu_ratio, .. } = chosen;
    let (host_cores, device_core) = match cores {
        [host @ .., device] if !host.is_empty() => {
            (format!("host_cores = {host:?}\n"), format!("core = {device}\n"))
        }
        _ => (String::new(), "allow_shared = true\n".to_owned()),
    };
    format!(
        "dataset = \"photos.set\"\n\
         recipe = \"recipe.toml\"\n\
         batch_size = {batch_size}\n\
         epochs = {epochs}\n\
         seed = {seed}\n\
         drop_last = true\n\
         strategy = \"wrr\"\n\
         workers = 0\n\
         {host_cores}\
         profile_batches = 10\n\
         \n\
         [device]\n\
         kind = \"emulated\"\n\
         cpu_ratio = {cpu_ratio:.4}\n\
         {device_core}\
         \n\
         [spool]\n\
         kind = \"memory\"\n\
         \n\
         [accelerator]\n\
         kind = \"emulated\"\n\
         step = \"{}us\"\n",
        step.as_micros()
    )
}

fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<PathBuf> {
    Ok(meetpoint_report::write::place(folder, name, text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::{OutputFolder, PHOTOGRAPHS, batch_size, calibrate, job_text, write};
    use meetpoint_format::recipe::Recipe;
    use meetpoint_host::{DeviceKind, JobFile};
    use std::time::Duration;

    #[test]
    fn the_recipe_and_the_job_that_are_written_can_be_read() {
        assert!(Recipe::from_toml(PHOTOGRAPHS).unwrap().output().is_some());
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "recipe.toml", PHOTOGRAPHS).unwrap();
        let chosen = calibrate::choose(Duration::from_millis(61));
        let load = |cores: &[usize]| {
            let text = job_text(8, u64::MAX / 2, chosen, 3, cores);
            JobFile::load(&write(folder.path(), "job.toml", &text).unwrap()).unwrap()
        };
        let job = load(&[]);
        assert_eq!((job.batch_size, job.epochs, &job.host_cores), (8, 3, &None));
        assert_eq!(load(&[4]).host_cores, None);
        let job = load(&[2, 3, 7]);
        assert_eq!(job.host_cores, Some(vec![2, 3]));
        let DeviceKind::Emulated(device) = &job.devices[0].kind else { panic!("{job:?}") };
        let emulation = &device.emulation;
        assert_eq!((emulation.targets.core, emulation.allow_shared), (Some(7), false));
    }

    #[test]
    fn few_pictures_make_small_batches_and_always_two() {
        assert_eq!([2, 59, 119, 120, 480, 100_000].map(batch_size), [1, 1, 1, 2, 8, 8]);
    }

    #[test]
    fn a_folder_with_something_in_it_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let _kept = OutputFolder::make(&folder.path().join("new/deep")).unwrap();
        assert!(OutputFolder::make(folder.path()).is_err());
        assert!(folder.path().join("new/deep").is_dir());
    }

    #[test]
    fn created_folders_that_stay_empty_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        for is_filled in [false, true] {
            let new = folder.path().join("new/deep");
            let kept = OutputFolder::make(&new).unwrap();
            if is_filled {
                std::fs::write(new.join("job.toml"), "").unwrap();
            }
            drop(kept);
            assert_eq!(folder.path().join("new").exists(), is_filled);
        }
        let there = tempfile::tempdir().unwrap();
        drop(OutputFolder::make(there.path()).unwrap());
        assert!(there.path().exists(), "what was there before stays");
    }
}
