//! Functions of the engine `nvme` alone: identification, splitting at the largest transfer,
//! decoding of a status.

use crate::drive::Drive;
use crate::harness::{open, pattern, read, write};
use meetpoint_storage::nvme::{Command, NvmeDevice, NvmeEngine, StatusType, status_of};
use meetpoint_storage::threads::ThreadsEngine;
use meetpoint_storage::{Access, Engine, Error};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

#[test]
fn a_namespace_identifies_itself_as_its_block_device_does() {
    let Some(drive) = Drive::of_environment() else { return };
    let device = NvmeDevice::open(drive.namespace(), false).unwrap();
    let id = device.namespace_id().unwrap();
    let namespace = device.namespace(id).unwrap();
    let mut blocks = ThreadsEngine::new(1).unwrap();
    let file = open(&mut blocks, &drive.block_device());
    assert_eq!(blocks.file_bytes(file).unwrap(), namespace.bytes());
    let mut engine = NvmeEngine::new(1).unwrap();
    let file = open(&mut engine, drive.namespace());
    assert_eq!(engine.file_bytes(file).unwrap(), namespace.bytes());
    assert!(engine.is_direct(file));
    let controller = device.controller().unwrap();
    assert!(!controller.model.is_empty() && !controller.serial.is_empty(), "{controller:?}");
    let sets = device.command_sets().unwrap();
    eprintln!("{controller:?}, {namespace:?}, command sets {:?}", sets.map(|sets| sets.names()));
    assert!(sets.is_none_or(|sets| sets.names().contains(&"NVM")));
}

#[test]
fn transfers_longer_than_a_command_are_split_and_come_back_whole() {
    let Some(drive) = Drive::of_environment() else { return };
    let bytes = pattern(3 << 20);
    let path = drive.put(&bytes);
    let mut engine = NvmeEngine::new(4).unwrap();
    let file = engine.open(&path, Access::ReadWrite).unwrap();
    assert!(read(&mut engine, file, 777, 3_000_000).unwrap() == bytes[777..3_000_777]);
    let fresh: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
    write(&mut engine, file, 4096, &fresh[..2 << 20]).unwrap();
    let mut expected = bytes.clone();
    expected[4096..][..2 << 20].copy_from_slice(&fresh[..2 << 20]);
    assert!(drive.contents(&path) == expected);
    assert_eq!(engine.counters().resumed, 0, "no command was cut short");
}

#[test]
fn writes_stay_in_their_extent() {
    let Some(drive) = Drive::of_environment() else { return };
    let [before, path, after] = [1, 2, 3].map(|fill| drive.put(&vec![fill; 1 << 20]));
    let mut engine = NvmeEngine::new(1).unwrap();
    let file = engine.open(&path, Access::ReadWrite).unwrap();
    write(&mut engine, file, 0, &vec![9; 1 << 20]).unwrap();
    for offset in [4096, 1 << 20, 1 << 40] {
        let error = write(&mut engine, file, offset, &vec![8; 1 << 20]).unwrap_err();
        let Error::Io { source, .. } = error else { panic!("{error}") };
        assert_eq!(source.kind(), ErrorKind::StorageFull);
    }
    for (path, fill) in [(&before, 1), (&path, 9), (&after, 3)] {
        assert!(drive.contents(path).iter().all(|&byte| byte == fill), "{}", path.display());
    }
}

#[test]
fn extents_outside_of_the_namespace_or_within_a_block_are_refused() {
    let Some(drive) = Drive::of_environment() else { return };
    let name = drive.namespace().display();
    let mut engine = NvmeEngine::new(1).unwrap();
    for extent in [format!("{}+1", u64::MAX / 2), "1+4096".to_owned(), "0+99999999999999".into()] {
        let path = PathBuf::from(format!("{name}@{extent}"));
        let error = engine.open(&path, Access::Read).unwrap_err();
        let Error::Open { path: named, source } = error else { panic!("{error}") };
        assert_eq!((named, source.kind()), (path, ErrorKind::InvalidInput));
    }
}

#[test]
fn a_command_that_the_drive_does_not_know_has_the_status_invalid_operation_code() {
    let Some(drive) = Drive::of_environment() else { return };
    let device = NvmeDevice::open(drive.namespace(), true).unwrap();
    // The vendor's operation codes with data to the host end in the bits 10.
    let unknown = Command { opcode: 0xc2, ..Command::default() };
    let error = device.admin(&unknown).unwrap_err();
    let status = status_of(&error).unwrap_or_else(|| panic!("{error}"));
    assert_eq!((status.status_type(), status.code()), (StatusType::Generic, 1));
    assert!(!status.is_retryable(), "{status}");
}

#[test]
fn an_open_file_and_what_is_no_namespace_are_refused() {
    let mut engine = match NvmeEngine::new(1) {
        Ok(engine) => engine,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("part");
    std::fs::write(&path, pattern(4096)).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    assert!(matches!(engine.adopt(file, "the spool"), Err(Error::Open { .. })));
    for path in [Path::new("/dev/null"), &path, folder.path()] {
        let error = engine.open(path, Access::Read).unwrap_err();
        let Error::Open { source, .. } = error else { panic!("{error}") };
        assert_eq!(source.kind(), ErrorKind::InvalidInput, "{}", path.display());
    }
}
