//! Huge pages and locked memory, which the ring of batches and registered buffers want.

use super::{Finding, Probes, System};
use crate::surface::units;

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

/// Whether this process may lock as much memory as it likes.
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
    use super::{huge_pages, memlock};
    use crate::doctor::system::made_up;
    use crate::doctor::{Probes, State};

    #[test]
    fn a_small_limit_of_locked_memory_binds_those_without_the_capability() {
        let probes = Probes {
            io_uring: Err("not asked".to_owned()),
            direct_path: "/data".into(),
            direct: Err("not asked".to_owned()),
            memlock_bytes: Some(0),
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
