//! A temporary folder for measurements: generated datasets and job files, removed afterwards.

use crate::commands::demo::calibrate;
use crate::commands::demo::temporary_folder::TemporaryFolder;
use crate::commands::pack::pack_with_bar;
use crate::generate;
use crate::runner::{self, RunPlan};
use crate::surface::progress::Progress;
use crate::surface::{self, Output, Stop, output};
use anyhow::Context;
use meetpoint_datasets::{Check, OnError, PackOptions};
use meetpoint_diagnose::shown;
use meetpoint_format::batching::{BatchOptions, Batching};
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::Sampling;
use meetpoint_format::split_mix::SplitMix64;
use meetpoint_host::{JobFile, StrategyName};
use meetpoint_lab::bench::{Bench, JobParameters, Material, Pictures};
use meetpoint_prepare::Dataset;
use meetpoint_report::Report;
use meetpoint_report::write::place;
use meetpoint_sim::power::PowerModel;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Side of the small pictures, as of CIFAR-10.
const SMALL_SIDE: u32 = 32;

/// The folder, and what measurements in it share.
pub(super) struct EmulatedBench {
    folder: TemporaryFolder,
    stop: Stop,
    cores: Vec<usize>,
}

impl EmulatedBench {
    /// Creates the folder. It is removed when this value is dropped, on errors and signals too.
    pub(super) fn new() -> anyhow::Result<Self> {
        let stop = Stop::install()?;
        let (folder, cleared) = TemporaryFolder::new(&std::env::temp_dir())?;
        for cleared in cleared {
            output::notice(&format!("cleared {}, left by a run that was killed", shown(&cleared)));
        }
        let cores = surface::cores();
        if cores.len() < 2 {
            output::notice(
                "there is one core only: host and emulated device share it, so their times are \
                 less exact",
            );
        }
        Ok(Self { folder, stop, cores })
    }

    /// A dataset with a recipe, and the time that this host takes for a batch of it.
    fn measured(&self, name: &str, batch_size: u32, recipe: &str) -> anyhow::Result<Material> {
        let dataset = Arc::new(Dataset::open(&self.folder.path().join(name))?);
        let batch_options = BatchOptions { batch_size, drop_last: true, seed: 0 };
        let batching = Batching::alone(batch_options, Sampling::shuffled(dataset.len()));
        let parsed = Arc::new(Recipe::from_toml(recipe)?);
        let prepare = calibrate::measure(&dataset, &parsed, batching)?;
        let (name, recipe) = (name.to_owned(), recipe.to_owned());
        Ok(Material { name, recipe, batch_size, prepare })
    }

    fn write(&self, material: &Material, parameters: JobParameters) -> anyhow::Result<PathBuf> {
        let folder = self.folder.path();
        place(folder, "recipe.toml", material.recipe.as_bytes())?;
        Ok(place(folder, "job.toml", job_text(material, parameters, &self.cores).as_bytes())?)
    }
}

impl Bench for EmulatedBench {
    type Error = anyhow::Error;

    fn material(
        &self,
        name: &str,
        pictures: Pictures,
        count: u32,
        batch_size: u32,
        recipe: &str,
    ) -> anyhow::Result<Material> {
        let source = self.folder.path().join(format!("{name}-pictures"));
        let threads = self.cores.len().max(1);
        match pictures {
            Pictures::Photographs => {
                let mut bar = Progress::new("drawing", "pictures", count.into());
                generate::generate(&source, count, 0, threads, &self.stop, &mut |done| {
                    bar.set(done.into(), count.into());
                })?;
            }
            Pictures::Small => small_pictures(&source, count, &self.stop)?,
        }
        let packed = self.folder.path().join(name);
        let options = PackOptions {
            check: Check::Header,
            on_error: OnError::Fail,
            threads,
            stop: self.stop.flag(),
            ..PackOptions::default()
        };
        pack_with_bar(&source, &packed, &options)?;
        std::fs::remove_dir_all(&source)
            .with_context(|| format!("failed to remove {}", shown(&source)))?;
        self.measured(name, batch_size, recipe)
    }

    fn with_recipe(&self, material: &Material, recipe: &str) -> anyhow::Result<Material> {
        self.measured(&material.name, material.batch_size, recipe)
    }

    fn run(
        &self,
        material: &Material,
        parameters: JobParameters,
        strategies: &[StrategyName],
    ) -> anyhow::Result<Report> {
        self.stop.check()?;
        let path = self.write(material, parameters)?;
        let job = JobFile::load(&path)?;
        // Only the report is needed.
        let plan = RunPlan::of(strategies);
        runner::run(&job, &plan, &PowerModel::bundled(), &self.stop, Output::new(true))
    }

    fn failed(&self, failure: &str) {
        output::notice(failure);
    }
}

/// On a machine with several cores, the last one is reserved for the device, because a drive has
/// its own processor. If host and device shared it, neither time would be accurate.
fn job_text(material: &Material, parameters: JobParameters, cores: &[usize]) -> String {
    let host_cores = match cores.split_last() {
        Some((_, [])) | None => String::new(),
        Some((_, apart)) => format!("host_cores = {apart:?}\n"),
    };
    format!(
        "dataset = \"{}\"\nrecipe = \"recipe.toml\"\nbatch_size = {}\ndrop_last = true\n\
         workers = {}\n{host_cores}profile_batches = 3\nverify = false\n\
         stall_timeout = \"30s\"\n\
         [device]\nkind = \"emulated\"\ncpu_ratio = {:.4}\nallow_shared = {}\n\
         [spool]\nkind = \"memory\"\nquota = \"512MiB\"\n\
         [accelerator]\nkind = \"emulated\"\nstep = \"{}us\"\n",
        material.name,
        material.batch_size,
        parameters.workers,
        parameters.cpu_ratio.clamp(0.001, 1.0),
        host_cores.is_empty(),
        parameters.step.as_micros().max(1)
    )
}

/// Pictures of 32 x 32 pixels in two classes: a gradient with grain, the same on every machine.
fn small_pictures(folder: &Path, count: u32, stop: &Stop) -> anyhow::Result<()> {
    let mut bar = Progress::new("drawing", "pictures", count.into());
    for class in ["even", "odd"] {
        let path = folder.join(class);
        std::fs::create_dir_all(&path)
            .with_context(|| format!("failed to create folder {}", shown(&path)))?;
    }
    for index in 0..count {
        stop.check()?;
        let mut random = SplitMix64::new(index.into());
        let picture = image::RgbImage::from_fn(SMALL_SIDE, SMALL_SIDE, |x, y| {
            let grain = (random.next_u64() >> 60) as u32;
            let tone = |slope: u32| ((x * slope + y * 3 + index * 5 + grain) & 0xff) as u8;
            image::Rgb([tone(2), tone(4), tone(6)])
        });
        let class = if index.is_multiple_of(2) { "even" } else { "odd" };
        let path = folder.join(class).join(format!("{index:05}.png"));
        picture.save(&path).with_context(|| format!("failed to write {}", shown(&path)))?;
        bar.set(u64::from(index) + 1, count.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Bench, EmulatedBench, JobParameters, Material, Pictures, job_text};
    use meetpoint_host::JobFile;
    use std::path::Path;
    use std::time::Duration;

    #[test]
    fn the_job_that_is_written_can_be_read() {
        let material = Material {
            name: "set".into(),
            recipe: String::new(),
            batch_size: 8,
            prepare: Duration::from_millis(20),
        };
        let parameters =
            JobParameters { workers: 1, step: Duration::from_micros(12_345), cpu_ratio: 0.123_456 };
        let parsed = |cores: &[usize]| {
            let text = job_text(&material, parameters, cores).replace(
                "recipe = \"recipe.toml\"\n",
                "recipe.operation = [{ name = \"decode\" }]\n",
            );
            JobFile::parse(&text, Path::new("job.toml")).unwrap()
        };
        let job = parsed(&[0]);
        assert_eq!((job.workers, job.batch_size, job.verify), (1, 8, false));
        assert_eq!(job.host_cores, None);
        assert_eq!(parsed(&[2, 3, 7]).host_cores, Some(vec![2, 3]));
    }

    #[test]
    fn small_pictures_become_material() {
        let bench = EmulatedBench::new().unwrap();
        let recipe = "[[operation]]\nname = \"decode\"\n[[operation]]\n\
                      name = \"random_resized_crop\"\nsize = 32\n";
        let made = bench.material("small", Pictures::Small, 40, 4, recipe).unwrap();
        assert!(made.prepare > Duration::ZERO);
    }
}
