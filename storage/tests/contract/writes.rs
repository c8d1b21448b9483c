//! Writes: whole blocks on direct files, anything on others, durable after a sync.

use crate::harness::{drain, each, each_alone, pattern, read, request, submit, write};
use meetpoint_storage::{Access, Error, RequestKind};

#[test]
fn what_is_written_reads_back_and_the_rest_stays() {
    each(|subject| {
        let mut wanted = pattern(5 * 4096);
        let path = subject.put("spool", &wanted);
        let mut engine = subject.engine(4);
        let file = engine.open(&path, Access::ReadWrite).unwrap();
        let fresh: Vec<u8> = pattern(8192).iter().map(|byte| !byte).collect();
        write(&mut *engine, file, 4096, &fresh).unwrap();
        wanted[4096..3 * 4096].copy_from_slice(&fresh);
        assert!(subject.contents(&path) == wanted, "{}", subject.name);
        assert!(read(&mut *engine, file, 100, 15_000).unwrap() == wanted[100..15_100]);
        let counters = engine.counters();
        assert_eq!((counters.writes, counters.bytes_written), (1, 8192));
    });
}

#[test]
fn a_file_without_a_name_is_written_by_one_engine_and_read_by_another() {
    each_alone(|subject| {
        if subject.is_fixed() {
            return;
        }
        let memory = rustix::fs::memfd_create("spool", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        for file in [tempfile::tempfile().unwrap(), std::fs::File::from(memory)] {
            let again = file.try_clone().unwrap();
            let (mut device, mut host) = (subject.engine(2), subject.engine(2));
            let spool = device.adopt(file, "the spool").unwrap();
            write(&mut *device, spool, 8192, &pattern(12_288)).unwrap();
            let spool = host.adopt(again, "the spool").unwrap();
            let got = read(&mut *host, spool, 9000, 10_000).unwrap();
            assert!(got == pattern(12_288)[808..10_808], "{}", subject.name);
        }
    });
}

#[test]
fn a_write_past_the_end_makes_the_file_longer() {
    each(|subject| {
        if subject.is_fixed() {
            return;
        }
        let path = subject.put("spool", &[]);
        let mut engine = subject.engine(4);
        let file = engine.open(&path, Access::ReadWrite).unwrap();
        write(&mut *engine, file, 8192, &pattern(4096)).unwrap();
        assert_eq!(engine.file_bytes(file).unwrap(), 12_288);
        let contents = subject.contents(&path);
        assert!(contents[..8192].iter().all(|&byte| byte == 0));
        assert!(contents[8192..] == pattern(4096));
    });
}

#[test]
fn an_unaligned_write_to_a_direct_file_is_refused_and_elsewhere_done() {
    each(|subject| {
        let path = subject.put("spool", &pattern(16_384));
        let mut engine = subject.engine(4);
        let file = engine.open(&path, Access::ReadWrite).unwrap();
        for (offset, bytes) in [(100, 4096), (4096, 100), (4097, 4095)] {
            let result = write(&mut *engine, file, offset, &vec![1; bytes]);
            if engine.is_direct(file) {
                assert!(
                    matches!(result, Err(Error::Unaligned { .. })),
                    "{}: {result:?}",
                    subject.name
                );
            } else {
                result.unwrap();
                let written = &subject.contents(&path)[offset as usize..][..bytes];
                assert!(written.iter().all(|&byte| byte == 1), "{}", subject.name);
            }
        }
        if engine.is_direct(file) {
            assert!(subject.contents(&path) == pattern(16_384), "nothing was written");
        }
    });
}

#[test]
fn a_sync_succeeds_and_moves_nothing() {
    each(|subject| {
        let path = subject.put("spool", &pattern(4096));
        let mut engine = subject.engine(4);
        let file = engine.open(&path, Access::ReadWrite).unwrap();
        write(&mut *engine, file, 0, &vec![3; 4096]).unwrap();
        let mut sync = request(&mut *engine, file, RequestKind::Sync, 0, 0);
        sync.buffer = meetpoint_storage::AlignedBuffer::zeroed(0);
        engine.submit(sync).unwrap();
        let completion = drain(&mut *engine).pop().unwrap();
        assert_eq!(completion.result.unwrap(), 0, "{}", subject.name);
        let counters = engine.counters();
        assert_eq!((counters.reads, counters.writes, counters.bytes_written), (0, 1, 4096));
    });
}

#[test]
fn a_write_of_nothing_succeeds() {
    each(|subject| {
        let path = subject.put("spool", &[]);
        let mut engine = subject.engine(4);
        let file = engine.open(&path, Access::ReadWrite).unwrap();
        write(&mut *engine, file, 0, &[]).unwrap();
        assert_eq!(engine.file_bytes(file).unwrap(), 0);
    });
}

#[test]
fn a_write_to_a_file_opened_for_reading_fails_and_names_it() {
    each(|subject| {
        let path = subject.put("part", &pattern(4096));
        let mut engine = subject.engine(4);
        let file = engine.open(&path, Access::Read).unwrap();
        submit(&mut *engine, file, RequestKind::Write, 0, 4096).unwrap();
        let error = drain(&mut *engine).pop().unwrap().result.unwrap_err();
        let Error::Io { action, path: named, offset, bytes, source } = error else {
            panic!("{}: {error}", subject.name)
        };
        assert_eq!((action, named, offset, bytes), ("write", path.clone(), 0, 4096));
        assert_eq!(source.raw_os_error(), Some(libc::EBADF));
        assert!(subject.contents(&path) == pattern(4096));
        assert_eq!(engine.counters().errors, 1);
    });
}
