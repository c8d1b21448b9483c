//! The model's watts as whole numbers, for a scheduler that must decide alike everywhere.

use super::PowerModel;
use super::section::Resolved;

/// Power in microwatts, rounded to the nearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Microwatts {
    /// The rest of the node and its memory, whatever happens.
    pub base: u64,
    /// A core that does nothing.
    pub host_core_idle: u64,
    /// A busy core.
    pub host_core_active: u64,
    /// A device that does nothing.
    pub device_idle: u64,
    /// A busy device.
    pub device_active: u64,
    /// An accelerator that does nothing.
    pub accelerator_idle: u64,
    /// A busy accelerator.
    pub accelerator_active: u64,
}

impl From<&PowerModel> for Microwatts {
    fn from(model: &PowerModel) -> Self {
        let file = &model.file;
        let of = |section: &Resolved, key: &'static str| rounded(section.value(key));
        let dram = file.dram.as_ref();
        let memory_w = dram.map_or(0.0, |dram| dram.value("modules") * dram.value("module_w"));
        Self {
            base: rounded(file.base.value("watts") + memory_w),
            host_core_idle: of(&file.host_core, "idle_w"),
            host_core_active: of(&file.host_core, "active_w"),
            device_idle: of(&file.device, "idle_w"),
            device_active: of(&file.device, "active_w"),
            accelerator_idle: of(&file.accelerator, "idle_w"),
            accelerator_active: of(&file.accelerator, "active_w"),
        }
    }
}

fn rounded(watts: f64) -> u64 {
    // Values are finite and not negative; the conversion stops at the largest whole number.
    (watts * 1e6).round() as u64
}
