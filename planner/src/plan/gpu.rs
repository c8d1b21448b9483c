//! A GPU that prepares a share of the host's batches: how much it competes with the training steps,
//! and the source of its joules.

use super::{PlanError, Request};
use crate::results::Measured;
use crate::vocabulary::{Cache, GpuIndex};
use meetpoint_sim::power::Activity;

/// The source of the joules that a GPU spends on preparing samples, the same for all plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GpuEnergy {
    /// The power model, for the time in which the GPU has work.
    Modelled,
    /// The joules per sample of the profile, used if every row with a GPU has them.
    Measured,
}

impl GpuEnergy {
    /// The source for these measurements; `None` if none is with a GPU.
    pub fn of(results: &[Measured]) -> Option<Self> {
        let mut with_gpu = cold(results).peekable();
        with_gpu.peek()?;
        Some(match with_gpu.all(|row| row.gpu_joules.is_some()) {
            true => Self::Measured,
            false => Self::Modelled,
        })
    }
}

/// The rows with a GPU that plans use.
fn cold(results: &[Measured]) -> impl Iterator<Item = &Measured> {
    results.iter().filter(|row| row.gpu.is_some() && row.cache == Cache::Cold)
}

/// The GPUs with which a form was measured.
pub(super) fn gpus_of(results: &[Measured], is: impl Fn(&Measured) -> bool) -> Vec<GpuIndex> {
    let mut gpus: Vec<GpuIndex> =
        cold(results).filter(|row| is(row)).filter_map(|row| row.gpu).collect();
    gpus.sort_unstable();
    gpus.dedup();
    gpus
}

/// Number of accelerators: the one that trains, and the measured GPUs that do not train.
pub(super) fn accelerators(results: &[Measured], request: &Request) -> u32 {
    let others = gpus_of(results, |row| row.gpu.is_some_and(|gpu| !trains(request, gpu)));
    1 + u32::try_from(others.len()).unwrap_or(u32::MAX - 1)
}

/// Whether the training steps use this GPU, which is assumed unless the request names another.
fn trains(request: &Request, gpu: GpuIndex) -> bool {
    request.step_gpu.is_none_or(|it| it == gpu)
}

/// Whether preparing and training compete for the GPU of a plan.
pub(super) fn competes(request: &Request, gpu: Option<GpuIndex>) -> bool {
    request.step_ns > 0 && gpu.is_some_and(|gpu| trains(request, gpu))
}

/// Watts that a busy accelerator draws in addition to an idle one.
pub(super) fn watts(request: &Request) -> f64 {
    let activity = Activity { accelerator_busy_s: 1.0, ..Activity::default() };
    request.power.energy(&activity).total_j
}

/// Refuses a power model without an accelerator, with which the work of a GPU would cost nothing.
pub(super) fn check_watts(request: &Request) -> Result<(), PlanError> {
    match watts(request) > 0.0 {
        true => Ok(()),
        false => Err(PlanError::NoGpuWatts { profile: request.power.profile().to_owned() }),
    }
}
