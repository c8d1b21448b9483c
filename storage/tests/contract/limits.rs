//! Limits and lifetimes: bounded depth, bounded waits, nothing lost, nothing freed too early.

use crate::harness::{
    LONG, drain, each, each_alone, open, pattern, request, submit, tracked, uring,
};
use meetpoint_storage::slow::{Pace, SlowEngine};
use meetpoint_storage::uring::REGISTERED_BYTES;
use meetpoint_storage::{AlignedBuffer, Engine, Error, FileId, Request, RequestKind};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const KIND: RequestKind = RequestKind::Read;

#[test]
fn one_request_more_than_the_depth_is_refused_and_comes_back_untouched() {
    each(|subject| {
        let path = subject.put("part", &pattern(100_000));
        for depth in [1, 3, 8] {
            let mut engine = subject.engine(depth);
            assert_eq!(engine.limits().depth, depth);
            let file = open(&mut *engine, &path);
            for offset in 0..depth as u64 {
                submit(&mut *engine, file, KIND, offset, 5000).unwrap();
            }
            assert_eq!(engine.in_flight(), depth);
            let mut buffer = AlignedBuffer::zeroed(12_288);
            buffer.as_mut_slice().fill(0xa5);
            let start = buffer.as_slice().as_ptr();
            let request =
                Request { token: u64::MAX, file, kind: KIND, offset: 9, bytes: 7, buffer };
            let refused = engine.submit(request).unwrap_err();
            assert!(matches!(refused.error, Error::QueueFull { depth: said } if said == depth));
            let Request { token, offset, bytes, buffer, .. } = refused.request;
            assert_eq!((token, offset, bytes), (u64::MAX, 9, 7), "{}", subject.name);
            assert_eq!(buffer.as_slice().as_ptr(), start);
            assert!(buffer.as_slice().iter().all(|&byte| byte == 0xa5));
            assert_eq!(drain(&mut *engine).len(), depth);
            submit(&mut *engine, file, KIND, 0, 1).unwrap();
            assert_eq!(drain(&mut *engine).len(), 1);
        }
    });
}

#[test]
fn a_wait_with_nothing_in_flight_returns_at_once() {
    each(|subject| {
        let mut out = Vec::new();
        let mut engine = subject.engine(4);
        // The test would not end if this waited.
        assert_eq!(engine.wait(Duration::MAX, &mut out).unwrap(), 0, "{}", subject.name);
        assert!(out.is_empty());
    });
}

#[test]
fn a_closed_file_is_gone_and_a_request_in_flight_still_reads_it() {
    each(|subject| {
        let (first, second) = (pattern(9000), vec![7; 9000]);
        let paths = [subject.put("first", &first), subject.put("second", &second)];
        let mut engine = subject.engine(4);
        let file = open(&mut *engine, &paths[0]);
        submit(&mut *engine, file, KIND, 11, 8000).unwrap();
        engine.close(file);
        // A request in flight still reads the file for which it was submitted.
        let other = open(&mut *engine, &paths[1]);
        submit(&mut *engine, other, KIND, 11, 8000).unwrap();
        let ended = drain(&mut *engine);
        let bytes = |completion: &meetpoint_storage::Completion| {
            let start = completion.start;
            completion.buffer.as_slice()[start..start + 8000].to_vec()
        };
        let read: Vec<_> = ended.iter().map(bytes).collect();
        assert!(read.contains(&first[11..8011].to_vec()), "{}", subject.name);
        assert!(read.contains(&second[11..8011].to_vec()), "{}", subject.name);
        engine.close(other);
        let refused = submit(&mut *engine, other, KIND, 0, 5).unwrap_err();
        assert!(matches!(refused.error, Error::NoSuchFile(_)), "{}", subject.name);
    });
}

/// Alone, because decorators pass this on, and because a namespace is identified each time, which
/// takes long on an emulated drive.
#[test]
fn more_files_are_opened_one_after_the_other_than_can_be_open_at_once() {
    each_alone(|subject| {
        let path = subject.put("part", &pattern(9000));
        let mut engine = subject.engine(4);
        let ids: std::collections::BTreeSet<_> = (0..3000)
            .map(|_| {
                let id = open(&mut *engine, &path);
                engine.close(id);
                id.0
            })
            .collect();
        assert!(ids.len() <= 2, "{}: {ids:?}", subject.name);
    });
}

#[test]
fn a_wait_that_times_out_returns_nothing_and_loses_nothing() {
    each(|subject| {
        let path = subject.put("part", &pattern(100_000));
        let pace = Pace { latency: Duration::from_secs(3600), ..Pace::default() };
        let mut engine = SlowEngine::new(subject.engine(4), pace);
        let file = open(&mut engine, &path);
        submit(&mut engine, file, KIND, 0, 5000).unwrap();
        let mut out = Vec::new();
        for timeout in [Duration::ZERO, Duration::from_millis(2)] {
            assert_eq!(engine.wait(timeout, &mut out).unwrap(), 0, "{}", subject.name);
            assert_eq!((engine.in_flight(), out.len()), (1, 0));
        }
    });
}

#[test]
fn io_uring_waits_no_longer_than_its_limit_for_an_empty_pipe() {
    let Some(mut engine) = uring(2) else { return };
    let (reader, mut writer) = std::io::pipe().unwrap();
    let file = engine.adopt(std::os::fd::OwnedFd::from(reader).into(), "a pipe").unwrap();
    assert!(!engine.is_direct(file));
    submit(&mut engine, file, KIND, 0, 5).unwrap();
    let mut out = Vec::new();
    for timeout in [Duration::ZERO, Duration::from_millis(2)] {
        assert_eq!(engine.wait(timeout, &mut out).unwrap(), 0);
    }
    std::io::Write::write_all(&mut writer, b"he").unwrap();
    assert_eq!(engine.wait(Duration::from_millis(2), &mut out).unwrap(), 0, "two are not five");
    std::io::Write::write_all(&mut writer, b"llo").unwrap();
    assert_eq!(engine.wait(LONG, &mut out).unwrap(), 1);
    assert_eq!(&out[0].buffer.as_slice()[..5], b"hello");
}

#[test]
fn io_uring_dropped_while_the_kernel_has_a_buffer_cancels_and_frees_it() {
    let Some(mut engine) = uring(2) else { return };
    let (reader, _writer) = std::io::pipe().unwrap();
    let file = engine.adopt(std::os::fd::OwnedFd::from(reader).into(), "a pipe").unwrap();
    let tracker = Arc::new(());
    let buffer = tracked(4096, &tracker);
    engine.submit(Request { token: 0, file, kind: KIND, offset: 0, bytes: 5, buffer }).unwrap();
    assert_eq!(engine.wait(Duration::ZERO, &mut Vec::new()).unwrap(), 0);
    drop(engine);
    assert_eq!(Arc::strong_count(&tracker), 1, "the buffer is free again");
}

#[test]
fn an_engine_dropped_with_requests_in_flight_frees_their_buffers() {
    each(|subject| {
        let path = subject.put("part", &pattern(1 << 20));
        let tracker = Arc::new(());
        let mut engine = subject.engine(8);
        let file = open(&mut *engine, &path);
        for token in 0..8 {
            let (offset, bytes) = (token * 100_000, 100_000);
            let buffer = tracked(bytes + 8192, &tracker);
            engine.submit(Request { token, file, kind: KIND, offset, bytes, buffer }).unwrap();
        }
        let mut out = Vec::new();
        engine.wait(Duration::ZERO, &mut out).unwrap();
        drop(engine);
        assert_eq!(Arc::strong_count(&tracker), 1 + out.len(), "{}", subject.name);
    });
}

#[test]
fn requests_that_cannot_work_are_refused_with_the_reason() {
    each(|subject| {
        let path = subject.put("part", &pattern(100_000));
        let mut engine = subject.engine(4);
        let file = open(&mut *engine, &path);
        let refusal = |engine: &mut dyn Engine, file, kind, offset, bytes, capacity| {
            let buffer = AlignedBuffer::zeroed(capacity);
            let request = Request { token: 3, file, kind, offset, bytes, buffer };
            let refused = engine.submit(request).unwrap_err();
            assert_eq!((refused.request.token, refused.request.bytes), (3, bytes));
            refused.error
        };
        let engine = &mut *engine;
        assert!(matches!(refusal(engine, FileId(77), KIND, 0, 10, 4096), Error::NoSuchFile(77)));
        assert!(matches!(
            refusal(engine, file, KIND, 0, 5000, 4096),
            Error::BufferTooSmall { capacity: 4096, .. }
        ));
        assert!(matches!(
            refusal(engine, file, KIND, u64::MAX - 5, 10, 8192),
            Error::Io { action: "read", .. }
        ));
        assert!(matches!(engine.file_bytes(FileId(77)), Err(Error::NoSuchFile(77))));
        assert!(!engine.is_direct(FileId(77)));
        assert_eq!((engine.in_flight(), engine.counters().errors), (0, 0), "{}", subject.name);
    });
}

#[test]
fn tokens_come_back_as_they_were_even_if_they_are_all_the_same() {
    each(|subject| {
        let path = subject.put("part", &pattern(100_000));
        let mut engine = subject.engine(8);
        let file = open(&mut *engine, &path);
        let mut counts = BTreeMap::new();
        for token in [0, u64::MAX, 5, 5, 5, 1 << 63, 0, 1] {
            let mut request = request(&mut *engine, file, KIND, 5, 50);
            request.token = token;
            engine.submit(request).unwrap();
        }
        for completion in drain(&mut *engine) {
            *counts.entry(completion.token).or_insert(0) += 1;
        }
        let wanted = BTreeMap::from([(0, 2), (u64::MAX, 1), (5, 3), (1 << 63, 1), (1, 1)]);
        assert_eq!(counts, wanted, "{}", subject.name);
    });
}

#[test]
fn an_engine_can_move_to_another_thread_with_requests_in_flight() {
    each(|subject| {
        let bytes = pattern(100_000);
        let path = subject.put("part", &bytes);
        let mut engine = subject.engine(4);
        let file = open(&mut *engine, &path);
        for offset in [1, 20_000, 40_000] {
            submit(&mut *engine, file, KIND, offset, 9000).unwrap();
        }
        let (mut engine, completions) = std::thread::spawn(move || {
            let completions = drain(&mut *engine);
            submit(&mut *engine, file, KIND, 60_000, 9000).unwrap();
            (engine, completions)
        })
        .join()
        .unwrap();
        // The thread that submitted the last read has ended.
        for completion in completions.into_iter().chain(drain(&mut *engine)) {
            assert_eq!(completion.result.unwrap(), 9000, "{}", subject.name);
            let offset = (completion.token & 0xff_ffff) as usize;
            let got = &completion.buffer.as_slice()[completion.start..][..9000];
            assert!(got == &bytes[offset..][..9000], "{}", subject.name);
        }
    });
}

#[test]
fn registered_buffers_are_lent_again_and_limited() {
    let Some(mut engine) = uring(4) else { return };
    let first = engine.buffer(1 << 20);
    if !first.is_registered() {
        eprintln!("skipped: registered buffers: {}", engine.notes()[0]);
        return;
    }
    let start = first.as_slice().as_ptr();
    drop(first);
    let many: Vec<_> = (0..20).map(|_| engine.buffer(1 << 20)).collect();
    assert_eq!(many[0].as_slice().as_ptr(), start, "it is the same memory");
    let registered = many.iter().filter(|buffer| buffer.is_registered()).count();
    assert_eq!(registered, REGISTERED_BYTES >> 20);
    assert!(engine.notes().is_empty(), "{:?}", engine.notes());
    drop(engine);
    // They outlive their engine.
    assert!(many.iter().all(|buffer| buffer.as_slice().len() == 1 << 20));
}

#[test]
fn a_buffer_lent_by_one_engine_can_be_used_with_any_other() {
    each(|subject| {
        let bytes = pattern(100_000);
        let path = subject.put("part", &bytes);
        let (mut lender, mut engine) = (subject.engine(2), subject.engine(2));
        let own = engine.buffer(100_000);
        for buffer in [lender.buffer(100_000), own] {
            let file = open(&mut *engine, &path);
            let request = Request { token: 0, file, kind: KIND, offset: 8, bytes: 90_000, buffer };
            engine.submit(request).unwrap();
            let completion = drain(&mut *engine).pop().unwrap();
            assert_eq!(completion.result.unwrap(), 90_000);
            let got = &completion.buffer.as_slice()[completion.start..][..90_000];
            assert!(got == &bytes[8..90_008], "{}", subject.name);
        }
    });
}
