//! Describes the machine for the report.

use crate::doctor::{self, System};
use meetpoint_host::energy::Meters;
use meetpoint_report::{EnergyMeters, Machine};

/// Describes this machine.
pub(crate) fn describe(meters: &Meters) -> Machine {
    let uname = rustix::system::uname();
    let info = rustix::system::sysinfo();
    Machine {
        processor: doctor::processor_model(&System::this()),
        cores: crate::surface::cores_allowed(),
        memory_bytes: info.totalram * u64::from(info.mem_unit.max(1)),
        kernel: format!(
            "{} {}",
            uname.sysname().to_string_lossy(),
            uname.release().to_string_lossy()
        ),
        instruction_set: meetpoint_kernels::Cpu::detect().name().to_owned(),
        energy_meters: EnergyMeters {
            read: meters.used().map(|about| about.name.clone()).collect(),
            none_because: meters.why_none(),
        },
    }
}
