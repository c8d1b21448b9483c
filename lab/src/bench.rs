//! Where experiments are measured: what they ask of a bench, and what it gives them.

use meetpoint_report::{Report, Run};
use meetpoint_scheduler::StrategyName;
use serde::Serialize;
use std::time::Duration;

/// What ResNet-like models train on, as TOML: random crops of 224 x 224, half of them mirrored.
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
    /// What fails on it, or in the experiment.
    type Error: From<crate::Error>;

    /// A dataset of `count` pictures under a recipe, and how fast the host prepares it.
    fn material(
        &self,
        name: &str,
        pictures: Pictures,
        count: u32,
        batch_size: u32,
        recipe: &str,
    ) -> Result<Material, Self::Error>;

    /// The same pictures under another recipe.
    fn with_recipe(&self, material: &Material, recipe: &str) -> Result<Material, Self::Error>;

    /// Runs a job under each of the strategies.
    fn run(
        &self,
        material: &Material,
        knobs: Knobs,
        strategies: &[StrategyName],
    ) -> Result<Report, Self::Error>;

    /// Is given what failed without ending the experiment, as a sentence.
    fn failed(&self, failure: &str);
}

/// What is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pictures {
    /// JPEGs as ImageNet's: some 400 x 500 pixels.
    Photographs,
    /// PNGs of 32 x 32 pixels, as CIFAR-10's.
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

/// What a job is to have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knobs {
    /// w.
    pub workers: u32,
    /// A step of the emulated accelerator.
    pub step: Duration,
    /// Share of a core that the emulated device computes.
    pub cpu_ratio: f64,
}

/// The constants of an epoch that was measured, as its own batches took them; seconds.
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
    /// Of the last epoch of a run.
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
