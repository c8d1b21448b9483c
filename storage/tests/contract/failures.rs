//! Failures of real devices, and of the decorator that simulates them.

use crate::harness::{drain, each_alone, open, pattern, read, request, submit, write};
use meetpoint_storage::faulty::{Fault, FaultPlan, FaultyEngine};
use meetpoint_storage::{Access, Engine, Error, RequestKind};
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn eio_from_the_kernel_surfaces_with_path_and_offset() {
    each_alone(|subject| {
        if !subject.is_on_disk() {
            return;
        }
        // Nothing is mapped at address 4096, and reading a process's memory there fails so.
        let path = Path::new("/proc/self/mem");
        let mut engine = subject.engine(2);
        let file = open(&mut *engine, path);
        let error = read(&mut *engine, file, 4096, 100).unwrap_err();
        let Error::Io { action, path: named, offset, bytes, source } = error else {
            panic!("{}: {error}", subject.name)
        };
        assert_eq!((action, named.as_path(), offset, bytes), ("read", path, 4096, 100));
        assert_eq!(source.raw_os_error(), Some(libc::EIO), "{}", subject.name);
        assert_eq!(engine.counters().errors, 1);
    });
}

#[test]
fn enospc_from_the_kernel_surfaces_with_the_path() {
    each_alone(|subject| {
        if !subject.is_on_disk() {
            return;
        }
        let mut engine = subject.engine(2);
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let file = engine.adopt(full, "/dev/full").unwrap();
        let error = write(&mut *engine, file, 0, &[1; 4096]).unwrap_err();
        assert!(error.to_string().contains("/dev/full"), "{error}");
        let Error::Io { source, .. } = error else { panic!("{}: {error}", subject.name) };
        assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    });
}

#[test]
fn each_planned_fault_hits_its_request_and_no_other() {
    each_alone(|subject| {
        let path = subject.put("spool", &pattern(100_000));
        let plan = FaultPlan::none()
            .and(RequestKind::Read, 1, Fault::ShortRead { bytes: 17 })
            .and(RequestKind::Read, 2, Fault::Broken)
            .and(RequestKind::Read, 3, Fault::Busy)
            .and(RequestKind::Write, 0, Fault::NoSpace);
        let mut engine = FaultyEngine::new(subject.engine(8), plan);
        let file = engine.open(&path, Access::ReadWrite).unwrap();
        let bytes = pattern(100_000);
        assert!(read(&mut engine, file, 10, 100).unwrap() == bytes[10..110]);
        let errors = [(); 3].map(|()| read(&mut engine, file, 10, 100).unwrap_err());
        assert!(matches!(
            &errors[0],
            Error::ShortRead { path: named, offset: 10, wanted: 100, got: 17 } if *named == path
        ));
        for (error, code) in errors[1..].iter().zip([libc::EIO, libc::EAGAIN]) {
            let Error::Io { action: "read", path: named, offset: 10, bytes: 100, source } = error
            else {
                panic!("{}: {error}", subject.name)
            };
            assert_eq!((named, source.raw_os_error()), (&path, Some(code)));
        }
        assert!(read(&mut engine, file, 10, 100).unwrap() == bytes[10..110]);
        let full = write(&mut engine, file, 4096, &[9; 4096]).unwrap_err();
        assert!(matches!(full, Error::Io { action: "write", offset: 4096, .. }), "{full}");
        assert!(subject.contents(&path) == bytes, "a write without space changes nothing");
        write(&mut engine, file, 4096, &[9; 4096]).unwrap();
        let counters = engine.counters();
        assert_eq!((counters.reads, counters.writes, counters.errors), (2, 1, 4));
    });
}

#[test]
fn a_delayed_request_comes_after_its_time_and_succeeds() {
    each_alone(|subject| {
        let path = subject.put("part", &pattern(100_000));
        let delay = Duration::from_millis(20);
        let plan = FaultPlan::none().and(RequestKind::Read, 0, Fault::Slow(delay));
        let mut engine = FaultyEngine::new(subject.engine(4), plan);
        let file = open(&mut engine, &path);
        let start = Instant::now();
        for token in 0..2 {
            let mut request = request(&mut engine, file, RequestKind::Read, 0, 50);
            request.token = token;
            engine.submit(request).unwrap();
        }
        let completions = drain(&mut engine);
        assert!(start.elapsed() >= delay, "{}", subject.name);
        assert!(completions.iter().all(|completion| completion.result.is_ok()));
        assert_eq!(completions.len(), 2);
    });
}

#[test]
fn under_any_seeded_faults_every_request_ends_once_and_successes_are_true() {
    each_alone(|subject| {
        let bytes = pattern(200_000);
        let path = subject.put("part", &bytes);
        for seed in 0..4 {
            let plan = FaultPlan::seeded(seed, 250);
            let mut engine = FaultyEngine::new(subject.engine(8), plan);
            let file = open(&mut engine, &path);
            let (mut ended, mut failed, mut out) = (0, 0, Vec::new());
            for index in 0..100_u64 {
                while engine.in_flight() == 8 {
                    engine.wait(crate::harness::LONG, &mut out).unwrap();
                }
                submit(&mut engine, file, RequestKind::Read, index * 1900, 2000).unwrap();
            }
            out.append(&mut drain(&mut engine));
            for completion in out {
                ended += 1;
                let offset = (completion.token & 0xff_ffff) as usize;
                match completion.result {
                    Ok(got) => {
                        assert_eq!(got, 2000);
                        let read = &completion.buffer.as_slice()[completion.start..][..2000];
                        assert!(read == &bytes[offset..][..2000], "{}", subject.name);
                    }
                    Err(_) => failed += 1,
                }
            }
            assert_eq!(ended, 100, "{}", subject.name);
            assert_eq!(engine.counters().errors, failed);
            assert!((5..50).contains(&failed), "{failed} of 100 at 250 per mille");
        }
    });
}
