//! Chooses the strategy that finishes a number of epochs first, within limits of storage and
//! memory.
//!
//! Its results are facts; the command line turns them into sentences.

use crate::results::Measured;
use crate::vocabulary::Cache;
use meetpoint_diagnose::{Change as Fix, Command, Diagnose, Remedy, Setting};
use meetpoint_format::units::show_bytes_at_least;
use serde::Serialize;
use std::cmp::Ordering;

/// The request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Goal {
    /// Epochs to finish.
    pub epochs: u32,
    /// Maximum bytes that may be stored besides the dataset; `None`: no limit.
    pub storage_limit: Option<u64>,
    /// Maximum bytes of memory for caches; `None`: no limit.
    pub memory_limit: Option<u64>,
    /// Confidence at which the best is called certain, between 0 and 1.
    pub confidence: f64,
    /// Whether forms that lose detail may be chosen.
    pub allows_loss: bool,
}

/// Why the goal is invalid or cannot be reached.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DecideError {
    /// The number of epochs is 0.
    #[error("0 epochs: there is nothing to finish")]
    NoEpochs,
    /// The confidence is out of range.
    #[error("the confidence is {0}, which is not above 0 and below 1")]
    Confidence(f64),
    /// There are no measurements.
    #[error("there are no measured strategies")]
    NoResults,
    /// Every strategy is outside of the limits.
    #[error(
        "no strategy fits the limits: the smallest needs {storage_bytes:.0} bytes of storage and \
         {memory_bytes:.0} bytes of memory"
    )]
    NothingFits {
        /// Minimum bytes of storage that a strategy needs.
        storage_bytes: f64,
        /// Bytes of memory that the same strategy needs.
        memory_bytes: f64,
    },
}

impl Diagnose for DecideError {
    fn cause(&self) -> &'static str {
        match self {
            Self::NoEpochs => "no_epochs",
            Self::Confidence(_) => "confidence",
            Self::NoResults => "no_results",
            Self::NothingFits { .. } => "nothing_fits",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::NoEpochs => Remedy::set(Setting::Epochs, Fix::AtLeast("1".to_owned())),
            Self::Confidence(_) => Remedy::set(Setting::Confidence, Fix::To("0.95".to_owned()))
                .or("choose another number above 0 and below 1"),
            Self::NoResults => Remedy::run(Command::ProfileResults),
            Self::NothingFits { storage_bytes, memory_bytes } => {
                let least = |bytes: f64| Fix::AtLeast(show_bytes_at_least(bytes.ceil() as u64));
                Remedy::set(Setting::StorageLimit, least(*storage_bytes))
                    .or_set(Setting::MemoryLimit, least(*memory_bytes))
            }
        })
    }
}

/// Why a strategy is excluded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum RefusedBecause {
    /// It stores more than the limit.
    Storage {
        /// Bytes that it stores besides the dataset.
        needed: f64,
        /// The limit.
        limit: u64,
    },
    /// Its cache needs more memory than the limit.
    Memory {
        /// Bytes that its cache needs.
        needed: f64,
        /// The limit.
        limit: u64,
    },
    /// Its form loses detail.
    Lossy,
}

/// A strategy that is excluded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Refused {
    /// Index of the strategy.
    pub index: usize,
    /// The reason.
    #[serde(flatten)]
    pub because: RefusedBecause,
}

/// A strategy that is considered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ranked {
    /// Index of the strategy.
    pub index: usize,
    /// Seconds for the offline part and all epochs.
    pub seconds: f64,
    /// Error of this time at the requested confidence; `None` after a single run, when it is
    /// unknown.
    pub seconds_off: Option<f64>,
    /// Epochs after which the total time is less than without an offline part; `None`: never.
    pub amortized_after: Option<u32>,
}

/// A change that would make another strategy the best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// This number of epochs or more.
    EpochsAtLeast {
        /// Epochs.
        epochs: u32,
        /// The strategy that is the best then.
        index: usize,
    },
    /// This number of epochs or fewer.
    EpochsAtMost {
        /// Epochs.
        epochs: u32,
        /// The strategy that is the best then.
        index: usize,
    },
    /// Storage limits of `bytes` or more.
    StorageAtLeast {
        /// Bytes.
        bytes: f64,
        /// The strategy that is the best then.
        index: usize,
    },
    /// Storage limits below `bytes`.
    StorageBelow {
        /// Bytes.
        bytes: f64,
        /// The strategy that is the best then.
        index: usize,
    },
    /// A memory limit of at least this number of bytes.
    MemoryAtLeast {
        /// Bytes.
        bytes: f64,
        /// The strategy that is the best then.
        index: usize,
    },
}

/// The choice, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decision {
    /// The goal of the request.
    pub goal: Goal,
    /// Strategies that are considered, best first.
    pub ranked: Vec<Ranked>,
    /// Strategies that are excluded.
    pub refused: Vec<Refused>,
    /// Seconds by which the best is faster than the next; `None` if there is only one.
    pub margin_seconds: Option<f64>,
    /// Whether the best is better than every other one at the requested confidence.
    pub is_certain: bool,
    /// Changes that would lead to another decision.
    pub changes: Vec<Change>,
}

impl Decision {
    /// The best strategy.
    pub fn best(&self) -> Ranked {
        self.ranked[0]
    }

    /// Indices of the strategies that are not certainly worse than the best, including the best.
    pub fn contenders(&self) -> Vec<usize> {
        let best = self.best();
        let is_open = |other: &&Ranked| !is_certainly_better(&best, other);
        self.ranked.iter().filter(is_open).map(|it| it.index).collect()
    }
}

/// Bytes that a strategy stores besides the dataset.
pub fn extra_storage(measured: &Measured) -> f64 {
    if measured.point().is_nothing_offline() { 0.0 } else { measured.stored_bytes }
}

/// Bytes of memory that a strategy's cache needs.
pub fn cache_memory(measured: &Measured) -> f64 {
    match measured.cache {
        Cache::Cold => 0.0,
        Cache::Page => measured.stored_bytes,
        Cache::Application => measured.cached_bytes,
    }
}

fn refusal(measured: &Measured, goal: &Goal) -> Option<RefusedBecause> {
    if !goal.allows_loss && !measured.form.is_exact() {
        return Some(RefusedBecause::Lossy);
    }
    let over = |needed: f64, limit: Option<u64>| limit.filter(|limit| needed > *limit as f64);
    let (storage, memory) = (extra_storage(measured), cache_memory(measured));
    if let Some(limit) = over(storage, goal.storage_limit) {
        return Some(RefusedBecause::Storage { needed: storage, limit });
    }
    let limit = over(memory, goal.memory_limit)?;
    Some(RefusedBecause::Memory { needed: memory, limit })
}

fn is_certainly_better(best: &Ranked, other: &Ranked) -> bool {
    let (Some(best_off), Some(off)) = (best.seconds_off, other.seconds_off) else { return false };
    other.seconds - best.seconds > best_off.hypot(off)
}

/// Chooses among measured strategies.
pub fn decide(results: &[Measured], goal: &Goal) -> Result<Decision, DecideError> {
    if goal.epochs == 0 {
        return Err(DecideError::NoEpochs);
    }
    if !(goal.confidence > 0.0 && goal.confidence < 1.0) {
        return Err(DecideError::Confidence(goal.confidence));
    }
    if results.is_empty() {
        return Err(DecideError::NoResults);
    }
    let (mut ranked, mut refused) = (Vec::new(), Vec::new());
    for (index, measured) in results.iter().enumerate() {
        if let Some(because) = refusal(measured, goal) {
            refused.push(Refused { index, because });
            continue;
        }
        let off = measured.seconds_off(goal.epochs, goal.confidence);
        ranked.push(Ranked {
            index,
            seconds: measured.seconds(goal.epochs),
            seconds_off: off.is_finite().then_some(off),
            amortized_after: amortized_after(measured, results),
        });
    }
    if ranked.is_empty() {
        return Err(nothing_fits(results, goal));
    }
    ranked.sort_by(|a, b| a.seconds.partial_cmp(&b.seconds).unwrap_or(Ordering::Equal));
    let others = &ranked[1..];
    let is_certain = others.iter().all(|other| is_certainly_better(&ranked[0], other));
    let margin_seconds = others.first().map(|next| next.seconds - ranked[0].seconds);
    let changes = changes(results, goal, &ranked, &refused);
    Ok(Decision { goal: *goal, margin_seconds, is_certain, changes, refused, ranked })
}

fn nothing_fits(results: &[Measured], goal: &Goal) -> DecideError {
    let fits_otherwise = results.iter().filter(|it| goal.allows_loss || it.form.is_exact());
    let needs = fits_otherwise.map(|it| (extra_storage(it), cache_memory(it)));
    let least = needs.min_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    let (storage_bytes, memory_bytes) = least.unwrap_or((f64::INFINITY, f64::INFINITY));
    DecideError::NothingFits { storage_bytes, memory_bytes }
}

/// The first number of epochs after which a strategy has taken less time than without an offline
/// part, with the same number of threads and the same cache.
fn amortized_after(measured: &Measured, results: &[Measured]) -> Option<u32> {
    let same = |other: &&Measured| {
        other.point().is_nothing_offline()
            && other.threads == measured.threads
            && other.cache == measured.cache
    };
    let baseline = results.iter().find(same)?;
    if measured.point().is_nothing_offline() {
        return None;
    }
    first_epochs_better(measured, baseline, 1)
}

/// The least number of epochs, at least `from`, for which `a` takes less time than `b`.
fn first_epochs_better(a: &Measured, b: &Measured, from: u32) -> Option<u32> {
    let is_better = |epochs: u32| a.seconds(epochs) < b.seconds(epochs);
    if is_better(from) {
        return Some(from);
    }
    let gain = b.epoch_seconds() - a.epoch_seconds();
    if gain <= 0.0 {
        return None;
    }
    let behind = a.seconds(from) - b.seconds(from);
    let more = (behind / gain).floor() + 1.0;
    let epochs = f64::from(from) + more;
    if epochs > f64::from(u32::MAX - 1) {
        return None;
    }
    // The rounding error is at most one in either direction.
    let guess = epochs as u32;
    (guess.saturating_sub(1).max(from)..=guess + 1).find(|epochs| is_better(*epochs))
}

fn changes(
    results: &[Measured],
    goal: &Goal,
    ranked: &[Ranked],
    refused: &[Refused],
) -> Vec<Change> {
    let best = &results[ranked[0].index];
    let mut changes = Vec::new();
    let better_later = ranked[1..].iter().filter_map(|other| {
        let from = goal.epochs.checked_add(1)?;
        let epochs = first_epochs_better(&results[other.index], best, from)?;
        Some((epochs, results[other.index].seconds(epochs), other.index))
    });
    let earliest = |a: &(u32, f64, usize), b: &(u32, f64, usize)| {
        (a.0, a.1).partial_cmp(&(b.0, b.1)).unwrap_or(Ordering::Equal)
    };
    if let Some((epochs, _, index)) = better_later.min_by(earliest) {
        changes.push(Change::EpochsAtLeast { epochs, index });
    }
    let better_before = ranked[1..].iter().filter_map(|other| {
        let epochs = last_epochs_better(&results[other.index], best, goal.epochs)?;
        Some((u32::MAX - epochs, results[other.index].seconds(epochs), other.index))
    });
    if let Some((below, _, index)) = better_before.min_by(earliest) {
        changes.push(Change::EpochsAtMost { epochs: u32::MAX - below, index });
    }
    let stored = extra_storage(best);
    let smaller = ranked[1..].iter().find(|other| extra_storage(&results[other.index]) < stored);
    if let Some(smaller) = smaller {
        changes.push(Change::StorageBelow { bytes: stored, index: smaller.index });
    }
    changes.extend(raised_limits(results, goal, ranked[0].seconds, refused));
    changes
}

/// The greatest number of epochs below `below` for which `a` takes less time than `b`.
fn last_epochs_better(a: &Measured, b: &Measured, below: u32) -> Option<u32> {
    let last = below.checked_sub(1).filter(|epochs| *epochs > 0)?;
    let is_better = |epochs: u32| a.seconds(epochs) < b.seconds(epochs);
    if is_better(last) {
        return Some(last);
    }
    if !is_better(1) {
        return None;
    }
    // `a` is better at 1 and not at `last`, and the difference is linear, so bisect.
    let (mut better, mut worse) = (1, last);
    while worse - better > 1 {
        let middle = better + (worse - better) / 2;
        if is_better(middle) { better = middle } else { worse = middle }
    }
    Some(better)
}

/// The smallest higher limit of each type that makes another strategy the best.
fn raised_limits(
    results: &[Measured],
    goal: &Goal,
    seconds: f64,
    refused: &[Refused],
) -> Vec<Change> {
    let (mut storage, mut memory) = (None::<(f64, usize)>, None::<(f64, usize)>);
    for Refused { index, because } in refused {
        let measured = &results[*index];
        if measured.seconds(goal.epochs) >= seconds {
            continue;
        }
        let is_within =
            |needed: f64, limit: Option<u64>| limit.is_none_or(|it| needed <= it as f64);
        let least = |held: &mut Option<(f64, usize)>, needed: f64| {
            if held.is_none_or(|(least, _)| needed < least) {
                *held = Some((needed, *index));
            }
        };
        match *because {
            // Only if no other limit excludes it.
            RefusedBecause::Storage { needed, .. } => {
                if is_within(cache_memory(measured), goal.memory_limit) {
                    least(&mut storage, needed);
                }
            }
            RefusedBecause::Memory { needed, .. } => least(&mut memory, needed),
            RefusedBecause::Lossy => (),
        }
    }
    let storage = storage.map(|(bytes, index)| Change::StorageAtLeast { bytes, index });
    let memory = memory.map(|(bytes, index)| Change::MemoryAtLeast { bytes, index });
    storage.into_iter().chain(memory).collect()
}
