//! Random operations on an engine agree with the same operations on a vector of bytes.

use crate::harness::{Subject, drain, each, request, write};
use meetpoint_storage::{Access, Engine, Error, FileId, RequestKind};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Longest file of these tests.
const LENGTH_MAX: usize = 40_000;

#[derive(Debug, Clone)]
enum Operation {
    /// May reach past the end.
    Read {
        offset: usize,
        bytes: usize,
    },
    /// In blocks, so that it works on direct files as well.
    Write {
        block: usize,
        blocks: usize,
        fill: u8,
    },
    Sync,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (0..LENGTH_MAX, 0..20_000_usize)
            .prop_map(|(offset, bytes)| Operation::Read { offset, bytes }),
        2 => (0..8_usize, 0..3_usize, any::<u8>())
            .prop_map(|(block, blocks, fill)| Operation::Write { block, blocks, fill }),
        1 => Just(Operation::Sync),
    ]
}

#[test]
fn random_operations_agree_with_a_vector_of_bytes() {
    each(|subject| {
        let mut runner =
            TestRunner::new(Config { cases: 12, failure_persistence: None, ..Config::default() });
        let cases = (0..LENGTH_MAX, prop::collection::vec(operation(), 1..24), 1..6_usize);
        runner
            .run(&cases, |(length, operations, depth)| {
                check(subject, length, &operations, depth);
                Ok(())
            })
            .unwrap_or_else(|failure| panic!("{}: {failure}", subject.name));
    });
}

/// Reads are in flight together; a write waits for them and is awaited.
fn check(subject: &Subject, length: usize, operations: &[Operation], depth: usize) {
    let mut model: Vec<u8> = (0..length).map(|place| ((place * 31) >> 3) as u8).collect();
    let path = subject.put("any", &model);
    let mut engine = subject.engine(depth);
    let file = engine.open(&path, Access::ReadWrite).unwrap();
    let mut reads = Vec::new();
    for operation in operations {
        match *operation {
            Operation::Read { offset, bytes } => {
                if engine.in_flight() == depth {
                    settle(&mut *engine, &mut reads, &model);
                }
                let mut request =
                    request(&mut *engine, file, RequestKind::Read, offset as u64, bytes);
                request.token = reads.len() as u64;
                reads.push((offset, bytes));
                engine.submit(request).unwrap();
            }
            Operation::Write { block, blocks, fill } => {
                settle(&mut *engine, &mut reads, &model);
                let (begin, mut end) = (block * 4096, (block + blocks) * 4096);
                if subject.is_fixed() {
                    // A write must fit.
                    end = end.min(length - length % 4096).max(begin);
                }
                write(&mut *engine, file, begin as u64, &vec![fill; end - begin]).unwrap();
                if end > begin {
                    model.resize(model.len().max(end), 0);
                    model[begin..end].fill(fill);
                }
            }
            Operation::Sync => sync(&mut *engine, file, &mut reads, &model),
        }
    }
    settle(&mut *engine, &mut reads, &model);
    assert_eq!(engine.file_bytes(file).unwrap(), model.len() as u64);
    assert!(subject.contents(&path) == model);
}

fn sync(engine: &mut dyn Engine, file: FileId, reads: &mut Vec<(usize, usize)>, model: &[u8]) {
    settle(engine, reads, model);
    let sync = request(engine, file, RequestKind::Sync, 0, 0);
    engine.submit(sync).unwrap();
    assert_eq!(drain(engine).pop().unwrap().result.unwrap(), 0);
}

/// Waits for the reads and compares them with the model.
fn settle(engine: &mut dyn Engine, reads: &mut Vec<(usize, usize)>, model: &[u8]) {
    let completions = drain(engine);
    assert_eq!(completions.len(), reads.len());
    for completion in completions {
        let (offset, bytes) = reads[completion.token as usize];
        let there = model.get(offset..).unwrap_or_default();
        match completion.result {
            Ok(moved) => {
                assert_eq!(moved, bytes);
                if bytes > 0 {
                    let got = &completion.buffer.as_slice()[completion.start..][..bytes];
                    assert!(got == &there[..bytes], "{offset} and {bytes} bytes");
                }
            }
            Err(Error::ShortRead { offset: at, wanted, got, .. }) => {
                assert_eq!((at, wanted, got), (offset as u64, bytes, there.len()));
                assert!(there.len() < bytes);
            }
            Err(error) => panic!("{error}"),
        }
    }
    reads.clear();
}
