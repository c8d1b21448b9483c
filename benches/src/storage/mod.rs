//! Direct reads by our engines against fio and against a plain loop over io_uring, on one file.
//!
//! Options: `--directory D` for the folder of the file. Each repetition runs every reader once, in
//! turn, so that other load on the machine affects all alike; figures are medians.

mod plain;

use crate::fio::{self, Pattern};
use crate::{Options, Report, Row, Target, median};
use anyhow::{Context, bail, ensure};
use meetpoint_format::split_mix::SplitMix64;
use meetpoint_storage::threads::ThreadsEngine;
use meetpoint_storage::uring::UringEngine;
use meetpoint_storage::{Access, BLOCK_BYTES, Engine, Request, RequestKind};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// The first word of each block, and the first word of its last `TAIL_BYTES` bytes, are checked.
const TAIL_BYTES: usize = BLOCK_BYTES;

/// How the file is read.
#[derive(Debug, Clone, Copy)]
struct Load {
    name: &'static str,
    pattern: Pattern,
    file_bytes: u64,
}

const MIB: usize = 1 << 20;

/// Measures.
pub fn run(options: &Options) -> anyhow::Result<Report> {
    let directory = options.path("directory").unwrap_or_else(std::env::temp_dir);
    let (file_bytes, time, repetitions) = match options.quick {
        true => (8 * MIB as u64, Duration::from_millis(20), 1),
        false => (1024 * MIB as u64, Duration::from_secs(1), 9),
    };
    let load = |name, random, block_bytes, depth| {
        let pattern = Pattern { random, block_bytes, depth, time };
        Load { name, pattern, file_bytes }
    };
    let loads = [
        load("sequential 1 MiB, depth 8", false, MIB, 8),
        load("random 4 KiB, depth 32", true, 4096, 32),
        load("random 128 KiB, depth 32", true, 128 << 10, 32),
    ];
    let mut report = Report::new("storage", options);
    let folder = tempfile::tempdir_in(&directory)
        .with_context(|| format!("failed to make a folder in {}", directory.display()))?;
    let path = folder.path().join("blocks");
    create(&path, file_bytes)?;
    let fio = match fio::version() {
        Ok(version) if !options.quick => {
            report.note(format!("peer: {version}, io_uring, direct, the same file and run"));
            true
        }
        Ok(_) => {
            report.note("skipped: fio, which needs a second for each run");
            false
        }
        Err(error) => {
            report.note(format!("skipped: fio: {error:#}"));
            false
        }
    };
    report.note(format!(
        "{} MiB in {}, medians of {repetitions} runs of {time:?}; no copies: blocks land in the \
         buffers that are handed out",
        file_bytes >> 20,
        directory.display()
    ));
    if options.quick
        && let Some(why) = not_here(&path)
    {
        report.note(format!("skipped: everything: {why}"));
        return Ok(report);
    }
    for load in loads {
        measure(&path, load, repetitions, fio, &mut report)?;
    }
    Ok(report)
}

/// Why this machine cannot run the bench, which is not a failure of a tiny run.
fn not_here(path: &Path) -> Option<String> {
    match UringEngine::new(1) {
        Err(refusal) => Some(format!("io_uring is not available: {refusal}")),
        Ok(mut engine) => {
            let file = engine.open(path, Access::Read).ok()?;
            (!engine.is_direct(file)).then(|| format!("no O_DIRECT on {}", path.display()))
        }
    }
}

/// Runs all readers in turn and reports them.
fn measure(
    path: &Path,
    load: Load,
    repetitions: usize,
    fio: bool,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (mut ours, mut threads, mut plain, mut peer) = (vec![], vec![], vec![], vec![]);
    let mut hash = 0;
    let mut registered = false;
    for _ in 0..repetitions {
        let mut engine =
            UringEngine::new(load.pattern.depth).context("failed to set up io_uring")?;
        let (speed, seen) = by_engine(&mut engine, path, load)?;
        registered = engine.buffer(load.pattern.block_bytes).is_registered();
        ours.push(speed);
        hash = u64::wrapping_add(hash, seen);
        if fio {
            peer.push(fio::read(path, load.pattern, registered)?);
        }
        let (speed, seen) = plain::read(path, load)?;
        plain.push(speed);
        hash = u64::wrapping_add(hash, seen);
        let mut engine = ThreadsEngine::new(load.pattern.depth)?;
        let (speed, seen) = by_engine(&mut engine, path, load)?;
        threads.push(speed);
        hash = u64::wrapping_add(hash, seen);
    }
    let own = format!("io_uring, {}", load.name);
    let row = |case: &str, speeds: &[f64]| Row::alone(case, median(speeds), "MB/s");
    if fio {
        let row = row(&own, &ours).against("fio", median(&peer));
        report.row(row.target(Target::RatioAtLeast(0.9)));
    }
    let against_plain = row(&own, &ours).against("plain loop", median(&plain));
    report.row(against_plain.target(Target::RatioAtLeast(0.9)));
    report
        .row(row(&format!("threads, {}", load.name), &threads).against("io_uring", median(&ours)));
    let buffers = if registered { "registered" } else { "plain" };
    report.note(format!("{}: {buffers} buffers, hash {hash:016x}", load.name));
    Ok(())
}

/// Reads with an engine for the load's time; MB a second and a hash of what was read.
fn by_engine(engine: &mut dyn Engine, path: &Path, load: Load) -> anyhow::Result<(f64, u64)> {
    let file = engine.open(path, Access::Read)?;
    ensure!(
        engine.is_direct(file),
        "the file system of {} does not take O_DIRECT; name another with --directory",
        path.display()
    );
    let (mut offsets, mut check) = (Offsets::new(load), Check::default());
    let (mut moved, mut out) = (0, Vec::with_capacity(load.pattern.depth));
    let buffers: Vec<_> =
        (0..load.pattern.depth).map(|_| engine.buffer(load.pattern.block_bytes)).collect();
    let start = Instant::now();
    let mut next = |engine: &mut dyn Engine, buffer| {
        let (offset, bytes) = (offsets.next(), load.pattern.block_bytes);
        let kind = RequestKind::Read;
        let request = Request { token: offset, file, kind, offset, bytes, buffer };
        engine.submit(request).map_err(|refused| refused.error)
    };
    for buffer in buffers {
        next(engine, buffer)?;
    }
    while engine.in_flight() > 0 {
        engine.wait(Duration::from_secs(60), &mut out)?;
        let more = start.elapsed() < load.pattern.time;
        for completion in out.drain(..) {
            let bytes = completion.result?;
            check.block(completion.token, &completion.buffer.as_slice()[..bytes])?;
            moved += bytes;
            if more {
                next(engine, completion.buffer)?;
            }
        }
    }
    Ok((moved as f64 / 1e6 / start.elapsed().as_secs_f64(), check.hash))
}

/// The offset of each block, the same for every reader.
struct Offsets {
    load: Load,
    count: u64,
}

impl Offsets {
    /// From the beginning.
    fn new(load: Load) -> Self {
        Self { load, count: 0 }
    }

    /// The next one.
    fn next(&mut self) -> u64 {
        let blocks = self.load.file_bytes / self.load.pattern.block_bytes as u64;
        let block =
            if self.load.pattern.random { word(self.count) % blocks } else { self.count % blocks };
        self.count += 1;
        block * self.load.pattern.block_bytes as u64
    }
}

/// Checks that blocks contain what was written and folds them into a hash.
#[derive(Default)]
struct Check {
    hash: u64,
}

impl Check {
    /// Looks at a few words of a block.
    fn block(&mut self, offset: u64, bytes: &[u8]) -> anyhow::Result<()> {
        for at in [0, bytes.len() - TAIL_BYTES] {
            let place = offset + at as u64;
            let read = u64::from_le_bytes(bytes[at..at + 8].try_into()?);
            if read != word(place) {
                bail!("the block at {place} holds {read:016x}, not {:016x}", word(place));
            }
            // A sum, because blocks arrive in any order.
            self.hash = self.hash.wrapping_add(read);
        }
        Ok(())
    }
}

/// The content of the file at an offset; also a source of random blocks.
fn word(place: u64) -> u64 {
    SplitMix64::new(place).next_u64()
}

/// Writes the file and brings it to the disk.
fn create(path: &Path, file_bytes: u64) -> anyhow::Result<()> {
    let mut file = std::fs::File::create(path)?;
    let mut block = vec![0; MIB];
    for begin in (0..file_bytes).step_by(MIB) {
        for (index, eight) in block.chunks_exact_mut(8).enumerate() {
            eight.copy_from_slice(&word(begin + 8 * index as u64).to_le_bytes());
        }
        file.write_all(&block)?;
    }
    file.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tiny_run_reads_what_was_written() {
        let options = Options { quick: true, ..Options::default() };
        let report = run(&options).unwrap();
        if report.rows.is_empty() {
            return eprintln!("{}", report.notes.join("; "));
        }
        assert_eq!(report.rows.len(), 6);
        assert!(report.rows.iter().all(|row| row.value > 0.0), "{report}");
    }

    #[test]
    fn a_block_with_other_bytes_is_found() {
        let mut block: Vec<u8> =
            (0..1024).flat_map(|index| word(8192 + 8 * index).to_le_bytes()).collect();
        assert!(Check::default().block(8192, &block).is_ok());
        assert!(Check::default().block(4096, &block).is_err());
        block[4097] ^= 1;
        assert!(Check::default().block(8192, &block).is_err());
    }
}
