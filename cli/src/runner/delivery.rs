//! A GPU to which the batches of a run are delivered.

use crate::surface::Output;
use crate::surface::failure::Fault;
use meetpoint_host::delivery::DeliveryUse;
use meetpoint_host::{Accelerator, GpuIndex, StopHandle};

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
        device: Option<GpuIndex>,
        _ranks: u32,
        _stop: &StopHandle,
    ) -> Result<Self, Fault> {
        match device {
            None => Ok(Self::default()),
            Some(device) => {
                let message = format!("--device-out {device}: this build has no support for GPUs");
                Err(Fault::new("no_cuda", message, "build it with --features cuda"))
            }
        }
    }

    pub(super) fn around(
        &self,
        step: Box<dyn Accelerator>,
        _stop: StopHandle,
    ) -> Box<dyn Accelerator> {
        step
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
    use super::{Accelerator, Deliveries, DeliveryUse, Fault, GpuIndex, Output, StopHandle};
    use meetpoint_diagnose::Diagnose;
    use meetpoint_gpu::Error;
    use meetpoint_host::delivery::{
        CudaStage, Delivered, DeliveryError, DeliveryLimits, DeliveryOutcome, GpuAccelerator,
        SplitRefusal, open_cuda,
    };
    use std::sync::{Mutex, PoisonError};

    /// Stages that are not assigned to a rank yet, and the totals of the others.
    #[derive(Debug)]
    pub(super) struct Opened {
        device: GpuIndex,
        stages: Mutex<Vec<CudaStage>>,
        outcomes: Mutex<Vec<DeliveryOutcome>>,
    }

    impl Deliveries {
        /// Opens the GPU once for each rank.
        pub(in super::super) fn open(
            device: Option<GpuIndex>,
            ranks: u32,
            stop: &StopHandle,
        ) -> Result<Self, Fault> {
            let Some(device) = device else { return Ok(Self::default()) };
            let is_stopped = || stop.is_stopped();
            let limits = DeliveryLimits::default();
            let open = |_| open_cuda(device, None, limits, Vec::new(), &is_stopped);
            let stages = (0..ranks).map(open).collect::<Result<_, _>>();
            let stages = stages.map_err(|error| fault(device, &error))?;
            let outcomes = Mutex::default();
            Ok(Self { opened: Some(Opened { device, stages: Mutex::new(stages), outcomes }) })
        }

        /// Wraps the accelerator of a rank so that each batch is delivered to the GPU first.
        pub(in super::super) fn around(
            &self,
            step: Box<dyn Accelerator>,
            stop: StopHandle,
        ) -> Box<dyn Accelerator> {
            let Some(opened) = &self.opened else { return step };
            let stage = opened.stages.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(stage) = stage else { return step };
            let outcome = DeliveryOutcome::default();
            let mut outcomes = opened.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
            outcomes.push(outcome.clone());
            Box::new(GpuAccelerator::new(stage, step, stop, outcome))
        }

        /// What was delivered under a strategy, rank by rank, or the failure that ended it.
        pub(in super::super) fn finish(
            &self,
            strategy: &str,
            output: Output,
        ) -> Result<Vec<DeliveryUse>, Fault> {
            let Some(opened) = &self.opened else { return Ok(Vec::new()) };
            let mut uses = Vec::new();
            let outcomes = opened.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
            for outcome in &*outcomes {
                match outcome.take_failure() {
                    Some(DeliveryError::Gpu(error)) => return Err(fault(opened.device, &error)),
                    Some(error @ DeliveryError::NoMemory { .. }) => {
                        return Err(Fault::new(
                            "gpu_out_of_memory",
                            error.to_string(),
                            "use smaller batches",
                        ));
                    }
                    Some(DeliveryError::Stopped) | None => {}
                }
                let (device, none) = (opened.device.to_string(), Delivered::default());
                let staged = outcome.staged();
                let delivered = outcome.delivered();
                let undivided = Some(SplitRefusal::Compared);
                let used =
                    DeliveryUse::between(device, undivided, staged.as_ref(), &none, &delivered);
                output.line(&format!("{strategy}: {used}"));
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
