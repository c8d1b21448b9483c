//! Properties of all ranks together: equal steps from the same kind of source, and every sample
//! once.

use super::{
    Fact, Finding, LevelVerdict, NotVerified, Reference, Verdict, failed, unknown, verdict, verify,
};
use crate::stats::{EpochStats, Preparer};
use meetpoint_format::batching::Entry;
use meetpoint_prepare::Job;
use meetpoint_scheduler::{AnyStrategy, Level};
use std::collections::HashSet;

/// The epochs of one rank.
#[derive(Debug, Clone, Copy)]
pub struct RankRuns<'r> {
    /// The inputs that determine the content of its batches.
    pub job: &'r Job,
    /// In the order in which they were run.
    pub runs: &'r [EpochStats],
}

/// Returns the verdict on each level in the epochs of all ranks of a job, rank 0 first.
///
/// C0 to C4 and C6 hold if they hold for every rank; for C0, also that no sample was consumed by
/// two ranks and none was left out, except those that padding repeats and `drop_last` drops.
pub fn verify_ranks(
    strategy: AnyStrategy,
    ranks: &[RankRuns<'_>],
    reference: &Reference,
) -> Vec<LevelVerdict> {
    let each = ranks.iter().map(|rank| verify(strategy, rank.job, rank.runs, reference));
    let each: Vec<Vec<LevelVerdict>> = each.collect();
    let Some(first) = each.first() else { return Vec::new() };
    if ranks.len() == 1 {
        return first.clone();
    }
    let together = |(at, level): (usize, Level)| {
        let alone = each.iter().map(|levels| &levels[at].verdict);
        let verdict = match level {
            Level::C5 if strategy.levels().contains(&level) => verdict(agreement(ranks)),
            Level::C0 => and(of_every_rank(alone), || verdict(partition(ranks))),
            Level::C1 | Level::C2 | Level::C3 | Level::C4 | Level::C5 | Level::C6 => {
                of_every_rank(alone)
            }
        };
        LevelVerdict { level, verdict }
    };
    first.iter().map(|judged| judged.level).enumerate().map(together).collect()
}

/// The verdict for every rank; the first that failed, or could not be checked, stands for all.
fn of_every_rank<'v>(alone: impl Iterator<Item = &'v Verdict> + Clone) -> Verdict {
    let ranks = number(alone.clone().count());
    let mut unknown = None;
    let mut last = Verdict::NotClaimed;
    for (rank, verdict) in alone.enumerate() {
        match verdict {
            Verdict::Failed { place } => {
                let place = Finding { rank: Some(number(rank)), ..place.clone() };
                return Verdict::Failed { place };
            }
            Verdict::NotChecked { why } => {
                let why = Finding { rank: Some(number(rank)), ..why.clone() };
                unknown.get_or_insert(Verdict::NotChecked { why });
            }
            Verdict::Verified { how } => {
                let how = how.iter().cloned();
                let how = how.map(|found| Finding { ranks: Some(ranks), ..found }).collect();
                last = Verdict::Verified { how };
            }
            Verdict::NotClaimed => {}
        }
    }
    unknown.unwrap_or(last)
}

/// The conjunction of two verdicts.
fn and(first: Verdict, second: impl FnOnce() -> Verdict) -> Verdict {
    let Verdict::Verified { how } = first else { return first };
    match second() {
        Verdict::Verified { how: also } => Verdict::Verified { how: [how, also].concat() },
        other => other,
    }
}

/// The epochs that were run, each with the statistics of every rank.
fn epochs<'r>(ranks: &'r [RankRuns<'_>]) -> Result<Vec<Vec<&'r EpochStats>>, NotVerified> {
    let count = ranks.iter().map(|rank| rank.runs.len()).max().unwrap_or(0);
    if count == 0 {
        return unknown(Fact::NoEpoch);
    }
    let of_all = |at: usize| {
        let run = |(rank, runs): (usize, &'r RankRuns<'_>)| match runs.runs.get(at) {
            Some(run) => Ok(run),
            None => failed(Fact::FewerEpochs {
                of_rank: number(rank),
                epochs: at as u64,
                most: count as u64,
            }),
        };
        ranks.iter().enumerate().map(run).collect()
    };
    (0..count).map(of_all).collect()
}

/// C5: equal steps, and the same kind of source in each.
fn agreement(ranks: &[RankRuns<'_>]) -> Result<Fact, NotVerified> {
    let (mut steps, mut of_device) = (0, 0);
    for runs in epochs(ranks)? {
        let first = runs[0];
        for (rank, run) in runs.iter().enumerate().skip(1) {
            let epoch = first.epoch;
            if run.records.len() != first.records.len() {
                return failed_in(
                    epoch,
                    Fact::OtherSteps {
                        of_rank: number(rank),
                        steps: run.records.len() as u64,
                        expected: first.records.len() as u64,
                    },
                );
            }
            let mut pairs = run.records.iter().zip(&first.records);
            if let Some(step) = pairs.position(|(own, other)| own.source != other.source) {
                return failed_in(
                    epoch,
                    Fact::OtherSource {
                        of_rank: number(rank),
                        step: step as u64,
                        source: run.records[step].source,
                        expected: first.records[step].source,
                    },
                );
            }
        }
        steps += first.records.len();
        let sources = first.records.iter().map(|record| record.source);
        of_device += sources.filter(|source| *source == Preparer::Device).count();
    }
    let (of_ranks, of_devices) = (number(ranks.len()), of_device as u64);
    Ok(Fact::EqualSteps { of_ranks, steps: steps as u64, of_devices })
}

/// Part of C0: the ranks consumed every position of the epoch once.
fn partition(ranks: &[RankRuns<'_>]) -> Result<Fact, NotVerified> {
    let batching = &ranks[0].job.batching;
    let expected = batching.positions() - batching.left_out();
    for runs in epochs(ranks)? {
        let mut seen = HashSet::new();
        for (rank, (run, RankRuns { job, .. })) in runs.iter().zip(ranks).enumerate() {
            let order = job.batching.order(run.epoch);
            let own = run.records.iter().filter(|it| !job.batching.is_padding(it.batch));
            for record in own {
                for Entry { sample, key } in job.batching.entries_of(&order, record.batch) {
                    if !seen.insert(key) {
                        let (batch, of_rank) = (record.batch, number(rank));
                        return failed_in(run.epoch, Fact::SampleTwice { sample, batch, of_rank });
                    }
                }
            }
        }
        if seen.len() as u64 != expected {
            let samples = seen.len() as u64;
            return failed_in(runs[0].epoch, Fact::OtherCount { samples, expected });
        }
    }
    Ok(Fact::SamplesOnce { samples: expected, padded: batching.padded() })
}

fn number(rank: usize) -> u32 {
    u32::try_from(rank).expect("ranks have 32 bits")
}

fn failed_in<T>(epoch: u32, place: Fact) -> Result<T, NotVerified> {
    Err(NotVerified::Failed(Finding { epoch: Some(epoch), ..place.into() }))
}
