//! Verifies which consistency levels a run satisfied, by comparing the consumed batches with a
//! preparation by the host alone.
//!
//! In reading order: [`Finding`] (what was found), this file (the epochs of one rank), `ranks`
//! (those of several), `replay` (the order that a record determines).

mod finding;
mod ranks;
mod replay;

pub use finding::{Fact, Finding, Origin, ReplayProblem};
pub use ranks::{RankRuns, verify_ranks};

use crate::batch::Table;
use crate::events::DeviceLabel;
use crate::stats::{BatchCheck, EpochStats, Preparer};
use crate::{Error, StopHandle};
use meetpoint_format::batching::{Batching, Entry};
use meetpoint_format::column::BatchLayout;
use meetpoint_format::sampler::EpochOrder;
use meetpoint_kernels::{Cpu, Interrupt};
use meetpoint_prepare::{CpuPreparer, Job, Preparer as _, abandoning};
use meetpoint_scheduler::{AnyStrategy, Level, Order};
use meetpoint_storage::{EngineKind, open_engine};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Reads in flight while a reference is prepared.
const READ_DEPTH: usize = 32;

/// The checksum of every sample of some epochs, prepared by the host alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// By epoch, and by the key of a sample's random parameters.
    epochs: BTreeMap<u32, HashMap<u64, u32>>,
    /// Its source.
    origin: Origin,
}

/// The verdict on a level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Claimed by the strategy and true in this run.
    Verified {
        /// What was compared.
        how: Vec<Finding>,
    },
    /// Claimed by the strategy and not true in this run.
    Failed {
        /// The first violation.
        place: Finding,
    },
    /// Claimed by the strategy, but this run could not verify it.
    NotChecked {
        /// The cause.
        why: Finding,
    },
    /// Not claimed by the strategy.
    NotClaimed,
}

/// One level and its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelVerdict {
    /// The level.
    pub level: Level,
    /// Its verdict.
    pub verdict: Verdict,
}

impl Reference {
    /// Prepares every sample of `epochs` again, in this thread, with the given instruction set.
    pub fn prepare(
        job: &Job,
        epochs: impl IntoIterator<Item = u32>,
        engine: EngineKind,
        cpu: Cpu,
        stop: &StopHandle,
    ) -> Result<Self, Error> {
        let engine = open_engine(engine, READ_DEPTH)?.engine;
        let mut preparer = CpuPreparer::new(job.clone(), engine, cpu)?;
        let asked = stop.clone();
        preparer.set_interrupt(abandoning(Interrupt::when(move || asked.is_stopped())));
        let batching = &job.batching;
        let asked = stop.clone();
        let interrupt = Interrupt::when(move || asked.is_stopped());
        let columns = Arc::clone(preparer.columns());
        let longest = job.value_bytes_max(&columns, &interrupt)?;
        let bytes = BatchLayout::bytes_max(&columns, batching.batch_size(), &longest);
        let mut out = vec![0; usize::try_from(bytes).expect("a loader was opened on it")];
        let mut reference = BTreeMap::new();
        for epoch in epochs {
            let order = batching.order(epoch);
            let mut samples = HashMap::new();
            for batch in 0..u32::try_from(batching.batches()).expect("a loader was opened on it") {
                let mut is_wanted = |_| !stop.is_stopped();
                let prepared = preparer.prepare(epoch, batch, &mut out, &mut is_wanted);
                stop.check()?;
                let prepared = prepared?;
                // Batches that were larger than expected have extended it.
                let table = Table::new(&columns, prepared.layout);
                let checksums = table.sample_checksums(&out[..table.bytes()]);
                let left_out = |position: usize| {
                    let mut replacements = prepared.replacements.iter();
                    replacements
                        .any(|it| it.position as usize == position && it.replaced_by.is_none())
                };
                let entries = batching.entries_of(&order, batch).enumerate();
                let entries = entries.filter(|(position, _)| !left_out(*position));
                samples.extend(entries.map(|(_, entry)| entry.key).zip(checksums));
            }
            reference.insert(epoch, samples);
        }
        let origin = Origin::Prepared { kernels: cpu.name().to_owned() };
        Ok(Self { epochs: reference, origin })
    }

    /// Uses the batches that a run of `host-only` of this job consumed, with `verify_samples`, as
    /// the reference.
    pub fn of_host_only(job: &Job, runs: &[EpochStats]) -> Self {
        let mut epochs = BTreeMap::new();
        for run in runs {
            let order = job.batching.order(run.epoch);
            let samples: &mut HashMap<u64, u32> = epochs.entry(run.epoch).or_default();
            let of_host = run.checks.iter().filter(|check| check.source == Preparer::Host);
            for check in of_host {
                let keys = keys_of(&job.batching, &order, check);
                samples.extend(keys.zip(check.crc32c.iter().copied()));
            }
        }
        Self { epochs, origin: Origin::HostAlone }
    }

    /// The union of several references, such as those of the ranks of a job.
    pub fn merge(references: impl IntoIterator<Item = Self>) -> Self {
        let mut merged = Self { epochs: BTreeMap::new(), origin: Origin::HostAlone };
        for reference in references {
            for (epoch, samples) in reference.epochs {
                merged.epochs.entry(epoch).or_default().extend(samples);
            }
            merged.origin = reference.origin;
        }
        merged
    }

    /// Number of samples, over all epochs.
    pub fn len(&self) -> usize {
        self.epochs.values().map(HashMap::len).sum()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Returns the verdict on each level in these epochs of one strategy.
pub fn verify(
    strategy: AnyStrategy,
    job: &Job,
    runs: &[EpochStats],
    reference: &Reference,
) -> Vec<LevelVerdict> {
    use Level::{C0, C1, C2, C3, C4, C5, C6};
    let all = [C0, C1, C2, C3, C4, C5, C6];
    let judge = |level| {
        let outcome = match level {
            _ if !strategy.levels().contains(&level) => return Verdict::NotClaimed,
            // The order depended on measurements, which no record contains.
            C3 | C4 if runs.iter().any(|run| run.displacement.is_some()) => {
                return Verdict::NotClaimed;
            }
            C0 => each(runs, coverage),
            C1 => each(runs, |run| content(run, &job.batching)),
            C2 => each(runs, |run| equality(run, reference, &job.batching)),
            C3 => each(runs, |run| planned_order(run, strategy, &job.batching)),
            C4 => each(runs, ascending_order),
            C5 => return Verdict::NotChecked { why: Fact::OneRank.into() },
            C6 => each(runs, |run| isolation(run, runs, reference, job)),
        };
        verdict(outcome)
    };
    all.into_iter().map(|level| LevelVerdict { level, verdict: judge(level) }).collect()
}

/// Why a level is not verified.
enum NotVerified {
    Failed(Finding),
    Unknown(Finding),
}

fn verdict(outcome: Result<Fact, NotVerified>) -> Verdict {
    match outcome {
        Ok(fact) => Verdict::Verified { how: vec![fact.into()] },
        Err(NotVerified::Failed(place)) => Verdict::Failed { place },
        Err(NotVerified::Unknown(why)) => Verdict::NotChecked { why },
    }
}

/// Applies a check to every epoch; the fact of the last one is returned for all.
fn each(
    runs: &[EpochStats],
    check: impl Fn(&EpochStats) -> Result<Fact, NotVerified>,
) -> Result<Fact, NotVerified> {
    let mut how = unknown(Fact::NoEpoch);
    for run in runs {
        how = Ok(check(run).map_err(|doubt| match doubt {
            NotVerified::Failed(place) => {
                NotVerified::Failed(Finding { epoch: Some(run.epoch), ..place })
            }
            NotVerified::Unknown(why) => NotVerified::Unknown(why),
        })?);
    }
    how
}

fn failed<T>(place: Fact) -> Result<T, NotVerified> {
    Err(NotVerified::Failed(place.into()))
}

fn unknown<T>(why: Fact) -> Result<T, NotVerified> {
    Err(NotVerified::Unknown(why.into()))
}

/// C0: every index exactly once.
fn coverage(run: &EpochStats) -> Result<Fact, NotVerified> {
    let mut times = vec![0_u32; run.batches as usize];
    for record in &run.records {
        match times.get_mut(record.batch as usize) {
            Some(times) => *times += 1,
            None => return failed(Fact::NoSuchBatch { batch: record.batch }),
        }
    }
    match times.iter().position(|&times| times != 1) {
        Some(at) => {
            let batch = u32::try_from(at).expect("batches have 32 bits");
            failed(Fact::ConsumedTimes { batch, times: times[at] })
        }
        None => Ok(Fact::EachConsumedOnce { batches: run.batches }),
    }
}

/// C1: a batch contains the samples that (seed, epoch, index) determine.
fn content(run: &EpochStats, batching: &Batching) -> Result<Fact, NotVerified> {
    let order = batching.order(run.epoch);
    for check in checks(run)? {
        let wanted = batching.entries_of(&order, check.batch);
        let is_left_out = |entry: &Entry| check.left_out.contains(&entry.sample);
        let left_out = wanted.filter(is_left_out).count();
        let is_whole = keys_of(batching, &order, check).count() == check.samples.len()
            && check.samples.len() + check.left_out.len()
                == batching.batch_len(check.batch) as usize;
        if !is_whole || left_out < check.left_out.len() {
            return failed(Fact::OtherSamples { batch: check.batch });
        }
        if check.crc32c.len() != check.samples.len() {
            return failed(Fact::NotWhole { batch: check.batch });
        }
    }
    Ok(Fact::SamplesAsGiven)
}

/// C2: a sample's tensor equals the reference, whichever end prepared it.
fn equality(
    run: &EpochStats,
    reference: &Reference,
    batching: &Batching,
) -> Result<Fact, NotVerified> {
    let Some(expected) = reference.epochs.get(&run.epoch) else {
        return unknown(Fact::NoReferenceEpoch { missing: run.epoch });
    };
    let (mut samples, mut of_device) = (0_u64, 0_u64);
    let order = batching.order(run.epoch);
    for check in checks(run)? {
        let keys = keys_of(batching, &order, check);
        let tensors = check.samples.iter().zip(&check.crc32c).zip(keys);
        for (row, ((sample, got), key)) in tensors.enumerate() {
            let Some(expected) = expected.get(&key) else {
                return unknown(Fact::NoReferenceSample { sample: *sample });
            };
            if got != expected {
                let label = |number: u16| DeviceLabel::new(number.into(), run.devices.len());
                return failed(Fact::OtherTensor {
                    batch: check.batch,
                    device: check.device.map(label),
                    row: row as u64,
                    sample: *sample,
                    got_crc32c: *got,
                    expected_crc32c: *expected,
                });
            }
            samples += 1;
            of_device += u64::from(check.source == Preparer::Device);
        }
    }
    let origin = reference.origin.clone();
    Ok(Fact::TensorsEqual { samples, of_devices: of_device, origin })
}

/// C3: the order is the one that the record of the epoch implies, or that of the host alone.
fn planned_order(
    run: &EpochStats,
    strategy: AnyStrategy,
    batching: &Batching,
) -> Result<Fact, NotVerified> {
    let Some(record) = &run.schedule.record else { return ascending_order(run) };
    match (strategy.order(), record.share()) {
        (Order::Baseline, _) => ascending_order(run),
        (Order::Any | Order::Replayable, Some(share)) if run.devices.len() == 1 => {
            let split = u32::try_from(share).ok().filter(|split| *split <= run.batches);
            let split = split.ok_or_else(|| {
                let (record, batches) = (record.to_string(), run.batches);
                NotVerified::Unknown(Fact::ShareTooLarge { record, batches }.into())
            })?;
            let begin = run.batches - split;
            compare(run, (0..begin).chain((begin..run.batches).rev()))?;
            Ok(Fact::OrderOfSplit { split, batches: run.batches })
        }
        (Order::Any | Order::Replayable, _) => {
            let order = replay::order(record, batching, run.batches, run.devices.len());
            let record = record.to_string();
            let unknown = |reason| {
                let record = record.clone();
                NotVerified::Unknown(Fact::NotReplayed { record, reason }.into())
            };
            compare(run, order.map_err(unknown)?.into_iter())?;
            Ok(Fact::OrderOfRecord { record })
        }
    }
}

/// C4: 0, 1, 2, …
fn ascending_order(run: &EpochStats) -> Result<Fact, NotVerified> {
    compare(run, 0..run.batches)?;
    Ok(Fact::OrderAscending { batches: run.batches })
}

fn compare(run: &EpochStats, expected: impl Iterator<Item = u32>) -> Result<(), NotVerified> {
    let mut got = run.records.iter().map(|record| record.batch);
    for (step, expected) in expected.enumerate() {
        let got = got.next();
        if got != Some(expected) {
            return failed(Fact::OtherBatch { step: step as u64, got, expected });
        }
    }
    match got.next() {
        Some(batch) => failed(Fact::BehindTheLast { batch }),
        None => Ok(()),
    }
}

/// C6: everything that was consumed was prepared for this epoch.
fn isolation(
    run: &EpochStats,
    runs: &[EpochStats],
    reference: &Reference,
    job: &Job,
) -> Result<Fact, NotVerified> {
    let early = run.records.iter().find(|record| record.ready_ns > record.consume_ns);
    if let Some(record) = early {
        return failed(Fact::NotReady { batch: record.batch });
    }
    equality(run, reference, &job.batching)?;
    if runs.len() > 1 && !job.recipe.is_deterministic() {
        return Ok(Fact::DrawsOfEpoch);
    }
    let of_device = run.schedule.device_batches;
    if run.reused_batches > 0 {
        return Ok(Fact::BatchesReused { batches: run.reused_batches });
    }
    Ok(Fact::SlotsOfEpoch { slots: of_device })
}

/// The keys of the random parameters of the samples of a batch, as far as they follow the order of
/// the epoch.
fn keys_of<'c>(
    batching: &Batching,
    order: &'c EpochOrder,
    check: &'c BatchCheck,
) -> impl Iterator<Item = u64> + use<'c> {
    let mut entries = batching.entries_of(order, check.batch);
    let left_out = &check.left_out;
    check.samples.iter().map_while(move |sample| {
        loop {
            match entries.next()? {
                entry if entry.sample == *sample => return Some(entry.key),
                entry if left_out.contains(&entry.sample) => {}
                _ => return None,
            }
        }
    })
}

/// The checksums of an epoch, which must exist for every batch.
fn checks(run: &EpochStats) -> Result<&[BatchCheck], NotVerified> {
    if run.checks.len() == run.records.len() {
        return Ok(&run.checks);
    }
    unknown(Fact::NoChecksums)
}
