//! The table `[plan]` of a job that `meetpoint plan` wrote: the recipe and dataset of the plan, and
//! its predictions. The other keys of the file are those of any job and determine the run.

use super::table::Table;
use super::values::required;
use super::{JobError, JobFile};
use crate::Error;
use meetpoint_format::recipe::Recipe;
use meetpoint_prepare::Dataset;
use std::path::{Path, PathBuf};

/// Version of the table; another one is refused.
pub const PLAN_VERSION: u64 = 1;

/// The part of a plan that is not in the job.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The operations of its recipe, by [`operations_in_words`].
    pub operations: Vec<String>,
    /// Hash of that recipe, hexadecimal.
    pub recipe_sha256: String,
    /// The dataset of the plan.
    pub source: PathBuf,
    /// SHA-256 of the manifest of that dataset, hexadecimal.
    pub source_sha256: String,
    /// Samples of that dataset.
    pub samples: u64,
    /// The offline part; `None` if the dataset is used unchanged.
    pub offline: Option<OfflinePlan>,
    /// Its predictions.
    pub predicted: Predicted,
}

/// The offline part of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfflinePlan {
    /// What is stored, such as `2-resize` or `coefficients-fast`.
    pub stored: String,
    /// Compression of each sample.
    pub codec: String,
    /// The command that creates it.
    pub command: String,
}

/// The predictions of a plan for an epoch after the first. Modelled, never measured.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Predicted {
    /// Seconds of the first epoch, in which nothing is cached.
    pub first_epoch_seconds: f64,
    /// Seconds of a later epoch.
    pub epoch_seconds: f64,
    /// Processor seconds of the host in a later epoch.
    pub host_core_seconds: f64,
    /// Threads of the host that prepare.
    pub host_threads: f64,
    /// Seconds that devices are busy in a later epoch, summed over the devices.
    pub device_seconds: f64,
    /// Seconds that the GPU of `gpu_decode` has samples to prepare in a later epoch.
    pub gpu_seconds: f64,
    /// Bytes that host and devices read from storage in a later epoch.
    pub read_bytes: f64,
    /// Seconds that threads of the host wait for reads in a later epoch, summed over the threads.
    pub read_wait_seconds: f64,
    /// Seconds that the accelerator is busy in an epoch.
    pub accelerator_seconds: f64,
    /// Share of the samples that a later epoch takes from the application cache.
    pub cache_hit_share: f64,
}

/// The operations of a recipe with their keys, one string each.
pub fn operations_in_words(recipe: &Recipe) -> Vec<String> {
    let text = recipe.to_toml();
    let is_operation = |line: &&str| !line.starts_with('[') || line.starts_with("[[operation.");
    let words = text.split("[[operation]]\n").skip(1).map(|operation| {
        let lines = operation.lines().take_while(is_operation).map(str::trim);
        let keys: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        keys.join(", ").replacen("name = ", "", 1).replacen('"', "", 2)
    });
    words.collect()
}

/// Reads `[plan]`, if the file has it.
pub(super) fn read(table: &Table<'_>, folder: &Path) -> Result<Option<Plan>, JobError> {
    let Some(plan) = table.table("plan")? else { return Ok(None) };
    plan.allow(&[
        "version",
        "operations",
        "recipe_sha256",
        "source",
        "source_sha256",
        "samples",
        "offline",
        "predicted",
    ])?;
    let again = "the value that `meetpoint plan` wrote; make the plan again";
    let version = plan.whole("version", 0..=u64::MAX)?;
    if version != Some(PLAN_VERSION) {
        return Err(plan.wrong_at("version", format!("{PLAN_VERSION}; make the plan again")));
    }
    let operations = plan.texts("operations", "a list of operations in words")?;
    let samples = plan.whole("samples", 1..=u64::MAX)?;
    Ok(Some(Plan {
        operations: operations.ok_or_else(|| plan.missing("operations", again))?,
        recipe_sha256: required(&plan, "recipe_sha256", again)?.to_owned(),
        source: folder.join(required(&plan, "source", "the path of a dataset")?),
        source_sha256: required(&plan, "source_sha256", again)?.to_owned(),
        samples: samples.ok_or_else(|| plan.missing("samples", again))?,
        offline: offline(&plan)?,
        predicted: predicted(&plan)?,
    }))
}

fn offline(plan: &Table<'_>) -> Result<Option<OfflinePlan>, JobError> {
    let Some(offline) = plan.table("offline")? else { return Ok(None) };
    offline.allow(&["stored", "codec", "command"])?;
    let text = |key, what| Ok(required(&offline, key, what)?.to_owned());
    Ok(Some(OfflinePlan {
        stored: text("stored", "a stored form, such as \"2-resize\"")?,
        codec: text("codec", "\"none\", \"lz4\" or \"zstd\"")?,
        command: text("command", "the command that makes the dataset")?,
    }))
}

fn predicted(plan: &Table<'_>) -> Result<Predicted, JobError> {
    let Some(table) = plan.table("predicted")? else {
        return Err(plan.missing("predicted", "a table of predicted figures"));
    };
    let mut predicted = Predicted::default();
    let fields = predicted.fields_mut();
    table.allow(&fields.each_ref().map(|(name, _)| *name))?;
    for (name, value) in fields {
        let number = table.number(name, 0.0..=f64::MAX)?;
        *value = number.ok_or_else(|| table.missing(name, "a number of at least 0"))?;
    }
    Ok(predicted)
}

impl Predicted {
    /// Every figure with its name in the file.
    pub fn fields(mut self) -> Vec<(&'static str, f64)> {
        self.fields_mut().into_iter().map(|(name, value)| (name, *value)).collect()
    }

    fn fields_mut(&mut self) -> [(&'static str, &mut f64); 10] {
        [
            ("first_epoch_seconds", &mut self.first_epoch_seconds),
            ("epoch_seconds", &mut self.epoch_seconds),
            ("host_core_seconds", &mut self.host_core_seconds),
            ("host_threads", &mut self.host_threads),
            ("device_seconds", &mut self.device_seconds),
            ("gpu_seconds", &mut self.gpu_seconds),
            ("read_bytes", &mut self.read_bytes),
            ("read_wait_seconds", &mut self.read_wait_seconds),
            ("accelerator_seconds", &mut self.accelerator_seconds),
            ("cache_hit_share", &mut self.cache_hit_share),
        ]
    }
}

impl JobFile {
    /// Refuses a plan for another recipe or dataset with an error that gives the difference, and a
    /// plan whose prepared dataset does not exist with an error that gives the command to create
    /// it. A job without a plan always passes.
    pub fn check_plan(&self) -> Result<(), Error> {
        let Some(plan) = &self.plan else { return Ok(()) };
        self.check_plan_recipe(plan)?;
        let folders = self.dataset.as_slice();
        if let Some(offline) = &plan.offline
            && folders.iter().any(|folder| !folder.exists())
        {
            let problem = format!(
                "the plan prepares {} in advance, and {} does not exist",
                offline.stored, self.dataset
            );
            let remedy = format!("run `{}`", offline.command);
            return Err(self.fault("dataset", problem, remedy).into());
        }
        Ok(self.check_plan_dataset(plan, &Dataset::open_paths(&self.dataset)?)?)
    }

    fn check_plan_recipe(&self, plan: &Plan) -> Result<(), JobError> {
        let given = self.recipe.hash().to_string();
        if given == plan.recipe_sha256 {
            return Ok(());
        }
        let own = operations_in_words(&self.recipe);
        let all = 0..own.len().max(plan.operations.len());
        let mut differing = all.filter(|at| own.get(*at) != plan.operations.get(*at));
        let word = |list: &[String], at: usize| match list.get(at) {
            Some(operation) => format!("`{operation}`"),
            None => "absent".to_owned(),
        };
        let problem = match differing.next() {
            Some(at) => format!(
                "the plan was made for another recipe: operation {} was {}, and is {}",
                at + 1,
                word(&plan.operations, at),
                word(&own, at)
            ),
            None => format!(
                "the plan was made for another recipe: its operations are equal, and its targets \
                 or views differ (hash {}, now {given})",
                plan.recipe_sha256
            ),
        };
        let remedy = "make the plan again, or use the recipe that it was made for";
        Err(self.fault("plan.recipe_sha256", problem, remedy))
    }

    fn check_plan_dataset(&self, plan: &Plan, dataset: &Dataset) -> Result<(), JobError> {
        let sha256: String =
            dataset.manifest_sha256().iter().map(|byte| format!("{byte:02x}")).collect();
        let manifest = dataset.manifest();
        let noted = |key| manifest.provenance.options.get(key).map(String::as_str);
        let parent = noted("parents");
        let is_of_source = parent == Some(plan.source_sha256.as_str());
        // Any other operation on the source changes its samples or their order.
        let is_prepared = is_of_source
            && noted("operation") == Some("prepare")
            && plan.offline.as_ref().is_some_and(|offline| {
                noted("cut") == Some(&offline.stored) && noted("codec") == Some(&offline.codec)
            });
        // Packing records only the source.
        let source = Path::new(&manifest.provenance.source);
        let is_packed = plan.offline.is_some()
            && source == plan.source
            && manifest.samples == plan.samples
            && parent.is_none();
        if sha256 == plan.source_sha256 || is_prepared || is_packed {
            return Ok(());
        }
        let (expected, got) = (plan.samples, manifest.samples);
        let difference = match (expected == got, parent) {
            _ if is_of_source => {
                let [operation, cut, codec] =
                    ["operation", "cut", "codec"].map(|key| noted(key).unwrap_or("none"));
                format!("this was made from it by `{operation}` (cut {cut}, codec {codec})")
            }
            (false, _) => format!("it had {expected} samples, and this has {got}"),
            (true, Some(parent)) => {
                format!("this was prepared from the dataset with the manifest {parent}")
            }
            (true, None) => format!("this has the manifest {sha256}"),
        };
        let problem = format!(
            "the plan was made for another dataset, {} with the manifest {}: {difference}",
            plan.source.display(),
            plan.source_sha256
        );
        let remedy = "make the plan again for this dataset, or name the one that it was made for";
        Err(self.fault("dataset", problem, remedy))
    }
}
