//! Runs a target on mutated files for a given time, with any compiler and without a fuzzing engine.
//!
//!     cargo run --release --no-default-features --bin mutate -- TARGET SECONDS SEED FILES...
//!
//! Input number n is determined by the seed and the maximum length. An input that fails, or exceeds
//! its limits of memory or time, is written to `artifacts/TARGET-n`, and the exit code is 1.
//!
//! Options, in this order and in front of TARGET: `--max-len BYTES` limits an input (4 MiB),
//! `--timeout SECONDS` its time (25) and `--memory MIB` its memory (2560); `--from N` begins at
//! that input. `--write DIR` only writes the target's first inputs there, for cargo-fuzz; `--only`
//! runs the target on the files as they are.

use meetpoint_fuzz::mutation::{Random, enlarge, mutated};
use meetpoint_fuzz::{TARGETS, Target, memory, tally};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

#[global_allocator]
static MEMORY: memory::Counting = memory::Counting;

/// Maximum number of failing inputs that are written before the run ends.
const FAILURES_MAX: usize = 10;

/// First inputs that are also written enlarged, for cargo-fuzz.
const ENLARGED: usize = 16;

/// Limits of an input, on a machine that also does other work.
#[derive(Clone, Copy)]
struct Limits {
    input_bytes: usize,
    time: Duration,
    memory_bytes: usize,
}

/// Number of inputs between two lines of progress.
const PROGRESS: u64 = 100_000;

/// Number of the current input, for the watchdog.
static NUMBER: AtomicU64 = AtomicU64::new(0);

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut option = |name: &str, values: usize| {
        let found = words.first().is_some_and(|word| word == name) && words.len() > values;
        found.then(|| words.drain(..=values).next_back()).flatten()
    };
    let mut number = |name: &str, otherwise: usize| {
        option(name, 1).map_or(Some(otherwise), |word| word.parse().ok())
    };
    let limits = (number("--max-len", 4 << 20), number("--timeout", 25), number("--memory", 2560));
    let (Some(input_bytes), Some(seconds), Some(mib)) = limits else { return usage() };
    let limits =
        Limits { input_bytes, time: Duration::from_secs(seconds as u64), memory_bytes: mib << 20 };
    let first = option("--from", 1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let write = option("--write", 1).map(PathBuf::from);
    let only = option("--only", 0).is_some();
    let find = |name: &str| TARGETS.iter().find(|target| target.name == name);
    match words.as_slice() {
        [name, paths @ ..] if write.is_some() || only => {
            let Some(target) = find(name) else { return usage() };
            match write {
                Some(folder) => write_seeds(target, limits, &folder, paths),
                None => run_only(target, limits, paths),
            }
        }
        [name, seconds, seed, paths @ ..] => match (find(name), seconds.parse(), seed.parse()) {
            (Some(target), Ok(seconds), Ok(seed)) => {
                let corpus = seeds(target, limits, paths);
                if corpus.is_empty() {
                    return usage();
                }
                run(target, seconds, limits, &Inputs { corpus, seed, first })
            }
            _ => usage(),
        },
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
    println!(
        "mutate [LIMITS] [--from N] TARGET SECONDS SEED FILES...\n\
         mutate [LIMITS] --write DIR TARGET FILES...\n\
         mutate [LIMITS] --only TARGET FILES...\n\
         LIMITS: [--max-len BYTES] [--timeout SECONDS] [--memory MIB]\ntargets: {}",
        names.join(", ")
    );
    ExitCode::from(64)
}

/// The source of inputs.
struct Inputs {
    corpus: Vec<Vec<u8>>,
    seed: u64,
    /// Number of the first one.
    first: u64,
}

fn run(target: &Target, seconds: u64, limits: Limits, inputs: &Inputs) -> ExitCode {
    let name = target.name;
    let Inputs { corpus, seed, first } = inputs;
    let (seed, first) = (*seed, *first);
    println!("{name}: {} first inputs, {seconds} s, seed {seed}", corpus.len());
    std::thread::spawn(move || watch(name, limits.time));
    let begin = Instant::now();
    let (mut number, mut failures) = (first, 0);
    let (mut most, mut slowest) = ((0, 0), (Duration::ZERO, 0));
    while begin.elapsed() < Duration::from_secs(seconds) && failures < FAILURES_MAX {
        if number > first && (number - first).is_multiple_of(PROGRESS) {
            println!("{name}: from input {number}, {:.0?}", begin.elapsed());
        }
        NUMBER.store(number, Relaxed);
        let input = mutated(
            corpus,
            target.choice_bytes,
            limits.input_bytes,
            &mut Random::new(seed, number),
        );
        let before = memory::begin();
        let from = Instant::now();
        let failed = catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_err();
        let (took, bytes) = (from.elapsed(), memory::peak() - before);
        most = most.max((bytes, number));
        slowest = slowest.max((took, number));
        if failed || bytes > limits.memory_bytes || took > limits.time {
            failures += 1;
            let path = PathBuf::from("artifacts").join(format!("{name}-{number}"));
            let written =
                std::fs::create_dir_all("artifacts").and_then(|()| std::fs::write(&path, &input));
            println!(
                "{name}: input {number} fails ({bytes} bytes, {took:.1?}): {} {written:?}",
                path.display()
            );
        }
        number += 1;
    }
    let seconds = begin.elapsed().as_secs();
    println!("{name}: {} inputs in {seconds} s, {failures} failures", number - first);
    println!(
        "{name}: most memory {} KiB (input {}), most time {:.1?} (input {})",
        most.0 >> 10,
        most.1,
        slowest.0,
        slowest.1
    );
    for (what, count) in tally::all() {
        println!("{name}: {count:>9} {what}");
    }
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Ends the process if an input does not finish, and reports the input.
fn watch(name: &'static str, time: Duration) {
    let mut before = (u64::MAX, 0);
    loop {
        std::thread::sleep(time);
        let number = NUMBER.load(Relaxed);
        before = if before.0 == number { (number, before.1 + 1) } else { (number, 0) };
        if before.1 >= 6 {
            println!("{name}: input {number} does not end");
            std::process::exit(1);
        }
    }
}

/// The first inputs that files lead to.
fn seeds(target: &Target, limits: Limits, paths: &[String]) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for path in paths {
        collect(Path::new(path), limits, &mut files);
    }
    let seeds = files.iter().flat_map(|(_, bytes)| (target.seeds)(bytes));
    seeds.filter(|seed| seed.len() <= limits.input_bytes).collect()
}

fn write_seeds(target: &Target, limits: Limits, folder: &Path, paths: &[String]) -> ExitCode {
    let mut seeds = seeds(target, limits, paths);
    // An engine grows inputs slowly, so some are large from the first.
    let step = seeds.len().div_ceil(ENLARGED).max(1);
    let mut large: Vec<_> =
        seeds.iter().filter(|seed| !seed.is_empty()).step_by(step).cloned().collect();
    for (number, seed) in large.iter_mut().enumerate() {
        let room = limits.input_bytes.saturating_sub(target.choice_bytes);
        enlarge(seed, room, &mut Random::new(1, number as u64));
    }
    seeds.extend(large);
    let written = std::fs::create_dir_all(folder).and_then(|()| {
        for (number, mut seed) in seeds.into_iter().enumerate() {
            seed.extend((0..target.choice_bytes).map(|at| (number * 31 + at * 57) as u8));
            std::fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
        Ok(())
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

/// Runs a target on unmodified files, such as inputs that failed before.
fn run_only(target: &Target, limits: Limits, paths: &[String]) -> ExitCode {
    let mut files = Vec::new();
    for path in paths {
        collect(Path::new(path), limits, &mut files);
    }
    let mut failures = 0;
    for (path, bytes) in files {
        let before = memory::begin();
        let failed = catch_unwind(AssertUnwindSafe(|| (target.run)(&bytes))).is_err();
        let peak = memory::peak() - before;
        failures += u32::from(failed || peak > limits.memory_bytes);
        println!("{}: {} ({peak} bytes)", path.display(), if failed { "fails" } else { "passes" });
    }
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Every file at or below a path that is not too large.
fn collect(path: &Path, limits: Limits, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    if path.is_dir() {
        let mut paths: Vec<_> = std::fs::read_dir(path)
            .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default();
        paths.sort();
        paths.iter().for_each(|path| collect(path, limits, files));
    } else if let Ok(bytes) = std::fs::read(path)
        && bytes.len() <= 2 * limits.input_bytes
    {
        files.push((path.to_owned(), bytes));
    }
}
