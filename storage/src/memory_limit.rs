//! How much memory this process may use: that of the machine, or less in a control group with a
//! limit.

use crate::cgroup::{Hierarchy, Version, hierarchies};
use std::path::{Path, PathBuf};

/// The memory that this process may use, and the source of the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Most bytes that it may use.
    pub bytes: u64,
    /// Bytes that can still be allocated, including those that the kernel can reclaim from caches.
    pub available_bytes: u64,
    /// The file of the control group that sets `bytes`; `None` if the machine's memory is the
    /// limit.
    pub file: Option<PathBuf>,
}

impl MemoryLimit {
    /// The current limit of this process. Reads a few small files; other processes in the group use
    /// memory too, so [`MemoryLimit::available_bytes`] is out of date as soon as it is known.
    pub fn of_this_process() -> Self {
        Self::below(Path::new("/"))
    }

    /// The limit on the machine whose `proc` and `sys` are in `root`. A file that cannot be read or
    /// parsed sets no limit.
    pub fn below(root: &Path) -> Self {
        let read = |path: &Path| {
            let below = path.strip_prefix("/").unwrap_or(path);
            std::fs::read_to_string(root.join(below)).ok()
        };
        find(read, machine_bytes())
    }
}

/// All memory of the machine.
fn machine_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(u64::from(info.mem_unit))
}

/// The tightest of all limits; `read` returns the content of a file by its absolute path.
fn find(read: impl Fn(&Path) -> Option<String>, machine_bytes: u64) -> MemoryLimit {
    let (total, available) = read(Path::new("/proc/meminfo"))
        .and_then(|text| machine(&text))
        .unwrap_or((machine_bytes, machine_bytes));
    let mut limit = MemoryLimit { bytes: total, available_bytes: available, file: None };
    let membership = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let mounts = read(Path::new("/proc/self/mountinfo")).unwrap_or_default();
    let of_memory = |hierarchy: &Hierarchy| hierarchy.may_control("memory");
    for hierarchy in hierarchies(&membership, &mounts).into_iter().filter(of_memory) {
        for folder in hierarchy.groups() {
            let mut used = None;
            for name in limits(hierarchy.version) {
                let file = folder.join(name);
                let Some(bytes) = read(&file).and_then(|text| number(&text)) else { continue };
                let used = *used.get_or_insert_with(|| used_bytes(&read, &folder, &hierarchy));
                limit.available_bytes = limit.available_bytes.min(bytes.saturating_sub(used));
                if bytes < limit.bytes {
                    limit.bytes = bytes;
                    limit.file = Some(file);
                }
            }
        }
    }
    limit
}

/// Total and available bytes of `/proc/meminfo`; free swap space counts as available.
fn machine(meminfo: &str) -> Option<(u64, u64)> {
    let bytes = |name: &str| {
        let value = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        number(value.trim().strip_suffix("kB")?)?.checked_mul(1024)
    };
    let swap = bytes("SwapFree").unwrap_or(0);
    Some((bytes("MemTotal")?, bytes("MemAvailable")?.saturating_add(swap)))
}

/// Files that limit the memory of a group. The kernel throttles a group above `memory.high` until
/// it hardly runs, so this is a limit as well.
fn limits(version: Version) -> &'static [&'static str] {
    match version {
        Version::V1 => &["memory.limit_in_bytes"],
        Version::V2 => &["memory.max", "memory.high"],
    }
}

/// Bytes that a group uses and the kernel cannot reclaim: neither page cache nor kernel caches.
fn used_bytes(read: impl Fn(&Path) -> Option<String>, folder: &Path, hierarchy: &Hierarchy) -> u64 {
    let stat = read(&folder.join("memory.stat")).unwrap_or_default();
    let value = |name: &str| {
        stat.lines().find_map(|line| number(line.strip_prefix(name)?.strip_prefix(' ')?))
    };
    let used = match hierarchy.version {
        Version::V2 => value("anon").map(|anon| {
            let kernel = value("kernel").unwrap_or(0);
            let kernel = kernel.saturating_sub(value("slab_reclaimable").unwrap_or(0));
            anon.saturating_add(value("shmem").unwrap_or(0)).saturating_add(kernel)
        }),
        Version::V1 => {
            value("total_rss").map(|anon| anon.saturating_add(value("total_shmem").unwrap_or(0)))
        }
    };
    used.unwrap_or(0)
}

/// A number of bytes; `None` for `max` and anything else.
fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const GIB: u64 = 1 << 30;
    const MACHINE: (&str, &str) =
        ("/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 6291456 kB\nSwapFree: 0 kB\n");
    const V2: (&str, &str) =
        ("/proc/self/mountinfo", "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 c rw\n");

    fn of(files: &[(&str, &str)]) -> MemoryLimit {
        let files: BTreeMap<&Path, &str> =
            files.iter().map(|(path, text)| (Path::new(*path), *text)).collect();
        find(|path| files.get(path).map(|text| (*text).to_owned()), 8 * GIB)
    }

    fn limit(bytes: u64, available_bytes: u64, file: &str) -> MemoryLimit {
        let file = (!file.is_empty()).then(|| file.into());
        MemoryLimit { bytes, available_bytes, file }
    }

    #[test]
    fn without_control_groups_the_machine_is_the_limit() {
        assert_eq!(of(&[]), limit(8 * GIB, 8 * GIB, ""));
        assert_eq!(of(&[MACHINE]), limit(8 * GIB, 6 * GIB, ""));
        let files = [MACHINE, V2, ("/proc/self/cgroup", "0::/a\n")];
        assert_eq!(of(&files), limit(8 * GIB, 6 * GIB, ""));
        let unlimited = [("/sys/fs/cgroup/a/memory.max", "max\n")];
        assert_eq!(of(&[&files[..], &unlimited].concat()), limit(8 * GIB, 6 * GIB, ""));
    }

    #[test]
    fn the_lowest_limit_of_all_parent_groups_applies() {
        let files = [
            MACHINE,
            V2,
            ("/proc/self/cgroup", "1:name=systemd:/x\n0::/a/b\n"),
            ("/sys/fs/cgroup/a/memory.max", "2147483648\n"),
            ("/sys/fs/cgroup/a/memory.stat", "anon 1073741824\nfile 900000000\nshmem 4096\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "4294967296\n"),
            ("/sys/fs/cgroup/a/b/memory.high", "3221225472\n"),
        ];
        let expected = limit(2 * GIB, GIB - 4096, "/sys/fs/cgroup/a/memory.max");
        assert_eq!(of(&files), expected);
        let group = ("/sys/fs/cgroup/a/b/memory.high", "1000\n");
        let expected = limit(1000, 1000, "/sys/fs/cgroup/a/b/memory.high");
        assert_eq!(of(&[&files[..6], &[group]].concat()), expected);
    }

    #[test]
    fn a_group_that_uses_more_than_its_limit_has_nothing_left() {
        let files = [
            V2,
            ("/proc/self/cgroup", "0::/\n"),
            ("/sys/fs/cgroup/memory.max", "1000"),
            ("/sys/fs/cgroup/memory.stat", "anon 900\nkernel 300\nslab_reclaimable 100\n"),
        ];
        assert_eq!(of(&files), limit(1000, 0, "/sys/fs/cgroup/memory.max"));
    }

    #[test]
    fn groups_of_version_1_are_read_inside_a_container_too() {
        let files = [
            MACHINE,
            ("/proc/self/cgroup", "9:cpu,cpuacct:/docker/7\n4:memory:/docker/7/in\n0::/docker/7\n"),
            (
                "/proc/self/mountinfo",
                "30 20 0:25 /docker/7 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n\
                 31 20 0:26 /docker/7 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
            ),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "314572800\n"),
            ("/sys/fs/cgroup/memory/memory.stat", "rss 1\ntotal_rss 4096\ntotal_shmem 4096\n"),
            ("/sys/fs/cgroup/memory/in/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        let bytes = 300 << 20;
        let expected = limit(bytes, bytes - 8192, "/sys/fs/cgroup/memory/memory.limit_in_bytes");
        assert_eq!(of(&files), expected);
    }

    #[test]
    fn a_group_outside_of_what_is_mounted_has_the_limit_of_the_mount() {
        for member in ["0::/../other\n", "0::/elsewhere\n"] {
            let mounts = "35 24 0:30 /pod /cg\\040x rw - cgroup2 cgroup rw\n";
            let files = [
                MACHINE,
                ("/proc/self/cgroup", member),
                ("/proc/self/mountinfo", mounts),
                ("/cg x/memory.max", "4096\n"),
            ];
            assert_eq!(of(&files), limit(4096, 4096, "/cg x/memory.max"));
        }
    }

    #[test]
    fn unreadable_limits_are_ignored() {
        let noise = [
            ("/proc/meminfo", "MemTotal: much\n"),
            ("/proc/self/cgroup", "0\n::\n\u{fffd}"),
            ("/proc/self/mountinfo", " - \n1 2 - cgroup2\n - cgroup x memory"),
        ];
        assert_eq!(of(&noise), limit(8 * GIB, 8 * GIB, ""));
    }

    #[test]
    fn this_process_has_a_limit_that_is_no_more_than_the_machine() {
        let found = MemoryLimit::of_this_process();
        assert!(found.bytes > 0 && found.bytes <= machine_bytes());
        assert!(found.available_bytes <= found.bytes + swap_bytes());
    }

    fn swap_bytes() -> u64 {
        let info = rustix::system::sysinfo();
        info.totalswap.saturating_mul(u64::from(info.mem_unit))
    }

    #[test]
    fn files_are_read_below_a_root() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in
            [V2, ("/proc/self/cgroup", "0::/"), ("/sys/fs/cgroup/memory.max", "12288")]
        {
            let path = root.path().join(path.strip_prefix('/').unwrap());
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = MemoryLimit::below(root.path());
        assert_eq!(found, limit(12288, 12288, "/sys/fs/cgroup/memory.max"));
    }
}
