//! Files in scattered ranges are read as if they were whole, and nothing else is.

use super::{
    DeviceRange, ExtentEngine, ExtentFile, ExtentFiles, ExtentReader, block_bytes, map_file,
    open_block_engine,
};
use crate::faulty::{Fault, FaultPlan, FaultyEngine};
use crate::memory::{MemoryEngine, MemoryFiles, Order};
use crate::slow::{Pace, SlowEngine};
use crate::threads::ThreadsEngine;
use crate::uring::UringEngine;
use crate::{
    Access, AlignedBuffer, BLOCK_BYTES, Completion, Engine, EngineKind, Error, FileId, Request,
    RequestKind,
};
use meetpoint_format::split_mix::SplitMix64;
use proptest::prelude::*;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);
const BLOCK: &str = "drive";

/// A device of random bytes, and the content of the file that consists of these ranges of it.
fn device(ranges: &[DeviceRange], bytes: usize) -> (Vec<u8>, Vec<u8>) {
    let mut random = SplitMix64::new(3);
    let device: Vec<u8> = (0..bytes).map(|_| random.below(256) as u8).collect();
    let range = |it: &DeviceRange| &device[it.offset as usize..(it.offset + it.bytes) as usize];
    let content = ranges.iter().flat_map(range).copied().collect();
    (device, content)
}

fn files(block: impl AsRef<Path>, ranges: &[DeviceRange]) -> ExtentFiles {
    let file = ExtentFile::new(block.as_ref().into(), ranges.to_vec()).unwrap();
    ExtentFiles::from([("set/part".into(), Arc::new(file))])
}

fn request(token: u64, file: FileId, offset: u64, bytes: usize) -> Request {
    let buffer = AlignedBuffer::zeroed(bytes + 2 * BLOCK_BYTES);
    Request { token, file, kind: RequestKind::Read, offset, bytes, buffer }
}

/// Reads ranges with as many requests in flight as the engine accepts.
fn read_all(engine: &mut dyn Engine, file: FileId, wanted: &[(u64, usize)]) -> Vec<Completion> {
    let (mut done, mut next) = (Vec::new(), 0);
    while done.len() < wanted.len() {
        while next < wanted.len() && engine.in_flight() < engine.limits().depth {
            let (offset, bytes) = wanted[next];
            engine.submit(request(next as u64, file, offset, bytes)).unwrap();
            next += 1;
        }
        assert!(engine.wait(LONG, &mut done).unwrap() > 0);
    }
    assert_eq!(engine.in_flight(), 0);
    done.sort_by_key(|completion| completion.token);
    done
}

fn memory(device: &[u8], direct: bool) -> Box<dyn Engine> {
    let memory = MemoryFiles::default();
    memory.put(BLOCK, device.to_vec());
    let order = if direct { Order::Shuffled(5) } else { Order::Submission };
    Box::new(MemoryEngine::new(memory, 4, direct, order))
}

fn scattered() -> Vec<DeviceRange> {
    let range = |(offset, bytes)| DeviceRange { offset, bytes };
    [(40960, 8192), (512, 512), (20480, 4096), (8192, 12288), (0, 300)].map(range).to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_reads_of_scattered_files_give_the_bytes_of_the_file(
        wanted in prop::collection::vec((0_u64..26000, 0_usize..9000), 1..24),
        direct in any::<bool>(),
    ) {
        let (device, content) = device(&scattered(), 65536);
        let mut engine = ExtentEngine::new(memory(&device, direct), files(BLOCK, &scattered()));
        let file = engine.open("set/part".as_ref(), Access::Read).unwrap();
        prop_assert_eq!(engine.file_bytes(file).unwrap(), content.len() as u64);
        for (done, (offset, bytes)) in read_all(&mut engine, file, &wanted).iter().zip(&wanted) {
            let at = *offset as usize;
            match content.get(at..at + bytes) {
                Some(expected) => {
                    prop_assert_eq!(done.result.as_ref().unwrap(), bytes);
                    let got = &done.buffer.as_slice()[done.start..done.start + bytes];
                    prop_assert_eq!(got, expected);
                }
                None => {
                    let left = content.len().saturating_sub(at);
                    let is_short =
                        matches!(&done.result, Err(Error::ShortRead { got, .. }) if *got == left);
                    prop_assert!(is_short, "{:?}", done.result);
                }
            }
        }
    }
}

#[test]
fn every_engine_over_a_file_reads_scattered_files() {
    let (device, content) = device(&scattered(), 65536);
    let image = tempfile::NamedTempFile::new().unwrap();
    image.as_file().write_all(&device).unwrap();
    let mut engines: Vec<Box<dyn Engine>> = vec![Box::new(ThreadsEngine::new(3).unwrap())];
    match UringEngine::new(3) {
        Ok(engine) => engines.push(Box::new(engine)),
        Err(refusal) => eprintln!("skipped: io_uring: {refusal}"),
    }
    let pace = Pace::default();
    engines.push(Box::new(SlowEngine::new(Box::new(ThreadsEngine::new(3).unwrap()), pace)));
    let wanted: Vec<_> = (0..content.len() - 700).step_by(611).map(|at| (at as u64, 700)).collect();
    for inner in engines {
        let mut engine = ExtentEngine::new(inner, files(image.path(), &scattered()));
        let file = engine.open("set/part".as_ref(), Access::Read).unwrap();
        for (done, (offset, bytes)) in read_all(&mut engine, file, &wanted).iter().zip(&wanted) {
            assert_eq!(done.result.as_ref().unwrap(), bytes, "{}", engine.name());
            let at = *offset as usize;
            let got = &done.buffer.as_slice()[done.start..done.start + bytes];
            assert_eq!(got, &content[at..at + bytes], "{}", engine.name());
        }
        let counters = engine.counters();
        assert_eq!((counters.reads, counters.errors), (wanted.len() as u64, 0));
        assert_eq!(counters.bytes_read, wanted.len() as u64 * 700);
    }
}

#[test]
fn nothing_but_the_declared_files_is_opened_and_nothing_is_written() {
    let (device, _) = device(&scattered(), 65536);
    let mut engine = ExtentEngine::new(memory(&device, false), files(BLOCK, &scattered()));
    for path in [BLOCK, "/etc/hostname", "set/part/.."] {
        let refused = engine.open(path.as_ref(), Access::Read).unwrap_err();
        assert!(matches!(refused, Error::Open { .. }), "{path}: {refused}");
    }
    assert!(engine.open("set/part".as_ref(), Access::ReadWrite).is_err());
    assert!(engine.adopt(tempfile::tempfile().unwrap(), "set/part").is_err());
    let file = engine.open("set/part".as_ref(), Access::Read).unwrap();
    for kind in [RequestKind::Write, RequestKind::Sync] {
        let refused = engine.submit(Request { kind, ..request(1, file, 0, 512) }).unwrap_err();
        assert!(matches!(refused.error, Error::Unavailable { .. }), "{}", refused.error);
    }
    engine.close(file);
    let refused = engine.submit(request(1, file, 0, 512)).unwrap_err();
    assert!(matches!(refused.error, Error::NoSuchFile(_)));
}

#[test]
fn a_read_beyond_the_end_reads_nothing_of_the_device() {
    let (device, content) = device(&scattered(), 65536);
    let mut engine = ExtentEngine::new(memory(&device, false), files(BLOCK, &scattered()));
    let file = engine.open("set/part".as_ref(), Access::Read).unwrap();
    let end = content.len() as u64;
    let done = read_all(&mut engine, file, &[(end - 10, 11), (end, 1), (u64::MAX, 5)]);
    for (completion, left) in done.iter().zip([10, 0, 0]) {
        match &completion.result {
            Err(Error::ShortRead { got, path, .. }) => {
                assert_eq!((*got, path.as_path()), (left, Path::new("set/part")));
            }
            other => panic!("{other:?}"),
        }
    }
    let counters = engine.counters();
    assert_eq!((counters.bytes_read_device, counters.errors, counters.reads), (0, 3, 0));
}

#[test]
fn extents_outside_of_the_device_are_refused_when_the_file_is_opened() {
    let (device, _) = device(&scattered(), 49152);
    let mut engine = ExtentEngine::new(memory(&device[..49151], false), files(BLOCK, &scattered()));
    let refused = engine.open("set/part".as_ref(), Access::Read).unwrap_err();
    assert!(refused.to_string().contains("outside of drive"), "{refused}");
}

#[test]
fn one_failed_piece_fails_the_request_and_names_the_file() {
    let (device, content) = device(&scattered(), 65536);
    for fault in [Fault::Broken, Fault::Busy, Fault::ShortRead { bytes: 3 }] {
        let plan = FaultPlan::none().and(RequestKind::Read, 2, fault);
        let inner = Box::new(FaultyEngine::new(memory(&device, false), plan));
        let mut engine = ExtentEngine::new(inner, files(BLOCK, &scattered()));
        let file = engine.open("set/part".as_ref(), Access::Read).unwrap();
        let wanted = [(0, content.len()), (0, content.len())];
        let done = read_all(&mut engine, file, &wanted);
        match &done[0].result {
            Err(Error::Io { path, bytes, .. }) => {
                assert_eq!((path.as_path(), *bytes), (Path::new("set/part"), content.len()));
            }
            Err(Error::ShortRead { .. }) => {}
            other => panic!("{other:?}"),
        }
        // The memory of the failed request is not needed by the next one.
        assert_eq!(done[1].result.as_ref().unwrap(), &content.len());
        assert_eq!(done[1].buffer.as_slice()[..content.len()], content);
    }
}

#[test]
fn a_reader_reads_any_range_of_its_files_and_no_other_file() {
    let (device, content) = device(&scattered(), 65536);
    let image = tempfile::NamedTempFile::new().unwrap();
    image.as_file().write_all(&device).unwrap();
    let files = files(image.path(), &scattered());
    let reader = ExtentReader::new(EngineKind::Threads, image.path(), files).unwrap();
    assert_eq!(reader.engine(), "threads");
    let mut got = vec![0; content.len()];
    reader.read_exact_at("set/part".as_ref(), 0, &mut got).unwrap();
    assert_eq!(got, content);
    reader.read_exact_at("set/part".as_ref(), 8191, &mut got[..3]).unwrap();
    assert_eq!(got[..3], content[8191..8194]);
    let end = content.len() as u64;
    assert!(reader.read_exact_at("set/part".as_ref(), end - 1, &mut got[..2]).is_err());
    assert!(reader.read_exact_at("set/other".as_ref(), 0, &mut got[..2]).is_err());
}

#[test]
fn a_character_device_that_is_no_namespace_is_refused_with_a_remedy() {
    use meetpoint_diagnose::Diagnose;
    for kind in EngineKind::ALL {
        for name in ["/dev/null", "/dev/null@0+4096"] {
            let refused = open_block_engine(kind, 1, name.as_ref()).map(|_| ()).unwrap_err();
            assert_eq!(
                (refused.cause(), refused.path()),
                ("device_not_opened", Some(name.as_ref()))
            );
            assert!(refused.remedy().is_some(), "{refused}");
            assert_eq!(block_bytes(kind, name.as_ref()).unwrap_err().cause(), "device_not_opened");
        }
    }
    let missing = block_bytes(EngineKind::Threads, "/dev/ng99n99@0+4096".as_ref()).unwrap_err();
    assert!(matches!(missing, Error::Open { .. }), "{missing}");
}

/// The folder of this crate's build, which is on a disk more often than the temporary folder.
fn folder_on_disk() -> tempfile::TempDir {
    let target = std::env::current_exe().unwrap();
    tempfile::tempdir_in(target.parent().unwrap()).unwrap()
}

#[test]
fn a_file_of_this_machine_is_read_from_its_block_device() {
    let folder = folder_on_disk();
    let path = folder.path().join("part");
    let content: Vec<u8> = (0..3_000_001_u32).map(|at| (at * 7 / 5) as u8).collect();
    std::fs::write(&path, &content).unwrap();
    let mapped = match map_file(&path) {
        Ok(mapped) => mapped,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    assert_eq!(mapped.ranges().iter().map(|range| range.bytes).sum::<u64>(), mapped.bytes());
    let block = Path::new("/dev").join(&mapped.device().name);
    let mut inner = ThreadsEngine::new(1).unwrap();
    if let Err(error) = inner.open(&block, Access::Read) {
        return eprintln!("skipped: {error}");
    }
    let file = ExtentFile::new(block, mapped.ranges().to_vec()).unwrap();
    let files = ExtentFiles::from([(path.clone(), Arc::new(file))]);
    let mut engine = ExtentEngine::new(Box::new(inner), files);
    let file = engine.open(&path, Access::Read).unwrap();
    let done = read_all(&mut engine, file, &[(0, content.len()), (1_000_003, 17)]);
    let got =
        |index: usize, bytes: usize| &done[index].buffer.as_slice()[done[index].start..][..bytes];
    assert!(got(0, content.len()) == content, "the device holds other bytes than the file");
    assert_eq!(got(1, 17), &content[1_000_003..1_000_020]);
    mapped.check_unchanged().unwrap();
}

#[test]
fn files_that_are_not_stable_are_refused_with_the_reason() {
    use super::{ExtentError, Instability};
    let folder = folder_on_disk();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("whole"), vec![1; 100_000]).unwrap();
    let mapped = match map_file(&path("whole")) {
        Ok(mapped) => mapped,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let unstable = |name: &str| match map_file(&path(name)).unwrap_err() {
        ExtentError::Unstable { start, end, reason, .. } => (start, end, reason),
        other => panic!("{other}"),
    };
    let sparse = std::fs::File::create(path("sparse")).unwrap();
    sparse.set_len(1 << 20).unwrap();
    assert_eq!(unstable("sparse"), (0, 1 << 20, Instability::Hole));
    let reserved = std::fs::File::create(path("reserved")).unwrap();
    let flags = rustix::fs::FallocateFlags::empty();
    match rustix::fs::fallocate(&reserved, flags, 0, 1 << 20) {
        Ok(()) => assert_eq!(unstable("reserved"), (0, 1 << 20, Instability::Unwritten)),
        Err(error) => eprintln!("skipped: fallocate: {error}"),
    }
    // Written to, and replaced, after it was mapped.
    let mut file = std::fs::File::options().append(true).open(path("whole")).unwrap();
    file.write_all(b"more").unwrap();
    let changed = mapped.check_unchanged().unwrap_err();
    assert!(matches!(changed, ExtentError::Changed { what: "the file", .. }), "{changed}");
    let mapped = map_file(&path("whole")).unwrap();
    std::fs::write(path("new"), vec![1; 100_004]).unwrap();
    std::fs::rename(path("new"), path("whole")).unwrap();
    let changed = mapped.check_unchanged().unwrap_err();
    let what = "the file of this name";
    assert!(matches!(&changed, ExtentError::Changed { what: it, .. } if *it == what), "{changed}");
}
