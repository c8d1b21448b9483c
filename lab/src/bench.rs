//! The interface of experiments to the machine on which they are measured.

use meetpoint_report::{Report, Run};
use meetpoint_scheduler::StrategyName;
use serde::Serialize;
use std::time::Duration;

/// The usual recipe for ResNet-like models, as TOML: random crops of 224 x 224, half of them
/// flipped.
pub const PHOTOGRAPHS: &str = r#"[[operation]]
name = "decode"

[[operation]]
name = "random_resized_crop"
size = 224

[[operation]]
name = "random_horizontal_flip"
p = 0.5
"#;

/// A machine on which jobs run with an emulated device.
pub trait Bench {
    /// The error of a measurement or an experiment.
    type Error: From<crate::Error>;

    /// Creates a dataset of `count` pictures with a recipe, and measures how fast the host prepares
    /// it.
    fn material(
        &self,
        name: &str,
        pictures: Pictures,
        count: u32,
        batch_size: u32,
        recipe: &str,
    ) -> Result<Material, Self::Error>;

    /// The same pictures with another recipe.
    fn with_recipe(&self, material: &Material, recipe: &str) -> Result<Material, Self::Error>;

    /// Runs a job with each of the strategies.
    fn run(
        &self,
        material: &Material,
        parameters: JobParameters,
        strategies: &[StrategyName],
    ) -> Result<Report, Self::Error>;

    /// Called with a sentence for each failure that does not end the experiment.
    fn failed(&self, failure: &str);
}

/// The pictures of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pictures {
    /// JPEGs similar to ImageNet's: about 400 x 500 pixels.
    Photographs,
    /// PNGs of 32 x 32 pixels, as in CIFAR-10.
    Small,
}

/// A dataset with a recipe, and how fast this host prepares a batch of it.
#[derive(Debug, Clone)]
pub struct Material {
    /// Name of its folder.
    pub name: String,
    /// The recipe, as TOML.
    pub recipe: String,
    /// Samples in a batch.
    pub batch_size: u32,
    /// Median time of this host for a batch, one thread.
    pub prepare: Duration,
}

/// Parameters of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobParameters {
    /// w, the number of background workers.
    pub workers: u32,
    /// A step of the emulated accelerator.
    pub step: Duration,
    /// Share of a core that the emulated device computes.
    pub cpu_ratio: f64,
}

/// The mean times of the batches of a measured epoch, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Times {
    /// t_p.
    pub preparation: f64,
    /// t_c.
    pub t_c: Option<f64>,
    /// t_g.
    pub t_g: Option<f64>,
    /// t_s.
    pub t_s: Option<f64>,
}

impl Times {
    /// The times of the last epoch of a run.
    pub(crate) fn of(run: &Run) -> Option<Self> {
        let epoch = run.epochs.last()?;
        let profile = &epoch.profile;
        Some(Self {
            preparation: epoch.prepare.mean_seconds,
            t_c: profile.t_c_seconds,
            t_g: profile.t_g_seconds,
            t_s: profile.t_s_seconds,
        })
    }
}
