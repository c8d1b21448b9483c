//! What a report says of the machine.

use crate::doctor::{self, System};
use meetpoint_host::energy::Meters;
use meetpoint_report::Machine;

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
        measured_energy: energy_meters(meters),
    }
}

/// Which meters are read, or why none is.
fn energy_meters(meters: &Meters) -> String {
    meters.why_none().unwrap_or_else(|| {
        let names: Vec<&str> = meters.used().map(|about| about.name.as_str()).collect();
        format!("read from {}", names.join(", "))
    })
}
