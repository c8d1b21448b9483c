//! Limits of disk space and memory for fetched objects, while many more bytes are transferred.

use crate::support::{program, run};
use crate::web::Web;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file of the shards.
const MEMBER_BYTES: usize = 200_000;

/// A tar shard of some 2 MB whose contents are not pictures.
fn shard(number: u32) -> Vec<u8> {
    let mut tar = Vec::new();
    for member in 0..10_u32 {
        let mut head = [0_u8; 512];
        let name = format!("{number:03}-{member}.bin");
        head[..name.len()].copy_from_slice(name.as_bytes());
        head[100..107].copy_from_slice(b"0000644");
        head[124..135].copy_from_slice(format!("{MEMBER_BYTES:011o}").as_bytes());
        head[136..147].copy_from_slice(b"00000000000");
        head[156] = b'0';
        head[257..265].copy_from_slice(b"ustar\x0000");
        head[148..156].fill(b' ');
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        head[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        tar.extend(head);
        let content = (0..MEMBER_BYTES as u32).map(|at| (at ^ number ^ (member << 3)) as u8);
        tar.extend(content);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    tar
}

/// Bytes that files below a folder take on the drive.
fn taken(folder: &Path) -> u64 {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => sum += taken(&entry.path()),
            // A file may be removed at any time.
            _ => sum += entry.metadata().map_or(0, |metadata| metadata.blocks() * 512),
        }
    }
    sum
}

#[test]
fn shards_go_through_a_small_cache_and_little_memory() {
    const SHARDS: u32 = 24;
    const CACHE_BYTES: u64 = 7_000_000;
    let folder = tempfile::tempdir().unwrap();
    let web = Web::start();
    let here = folder.path().join("shards");
    std::fs::create_dir(&here).unwrap();
    for number in 0..SHARDS {
        let name = format!("a-{number:03}.tar");
        web.put(&format!("/{name}"), shard(number));
        std::fs::write(here.join(name), shard(number)).unwrap();
    }
    let url = format!("{}/a-{{000..023}}.tar", web.url);
    let size = format!("{CACHE_BYTES}B");
    let options = ["--from", "tar", "--content", "bin"];
    let arguments = [
        &["pack", url.as_str(), "there.set", "--cache", "cache", "--cache-size", &size],
        options.as_slice(),
    ];
    let mut child = program(folder.path(), &arguments.concat()).spawn().unwrap();
    let (mut most, mut memory) = (0, 0);
    let status = loop {
        most = most.max(taken(&folder.path().join("cache")));
        let said = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
        let peak = said.unwrap_or_default().lines().find_map(|line| {
            line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<u64>().ok()
        });
        memory = memory.max(peak.unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
    };
    assert!(status.success());
    // Measuring takes time: a file that is moved meanwhile may be counted twice.
    let twice = 2 * shard(0).len() as u64;
    assert!(most > 0 && most <= CACHE_BYTES + twice, "{most} bytes on the drive");
    assert!(memory < 400_000, "{memory} KiB in memory");
    let local = [&["pack", "shards", "here.set"], options.as_slice()].concat();
    run(program(folder.path(), &local)).success();
    crate::support::assert_same(folder.path(), "here.set", "there.set");
}
