//! Energy counters and graphics processors.

use super::{Finding, System};

/// RAPL counters: names of the domains that can be read, and how many may not be.
fn rapl_domains(system: &System) -> (Vec<String>, usize) {
    let mut readable = Vec::new();
    let mut refused = 0;
    for name in system.names("sys/class/powercap") {
        let folder = format!("sys/class/powercap/{name}");
        if !system.exists(&format!("{folder}/energy_uj")) {
            continue;
        }
        match system.read(&format!("{folder}/energy_uj")) {
            Ok(_) => readable.push(system.read(&format!("{folder}/name")).unwrap_or(name)),
            Err(_) => refused += 1,
        }
    }
    (readable, refused)
}

/// What a report says of measured energy.
pub(crate) fn energy_meter(system: &System) -> &'static str {
    match rapl_domains(system) {
        (readable, 0) if readable.is_empty() => "no meter on this machine",
        (readable, _) if readable.is_empty() => "this machine's counters (RAPL) may not be read",
        _ => "this machine has counters (RAPL), which this version does not read",
    }
}

/// The processor's energy counters.
pub(super) fn rapl(system: &System) -> Finding {
    let topic = "RAPL";
    let used = "a model of the energy, always marked as modelled";
    match rapl_domains(system) {
        (readable, 0) if readable.is_empty() => {
            Finding::missing(topic, "no energy counters: no meter on this machine", used)
                .remedy("run on bare metal; most virtual machines hide them")
        }
        (readable, refused) if readable.is_empty() => {
            Finding::limited(topic, format!("{refused} counters that may not be read"), used)
                .remedy("sudo chmod -R a+r /sys/class/powercap/*/energy_uj")
        }
        (readable, _) => Finding::limited(
            topic,
            format!("counters of {}", readable.join(", ")),
            "not read by this version: reports hold modelled energy only",
        ),
    }
}

/// NVIDIA processors and their driver's library.
pub(super) fn gpu(system: &System) -> Finding {
    let topic = "GPU";
    let devices = system
        .names("dev")
        .iter()
        .filter(|name| name.strip_prefix("nvidia").is_some_and(|rest| rest.parse::<u32>().is_ok()))
        .count();
    let used = "not used by this version: samples are prepared by the CPU and the device";
    match (devices, has_libcuda(system)) {
        (0, _) => Finding::missing(topic, "no /dev/nvidia0", used),
        (devices, true) => Finding::limited(topic, format!("{devices} with libcuda.so.1"), used),
        (devices, false) => {
            Finding::limited(topic, format!("{devices} without libcuda.so.1"), used)
                .remedy("install the driver's user-space libraries")
        }
    }
}

/// Whether the loader knows libcuda: named in its cache, or in a usual folder. Nothing is loaded.
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
    let used = "not used by this version: batches arrive in host memory";
    if loaded {
        Finding::limited(topic, "module nvidia_fs is loaded", used)
    } else {
        Finding::missing(topic, "module nvidia_fs is not loaded", used)
    }
}

#[cfg(test)]
mod tests {
    use super::{gpu, gpudirect, rapl};
    use crate::doctor::State;
    use crate::doctor::system::made_up;

    #[test]
    fn counters_that_read_are_named_and_their_absence_is_said() {
        let (_folder, system) = made_up(&[
            ("sys/class/powercap/intel-rapl:0/energy_uj", "12345"),
            ("sys/class/powercap/intel-rapl:0/name", "package-0"),
        ]);
        assert_eq!(rapl(&system).found, "counters of package-0");
        let (_folder, system) = made_up(&[]);
        assert_eq!(rapl(&system).state, State::Missing);
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
