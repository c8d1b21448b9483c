//! Runs a target on mutated files for some time, on any compiler and without a fuzzing engine.
//!
//!     cargo run --release --no-default-features --bin mutate -- TARGET SECONDS SEED FILES...
//!
//! Input number n of a seed is always the same. One that fails is written to `artifacts/TARGET-n`,
//! and the exit code is 1. A number before TARGET (`--from N`) begins at that input, which finds
//! one that ended the process.

use meetpoint_fuzz::TARGETS;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Failing inputs that are written before it ends.
const FAILURES_MAX: usize = 10;

/// Longest input.
const BYTES_MAX: usize = 1 << 16;

/// Inputs between two lines of progress.
const PROGRESS: u64 = 20_000;

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut number = 0_u64;
    if words.first().is_some_and(|word| word == "--from") {
        number = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        words.drain(..2.min(words.len()));
    }
    let [target, seconds, seed, paths @ ..] = words.as_slice() else { return usage() };
    let found = TARGETS.iter().find(|(name, _)| name == target);
    let (Some((name, run)), Ok(seconds), Ok(seed)) = (found, seconds.parse(), seed.parse()) else {
        return usage();
    };
    let mut corpus = Vec::new();
    for path in paths {
        collect(Path::new(path), &mut corpus);
    }
    if corpus.is_empty() {
        return usage();
    }
    println!("{name}: {} files, {seconds} s, seed {seed}", corpus.len());
    let (begin, first, mut failures) = (Instant::now(), number, 0);
    while begin.elapsed() < Duration::from_secs(seconds) && failures < FAILURES_MAX {
        if (number - first).is_multiple_of(PROGRESS) {
            println!("{name}: from input {number}, {:.0?}", begin.elapsed());
        }
        let input = mutated(&corpus, Random::new(seed, number));
        if catch_unwind(AssertUnwindSafe(|| run(&input))).is_err() {
            failures += 1;
            let path = PathBuf::from("artifacts").join(format!("{name}-{number}"));
            let written =
                std::fs::create_dir_all("artifacts").and_then(|()| std::fs::write(&path, &input));
            println!("{name}: input {number} fails: {} {written:?}", path.display());
        }
        number += 1;
    }
    println!("{name}: {} inputs, {failures} failures", number - first);
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage() -> ExitCode {
    let names: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
    println!("mutate [--from N] TARGET SECONDS SEED FILES...; targets: {}", names.join(", "));
    ExitCode::from(64)
}

/// Every file at or below a path that is not too large.
fn collect(path: &Path, corpus: &mut Vec<Vec<u8>>) {
    if path.is_dir() {
        let mut paths: Vec<_> = std::fs::read_dir(path)
            .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default();
        paths.sort();
        paths.iter().for_each(|path| collect(path, corpus));
    } else if let Ok(bytes) = std::fs::read(path)
        && bytes.len() <= BYTES_MAX
    {
        corpus.push(bytes);
    }
}

/// A file of the corpus after a few changes; sometimes after none.
fn mutated(corpus: &[Vec<u8>], mut random: Random) -> Vec<u8> {
    let mut bytes = corpus[random.below(corpus.len())].clone();
    for _ in 0..random.below(6) {
        change(&mut bytes, corpus, &mut random);
    }
    bytes.truncate(BYTES_MAX);
    bytes
}

fn change(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let length = bytes.len();
    if length == 0 {
        return;
    }
    let at = random.below(length);
    // Headers are short and matter most.
    let early = random.below(length.min(700));
    match random.below(12) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[early] ^= 1 << random.below(8),
        2 => bytes[early] = random.byte(),
        3 => bytes[at] = random.byte(),
        4 => bytes[early] = [0, 1, 2, 0x7f, 0x80, 0xfe, 0xff][random.below(7)],
        5 => bytes.truncate(at),
        6 => {
            // A marker.
            let code = 0xc0 + random.below(0x40) as u8;
            bytes.splice(at..at, [0xff, code]);
        }
        7 => {
            let end = at + random.below(40).min(length - at);
            bytes.drain(at..end);
        }
        8 => {
            let end = at + random.below(80).min(length - at);
            let copy = bytes[at..end].to_vec();
            let to = random.below(length);
            bytes.splice(to..to, copy);
        }
        9 => {
            // The head of this file and the tail of another one.
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len().max(1)).min(other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        10 => {
            let end = at + random.below(16).min(length - at);
            let byte = random.byte();
            bytes[at..end].fill(byte);
        }
        _ => bytes.swap(at, early),
    }
}

/// SplitMix64, one stream for each input.
struct Random(u64);

impl Random {
    fn new(seed: u64, number: u64) -> Self {
        Self(seed.rotate_left(32) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }

    fn byte(&mut self) -> u8 {
        self.next() as u8
    }
}
