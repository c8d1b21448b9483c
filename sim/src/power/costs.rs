//! The model's watts as integers, because the scheduler must decide the same on every machine.

use meetpoint_scheduler::Costs;

use super::PowerModel;
use super::section::Resolved;

impl PowerModel {
    /// The costs that the scheduler minimises to save energy, for a machine with these numbers of
    /// cores, devices and accelerators.
    ///
    /// Memory counts with its static power. The energy of moving bytes is left out, and so is the
    /// work of the accelerator, which is the same whichever end prepares.
    pub fn costs(&self, host_cores: u32, devices: u32, accelerators: u32) -> Costs {
        let file = &self.file;
        let idle = |section: &Resolved, count: u32| section.value("idle_w") * f64::from(count);
        let added = |section: &Resolved| section.value("active_w") - section.value("idle_w");
        let dram = file.dram.as_ref();
        let memory_w = dram.map_or(0.0, |dram| dram.value("modules") * dram.value("module_w"));
        let base_w = file.base.value("watts")
            + memory_w
            + idle(&file.host_core, host_cores)
            + idle(&file.device, devices)
            + idle(&file.accelerator, accelerators);
        Costs {
            base_uw: microwatts(base_w),
            host_core_uw: microwatts(added(&file.host_core)),
            device_uw: microwatts(added(&file.device)),
        }
    }
}

fn microwatts(watts: f64) -> u64 {
    // Values are finite and not negative; the conversion stops at the largest whole number.
    (watts * 1e6).round() as u64
}
