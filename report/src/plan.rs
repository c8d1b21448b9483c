//! Compares the predictions of a plan with the results of a run, per resource, and explains
//! differences.
//!
//! Predicted figures are modelled and achieved ones are measured; they have separate columns.

pub use crate::deviation::Deviation;
use crate::grid::Grid;
use crate::units::{bytes, seconds};
use meetpoint_host::job::Predicted;
use meetpoint_host::stats::{CacheUse, EpochStats};
use serde::{Deserialize, Serialize};

/// Differences below this share are not explained.
const NOTABLE: f64 = 0.1;

/// A resource that can limit an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// The processor of the host.
    HostCpu,
    /// The processor of the devices.
    DeviceCpu,
    /// The GPU that prepares a share of the host's batches.
    Gpu,
    /// Reading from storage.
    StorageRead,
    /// The accelerator.
    Accelerator,
}

impl Resource {
    /// Every resource.
    pub const ALL: [Self; 5] =
        [Self::HostCpu, Self::DeviceCpu, Self::Gpu, Self::StorageRead, Self::Accelerator];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostCpu => "host CPU",
            Self::DeviceCpu => "device CPU",
            Self::Gpu => "GPU",
            Self::StorageRead => "storage read",
            Self::Accelerator => "accelerator",
        }
    }
}

/// The use of each resource in one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ResourceUse {
    /// Its duration.
    pub epoch_seconds: f64,
    /// Processor seconds of the host.
    pub host_core_seconds: f64,
    /// Seconds that devices are busy, summed over the devices.
    pub device_seconds: f64,
    /// Seconds that the GPU has samples to prepare; at most those of the epoch.
    pub gpu_seconds: f64,
    /// Bytes that host and devices read from storage.
    pub read_bytes: f64,
    /// Seconds that threads of the host wait for reads, summed over the threads.
    pub read_wait_seconds: f64,
    /// Seconds that the accelerator is busy.
    pub accelerator_seconds: f64,
    /// Share of the host's samples that come from the application cache.
    pub cache_hit_share: f64,
}

/// The available amount of each resource.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Capacity {
    /// Threads of the host that prepare.
    pub host_threads: f64,
    /// Devices.
    pub devices: f64,
}

impl ResourceUse {
    /// Share of the epoch in which a resource is busy; for storage, in which threads wait for it.
    pub fn utilisation(&self, resource: Resource, of: &Capacity) -> f64 {
        let share = |busy: f64, units: f64| {
            let all = self.epoch_seconds * units;
            if all > 0.0 { busy / all } else { 0.0 }
        };
        match resource {
            Resource::HostCpu => share(self.host_core_seconds, of.host_threads),
            Resource::DeviceCpu => share(self.device_seconds, of.devices),
            Resource::Gpu => share(self.gpu_seconds, 1.0),
            Resource::StorageRead => share(self.read_wait_seconds, of.host_threads),
            Resource::Accelerator => share(self.accelerator_seconds, 1.0),
        }
    }

    /// The resource that is busy for the largest share of the epoch.
    pub fn bottleneck(&self, of: &Capacity) -> Resource {
        let busiest = Resource::ALL
            .into_iter()
            .map(|resource| (resource, self.utilisation(resource, of)))
            .reduce(|a, b| if b.1 > a.1 { b } else { a });
        busiest.map_or(Resource::HostCpu, |(resource, _)| resource)
    }
}

/// A plan compared with the run that applied it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanComparison {
    /// Whether the epoch is the first, in which nothing is cached; else the mean of the later ones.
    pub is_first_epoch: bool,
    /// Modelled.
    pub predicted: ResourceUse,
    /// Measured.
    pub achieved: ResourceUse,
    /// The available amount of each resource.
    pub capacity: Capacity,
    /// The resource that limits the epoch as predicted.
    pub predicted_bottleneck: Resource,
    /// The resource that limited it.
    pub achieved_bottleneck: Resource,
    /// Achieved over predicted duration, minus 1.
    pub error_ratio: f64,
    /// Why they differ; empty if they agree.
    pub deviations: Vec<Deviation>,
}

/// Compares a plan with the epochs of a run; `None` if no epoch is complete. `step_seconds`: a
/// step of the accelerator.
pub fn compare(
    predicted: &Predicted,
    epochs: &[EpochStats],
    step_seconds: f64,
) -> Option<PlanComparison> {
    let complete: Vec<&EpochStats> = epochs.iter().filter(|epoch| epoch.is_complete).collect();
    let later: Vec<&EpochStats> = complete.iter().filter(|it| it.epoch > 0).copied().collect();
    let is_first_epoch = later.is_empty();
    let compared = if is_first_epoch { complete } else { later };
    let count = compared.len() as f64;
    compared.first()?;
    let mean = |of: &dyn Fn(&EpochStats) -> f64| {
        compared.iter().map(|epoch| of(epoch)).sum::<f64>() / count
    };
    let devices = |epoch: &EpochStats, of: fn(&meetpoint_host::stats::DeviceStats) -> u64| {
        epoch.devices.iter().map(of).sum::<u64>() as f64
    };
    let achieved = ResourceUse {
        epoch_seconds: mean(&|it| it.duration_ns as f64 * 1e-9),
        host_core_seconds: mean(&|it| it.host_cpu_ns.saturating_sub(it.verify_ns) as f64 * 1e-9),
        device_seconds: mean(&|it| devices(it, |device| device.busy_ns) * 1e-9),
        // Batches of several threads overlap.
        gpu_seconds: mean(&|it| {
            let busy_ns = it.gpu.as_ref().map_or(0, |gpu| gpu.busy_ns);
            busy_ns.min(it.duration_ns) as f64 * 1e-9
        }),
        read_bytes: mean(&|it| it.host_bytes_read as f64 + devices(it, |device| device.bytes_read)),
        read_wait_seconds: mean(&|it| it.read.mean_ns * it.read.count as f64 * 1e-9),
        accelerator_seconds: mean(&|it| it.records.len() as f64 * step_seconds),
        cache_hit_share: mean(&|it| it.cache.as_ref().map_or(0.0, CacheUse::hit_share)),
    };
    Some(PlanComparison::of(predicted, achieved, compared[0].devices.len(), is_first_epoch))
}

impl PlanComparison {
    /// The predicted resources beside those that an epoch with these devices used.
    fn of(
        predicted: &Predicted,
        achieved: ResourceUse,
        devices: usize,
        is_first_epoch: bool,
    ) -> Self {
        let (epoch_seconds, cache_hit_share) = match is_first_epoch {
            true => (predicted.first_epoch_seconds, 0.0),
            false => (predicted.epoch_seconds, predicted.cache_hit_share),
        };
        let expected = ResourceUse {
            epoch_seconds,
            host_core_seconds: predicted.host_core_seconds,
            device_seconds: predicted.device_seconds,
            gpu_seconds: predicted.gpu_seconds,
            read_bytes: predicted.read_bytes,
            read_wait_seconds: predicted.read_wait_seconds,
            accelerator_seconds: predicted.accelerator_seconds,
            cache_hit_share,
        };
        let capacity = Capacity { host_threads: predicted.host_threads, devices: devices as f64 };
        let is_filling = is_first_epoch && predicted.cache_hit_share > 0.0;
        Self {
            is_first_epoch,
            predicted_bottleneck: expected.bottleneck(&capacity),
            achieved_bottleneck: achieved.bottleneck(&capacity),
            deviations: deviations(&expected, &achieved, is_filling),
            predicted: expected,
            achieved,
            capacity,
            error_ratio: ratio(achieved.epoch_seconds, expected.epoch_seconds) - 1.0,
        }
    }
}

fn ratio(achieved: f64, predicted: f64) -> f64 {
    if predicted > 0.0 { achieved / predicted } else { 1.0 }
}

/// What differs where the duration does. `is_filling`: the resources predicted are those of an
/// epoch with a full cache, and this one fills it.
fn deviations(predicted: &ResourceUse, achieved: &ResourceUse, is_filling: bool) -> Vec<Deviation> {
    let of = |value: fn(&ResourceUse) -> f64| ratio(value(achieved), value(predicted));
    let is_notable = |ratio: f64| (ratio - 1.0).abs() > NOTABLE;
    let epoch = of(|it| it.epoch_seconds);
    if !is_notable(epoch) {
        return Vec::new();
    }
    let host = of(|it| it.host_core_seconds);
    let cores = |it: &ResourceUse| {
        if it.epoch_seconds > 0.0 { it.host_core_seconds / it.epoch_seconds } else { 0.0 }
    };
    let (had, needed) = (cores(achieved), cores(predicted));
    // Without the GPU, the host has other work than predicted, so its figures say nothing else.
    let is_gpu_unused = predicted.gpu_seconds > 0.0 && achieved.gpu_seconds <= 0.0;
    let mut found = Vec::new();
    if is_gpu_unused {
        found.push(Deviation::GpuUnused);
    }
    if !is_filling {
        if is_notable(host) && !is_gpu_unused {
            found.push(Deviation::HostTime { ratio: host });
        }
        let has_fewer_cores = epoch > 1.0 && needed > 0.0 && had < needed * (1.0 - NOTABLE);
        if has_fewer_cores && !is_gpu_unused {
            found.push(Deviation::HostShare { cores: had, predicted_cores: needed });
        }
        let reads = of(|it| it.read_bytes);
        // Blocks around what is wanted are read too.
        if (reads - 1.0).abs() > 2.0 * NOTABLE {
            found.push(Deviation::Reads { ratio: reads });
        }
        let (achieved, predicted) = (achieved.cache_hit_share, predicted.cache_hit_share);
        if (achieved - predicted).abs() > NOTABLE {
            found.push(Deviation::CacheHits { achieved, predicted });
        }
    }
    let device = of(|it| it.device_seconds);
    if is_notable(device) {
        found.push(Deviation::DeviceTime { ratio: device });
    }
    let gpu = of(|it| it.gpu_seconds);
    if is_notable(gpu) && !is_gpu_unused {
        found.push(Deviation::GpuTime { ratio: gpu });
    }
    let steps = of(|it| it.accelerator_seconds);
    if is_notable(steps) {
        found.push(Deviation::Steps { ratio: steps });
    }
    if found.is_empty() {
        found.push(Deviation::Unexplained { ratio: epoch });
    }
    found
}

impl PlanComparison {
    /// Each resource with what was predicted (modelled) and achieved (measured).
    pub fn grid(&self) -> Grid {
        let head = ["resource", "predicted (modelled)", "busy", "achieved (measured)", "busy"];
        let mut grid = Grid::new(&head, 1..head.len());
        let time = [self.predicted, self.achieved].map(|it| seconds(it.epoch_seconds));
        let [predicted, achieved] = time;
        grid.rows.push(vec!["epoch".into(), predicted, String::new(), achieved, String::new()]);
        let has_gpu = self.predicted.gpu_seconds > 0.0 || self.achieved.gpu_seconds > 0.0;
        let shown = |it: &Resource| *it != Resource::Gpu || has_gpu;
        for resource in Resource::ALL.into_iter().filter(shown) {
            let amount = |used: &ResourceUse| match resource {
                Resource::HostCpu => seconds(used.host_core_seconds),
                Resource::DeviceCpu => seconds(used.device_seconds),
                Resource::Gpu => seconds(used.gpu_seconds),
                Resource::StorageRead => bytes(used.read_bytes.max(0.0) as u64),
                Resource::Accelerator => seconds(used.accelerator_seconds),
            };
            let busy = |used: &ResourceUse| {
                format!("{:.0} %", 100.0 * used.utilisation(resource, &self.capacity))
            };
            grid.rows.push(vec![
                resource.name().to_owned(),
                amount(&self.predicted),
                busy(&self.predicted),
                amount(&self.achieved),
                busy(&self.achieved),
            ]);
        }
        grid
    }

    /// The bottleneck, and why the prediction was off.
    pub fn sentences(&self) -> Vec<String> {
        let which = if self.is_first_epoch { "the first epoch" } else { "a later epoch" };
        let (predicted, achieved) = (self.predicted_bottleneck, self.achieved_bottleneck);
        let mut said = vec![format!(
            "Plan: {which} took {} and {} were predicted ({:+.1} %); the bottleneck was the {}, \
             and the {} was predicted.",
            seconds(self.achieved.epoch_seconds),
            seconds(self.predicted.epoch_seconds),
            100.0 * self.error_ratio,
            achieved.name(),
            predicted.name()
        )];
        said.extend(self.deviations.iter().map(|why| format!("The prediction was off: {why}.")));
        said
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Capacity, Deviation, PlanComparison, Predicted, Resource, ResourceUse, deviations,
    };

    const PREDICTED: ResourceUse = ResourceUse {
        epoch_seconds: 10.0,
        host_core_seconds: 18.0,
        device_seconds: 0.0,
        gpu_seconds: 0.0,
        read_bytes: 1e9,
        read_wait_seconds: 1.0,
        accelerator_seconds: 4.0,
        cache_hit_share: 0.0,
    };

    #[test]
    fn the_busiest_resource_is_the_bottleneck() {
        let capacity = Capacity { host_threads: 2.0, devices: 0.0 };
        assert_eq!(PREDICTED.bottleneck(&capacity), Resource::HostCpu);
        let slow_drive =
            ResourceUse { read_wait_seconds: 15.0, host_core_seconds: 5.0, ..PREDICTED };
        assert_eq!(slow_drive.bottleneck(&capacity), Resource::StorageRead);
        let steps = ResourceUse { accelerator_seconds: 9.9, ..PREDICTED };
        assert_eq!(steps.bottleneck(&capacity), Resource::Accelerator);
    }

    #[test]
    fn a_difference_is_put_down_to_what_differs() {
        assert_eq!(
            deviations(&PREDICTED, &ResourceUse { epoch_seconds: 10.5, ..PREDICTED }, false),
            []
        );
        // The same work, while other processes use the cores.
        let shared = ResourceUse { epoch_seconds: 20.0, ..PREDICTED };
        let expected = [Deviation::HostShare { cores: 0.9, predicted_cores: 1.8 }];
        assert_eq!(deviations(&PREDICTED, &shared, false), expected);
        // More work.
        let slower = ResourceUse { epoch_seconds: 20.0, host_core_seconds: 36.0, ..PREDICTED };
        let expected = [Deviation::HostTime { ratio: 2.0 }];
        assert_eq!(deviations(&PREDICTED, &slower, false), expected);
        let steps = ResourceUse { epoch_seconds: 8.0, accelerator_seconds: 2.0, ..PREDICTED };
        let found = deviations(&PREDICTED, &steps, false);
        assert_eq!(found, [Deviation::Steps { ratio: 0.5 }]);
        let odd = ResourceUse { epoch_seconds: 8.0, ..PREDICTED };
        assert_eq!(deviations(&PREDICTED, &odd, false), [Deviation::Unexplained { ratio: 0.8 }]);
    }

    /// A plan whose epochs are as [`PREDICTED`] once nine of ten samples are cached.
    const PLAN: Predicted = Predicted {
        first_epoch_seconds: 40.0,
        epoch_seconds: 10.0,
        host_core_seconds: 18.0,
        host_threads: 2.0,
        device_seconds: 0.0,
        gpu_seconds: 0.0,
        read_bytes: 1e9,
        read_wait_seconds: 1.0,
        accelerator_seconds: 4.0,
        cache_hit_share: 0.9,
    };

    #[test]
    fn a_later_epoch_is_compared_with_the_prediction_for_later_epochs() {
        let achieved = ResourceUse { epoch_seconds: 20.0, cache_hit_share: 0.9, ..PREDICTED };
        let compared = PlanComparison::of(&PLAN, achieved, 0, false);
        assert_eq!(compared.predicted, ResourceUse { cache_hit_share: 0.9, ..PREDICTED });
        assert!((compared.error_ratio - 1.0).abs() < 1e-12);
        assert_eq!(compared.predicted_bottleneck, Resource::HostCpu);
        let expected = [Deviation::HostShare { cores: 0.9, predicted_cores: 1.8 }];
        assert_eq!(compared.deviations, expected);
    }

    #[test]
    fn a_first_epoch_that_fills_the_cache_is_not_measured_by_a_full_one() {
        let achieved = ResourceUse { epoch_seconds: 80.0, host_core_seconds: 70.0, ..PREDICTED };
        let compared = PlanComparison::of(&PLAN, achieved, 0, true);
        assert!((compared.predicted.epoch_seconds - 40.0).abs() < 1e-12);
        assert!(compared.predicted.cache_hit_share.abs() < 1e-12);
        // Processor time and reads of a full cache say nothing about this epoch.
        assert_eq!(compared.deviations, [Deviation::Unexplained { ratio: 2.0 }]);
    }

    #[test]
    fn misses_of_the_cache_reads_and_devices_are_named() {
        let predicted = ResourceUse { cache_hit_share: 0.9, device_seconds: 2.0, ..PREDICTED };
        let achieved = ResourceUse {
            epoch_seconds: 20.0,
            host_core_seconds: 36.0,
            device_seconds: 6.0,
            read_bytes: 5e9,
            cache_hit_share: 0.5,
            ..PREDICTED
        };
        let found = deviations(&predicted, &achieved, false);
        let hits = Deviation::CacheHits { achieved: 0.5, predicted: 0.9 };
        let expected = [
            Deviation::HostTime { ratio: 2.0 },
            Deviation::Reads { ratio: 5.0 },
            hits,
            Deviation::DeviceTime { ratio: 3.0 },
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_plan_that_predicts_nothing_of_a_resource_divides_by_nothing() {
        let compared = PlanComparison::of(&Predicted::default(), PREDICTED, 0, false);
        assert!(compared.error_ratio.abs() < 1e-12);
        assert_eq!(compared.deviations, []);
        let idle = Capacity::default();
        for resource in Resource::ALL {
            let share = PREDICTED.utilisation(resource, &idle);
            assert!(share.is_finite(), "{resource:?}");
        }
        assert!(ResourceUse::default().utilisation(Resource::Accelerator, &idle).abs() < 1e-12);
    }

    #[test]
    fn the_table_has_modelled_and_measured_figures_in_columns_of_their_own() {
        let achieved = ResourceUse { epoch_seconds: 20.0, ..PREDICTED };
        let compared = PlanComparison::of(&PLAN, achieved, 0, false);
        let grid = compared.grid();
        // Without a GPU in the plan or in the run, there is no row for it.
        assert_eq!(grid.rows.len(), Resource::ALL.len());
        assert!(grid.rows.iter().all(|row| row.len() == 5));
        let host = &grid.rows[1];
        assert_eq!((host[2].as_str(), host[4].as_str()), ("90 %", "45 %"));
        // One sentence for the result, and one for each reason.
        assert_eq!(compared.sentences().len(), 1 + compared.deviations.len());
    }

    #[test]
    fn a_gpu_has_a_row_can_be_the_bottleneck_and_explains_a_longer_epoch() {
        let plan = Predicted { gpu_seconds: 6.0, host_core_seconds: 4.0, ..PLAN };
        let used = ResourceUse { host_core_seconds: 4.0, cache_hit_share: 0.9, ..PREDICTED };
        let achieved = ResourceUse { epoch_seconds: 20.0, gpu_seconds: 18.0, ..used };
        let compared = PlanComparison::of(&plan, achieved, 0, false);
        assert_eq!(compared.predicted_bottleneck, Resource::Gpu);
        assert_eq!(compared.achieved_bottleneck, Resource::Gpu);
        let expected = [
            Deviation::HostShare { cores: 0.2, predicted_cores: 0.4 },
            Deviation::GpuTime { ratio: 3.0 },
        ];
        assert_eq!(compared.deviations, expected);
        let grid = compared.grid();
        let gpu = grid.rows.iter().find(|row| row[0] == "GPU").unwrap();
        assert_eq!((gpu[2].as_str(), gpu[4].as_str()), ("60 %", "90 %"));
    }

    #[test]
    fn a_run_without_the_gpu_of_the_plan_is_compared_without_blaming_the_host() {
        let predicted = ResourceUse { gpu_seconds: 6.0, host_core_seconds: 4.0, ..PREDICTED };
        let used = ResourceUse { epoch_seconds: 20.0, host_core_seconds: 3.0, ..PREDICTED };
        assert_eq!(deviations(&predicted, &used, false), [Deviation::GpuUnused]);
        // Other differences are still reported.
        let steps = ResourceUse { accelerator_seconds: 8.0, ..used };
        let expected = [Deviation::GpuUnused, Deviation::Steps { ratio: 2.0 }];
        assert_eq!(deviations(&predicted, &steps, false), expected);
    }

    #[test]
    fn a_comparison_survives_json() {
        let achieved = ResourceUse { epoch_seconds: 20.0, ..PREDICTED };
        let compared = PlanComparison::of(&PLAN, achieved, 1, false);
        let json = serde_json::to_string(&compared).unwrap();
        assert_eq!(serde_json::from_str::<PlanComparison>(&json).unwrap(), compared);
    }
}
