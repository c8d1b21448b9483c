//! What the kernel reports about processes of a job: which exist, and the resources that they hold.
//!
//! Only processes that carry the mark of a job in their environment are ever signalled.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::os::linux::fs::MetadataExt;
use std::path::Path;

/// The environment variable that marks all processes of a job; its value is the job's folder.
pub(super) const MARK: &str = "MEETPOINT_TORTURE_JOB";

/// Processes that carry the mark of the job in this folder, ascending, without zombies.
pub(super) fn marked(folder: &Path) -> Vec<u32> {
    let mark = format!("{MARK}={}", folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // The environment of a zombie is empty, that of other users cannot be read.
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes()) {
            found.push(pid);
        }
    }
    found.sort_unstable();
    found
}

/// The devices that a host process has started: its children that run `device serve`.
pub(super) fn devices_of(host: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Field 4, after the name in parentheses (proc_pid_stat(5)).
        let rest = stat.rsplit(')').next().unwrap_or_default();
        rest.split_whitespace().nth(1).and_then(|parent| parent.parse().ok()) == Some(host)
    };
    let is_device = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|&byte| byte == 0).collect();
        words.windows(2).any(|pair| pair == [&b"device"[..], b"serve"])
    };
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut found: Vec<u32> = all
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(is_child)
        .filter(is_device)
        .collect();
    found.sort_unstable();
    found
}

/// Sends a signal to a process of a job; without effect if it has ended.
pub(super) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// What a process holds at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Holdings {
    /// Resident memory that is neither of files nor in huge pages.
    pub(super) anonymous_bytes: u64,
    /// Resident memory in huge pages: the slots of a ring that were used so far.
    pub(super) huge_bytes: u64,
    /// Open descriptors.
    pub(super) descriptors: u64,
    /// Of these, sockets.
    pub(super) sockets: u64,
    /// Threads.
    pub(super) threads: u64,
    /// Allocated bytes of files that have no name: spools, in memory or in a folder.
    pub(super) spool_bytes: u64,
}

impl Holdings {
    /// Those of a process; `None` if it has ended.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        // Without it, all memory is in small pages.
        let sums = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let huge = sums.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
        let huge = huge.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
        let huge_bytes = huge.unwrap_or(0) * 1024;
        let mut holdings = Self {
            anonymous_bytes: (field("RssAnon:")? * 1024).saturating_sub(huge_bytes),
            huge_bytes,
            threads: field("Threads:")?,
            ..Self::default()
        };
        let mut seen = BTreeSet::new();
        for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten() {
            let Ok(target) = std::fs::read_link(entry.path()) else { continue };
            holdings.descriptors += 1;
            let target = target.to_string_lossy();
            holdings.sockets += u64::from(target.starts_with("socket:"));
            let is_unnamed = target.ends_with(" (deleted)") || target.starts_with("/memfd:");
            let Ok(file) = std::fs::metadata(entry.path()) else { continue };
            if is_unnamed && seen.insert((file.st_dev(), file.st_ino())) {
                holdings.spool_bytes += file.st_blocks() * 512;
            }
        }
        Some(holdings)
    }
}

/// Whether a process is stopped, as by SIGSTOP: it does nothing, so it cannot hang.
pub(super) fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Field 3, after the name in parentheses (proc_pid_stat(5)).
    let rest = stat.rsplit(')').next().unwrap_or_default();
    matches!(rest.split_whitespace().next(), Some("T" | "t"))
}

/// What the threads of a process wait for, for a process that hangs.
pub(super) fn threads_of(pid: u32) -> String {
    let mut text = format!("process {pid}\n");
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    text.push_str(&String::from_utf8_lossy(&line).replace('\0', " "));
    text.push('\n');
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    for task in tasks.into_iter().flatten().flatten() {
        let read = |name: &str| {
            let text = std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
            text.trim().to_owned()
        };
        let state = read("status")
            .lines()
            .find_map(|line| line.strip_prefix("State:").map(|state| state.trim().to_owned()));
        text.push_str(&format!(
            "  {} {}: {}, waits in {}, system call {}\n",
            task.file_name().to_string_lossy(),
            read("comm"),
            state.unwrap_or_default(),
            read("wchan"),
            read("syscall"),
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Holdings, MARK, marked};
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_found_by_its_mark_and_its_holdings_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(marked(folder.path()), Vec::<u32>::new());
        let mut child = Command::new("cat")
            .env(MARK, folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // The environment is that of this process until the child has executed its program.
        while marked(folder.path()).is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(marked(folder.path()), [child.id()]);
        let holdings = Holdings::of(child.id()).unwrap();
        assert_eq!((holdings.threads, holdings.sockets), (1, 0));
        assert!(holdings.descriptors >= 3 && holdings.anonymous_bytes > 0);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(marked(folder.path()), Vec::<u32>::new());
        assert_eq!(Holdings::of(child.id()), None);
    }

    #[test]
    fn files_without_a_name_are_counted_once_by_their_blocks() {
        use std::io::Write;
        let before = Holdings::of(std::process::id()).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; 1 << 20]).unwrap();
        file.sync_all().unwrap();
        let again = file.try_clone().unwrap();
        let after = Holdings::of(std::process::id()).unwrap();
        assert!(after.spool_bytes >= before.spool_bytes + (1 << 20));
        assert!(after.spool_bytes < before.spool_bytes + (2 << 20));
        drop((file, again));
    }
}
