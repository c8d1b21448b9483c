//! Memory limit, huge pages and locked memory, which the ring of batches and registered buffers
//! use.

use super::{Finding, Probes, System};
use crate::surface::units;
use meetpoint_diagnose::shown;
use meetpoint_storage::MemoryLimit;

/// Memory below which the defaults of a loader with a device, and decoding, hardly fit.
const MEMORY_WANTED: u64 = 1 << 30;

/// Memory that this process may use: the machine's, or the limit of its control group.
pub(super) fn limit(system: &System) -> Finding {
    let MemoryLimit { bytes, available_bytes, file } = MemoryLimit::below(&system.path(""));
    let topic = "memory limit";
    let available = units::bytes(available_bytes);
    let used = "budgets up to that; more is refused before anything is started";
    match file {
        None => {
            let found = format!("{} of the machine, {available} available", units::bytes(bytes));
            Finding::ready(topic, found, used)
        }
        Some(file) => {
            let file = shown(&file);
            let found = format!("{} ({file}), {available} available", units::bytes(bytes));
            match bytes < MEMORY_WANTED {
                true => Finding::limited(topic, found, used)
                    .remedy("raise it (docker: --memory, systemd: MemoryMax=)"),
                false => Finding::ready(topic, found, used),
            }
        }
    }
}

/// Locked memory below which registering the buffers of a few workers is likely to be refused.
const MEMLOCK_WANTED: u64 = 64 << 20;

/// Transparent huge pages: `always`, `madvise` or `never`.
pub(super) fn huge_pages(system: &System) -> Finding {
    let topic = "huge pages";
    let file = "sys/kernel/mm/transparent_hugepage/enabled";
    let Ok(text) = system.read(file) else {
        return Finding::missing(topic, "this kernel has none", "small pages")
            .remedy("use a kernel built with CONFIG_TRANSPARENT_HUGEPAGE");
    };
    let mode = text.split(['[', ']']).nth(1).unwrap_or(&text).to_owned();
    match mode.as_str() {
        "never" => Finding::missing(topic, "mode is never", "small pages: more TLB misses")
            .remedy(format!("echo madvise | sudo tee /{file}")),
        _ => Finding::ready(topic, format!("mode is {mode}"), "advised for the ring of batches"),
    }
}

/// The bit of CAP_IPC_LOCK, which lifts the limit of locked memory (capabilities(7)).
const CAP_IPC_LOCK: u32 = 14;

/// Whether this process may lock any amount of memory.
fn is_exempt(system: &System) -> bool {
    let status = system.read("proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits & (1 << CAP_IPC_LOCK) != 0)
}

/// RLIMIT_MEMLOCK.
pub(super) fn memlock(system: &System, probes: &Probes) -> Finding {
    let topic = "locked memory";
    let used = "registered buffers of io_uring; unregistered ones where it is too little";
    match probes.memlock_bytes {
        None => Finding::ready(topic, "no limit", used),
        Some(limit) if limit >= MEMLOCK_WANTED => {
            Finding::ready(topic, format!("limit of {}", units::bytes(limit)), used)
        }
        Some(limit) if is_exempt(system) => {
            let found = format!(
                "limit of {}, which does not bind this process (CAP_IPC_LOCK)",
                units::bytes(limit)
            );
            Finding::ready(topic, found, used)
        }
        Some(limit) => Finding::limited(topic, format!("limit of {}", units::bytes(limit)), used)
            .remedy("raise it: ulimit -l unlimited, or memlock in /etc/security/limits.conf"),
    }
}

#[cfg(test)]
mod tests {
    use super::{huge_pages, limit, memlock};
    use crate::doctor::system::made_up;
    use crate::doctor::{Probes, State};
    use meetpoint_storage::RingRefusal;

    #[test]
    fn a_small_limit_of_locked_memory_binds_those_without_the_capability() {
        let probes = Probes {
            io_uring: Err(RingRefusal::NoSystemCall),
            direct_path: "/data".into(),
            direct: Err("not asked".to_owned()),
            memlock_bytes: Some(0),
            nvme: Vec::new(),
            cuda: None,
            cores_allowed: 2,
        };
        for (bits, state) in [("000001ffffffffff", State::Ready), ("0", State::Limited)] {
            let status = format!("Name:\tmeetpoint\nCapEff:\t{bits}\n");
            let (_folder, system) = made_up(&[("proc/self/status", &status)]);
            let finding = memlock(&system, &probes);
            assert_eq!(finding.state, state, "{bits}");
            assert_eq!(finding.remedy.is_some(), state == State::Limited);
        }
    }

    #[test]
    fn the_limit_of_a_container_is_listed_and_a_small_one_has_a_remedy() {
        let mounts = "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        for (bytes, state) in [(300_u64 << 20, State::Limited), (8 << 30, State::Ready)] {
            let bytes = bytes.to_string();
            let meminfo = "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n";
            let (_folder, system) = made_up(&[
                ("proc/meminfo", meminfo),
                ("proc/self/cgroup", "0::/\n"),
                ("proc/self/mountinfo", mounts),
                ("sys/fs/cgroup/memory.max", &bytes),
            ]);
            let finding = limit(&system);
            assert_eq!(finding.state, state);
            assert!(finding.found.contains("/sys/fs/cgroup/memory.max"));
        }
        let (_folder, system) = made_up(&[]);
        assert_eq!(limit(&system).state, State::Ready);
    }

    #[test]
    fn the_mode_in_brackets_is_the_one_in_force() {
        let file = "sys/kernel/mm/transparent_hugepage/enabled";
        for (text, state) in [
            ("always [madvise] never\n", State::Ready),
            ("[always] madvise never\n", State::Ready),
            ("always madvise [never]\n", State::Missing),
        ] {
            let (_folder, system) = made_up(&[(file, text)]);
            assert_eq!(huge_pages(&system).state, state, "{text}");
        }
        let (_folder, system) = made_up(&[]);
        assert_eq!(huge_pages(&system).state, State::Missing);
    }
}
