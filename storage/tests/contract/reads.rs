//! Reads: any range of any file, whole or an error.

use crate::harness::{LONG, drain, each, each_alone, open, pattern, read, request, submit};
use meetpoint_storage::{Access, Error, RequestKind};
use std::path::Path;

/// No multiple of a block.
const LENGTH: usize = 3 * 4096 + 1234;

#[test]
fn any_range_of_a_file_reads_back() {
    each(|subject| {
        let bytes = pattern(LENGTH);
        let path = subject.put("part", &bytes);
        let mut engine = subject.engine(4);
        let file = open(&mut *engine, &path);
        assert_eq!(engine.file_bytes(file).unwrap(), LENGTH as u64);
        let ends = [0, 1, 511, 512, 4095, 4096, 4097, 8192, 12_287, 12_288, LENGTH - 1, LENGTH];
        for begin in ends {
            for end in ends.into_iter().filter(|&end| end > begin) {
                let got = read(&mut *engine, file, begin as u64, end - begin).unwrap();
                assert!(got == bytes[begin..end], "{}: {begin}..{end}", subject.name);
            }
        }
    });
}

#[test]
fn a_read_past_the_end_is_a_short_read_that_says_what_is_there() {
    each(|subject| {
        let path = subject.put("cut short", &pattern(LENGTH));
        let mut engine = subject.engine(4);
        let file = open(&mut *engine, &path);
        for (offset, bytes, there) in [
            (0, LENGTH + 1, LENGTH),
            (LENGTH - 10, 4096, 10),
            (5000, 20_000, LENGTH - 5000),
            (LENGTH, 1, 0),
            (1 << 30, 100, 0),
        ] {
            let error = read(&mut *engine, file, offset as u64, bytes).unwrap_err();
            let Error::ShortRead { path: named, offset: at, wanted, got } = error else {
                panic!("{}: {error}", subject.name);
            };
            assert_eq!((at, wanted, got), (offset as u64, bytes, there), "{}", subject.name);
            assert_eq!(named, path);
        }
        assert_eq!(engine.counters().errors, 5);
    });
}

#[test]
fn an_empty_file_has_nothing_to_read() {
    each(|subject| {
        let path = subject.put("empty", &[]);
        let mut engine = subject.engine(1);
        let file = open(&mut *engine, &path);
        assert_eq!(engine.file_bytes(file).unwrap(), 0);
        let error = read(&mut *engine, file, 0, 1).unwrap_err();
        assert!(matches!(error, Error::ShortRead { got: 0, wanted: 1, .. }), "{error}");
        assert!(read(&mut *engine, file, 0, 0).unwrap().is_empty());
    });
}

#[test]
fn a_read_of_nothing_succeeds_and_comes_back_through_wait() {
    each(|subject| {
        let path = subject.put("part", &pattern(100));
        let mut engine = subject.engine(2);
        let file = open(&mut *engine, &path);
        for offset in [0, 77, 1 << 40] {
            submit(&mut *engine, file, RequestKind::Read, offset, 0).unwrap();
            assert_eq!(engine.in_flight(), 1, "{}", subject.name);
            let mut out = Vec::new();
            assert_eq!(engine.wait(LONG, &mut out).unwrap(), 1);
            assert_eq!(*out[0].result.as_ref().unwrap(), 0);
            assert_eq!(engine.in_flight(), 0);
        }
    });
}

#[test]
fn reads_of_many_files_in_flight_each_bring_their_own_bytes() {
    each(|subject| {
        let mut engine = subject.engine(16);
        let all = pattern(64 * 5000);
        let files: Vec<_> = all
            .chunks(5000)
            .enumerate()
            .map(|(index, chunk)| {
                let path = subject.put(&format!("part-{index}"), chunk);
                open(&mut *engine, &path)
            })
            .collect();
        let (mut next, mut seen) = (0, vec![false; files.len()]);
        let mut out = Vec::new();
        while seen.contains(&false) {
            while next < files.len() && engine.in_flight() < 16 {
                let (kind, bytes) = (RequestKind::Read, 4000);
                let mut request = request(&mut *engine, files[next], kind, 500, bytes);
                request.token = next as u64;
                engine.submit(request).unwrap();
                next += 1;
            }
            assert!(engine.wait(LONG, &mut out).unwrap() > 0);
            for completion in out.drain(..) {
                let index = completion.token as usize;
                let got = &completion.buffer.as_slice()[completion.start..][..4000];
                assert!(got == &all[index * 5000 + 500..][..4000], "{}", subject.name);
                assert!(!std::mem::replace(&mut seen[index], true), "each comes back once");
            }
        }
    });
}

#[test]
fn a_file_that_is_not_there_is_named() {
    each(|subject| {
        let path = subject.put("part", &[]).with_file_name("missing");
        let error = subject.engine(1).open(&path, Access::Read).unwrap_err();
        let Error::Open { path: named, source } = error else { panic!("{error}") };
        assert_eq!((named, source.kind()), (path, std::io::ErrorKind::NotFound));
    });
}

#[test]
fn what_is_not_a_file_is_refused_at_once() {
    each_alone(|subject| {
        if !subject.is_on_disk() {
            return;
        }
        let folder = subject.put("part", &[]).parent().unwrap().to_path_buf();
        let special = tempfile::tempdir_in(&folder).unwrap();
        let (pipe, socket) = (special.path().join("pipe"), special.path().join("socket"));
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let mut engine = subject.engine(1);
        for path in [&*pipe, &*socket, special.path(), Path::new("/dev/zero")] {
            let error = engine.open(path, Access::Read).unwrap_err();
            let Error::Open { path: named, source } = error else { panic!("{error}") };
            assert_eq!((&*named, source.kind()), (path, std::io::ErrorKind::InvalidInput));
        }
    });
}

#[test]
fn an_adopted_file_is_read_like_an_opened_one() {
    each(|subject| {
        if !subject.is_on_disk() {
            return;
        }
        let bytes = pattern(LENGTH);
        let path = subject.put("part", &bytes);
        let mut engine = subject.engine(4);
        let opened = open(&mut *engine, &path);
        let adopted = engine.adopt(std::fs::File::open(&path).unwrap(), "the spool").unwrap();
        assert_eq!(engine.is_direct(adopted), engine.is_direct(opened), "{}", subject.name);
        assert_eq!(read(&mut *engine, adopted, 1000, 9000).unwrap(), &bytes[1000..10_000]);
        let error = read(&mut *engine, adopted, LENGTH as u64, 1).unwrap_err();
        assert!(error.to_string().starts_with("the spool ends early"), "{error}");
    });
}

#[test]
fn counters_match_the_bytes_read_and_moved() {
    each(|subject| {
        let path = subject.put("part", &pattern(LENGTH));
        let mut engine = subject.engine(4);
        let file = open(&mut *engine, &path);
        for offset in [100, 5000] {
            submit(&mut *engine, file, RequestKind::Read, offset, 1000).unwrap();
        }
        drain(&mut *engine);
        let counters = engine.counters();
        assert_eq!((counters.reads, counters.bytes_read, counters.errors), (2, 2000, 0));
        assert!(counters.bytes_read_device >= 2000);
        assert!(counters.bytes_read_device > 2000 || !engine.is_direct(file), "{}", subject.name);
        assert_eq!((counters.writes, counters.bytes_written), (0, 0));
    });
}
