//! Energy meters and graphics processors.

use super::{Finding, System};
use crate::surface::units;
use meetpoint_host::energy::{MeterInfo, Meters, ProbedMeter};
use std::time::Duration;

/// How long a meter may show 0, where the kernel's counters begin.
pub(super) const METERS_WARM_UP: Duration = Duration::from_millis(50);

/// Every energy meter: what it covers, its resolution, and why it does not work here.
pub(super) fn energy(mut meters: Meters, warm_up: Duration) -> Vec<Finding> {
    let at_zero = meters.at_zero(warm_up);
    meters.listed().iter().map(|listed| meter(listed, &at_zero)).collect()
}

fn meter(listed: &ProbedMeter, at_zero: &[String]) -> Finding {
    let topic = "energy meter";
    let about = &listed.about;
    let found = format!("{}: {}; {}; {}", about.name, about.covers, fineness(about), about.source);
    match (&listed.meter, &listed.same_as) {
        (Ok(_), None) if at_zero.contains(&about.name) => {
            let used = "shows 0, as in many virtual machines; a run in which it shows 0 has no \
                        measured energy";
            Finding::limited(topic, found, used)
        }
        (Ok(_), None) => Finding::ready(topic, found, "measured energy of every run"),
        (Ok(_), Some(other)) => {
            let used = format!("not read: {other} shows the same");
            Finding::limited(topic, found, used)
        }
        (Err(unusable), _) => {
            let found = format!("{}: {}", about.name, unusable.reason);
            let used = "not read; modelled energy is always marked as modelled";
            let finding = Finding::missing(topic, found, used);
            unusable.remedy.iter().fold(finding, |finding, remedy| finding.remedy(remedy))
        }
    }
}

/// The resolution of a meter in joules and seconds.
fn fineness(about: &MeterInfo) -> String {
    let step = about
        .resolution_joules
        .map_or("steps of unknown size".to_owned(), |joules| format!("steps of {joules:e} J"));
    let pace = about.resolution_seconds.map_or("at an unknown pace".to_owned(), |seconds| {
        format!("renewed each {}", units::seconds(seconds))
    });
    format!("{step}, {pace}")
}

/// NVIDIA processors and their driver's library.
pub(super) fn gpu(system: &System) -> Finding {
    let topic = "GPU";
    let devices = system
        .names("dev")
        .iter()
        .filter(|name| name.strip_prefix("nvidia").is_some_and(|rest| rest.parse::<u32>().is_ok()))
        .count();
    let used = "through CUDA, which is listed below";
    match (devices, has_libcuda(system)) {
        (0, _) => Finding::missing(topic, "no /dev/nvidia0", "the CPU alone"),
        (devices, true) => Finding::ready(topic, format!("{devices} with libcuda.so.1"), used),
        (devices, false) => {
            Finding::limited(topic, format!("{devices} without libcuda.so.1"), used)
                .remedy("install the driver's user-space libraries")
        }
    }
}

/// Whether the dynamic linker finds libcuda in its cache, or a usual folder contains it. Nothing is
/// loaded.
fn has_libcuda(system: &System) -> bool {
    const NAME: &[u8] = b"libcuda.so.1";
    let cache = std::fs::read(system.path("etc/ld.so.cache")).unwrap_or_default();
    cache.windows(NAME.len()).any(|window| window == NAME)
        || ["usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib"]
            .iter()
            .any(|folder| system.exists(&format!("{folder}/libcuda.so.1")))
}

/// GPUDirect Storage's kernel module.
pub(super) fn gpudirect(system: &System) -> Finding {
    let topic = "GPUDirect Storage";
    let modules = system.read("proc/modules").unwrap_or_default();
    let loaded = modules.lines().any(|line| line.starts_with("nvidia_fs "));
    let used = "not used: files are read into host memory";
    if loaded {
        Finding::limited(topic, "module nvidia_fs is loaded", used)
    } else {
        Finding::missing(topic, "module nvidia_fs is not loaded", used)
    }
}

#[cfg(test)]
mod tests {
    use super::{energy, gpu, gpudirect};
    use crate::doctor::State;
    use crate::doctor::system::made_up;
    use std::time::Duration;

    #[test]
    fn every_meter_is_listed_with_its_resolution_or_its_problem() {
        let (_folder, system) = made_up(&[
            ("sys/class/powercap/intel-rapl:0/energy_uj", "12345"),
            ("sys/class/powercap/intel-rapl:0/name", "package-0"),
            ("sys/class/powercap/intel-rapl:0:0/energy_uj", "much"),
            ("sys/class/powercap/intel-rapl:0:0/name", "dram"),
        ]);
        let findings = energy(system.meters(), Duration::ZERO);
        assert_eq!(findings[0].state, State::Ready);
        let package = "rapl:package-0: a processor package, whatever runs on it; no memory \
                       modules, drives, fans; steps of 6.1e-5 J, renewed each 1.00 ms; ";
        assert!(findings[0].found.starts_with(package), "{}", findings[0].found);
        assert_eq!(findings[1].state, State::Missing);
        assert!(findings[1].found.contains("holds \"much\""), "{}", findings[1].found);
        let (_folder, system) = made_up(&[]);
        let rapl = &energy(system.meters(), Duration::ZERO)[0];
        assert_eq!(rapl.state, State::Missing);
        assert!(rapl.remedy.as_ref().unwrap().contains("bare metal"), "{rapl:?}");
    }

    #[test]
    fn a_meter_that_shows_0_is_not_called_a_measurement() {
        let (_folder, system) = made_up(&[
            ("sys/class/powercap/intel-rapl:0/energy_uj", "0"),
            ("sys/class/powercap/intel-rapl:0/name", "psys"),
        ]);
        assert_eq!(energy(system.meters(), Duration::ZERO)[0].state, State::Limited);
    }

    #[test]
    fn a_gpu_needs_its_node_and_its_library() {
        let (_folder, system) = made_up(&[("dev/nvidiactl", "")]);
        assert_eq!(gpu(&system).state, State::Missing);
        let (_folder, system) = made_up(&[("dev/nvidia0", "")]);
        assert_eq!(gpu(&system).found, "1 without libcuda.so.1");
        let cache = "ld.so-1.7.0\0libcuda.so.1\0";
        let (_folder, system) = made_up(&[("dev/nvidia0", ""), ("etc/ld.so.cache", cache)]);
        assert_eq!(gpu(&system).found, "1 with libcuda.so.1");
    }

    #[test]
    fn the_storage_module_is_found_among_the_modules() {
        let (_folder, system) = made_up(&[("proc/modules", "nvidia_fs 278528 0 - Live 0x0\n")]);
        assert_eq!(gpudirect(&system).state, State::Limited);
        let (_folder, system) = made_up(&[("proc/modules", "nvidia 1 0 - Live 0x0\n")]);
        assert_eq!(gpudirect(&system).state, State::Missing);
    }
}
