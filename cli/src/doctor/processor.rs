//! Cores, instruction set and CPU quota.

use super::{Finding, Probes, System};
use crate::surface::units;

/// Model name of the processor, from /proc/cpuinfo.
pub(crate) fn model(system: &System) -> String {
    let text = system.read("proc/cpuinfo").unwrap_or_default();
    let named = |key: &str| {
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.trim() == key)
            .map(|(_, value)| value.trim().to_owned())
    };
    named("model name")
        .or_else(|| named("CPU part").map(|part| format!("CPU part {part}")))
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Cores of the machine and those that this process may use.
pub(super) fn cores(system: &System, probes: &Probes) -> Finding {
    let online = system.read("sys/devices/system/cpu/online").unwrap_or_default();
    let total = count_list(&online).unwrap_or(probes.cores_allowed);
    let allowed = probes.cores_allowed;
    let found = format!("{}: {total} online, {allowed} for this process", model(system));
    match allowed {
        1 => Finding::limited("cores", found, "host and emulated device share the one core")
            .remedy("run where two cores are free: an emulated device needs one of its own"),
        _ if allowed < total => {
            Finding::limited("cores", found, "the cores of this process's affinity mask")
                .remedy("widen it with taskset or the container's cpuset to use the others")
        }
        _ => Finding::ready("cores", found, "all; an emulated device takes the last one"),
    }
}

/// Number of cores in a list such as `0-3,8`.
fn count_list(list: &str) -> Option<usize> {
    let mut count = 0;
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        count += last.checked_sub(first)? + 1;
    }
    Some(count)
}

/// The instruction set that the kernels use.
pub(super) fn instruction_set() -> Finding {
    let name = meetpoint_kernels::Cpu::detect().name();
    let used = format!("the {name} kernels; all instruction sets give the same bytes");
    Finding::ready("instruction set", name, used)
}

/// CPU quota of the control group: `cpu.max` of v2, otherwise `cpu.cfs_quota_us` of v1.
pub(super) fn cgroup(system: &System) -> Finding {
    let membership = system.read("proc/self/cgroup").unwrap_or_default();
    let quota = quota_v2(system, &membership).or_else(|| quota_v1(system, &membership));
    match quota {
        Some(cores) => Finding::limited(
            "cgroup CPU quota",
            format!("{} cores", units::significant(cores)),
            "no more than that; the kernel stops the process when it is used up, which makes \
             measured times uneven",
        )
        .remedy("raise it (docker: --cpus, systemd: CPUQuota=) before measuring"),
        None => Finding::ready("cgroup CPU quota", "none", "every core that is free"),
    }
}

/// The tightest `cpu.max` from the process's group up to the root, in cores.
fn quota_v2(system: &System, membership: &str) -> Option<f64> {
    let mut group = membership.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mut tightest: Option<f64> = None;
    loop {
        let file = format!("sys/fs/cgroup{}/cpu.max", group.trim_end_matches('/'));
        if let Some(cores) = system.read(&file).ok().and_then(|text| parse_cpu_max(&text)) {
            tightest = Some(tightest.map_or(cores, |known| known.min(cores)));
        }
        match group.trim_end_matches('/').rsplit_once('/') {
            Some((above, _)) => group = above,
            None => return tightest,
        }
    }
}

/// `max 100000` is not a quota; `150000 100000` is one and a half cores.
fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0.0).then_some(quota / period)
}

fn quota_v1(system: &System, membership: &str) -> Option<f64> {
    let group = membership.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == "cpu").then_some(path)
    })?;
    // Inside a container, usually only the root of the hierarchy is mounted, not the group's path.
    [group.trim_end_matches('/'), ""].into_iter().find_map(|group| {
        let read = |name: &str| -> Option<f64> {
            system.read(&format!("sys/fs/cgroup/cpu{group}/{name}")).ok()?.parse().ok()
        };
        let (quota, period) = (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?);
        (quota > 0.0 && period > 0.0).then_some(quota / period)
    })
}

#[cfg(test)]
mod tests {
    use super::{count_list, quota_v1, quota_v2};
    use crate::doctor::system::made_up;

    #[test]
    fn the_lowest_quota_of_all_parent_groups_applies() {
        let (_folder, system) = made_up(&[
            ("sys/fs/cgroup/a/cpu.max", "150000 100000"),
            ("sys/fs/cgroup/a/b/cpu.max", "max 100000"),
        ]);
        assert_eq!(quota_v2(&system, "0::/a/b"), Some(1.5));
        assert_eq!(quota_v2(&system, "0::/other"), None);
        assert_eq!(quota_v2(&system, "0::/"), None);
    }

    #[test]
    fn version_1_groups_are_read_and_minus_one_is_no_quota() {
        let files = [
            ("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "200000\n"),
            ("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/y/cpu.cfs_quota_us", "-1"),
            ("sys/fs/cgroup/cpu/y/cpu.cfs_period_us", "100000"),
        ];
        let (_folder, system) = made_up(&files);
        assert_eq!(quota_v1(&system, "4:cpu,cpuacct:/x"), Some(2.0));
        assert_eq!(quota_v1(&system, "4:cpu,cpuacct:/y"), None);
        assert_eq!(quota_v1(&system, "4:memory:/x"), None);
    }

    #[test]
    fn lists_of_cores_are_counted() {
        assert_eq!(count_list("0-3,8"), Some(5));
        assert_eq!(count_list("0"), Some(1));
        assert_eq!(count_list(""), None);
        assert_eq!(count_list("3-0"), None);
    }
}
