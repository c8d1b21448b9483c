//! The experiments, measured on the emulated device, at the point that the headline implies.

use super::experiments::FASTER;
use super::paper;
use super::region::{self, Method, Reading};
use crate::Progress;
use crate::bench::{Bench, JobParameters, Material, PHOTOGRAPHS, Pictures, Times};
use meetpoint_report::grid::Grid;
use meetpoint_report::units::{seconds, signed_percent, significant};
use meetpoint_report::{Report, Run};
use meetpoint_scheduler::StrategyName;
use serde::Serialize;
use std::time::Duration;

/// The interpretation at whose point the emulated machine runs; the abstract weakly supports it.
pub(crate) const AIM: Reading = Reading::Throughput;

/// Photographs in a batch.
const BATCH_SIZE: u32 = 8;

/// CIFAR-10-like: small pictures, a crop of the same size, mirrored.
const SMALL_RECIPE: &str = "[[operation]]\nname = \"decode\"\n\n[[operation]]\n\
     name = \"random_resized_crop\"\nsize = 32\n\n[[operation]]\n\
     name = \"random_horizontal_flip\"\np = 0.5\n";

/// The faster host path, in place of DALI: the same recipe with a less exact and cheaper decoder.
const FASTER_RECIPE: &str = "[[operation]]\nname = \"decode\"\nscaled = true\n\n[[operation]]\n\
     name = \"random_resized_crop\"\nsize = 224\n\n[[operation]]\n\
     name = \"random_horizontal_flip\"\np = 0.5\n";

/// The extent of the measurements.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Batches of an epoch of photographs.
    pub batches: u32,
    /// Whether only the first setting is measured.
    pub quick: bool,
}

/// A run, compared with the host alone in the same setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// `measured`, always.
    pub kind: &'static str,
    /// Recipe.
    pub recipe: &'static str,
    /// w.
    pub workers: u32,
    /// `exact` or `faster`.
    pub host_path: &'static str,
    /// Strategy.
    pub strategy: String,
    /// T.
    pub seconds: f64,
    /// Samples per second.
    pub samples_per_second: f64,
    /// T/T0.
    pub time_ratio: Option<f64>,
    /// n_s/N.
    pub device_share: f64,
    /// CPU time of the host process saved, as a share.
    pub host_cpu_less: Option<f64>,
    /// Reduction of the bytes of dataset and spool that the host read, as a share; not DRAM
    /// traffic.
    pub host_read_less: Option<f64>,
    /// Mean times of its batches.
    pub times: Option<Times>,
    /// Why the run is invalid; empty if it is valid.
    pub invalid: Vec<String>,
}

/// Modelled energy of a measured run, in a separate row from measured figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EnergyRow {
    /// `modelled`, always.
    pub kind: &'static str,
    /// Recipe.
    pub recipe: &'static str,
    /// w.
    pub workers: u32,
    /// `exact` or `faster`.
    pub host_path: &'static str,
    /// Strategy.
    pub strategy: String,
    /// E/E0.
    pub modelled_ratio: Option<f64>,
    /// `modelled(PROFILE@HASH)`.
    pub source: String,
}

/// The results of all measurements.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Runs.
    pub rows: Vec<Row>,
    /// Their modelled energy.
    pub energy: Vec<EnergyRow>,
    /// A sentence for each run that failed.
    pub failures: Vec<String>,
    /// The machine.
    pub machine: String,
}

/// A setting of the experiments.
struct Setting<'a> {
    recipe: &'static str,
    host_path: &'static str,
    workers: u32,
    material: &'a Material,
    parameters: JobParameters,
}

/// The step and the share of a core with which a host of this speed is at a point.
fn parameters_at(prepare: Duration, (x, y): (f64, f64)) -> (Duration, f64) {
    let step = prepare.mul_f64(x / (1.0 - x));
    (step, prepare.as_secs_f64() / (y * (prepare + step).as_secs_f64()))
}

/// The photographs of most experiments.
pub fn photographs<B: Bench>(bench: &B, size: Size) -> Result<Material, B::Error> {
    let count = size.batches * BATCH_SIZE;
    bench.material("photos.set", Pictures::Photographs, count, BATCH_SIZE, PHOTOGRAPHS)
}

/// A sentence about the host's speed with the photographs, and the settings that follow from it.
pub fn describe(photographs: &Material) -> String {
    let point = region::point(AIM, paper::IMAGENET_GAIN, paper::USAGE_LESS);
    let (step, cpu_ratio) = parameters_at(photographs.prepare, point);
    format!(
        "this host prepares {BATCH_SIZE} photographs in {}; step {}, device {cpu_ratio:.3} of a \
         core",
        seconds(photographs.prepare.as_secs_f64()),
        seconds(step.as_secs_f64())
    )
}

/// Runs them all.
pub fn run<B: Bench>(
    bench: &B,
    photos: &Material,
    size: Size,
    progress: Progress<'_>,
) -> Result<Outcome, B::Error> {
    let point = region::point(AIM, paper::IMAGENET_GAIN, paper::USAGE_LESS);
    let (step, cpu_ratio) = parameters_at(photos.prepare, point);
    let mut outcome = Outcome { machine: String::new(), ..Outcome::default() };
    let parameters_with = |workers| JobParameters { workers, step, cpu_ratio };
    let setting = |workers| Setting {
        recipe: "ImageNet-like",
        host_path: "exact",
        workers,
        material: photos,
        parameters: parameters_with(workers),
    };
    let small;
    let faster;
    let mut settings = vec![setting(0)];
    if !size.quick {
        settings.push(setting(16));
        faster = bench.with_recipe(photos, FASTER_RECIPE)?;
        // The device decodes faster as well; its share of a core is reduced, so that t_s stays the
        // same.
        let share = cpu_ratio * faster.prepare.as_secs_f64() / photos.prepare.as_secs_f64();
        for workers in [0, 16] {
            let parameters = JobParameters { workers, step, cpu_ratio: share };
            let (recipe, host_path) = ("ImageNet-like", "faster");
            settings.push(Setting { recipe, host_path, workers, material: &faster, parameters });
        }
        small = bench.material("small.set", Pictures::Small, 128 * 60, 128, SMALL_RECIPE)?;
        let y = region::border(Method::Wrr, AIM, paper::CIFAR_GAIN, point.0);
        let (step, cpu_ratio) = parameters_at(small.prepare, (point.0, y));
        for workers in [0, 16] {
            let parameters = JobParameters { workers, step, cpu_ratio };
            let (recipe, host_path) = ("CIFAR-10-like", "exact");
            settings.push(Setting { recipe, host_path, workers, material: &small, parameters });
        }
    }
    let total = settings.len() as u64;
    for (done, setting) in settings.iter().enumerate() {
        progress(done as u64, total);
        use StrategyName::{DeviceOnly, HostOnly, Mte, Wrr};
        // The first access to memory is slow, and would slow down the first strategy: with 16
        // workers by up to half an epoch.
        bench.run(setting.material, setting.parameters, &[HostOnly])?;
        let report =
            bench.run(setting.material, setting.parameters, &[HostOnly, Mte, Wrr, DeviceOnly])?;
        take(bench, &mut outcome, setting, &report);
    }
    Ok(outcome)
}

fn take<B: Bench>(bench: &B, outcome: &mut Outcome, setting: &Setting<'_>, report: &Report) {
    let machine = &report.machine;
    outcome.machine = format!("{}, {} cores usable", machine.processor, machine.cores);
    for failure in &report.failures {
        let said = format!("{}, {}: {}", setting.recipe, failure.what, failure.error);
        bench.failed(&said);
        outcome.failures.push(said);
    }
    let alone = report.runs.iter().find(|run| run.strategy == "host-only");
    for run in &report.runs {
        outcome.rows.push(row(setting, run, alone));
        outcome.energy.extend(energy(setting, run, alone));
    }
}

fn row(setting: &Setting<'_>, run: &Run, alone: Option<&Run>) -> Row {
    let totals = &run.totals;
    let less = |of: fn(&Run) -> f64| {
        alone.filter(|alone| of(alone) > 0.0).map(|alone| 1.0 - of(run) / of(alone))
    };
    let batches = totals.host_batches + totals.device_batches;
    Row {
        kind: "measured",
        recipe: setting.recipe,
        workers: setting.workers,
        host_path: setting.host_path,
        strategy: run.strategy.clone(),
        seconds: totals.seconds,
        samples_per_second: totals.samples_per_second,
        time_ratio: alone.map(|alone| totals.seconds / alone.totals.seconds),
        device_share: totals.device_batches as f64 / batches.max(1) as f64,
        host_cpu_less: less(|run| run.totals.host_core_seconds),
        host_read_less: less(|run| run.totals.host_bytes_read as f64),
        times: Times::of(run),
        invalid: run.invalid(),
    }
}

fn energy(setting: &Setting<'_>, run: &Run, alone: Option<&Run>) -> Option<EnergyRow> {
    let energy = run.modelled_energy.as_ref()?;
    let alone = alone.and_then(|alone| alone.modelled_energy.as_ref());
    Some(EnergyRow {
        kind: "modelled",
        recipe: setting.recipe,
        workers: setting.workers,
        host_path: setting.host_path,
        strategy: run.strategy.clone(),
        modelled_ratio: alone.map(|alone| energy.modelled_joules / alone.modelled_joules),
        source: energy.source.clone(),
    })
}

/// The measurements as a table.
pub(crate) fn grid(rows: &[Row]) -> Grid {
    let head = [
        "kind",
        "recipe",
        "w",
        "host path",
        "strategy",
        "time",
        "samples/s",
        "throughput",
        "device's share",
        "CPU saved",
        "t_g/t_c",
        "t_s/t_c",
        "",
    ];
    let mut grid = Grid::new(&head, 5..12);
    let unknown = || "–".to_owned();
    for row in rows {
        let (x, y) = ratios(row);
        grid.rows.push(vec![
            row.kind.to_owned(),
            row.recipe.to_owned(),
            row.workers.to_string(),
            row.host_path.to_owned(),
            row.strategy.clone(),
            seconds(row.seconds),
            significant(row.samples_per_second),
            row.time_ratio.map_or_else(unknown, |ratio| signed_percent(1.0 / ratio - 1.0)),
            format!("{:.1} %", row.device_share * 100.0),
            row.host_cpu_less.map_or_else(unknown, signed_percent),
            x.map_or_else(unknown, |x| format!("{x:.2}")),
            y.map_or_else(unknown, |y| format!("{y:.2}")),
            row.invalid.join("; "),
        ]);
    }
    grid
}

/// t_g/t_c and t_s/t_c as measured.
pub(crate) fn ratios(row: &Row) -> (Option<f64>, Option<f64>) {
    let of = |time: fn(&Times) -> Option<f64>| {
        let times = row.times.as_ref()?;
        Some(time(times)? / times.t_c?)
    };
    (of(|times| times.t_g), of(|times| times.t_s))
}

/// The modelled energy as a separate table.
pub(crate) fn energy_grid(rows: &[EnergyRow]) -> Grid {
    let head = ["kind", "recipe", "w", "host path", "strategy", "energy", "watts from"];
    let mut grid = Grid::new(&head, 5..6);
    for row in rows {
        let ratio = row.modelled_ratio;
        grid.rows.push(vec![
            row.kind.to_owned(),
            row.recipe.to_owned(),
            row.workers.to_string(),
            row.host_path.to_owned(),
            row.strategy.clone(),
            ratio.map_or_else(|| "–".into(), |ratio| signed_percent(ratio - 1.0)),
            row.source.clone(),
        ]);
    }
    grid
}

/// The experiments that are never measured, and why.
pub fn left_out() -> Vec<String> {
    vec![
        "several accelerators: simulated only; a job with `ranks` runs them (docs/jobs.md)"
            .to_owned(),
        format!(
            "CIFAR-10-like with a faster host path: PNGs of 32 x 32 have no cheaper decode here \
             (simulated: {FASTER} times faster)"
        ),
        "DRAM traffic: no meter for it is read".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::{FASTER_RECIPE, SMALL_RECIPE, parameters_at};
    use meetpoint_format::recipe::Recipe;
    use std::time::Duration;

    #[test]
    fn the_recipes_can_be_read_and_the_parameters_put_the_host_at_the_point() {
        for recipe in [FASTER_RECIPE, SMALL_RECIPE] {
            assert!(Recipe::from_toml(recipe).unwrap().output().is_some());
        }
        let (step, ratio) = parameters_at(Duration::from_millis(50), (0.494, 2.15));
        let t_c = 0.050 + step.as_secs_f64();
        assert!((step.as_secs_f64() / t_c - 0.494).abs() < 1e-6);
        assert!((0.050 / ratio / t_c - 2.15).abs() < 1e-6);
    }
}
