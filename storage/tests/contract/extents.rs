//! Files in extents of a namespace, read by NVMe commands, and of an image, read by every engine.

use crate::drive::Drive;
use crate::harness::{pattern, read, write};
use meetpoint_storage::extents::{
    DeviceRange, ExtentEngine, ExtentFile, ExtentFiles, block_bytes, open_block_engine,
};
use meetpoint_storage::threads::ThreadsEngine;
use meetpoint_storage::{Access, Engine, EngineKind};
use std::path::Path;
use std::sync::Arc;

const RANGES: [(u64, u64); 4] = [(3 << 20, 1 << 20), (4096, 8192), (1 << 20, 300_000), (0, 100)];

/// The file of [`RANGES`] of a device with these bytes.
fn content(device: &[u8]) -> Vec<u8> {
    let range = |&(offset, bytes): &(u64, u64)| &device[offset as usize..(offset + bytes) as usize];
    RANGES.iter().map(range).collect::<Vec<_>>().concat()
}

fn opened(block: &Path) -> (ExtentEngine, Vec<(u64, usize)>) {
    opened_by(EngineKind::Auto, block)
}

fn opened_by(kind: EngineKind, block: &Path) -> (ExtentEngine, Vec<(u64, usize)>) {
    let ranges = RANGES.map(|(offset, bytes)| DeviceRange { offset, bytes }).to_vec();
    let file = ExtentFile::new(block.to_path_buf(), ranges).unwrap();
    let bytes = file.bytes();
    let files = ExtentFiles::from([("set/part".into(), Arc::new(file))]);
    let inner = open_block_engine(kind, 4, block).unwrap().engine;
    let first = (1 << 20) - 5000;
    let wanted = vec![(0, bytes as usize), (first, 20_000), (777, 3), (bytes - 1, 1)];
    (ExtentEngine::new(inner, files), wanted)
}

#[test]
fn extents_of_a_namespace_are_read_by_commands_and_see_what_its_block_device_wrote() {
    let Some(drive) = Drive::of_environment() else { return };
    let mut writer = ThreadsEngine::new(1).unwrap();
    let device = writer.open(&drive.block_device(), Access::ReadWrite).unwrap();
    assert_eq!(
        block_bytes(EngineKind::Auto, drive.namespace()).unwrap(),
        writer.file_bytes(device).unwrap()
    );
    let (mut engine, wanted) = opened(drive.namespace());
    let file = engine.open("set/part".as_ref(), Access::Read).unwrap();
    assert_eq!(engine.name(), "nvme");
    // The rules of coherence: the writer bypasses its cache and syncs, commands bypass theirs.
    for round in 0..3_u8 {
        let bytes: Vec<u8> = pattern(4 << 20).iter().map(|byte| byte ^ round).collect();
        write(&mut writer, device, 0, &bytes).unwrap();
        let content = content(&bytes);
        for &(offset, length) in &wanted {
            let got = read(&mut engine, file, offset, length).unwrap();
            assert!(got == content[offset as usize..][..length], "round {round}, at {offset}");
        }
    }
}

#[test]
fn extents_of_an_image_are_read_past_the_page_cache_and_see_what_was_synced() {
    let image = tempfile::NamedTempFile::new().unwrap();
    let (mut engine, wanted) = {
        std::fs::write(image.path(), pattern(4 << 20)).unwrap();
        opened(image.path())
    };
    let file = engine.open("set/part".as_ref(), Access::Read).unwrap();
    let mut writer = ThreadsEngine::new(1).unwrap();
    let device = writer.open(image.path(), Access::ReadWrite).unwrap();
    for round in 0..3_u8 {
        // What the page cache holds is older.
        drop(std::fs::read(image.path()).unwrap());
        let bytes: Vec<u8> = pattern(4 << 20).iter().map(|byte| byte ^ round).collect();
        write(&mut writer, device, 0, &bytes).unwrap();
        let content = content(&bytes);
        for &(offset, length) in &wanted {
            let got = read(&mut engine, file, offset, length).unwrap();
            assert!(got == content[offset as usize..][..length], "round {round}, at {offset}");
        }
    }
}

/// Names of SPDK that are not files, too.
#[cfg(feature = "spdk")]
#[test]
fn extents_are_read_by_spdk_from_images_and_from_its_devices() {
    let image = tempfile::NamedTempFile::new().unwrap();
    let bytes = pattern(4 << 20);
    std::fs::write(image.path(), &bytes).unwrap();
    let mut names =
        vec![image.path().to_path_buf(), format!("aio:{}", image.path().display()).into()];
    let drive = Drive::of_spdk();
    if let Some(drive) = &drive {
        drive.put(&bytes);
        names.push(drive.namespace().to_path_buf());
    }
    for name in names {
        assert!(block_bytes(EngineKind::Spdk, &name).unwrap() >= 4 << 20);
        let (mut engine, wanted) = opened_by(EngineKind::Spdk, &name);
        let file = engine.open("set/part".as_ref(), Access::Read).unwrap();
        assert_eq!(engine.name(), "spdk");
        let content = content(&bytes);
        for &(offset, length) in &wanted {
            let got = read(&mut engine, file, offset, length).unwrap();
            assert!(got == content[offset as usize..][..length], "{name:?}, at {offset}");
        }
    }
}
