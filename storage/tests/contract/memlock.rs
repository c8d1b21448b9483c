//! With little lockable memory, registration fails and reading does not.
#![expect(unsafe_code, reason = "a child process gives up root and locked memory")]

use crate::harness::{open, pattern, read, uring};
use meetpoint_storage::{Engine, EngineNote};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::process::Command;

const CHILD: &str = "MEETPOINT_TEST_LITTLE_MEMORY_TO_LOCK";

#[test]
fn without_memory_to_lock_io_uring_reads_into_plain_buffers_and_says_so() {
    if uring(1).is_none() {
        return;
    }
    if let Some(path) = std::env::var_os(CHILD) {
        return with_little_memory_to_lock(std::path::Path::new(&path));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("part");
    std::fs::write(&path, pattern(100_000)).unwrap();
    for path in [folder.path(), &path] {
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, all).unwrap();
    }
    let name = "memlock::without_memory_to_lock_io_uring_reads_into_plain_buffers_and_says_so";
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, &path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned()
        + &String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

/// Root may lock any amount, so a root process first changes its user.
fn with_little_memory_to_lock(path: &std::path::Path) {
    let little = Rlimit { current: Some(8192), maximum: Some(8192) };
    setrlimit(Resource::Memlock, little).unwrap();
    if rustix::process::geteuid().is_root() {
        // SAFETY: a plain system call; it only changes who this child process runs as.
        let changed = unsafe { libc::setuid(65_534) };
        assert_eq!(changed, 0, "{}", std::io::Error::last_os_error());
    }
    let mut engine = uring(4).expect("the ring itself needs no locked memory");
    let file = open(&mut engine, path);
    let lent: Vec<_> = (0..4).map(|_| engine.buffer(1 << 20)).collect();
    assert!(lent.iter().all(|buffer| !buffer.is_registered()));
    let [note @ EngineNote::RegisteredBuffers { error }] = engine.notes() else {
        panic!("{:?}", engine.notes())
    };
    assert_eq!((error.errno, note.remedy().is_some()), (Some(libc::ENOMEM), true));
    assert!(read(&mut engine, file, 77, 50_000).unwrap() == pattern(100_000)[77..50_077]);
}
