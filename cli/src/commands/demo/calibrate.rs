//! Measures how fast this host prepares, and chooses the speeds of device and accelerator.

use anyhow::Context;
use meetpoint_format::batching::Batching;
use meetpoint_format::recipe::Recipe;
use meetpoint_kernels::Cpu;
use meetpoint_prepare::{CpuPreparer, Dataset, Job, OnError, Preparer};
use meetpoint_storage::{EngineKind, open_engine};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Batches prepared before the measurement, so that caches and clock frequencies have settled.
const WARM_UP: u32 = 3;
/// Batches that are timed.
const TIMED: u32 = 15;
/// Time of the device for a batch, divided by the time in which the host prepares it and trains on
/// it.
const DEVICE_OVER_HOST: f64 = 2.0;
/// Time of a step, divided by the time in which the host prepares a batch.
const STEP_OVER_PREPARE: f64 = 0.5;

/// The measured time, and the settings that follow from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Calibration {
    /// Median time of this host to prepare a batch.
    pub prepare: Duration,
    /// A step of the emulated accelerator.
    pub step: Duration,
    /// Share of a core that the emulated device computes.
    pub cpu_ratio: f64,
}

/// From the time of a batch: t_g = step, t_c = prepare + step, t_s = prepare / ratio = 2 t_c.
pub(super) fn choose(prepare: Duration) -> Calibration {
    let step = prepare.mul_f64(STEP_OVER_PREPARE);
    let device = (prepare + step).mul_f64(DEVICE_OVER_HOST);
    let cpu_ratio = prepare.as_secs_f64() / device.as_secs_f64();
    Calibration { prepare, step, cpu_ratio }
}

/// Median time to prepare one of the first batches, in this thread.
pub(in crate::commands) fn measure(
    dataset: &Arc<Dataset>,
    recipe: &Arc<Recipe>,
    batching: Batching,
) -> anyhow::Result<Duration> {
    let spec = recipe.output().context("the recipe's result has no fixed shape")?;
    let engine = open_engine(EngineKind::Auto, 32)?.engine;
    let mut memory = vec![0_u8; spec.bytes() * batching.batch_size() as usize];
    let batches = u32::try_from(batching.batches()).unwrap_or(u32::MAX);
    let (dataset, recipe) = (Arc::clone(dataset), Arc::clone(recipe));
    let job = Job {
        dataset,
        recipe,
        batching,
        on_error: OnError::default(),
        // The column that takes time; the memory holds no other.
        columns: vec!["image".to_owned()].into(),
    };
    let mut preparer = CpuPreparer::new(job, engine, Cpu::detect())?;
    let mut times = Vec::new();
    for round in 0..WARM_UP + TIMED {
        let begun = Instant::now();
        preparer.prepare(0, round % batches, &mut memory, &mut |_| true)?;
        if round >= WARM_UP {
            times.push(begun.elapsed());
        }
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::choose;
    use std::time::Duration;

    #[test]
    fn the_device_takes_twice_as_long_as_the_host_with_its_step() {
        let chosen = choose(Duration::from_millis(60));
        assert_eq!(chosen.step, Duration::from_millis(30));
        let t_c = 0.060 + 0.030;
        let t_s = 0.060 / chosen.cpu_ratio;
        assert!((t_s / t_c - 2.0).abs() < 1e-9);
    }
}
