//! Memory of this process, as reported by the kernel.

/// Peak memory of this process, including the spool.
pub(crate) fn peak_memory_bytes() -> u64 {
    status_bytes("VmHWM:")
}

/// Memory of this process, without the spool.
pub(crate) fn own_memory_bytes() -> u64 {
    status_bytes("RssAnon:")
}

/// A value of /proc/self/status (proc(5)), which has them in kB; 0 if it is missing.
fn status_bytes(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory() {
        assert!(own_memory_bytes() > 0 && peak_memory_bytes() >= own_memory_bytes());
    }
}
