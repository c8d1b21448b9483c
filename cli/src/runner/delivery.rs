//! A GPU to which the batches of a run are delivered.

use crate::surface::Output;
use crate::surface::failure::Fault;
use meetpoint_host::delivery::{DeliveryUse, Split};
use meetpoint_host::{Accelerator, GpuIndex, StopHandle};
use std::time::Duration;

/// The GPU of a run, and how the recipe is divided between it and the host.
#[derive(Debug)]
pub(super) struct DeviceOut {
    pub(super) gpu: GpuIndex,
    pub(super) split: Split,
}

/// The GPU of a strategy, for all of its ranks; or none.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    #[cfg(feature = "cuda")]
    opened: Option<cuda::Opened>,
}

#[cfg(not(feature = "cuda"))]
impl Deliveries {
    /// Refuses a GPU: this build has none.
    pub(super) fn open(
        device_out: Option<&DeviceOut>,
        _ranks: u32,
        _stop: &StopHandle,
    ) -> Result<Self, Fault> {
        match device_out {
            None => Ok(Self::default()),
            Some(DeviceOut { gpu, .. }) => {
                let message = format!("--device-out {gpu}: this build has no support for GPUs");
                Err(Fault::new("no_cuda", message, "build it with --features cuda"))
            }
        }
    }

    pub(super) fn accelerator(
        &self,
        _step: Duration,
        _stop: &StopHandle,
    ) -> Option<Box<dyn Accelerator>> {
        None
    }

    pub(super) fn finish(
        &self,
        _strategy: &str,
        _output: Output,
    ) -> Result<Vec<DeliveryUse>, Fault> {
        Ok(Vec::new())
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::{
        Accelerator, Deliveries, DeliveryUse, DeviceOut, Duration, Fault, GpuIndex, Output, Split,
        StopHandle,
    };
    use meetpoint_diagnose::Diagnose;
    use meetpoint_gpu::Error;
    use meetpoint_host::delivery::{
        CudaStage, DeliveryError, DeliveryLimits, DeliveryOutcome, GpuAccelerator, open_cuda,
    };
    use std::sync::{Mutex, PoisonError};

    /// Stages that are not assigned to a rank yet, and the results of the others.
    #[derive(Debug)]
    pub(super) struct Opened {
        gpu: GpuIndex,
        split: Split,
        stages: Mutex<Vec<CudaStage>>,
        outcomes: Mutex<Vec<DeliveryOutcome>>,
    }

    impl Deliveries {
        /// Opens the GPU once for each rank.
        pub(in super::super) fn open(
            device_out: Option<&DeviceOut>,
            ranks: u32,
            stop: &StopHandle,
        ) -> Result<Self, Fault> {
            let Some(DeviceOut { gpu, split }) = device_out else { return Ok(Self::default()) };
            let is_stopped = || stop.is_stopped();
            let limits = DeliveryLimits::default();
            let open = |_| open_cuda(*gpu, split, limits, Vec::new(), &is_stopped);
            let stages = (0..ranks).map(open).collect::<Result<_, _>>();
            let stages = stages.map_err(|error| fault(*gpu, &error))?;
            let (gpu, split) = (*gpu, split.clone());
            let (stages, outcomes) = (Mutex::new(stages), Mutex::default());
            Ok(Self { opened: Some(Opened { gpu, split, stages, outcomes }) })
        }

        /// An emulated accelerator for a rank, whose batches are delivered to the GPU first; `None`
        /// if there is no GPU.
        pub(in super::super) fn accelerator(
            &self,
            step: Duration,
            stop: &StopHandle,
        ) -> Option<Box<dyn Accelerator>> {
            let opened = self.opened.as_ref()?;
            let stage = opened.stages.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let stage = stage.expect("there is one for each rank");
            let outcome = DeliveryOutcome::default();
            let mut outcomes = opened.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
            outcomes.push(outcome.clone());
            Some(Box::new(GpuAccelerator::new(stage, step, stop.clone(), outcome)))
        }

        /// Statistics of the delivery under a strategy, rank by rank, or the failure that ended it.
        pub(in super::super) fn finish(
            &self,
            strategy: &str,
            output: Output,
        ) -> Result<Vec<DeliveryUse>, Fault> {
            let Some(Opened { gpu, split, outcomes, .. }) = &self.opened else {
                return Ok(Vec::new());
            };
            let mut uses = Vec::new();
            let outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
            let ranks = outcomes.len();
            for (rank, outcome) in outcomes.iter().enumerate() {
                match outcome.take_failure() {
                    Some(DeliveryError::Gpu(error)) => return Err(fault(*gpu, &error)),
                    Some(
                        error @ (DeliveryError::NoMemory { .. } | DeliveryError::TooLarge { .. }),
                    ) => {
                        return Err(Fault::new(
                            "gpu_out_of_memory",
                            error.to_string(),
                            "use smaller batches",
                        ));
                    }
                    Some(DeliveryError::Stopped) | None => {}
                }
                let used = outcome.usage(gpu.to_string(), split);
                let of_rank = if ranks > 1 { format!(", rank {rank}") } else { String::new() };
                output.line(&format!("{strategy}{of_rank}: {used}"));
                uses.push(used);
            }
            Ok(uses)
        }
    }

    fn fault(device: GpuIndex, error: &Error) -> Fault {
        let message = format!("--device-out {device}: {error}");
        let remedy = error.remedy().unwrap_or_else(|| "leave --device-out out".into());
        Fault::new(error.cause(), message, remedy)
    }
}
