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

/// RLIMIT_MEMLOCK.
pub(super) fn memlock(probes: &Probes) -> Finding {
    let topic = "locked memory";
    let used = "registered buffers of io_uring; unregistered ones where it is too little";
    match probes.memlock_bytes {
        None => Finding::ready(topic, "no limit", used),
        Some(limit) if limit >= MEMLOCK_WANTED => {
            Finding::ready(topic, format!("limit of {}", units::bytes(limit)), used)
        }
        Some(limit) => Finding::limited(topic, format!("limit of {}", units::bytes(limit)), used)
            .remedy("raise it: ulimit -l unlimited, or memlock in /etc/security/limits.conf"),
    }
}

#[cfg(test)]
mod tests {
    use super::huge_pages;
    use crate::doctor::State;
    use crate::doctor::system::made_up;

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
