//! The model's watts as whole numbers, for a scheduler that must decide alike everywhere.

use meetpoint_scheduler::Costs;

use super::PowerModel;
use super::section::Resolved;

impl PowerModel {
    /// What the scheduler minimises when it saves energy, for a machine of a given number of of
    /// each.
    ///
    /// Memory counts with its static power; what moving bytes adds is left out, and so is the work
    /// of the accelerator, which takes the same steps whichever end prepares.
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
