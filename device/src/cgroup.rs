//! A control group around the device, as an outer limit of CPU time and memory.
//!
//! The governor emulates the speed; the group only stops a device that would exceed it. Quota
//! periods are far too coarse to emulate a slow core (cgroups(7), cpu.max and cpu.cfs_quota_us).

use meetpoint_diagnose::{Change, Diagnose, Remedy, Setting, shown};
use meetpoint_link::Emulation;
use meetpoint_storage::cgroup::{Hierarchy, Version, hierarchies};
use std::fs;
use std::path::{Path, PathBuf};

/// Prefix of the folders of devices; the id of the process follows.
const PREFIX: &str = "meetpoint-device-";

/// Period of the CPU quota in microseconds. Shorter ones cost more than they limit.
const PERIOD_US: u64 = 20_000;

/// Smallest quota that the kernel accepts, in microseconds.
const QUOTA_US_MIN: u64 = 1_000;

/// The quota as a multiple of the emulated share, because the device has threads besides its
/// worker.
const QUOTA_OVER_RATIO: f64 = 1.25;

/// Share of a core that is added for these threads.
const QUOTA_ADDED: f64 = 0.05;

/// Memory in bytes that is added for what a device needs besides its worker.
const MEMORY_ADDED: u64 = 64 << 20;

/// Why a device is not limited by a group.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// No mounted hierarchy limits it.
    #[error("no control group of this process can limit {controller}: {problem}")]
    Missing {
        /// The controller.
        controller: &'static str,
        /// The cause.
        problem: &'static str,
    },
    /// A file or folder of the group cannot be written.
    #[error("failed to {action} {}: {source}", shown(path))]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// Nothing is emulated that a group could limit.
    #[error("the device has neither a share of a core nor a memory limit")]
    Unlimited,
}

impl Diagnose for CgroupError {
    fn cause(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "cgroup_missing",
            Self::Io { .. } => "cgroup_not_written",
            Self::Unlimited => "cgroup_unlimited",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::Missing { .. } | Self::Io { .. } => Remedy::advice(
                "run it as root, or in a group that is delegated to the user (systemd-run --user \
                 --scope -p Delegate=yes)",
            )
            .or_set(Setting::DeviceCgroup, Change::Off),
            Self::Unlimited => Remedy::by("limit its core", Setting::DeviceCpuRatio, Change::Other)
                .or_by("limit its memory", Setting::DeviceMemory, Change::Other),
        })
    }
}

/// A file to write, relative to the folder of a group, and its content.
type Assignment = (&'static str, String);

/// A group that this process has created.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    version: Version,
    folder: PathBuf,
    /// The group that the process was in.
    before: PathBuf,
}

/// The groups that limit this process. Dropping it leaves and removes them.
#[derive(Debug)]
pub(crate) struct Guard {
    groups: Vec<Group>,
    process_id: u32,
}

impl Guard {
    /// Creates groups below those of this process and enters them. `root` is `/`, except in tests.
    pub(crate) fn enter(
        emulation: &Emulation,
        root: &Path,
        process_id: u32,
    ) -> Result<Self, CgroupError> {
        let cpu = emulation.targets.cpu_ratio.map(quota_us);
        let memory = emulation.memory_bytes_max.map(|bytes| bytes.saturating_add(MEMORY_ADDED));
        let wanted = [("cpu", cpu.is_some()), ("memory", memory.is_some())];
        let wanted = wanted.into_iter().filter_map(|(name, is_wanted)| is_wanted.then_some(name));
        let wanted: Vec<&'static str> = wanted.collect();
        if wanted.is_empty() {
            return Err(CgroupError::Unlimited);
        }
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        let hierarchies = hierarchies(&read("proc/self/cgroup"), &read("proc/self/mountinfo"));
        // Dropped on an error, which removes what was created.
        let mut guard = Self { groups: Vec::new(), process_id };
        for controller in wanted {
            let settings = |version| match controller {
                "cpu" => cpu_settings(version, cpu.unwrap_or(PERIOD_US)),
                _ => memory_settings(version, memory.unwrap_or(u64::MAX)),
            };
            guard.limit(controller, &hierarchies, root, settings)?;
        }
        Ok(guard)
    }

    /// Limits one controller, in a group that another one has created if it is the same.
    fn limit(
        &mut self,
        controller: &'static str,
        hierarchies: &[Hierarchy],
        root: &Path,
        settings: impl Fn(Version) -> Vec<Assignment>,
    ) -> Result<(), CgroupError> {
        let of = |version| {
            let is_it = |it: &&Hierarchy| it.version == version && it.may_control(controller);
            hierarchies.iter().find(is_it)
        };
        let missing = |problem| CgroupError::Missing { controller, problem };
        // Where both are mounted, the controllers of version 1 are not in version 2.
        let hierarchy = of(Version::V1).or_else(|| of(Version::V2));
        let hierarchy = hierarchy.ok_or_else(|| missing("no hierarchy is mounted"))?;
        let own = below(root, &hierarchy.mount).join(&hierarchy.group);
        let parent = match hierarchy.version {
            Version::V1 => own.clone(),
            // A group with processes has no children with controllers; one above it has.
            Version::V2 => own
                .ancestors()
                .take_while(|folder| folder.starts_with(below(root, &hierarchy.mount)))
                .find(|folder| enables(folder, controller))
                .ok_or_else(|| missing("no group above enables it for its children"))?
                .to_path_buf(),
        };
        remove_abandoned(&parent, root);
        let folder = parent.join(format!("{PREFIX}{}", self.process_id));
        let is_new = !self.groups.iter().any(|group| group.folder == folder);
        if is_new {
            fs::create_dir_all(&folder).map_err(|source| CgroupError::Io {
                action: "create the group",
                path: folder.clone(),
                source,
            })?;
            let version = hierarchy.version;
            self.groups.push(Group { version, folder: folder.clone(), before: own });
        }
        for (file, content) in settings(hierarchy.version) {
            write(&folder.join(file), &content)?;
        }
        if is_new {
            write(&folder.join("cgroup.procs"), &self.process_id.to_string())?;
        }
        Ok(())
    }

    /// Time in nanoseconds that the kernel throttled the process; `None` if CPU time is not
    /// limited.
    pub(crate) fn throttled_ns(&self) -> Option<u64> {
        let throttled = |group: &Group| {
            let stat = fs::read_to_string(group.folder.join("cpu.stat")).ok()?;
            let value = |name: &str| {
                let line = stat.lines().find_map(|line| line.strip_prefix(name))?;
                line.trim().parse::<u64>().ok()
            };
            match group.version {
                Version::V1 => value("throttled_time "),
                Version::V2 => value("throttled_usec ").map(|us| us.saturating_mul(1000)),
            }
        };
        self.groups.iter().find_map(throttled)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        for group in &self.groups {
            // A group that cannot be left or removed is removed by the next device.
            let _ = write(&group.before.join("cgroup.procs"), &self.process_id.to_string());
            let _ = fs::remove_dir(&group.folder);
        }
    }
}

/// The quota of a period for an emulated share of a core.
fn quota_us(ratio: f64) -> u64 {
    let share = ratio * QUOTA_OVER_RATIO + QUOTA_ADDED;
    ((share * PERIOD_US as f64).round() as u64).max(QUOTA_US_MIN)
}

fn cpu_settings(version: Version, quota_us: u64) -> Vec<Assignment> {
    match version {
        Version::V1 => vec![
            ("cpu.cfs_period_us", PERIOD_US.to_string()),
            ("cpu.cfs_quota_us", quota_us.to_string()),
        ],
        Version::V2 => vec![("cpu.max", format!("{quota_us} {PERIOD_US}"))],
    }
}

fn memory_settings(version: Version, bytes: u64) -> Vec<Assignment> {
    match version {
        Version::V1 => vec![("memory.limit_in_bytes", bytes.to_string())],
        Version::V2 => vec![("memory.max", bytes.to_string())],
    }
}

fn write(path: &Path, content: &str) -> Result<(), CgroupError> {
    fs::write(path, content).map_err(|source| CgroupError::Io {
        action: "write",
        path: path.to_path_buf(),
        source,
    })
}

/// An absolute path below another root.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Whether the children of a group of version 2 have a controller.
fn enables(folder: &Path, controller: &str) -> bool {
    let enabled = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
    enabled.split_whitespace().any(|name| name == controller)
}

/// Removes the groups of devices that were killed.
fn remove_abandoned(parent: &Path, root: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if id.is_some_and(|id| !root.join(format!("proc/{id}")).exists()) {
            // Fails, as intended, if there is a process in it.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CgroupError, Guard, PREFIX, quota_us};
    use meetpoint_diagnose::Diagnose;
    use meetpoint_link::{Emulation, Targets};
    use std::fs;
    use std::path::Path;

    const V1: &str = "3:memory:/jobs/7\n2:cpu,cpuacct:/\n0::/\n";
    const V1_MOUNTS: &str = "30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                             31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    const V2_MOUNTS: &str = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 c rw\n";

    fn emulation(ratio: Option<f64>, memory: Option<u64>) -> Emulation {
        Emulation {
            targets: Targets { cpu_ratio: ratio, ..Targets::default() },
            allow_shared: false,
            memory_bytes_max: memory,
        }
    }

    /// A tree with the files of `/proc` and the folders of groups.
    fn tree(membership: &str, mounts: &str, folders: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        fs::write(root.path().join("proc/self/cgroup"), membership).unwrap();
        fs::write(root.path().join("proc/self/mountinfo"), mounts).unwrap();
        for folder in folders {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        root
    }

    fn read(root: &Path, path: &str) -> String {
        fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    #[test]
    fn version_1_has_a_group_for_each_controller() {
        let root = tree(V1, V1_MOUNTS, &["sys/fs/cgroup/cpu", "sys/fs/cgroup/memory/jobs/7"]);
        let guard = Guard::enter(&emulation(Some(0.2), Some(1 << 30)), root.path(), 42).unwrap();
        let cpu = "sys/fs/cgroup/cpu/meetpoint-device-42";
        assert_eq!(read(root.path(), &format!("{cpu}/cpu.cfs_period_us")), "20000");
        assert_eq!(read(root.path(), &format!("{cpu}/cpu.cfs_quota_us")), "6000");
        assert_eq!(read(root.path(), &format!("{cpu}/cgroup.procs")), "42");
        let memory = "sys/fs/cgroup/memory/jobs/7/meetpoint-device-42";
        assert_eq!(read(root.path(), &format!("{memory}/memory.limit_in_bytes")), "1140850688");
        fs::write(root.path().join(cpu).join("cpu.stat"), "nr_throttled 2\nthrottled_time 77\n")
            .unwrap();
        assert_eq!(guard.throttled_ns(), Some(77));
        drop(guard);
        // The process is back where it was. A real group's folder is removed with its files.
        assert_eq!(read(root.path(), "sys/fs/cgroup/memory/jobs/7/cgroup.procs"), "42");
    }

    #[test]
    fn version_2_uses_the_nearest_group_that_passes_the_controllers_on() {
        let own = "sys/fs/cgroup/user/scope";
        let root = tree("0::/user/scope\n", V2_MOUNTS, &[own]);
        let control = root.path().join("sys/fs/cgroup/user/cgroup.subtree_control");
        fs::write(&control, "cpu memory pids\n").unwrap();
        fs::write(root.path().join("sys/fs/cgroup/cgroup.subtree_control"), "cpu memory").unwrap();
        let guard = Guard::enter(&emulation(Some(1.0), Some(4096)), root.path(), 7).unwrap();
        let group = "sys/fs/cgroup/user/meetpoint-device-7";
        assert_eq!(read(root.path(), &format!("{group}/cpu.max")), "26000 20000");
        assert_eq!(read(root.path(), &format!("{group}/memory.max")), "67112960");
        assert_eq!(read(root.path(), &format!("{group}/cgroup.procs")), "7");
        fs::write(root.path().join(group).join("cpu.stat"), "throttled_usec 5\n").unwrap();
        assert_eq!((guard.throttled_ns(), guard.groups.len()), (Some(5000), 1));
        drop(guard);
        assert_eq!(read(root.path(), &format!("{own}/cgroup.procs")), "7");
    }

    #[test]
    fn a_group_that_cannot_be_limited_is_an_error_with_a_remedy() {
        let limited = emulation(Some(0.5), None);
        let none = tree("0::/\n", V2_MOUNTS, &["sys/fs/cgroup"]);
        let error = Guard::enter(&limited, none.path(), 1).unwrap_err();
        assert!(matches!(error, CgroupError::Missing { controller: "cpu", .. }), "{error}");
        assert!(error.remedy().is_some());
        let unmounted = tree(V1, "", &[]);
        let error = Guard::enter(&limited, unmounted.path(), 1).unwrap_err();
        assert_eq!(error.cause(), "cgroup_missing");
        // A file is in the way of the folder of the groups.
        let file = tree(V1, V1_MOUNTS, &["sys/fs/cgroup"]);
        fs::write(file.path().join("sys/fs/cgroup/cpu"), "").unwrap();
        let error = Guard::enter(&limited, file.path(), 1).unwrap_err();
        assert_eq!(error.cause(), "cgroup_not_written");
        let error = Guard::enter(&emulation(None, None), none.path(), 1).unwrap_err();
        assert!(matches!(error, CgroupError::Unlimited));
    }

    #[test]
    fn groups_of_killed_devices_are_removed_and_those_of_others_stay() {
        let cpu = "sys/fs/cgroup/cpu";
        let group = |id: &str| format!("{cpu}/{PREFIX}{id}");
        let folders = [group("11"), group("12"), group("x"), format!("{cpu}/other")];
        let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
        let root = tree(V1, V1_MOUNTS, &[&folders[..], &["proc/12"]].concat());
        let guard = Guard::enter(&emulation(Some(0.5), None), root.path(), 13).unwrap();
        let is_there = |path: &str| root.path().join(path).exists();
        assert!(!is_there(folders[0]));
        assert!(folders[1..].iter().all(|folder| is_there(folder)));
        drop(guard);
    }

    #[test]
    fn quotas_leave_room_for_other_threads_and_respect_the_kernels_minimum() {
        assert_eq!(quota_us(0.5), 13_500);
        assert_eq!(quota_us(0.001), 1_025);
    }

    /// On a machine with writable groups of version 1, the kernel itself.
    #[test]
    fn the_kernel_limits_a_process_in_its_groups() {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        match Guard::enter(&emulation(Some(0.5), None), Path::new("/"), child.id()) {
            Ok(guard) => {
                let of_child = || {
                    fs::read_to_string(format!("/proc/{}/cgroup", child.id())).unwrap_or_default()
                };
                assert!(of_child().contains(&format!("{PREFIX}{}", child.id())), "{}", of_child());
                assert!(guard.throttled_ns().is_some());
                let folders: Vec<_> =
                    guard.groups.iter().map(|group| group.folder.clone()).collect();
                drop(guard);
                assert!(folders.iter().all(|folder| !folder.exists()));
                assert_eq!(of_child(), own);
            }
            Err(error) => eprintln!("skipped: {error}"),
        }
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
