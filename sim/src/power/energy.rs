//! Modelled energy: E = P_base·T + Σ[P_idle·T + (P_active − P_idle)·busy], memory by bytes moved.

use serde::Serialize;

use super::PowerModel;
use super::section::Resolved;

/// How a run used a machine.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Activity {
    /// T, seconds.
    pub duration_s: f64,
    /// Cores of the host, busy or not.
    pub host_cores: u32,
    /// Core-seconds that they were busy.
    pub host_busy_core_s: f64,
    /// Bytes transferred by the host's memory; [`super::DramTraffic`] estimates them.
    pub dram_bytes: u64,
    /// Devices present, used or not.
    pub devices: u32,
    /// Seconds that they were busy, summed.
    pub device_busy_s: f64,
    /// Accelerators present.
    pub accelerators: u32,
    /// Seconds that they were busy, summed.
    pub accelerator_busy_s: f64,
}

/// A component that draws power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Component {
    /// The rest of the node.
    Base,
    /// The host's cores.
    Host,
    /// The host's memory.
    Dram,
    /// The devices, drives included.
    Device,
    /// The accelerators.
    Accelerator,
}

/// The energy of one component, modelled.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Part {
    /// The component.
    pub component: Component,
    /// Joules at idle power over the whole time.
    pub idle_j: f64,
    /// Additional joules of work.
    pub work_j: f64,
}

/// Joules by the model. Modelled, never measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelledEnergy {
    /// Whole node: the sum of all parts.
    pub total_j: f64,
    /// Preparation only: the host's cores, its memory and the devices.
    pub preparation_j: f64,
    /// Every component once, in the order of [`Component`].
    pub parts: [Part; 5],
    /// `modelled(PROFILE@HASH)`.
    pub source: String,
    /// Keys of values without a verified source, such as `device.active_w`.
    pub unverified: Vec<String>,
}

impl Component {
    /// Every component.
    pub const ALL: [Self; 5] =
        [Self::Base, Self::Host, Self::Dram, Self::Device, Self::Accelerator];

    /// Its name in reports and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Host => "host",
            Self::Dram => "dram",
            Self::Device => "device",
            Self::Accelerator => "accelerator",
        }
    }

    /// Whether it is used to prepare batches.
    pub fn prepares(self) -> bool {
        matches!(self, Self::Host | Self::Dram | Self::Device)
    }
}

impl Part {
    /// Sum of idle and work.
    pub fn joules(&self) -> f64 {
        self.idle_j + self.work_j
    }
}

impl ModelledEnergy {
    /// The joules of one component.
    pub fn of(&self, component: Component) -> f64 {
        self.parts.iter().find(|part| part.component == component).map_or(0.0, Part::joules)
    }

    /// Whole-node joules for each of a given number of samples; `None` for none.
    pub fn joules_per_sample(&self, samples: u64) -> Option<f64> {
        (samples > 0).then(|| self.total_j / samples as f64)
    }
}

impl PowerModel {
    /// The energy of a run.
    pub fn energy(&self, activity: &Activity) -> ModelledEnergy {
        let file = &self.file;
        let seconds = activity.duration_s;
        let switched = |component, section: &Resolved, count: u32, busy_s: f64| Part {
            component,
            idle_j: f64::from(count) * section.value("idle_w") * seconds,
            work_j: (section.value("active_w") - section.value("idle_w")) * busy_s,
        };
        let base = file.base.value("watts");
        let parts = [
            Part { component: Component::Base, idle_j: base * seconds, work_j: 0.0 },
            switched(
                Component::Host,
                &file.host_core,
                activity.host_cores,
                activity.host_busy_core_s,
            ),
            self.dram(activity),
            switched(Component::Device, &file.device, activity.devices, activity.device_busy_s),
            switched(
                Component::Accelerator,
                &file.accelerator,
                activity.accelerators,
                activity.accelerator_busy_s,
            ),
        ];
        ModelledEnergy {
            total_j: parts.iter().map(Part::joules).sum(),
            preparation_j: parts
                .iter()
                .filter(|part| part.component.prepares())
                .map(Part::joules)
                .sum(),
            parts,
            source: self.source(),
            unverified: self.unverified(&["base", "host_core", "dram", "device", "accelerator"]),
        }
    }

    fn dram(&self, activity: &Activity) -> Part {
        const PICO: f64 = 1e-12;
        let component = Component::Dram;
        let Some(dram) = &self.file.dram else {
            return Part { component, idle_j: 0.0, work_j: 0.0 };
        };
        Part {
            component,
            idle_j: dram.value("modules") * dram.value("module_w") * activity.duration_s,
            work_j: dram.value("picojoules_per_byte") * PICO * activity.dram_bytes as f64,
        }
    }
}
