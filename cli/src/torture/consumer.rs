//! The hidden command that consumes a job's batches: it resumes from a ledger, and
//! retains nothing of an epoch that has ended.

use crate::runner::ledger::{self, Entry, Ledger};
use crate::runner::sources;
use crate::surface::failure::Interrupted;
use crate::surface::{Output, Stop};
use anyhow::Context;
use meetpoint_host::{
    Accelerator, AcceleratorJob, Emulated, Error, JobFile, Loader, Null, StopHandle,
};
use serde::Serialize;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest wait for an observer, which may have been killed.
const OBSERVED_LIMIT: Duration = Duration::from_secs(300);
/// How often the consumer polls for its observer.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Two files by which a consumer and its observer take turns, epoch by epoch, so that each epoch is
/// observed however the processes are scheduled. Their lengths are the numbers of epochs that have
/// ended and that were observed.
#[derive(Debug)]
pub(crate) struct Gate {
    path: PathBuf,
    epochs: u64,
}

impl Gate {
    fn ended_file(path: &Path) -> PathBuf {
        path.with_extension("ended")
    }

    /// Epochs that have ended.
    pub(super) fn ended(path: &Path) -> u64 {
        std::fs::metadata(Self::ended_file(path)).map_or(0, |file| file.len())
    }

    /// The observer has seen the process after this number of epochs.
    pub(super) fn open_until(path: &Path, epochs: u64) -> anyhow::Result<()> {
        write_bytes(path, epochs)
    }

    /// Reports the end of an epoch, and waits until it was observed.
    fn pass(&mut self, switch: &StopHandle) -> anyhow::Result<()> {
        self.epochs += 1;
        write_bytes(&Self::ended_file(&self.path), self.epochs)?;
        let until = Instant::now() + OBSERVED_LIMIT;
        let observed = || std::fs::metadata(&self.path).map_or(0, |file| file.len());
        while observed() < self.epochs && !switch.is_stopped() {
            anyhow::ensure!(Instant::now() < until, "nothing observes {}", self.path.display());
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

/// Makes a file as long as a number.
fn write_bytes(path: &Path, bytes: u64) -> anyhow::Result<()> {
    let file = File::options().create(true).append(true).open(path);
    file.and_then(|file| file.set_len(bytes))
        .with_context(|| format!("failed to write {}", path.display()))
}

/// The result: how much was consumed by this process.
#[derive(Debug, Serialize)]
struct Consumed {
    batches: u64,
    epochs: u32,
    /// Events of all epochs.
    events: u64,
}

/// Consumes the batches of a job that are not in the ledger, and adds each to it.
///
/// With a gate, it reopens lost devices after each epoch, and waits until an observer has measured
/// the process.
pub(crate) fn consume(
    job: &Path,
    path: &Path,
    gate: Option<&Path>,
    stop: &Stop,
    output: Output,
) -> anyhow::Result<()> {
    let gate = gate.map(|path| Gate { path: path.to_path_buf(), epochs: 0 });
    let switch = StopHandle::new();
    let waker = switch.clone();
    stop.on_signal(move || waker.stop());
    let consumed = consume_all(job, path, gate, &switch).map_err(|error| {
        match error.downcast_ref::<Error>() {
            Some(Error::Interrupted) => Interrupted.into(),
            _ => error,
        }
    })?;
    output.result(&consumed, || format!("{} batches consumed", consumed.batches))
}

fn consume_all(
    job: &Path,
    path: &Path,
    mut gate: Option<Gate>,
    switch: &StopHandle,
) -> anyhow::Result<Consumed> {
    let job = JobFile::load(job)?;
    job.check()?;
    let before = ledger::read(path)?;
    let ledger = Ledger::open(path)?;
    let sources = sources(&job.devices, job.engine)?;
    let mut config = job.loader_config(job.strategy, sources, switch.clone());
    // The ledger has checksums; these would be retained for all batches of an epoch.
    config.verify_samples = false;
    let mut loader = Loader::open(config)?;
    let mut step: Box<dyn Accelerator> = match job.accelerator {
        AcceleratorJob::Null => Box::new(Null),
        AcceleratorJob::Emulated { step } => Box::new(Emulated::new(step, loader.stop_handle())),
    };
    let mut consumed = Consumed { batches: 0, epochs: 0, events: 0 };
    for epoch in 0..job.epochs {
        let earlier = ranges(&before, epoch);
        let batches = loader.batches_per_epoch();
        if earlier.iter().map(|range| range.end - range.start).sum::<u32>() >= batches {
            continue;
        }
        let mut running = match earlier.is_empty() {
            true => loader.start_epoch(epoch)?,
            false => loader.resume_epoch(epoch, &earlier, None)?,
        };
        while let Some(batch) = running.next_batch()? {
            ledger.add(&Entry::of(job.strategy.as_str(), 0, &batch));
            step.step(&batch);
            consumed.batches += 1;
        }
        consumed.epochs += 1;
        consumed.events += running.finish().events.len() as u64;
        if let Some(gate) = &mut gate {
            // What is observed would otherwise depend on when a lost device answers again.
            loader.reopen_devices()?;
            gate.pass(switch)?;
        }
    }
    ledger.finish()?;
    Ok(consumed)
}

/// The batches of an epoch in a ledger, as ranges of indices.
fn ranges(entries: &[Entry], epoch: u32) -> Vec<Range<u32>> {
    let of_epoch = entries.iter().filter(|entry| entry.epoch == epoch);
    let mut batches: Vec<u32> = of_epoch.map(|entry| entry.batch).collect();
    batches.sort_unstable();
    batches.dedup();
    let mut ranges: Vec<Range<u32>> = Vec::new();
    for batch in batches {
        match ranges.last_mut() {
            Some(range) if range.end == batch => range.end += 1,
            _ => ranges.push(batch..batch + 1),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::{Gate, ranges};
    use crate::runner::ledger::Entry;
    use meetpoint_host::StopHandle;
    use meetpoint_host::stats::Preparer;

    #[test]
    fn a_gate_opens_once_an_epoch_was_observed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("epochs");
        let (mut gate, switch) = (Gate { path: path.clone(), epochs: 0 }, StopHandle::new());
        for epoch in 1..4 {
            std::thread::scope(|scope| {
                let passes = scope.spawn(|| gate.pass(&switch));
                while Gate::ended(&path) < epoch {
                    std::thread::yield_now();
                }
                assert_eq!(Gate::ended(&path), epoch);
                Gate::open_until(&path, epoch).unwrap();
                passes.join().unwrap().unwrap();
            });
        }
    }

    #[test]
    fn consumed_batches_of_an_epoch_become_ranges() {
        let entry = |(epoch, batch)| Entry {
            strategy: String::new(),
            rank: 0,
            epoch,
            batch,
            source: Preparer::Host,
            samples: Vec::new(),
            crc32c: Vec::new(),
            damaged: 0,
        };
        let entries: Vec<Entry> =
            [(0, 0), (0, 9), (1, 5), (0, 1), (0, 8), (1, 3)].into_iter().map(entry).collect();
        assert_eq!(ranges(&entries, 0), [0..2, 8..10]);
        assert_eq!(ranges(&entries, 1), [3..4, 5..6]);
        assert_eq!(ranges(&entries, 2), []);
    }
}
