//! The choice: the best alternative within the limits, the runner-up, and what would change it.

use super::alternatives::{Alternative, PREFETCH, alternatives};
use super::gpu::{GpuEnergy, check_watts};
use super::model::{Prediction, predict};
use super::{Aim, PlanError, Request};
use crate::results::Measured;
use meetpoint_scheduler::StrategyName;

/// Alternatives whose costs differ by less than this share count as equally good. Of these, the
/// first in the order of [`alternatives`] wins, because it needs the fewest resources.
const TIE: f64 = 0.005;
/// Numbers of batches ahead per worker that are tried.
const PREFETCHES: [u32; 3] = [PREFETCH, 4, 8];

/// An alternative, and its predicted results.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RankedAlternative {
    /// The plan.
    pub alternative: Alternative,
    /// The predicted results.
    #[serde(rename = "outlook")]
    pub prediction: Prediction,
    /// Seconds or joules until the last epoch has ended.
    pub cost: f64,
}

/// Why an alternative is excluded.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum RefusedBecause {
    /// It stores more than the limit.
    Storage {
        /// Bytes that it stores besides the dataset.
        needed: f64,
        /// The limit.
        limit: u64,
    },
    /// It needs more memory than the limit.
    Memory {
        /// Bytes that it needs.
        needed: f64,
        /// The limit.
        limit: u64,
    },
    /// Its form loses detail.
    Lossy,
}

/// An alternative that is excluded.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Refused {
    /// The plan.
    pub alternative: Alternative,
    /// The predicted results.
    #[serde(rename = "outlook")]
    pub prediction: Prediction,
    /// Why it is excluded.
    #[serde(flatten)]
    pub because: RefusedBecause,
}

/// A change that would make another plan the best; `index` is its position in
/// [`PlanChoice::ranked`] or [`PlanChoice::refused`].
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// This number of epochs or more.
    EpochsAtLeast {
        /// Epochs.
        epochs: u32,
        /// Index in `ranked`.
        index: usize,
    },
    /// This number of epochs or fewer.
    EpochsAtMost {
        /// Epochs.
        epochs: u32,
        /// Index in `ranked`.
        index: usize,
    },
    /// A storage limit below this.
    StorageBelow {
        /// Bytes.
        bytes: f64,
        /// Index in `ranked`.
        index: usize,
    },
    /// A memory limit below this.
    MemoryBelow {
        /// Bytes.
        bytes: f64,
        /// Index in `ranked`.
        index: usize,
    },
    /// A storage limit of this or more.
    StorageAtLeast {
        /// Bytes.
        bytes: f64,
        /// Index in `refused`.
        index: usize,
    },
    /// A memory limit of this or more.
    MemoryAtLeast {
        /// Bytes.
        bytes: f64,
        /// Index in `refused`.
        index: usize,
    },
}

/// The plan that was chosen, and those that were not.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PlanChoice {
    /// Plans within the limits, best first.
    pub ranked: Vec<RankedAlternative>,
    /// Plans that are excluded.
    pub refused: Vec<Refused>,
    /// Index in `ranked` of the best plan that differs in more than numbers of threads and batches.
    pub runner_up: Option<usize>,
    /// Index in `ranked` of the best plan that uses the dataset unchanged, without cache and
    /// device.
    pub nothing_offline: Option<usize>,
    /// Index in `ranked` of the best plan that prepares as many operations offline as possible.
    pub everything_offline: Option<usize>,
    /// Index in `ranked` of the best plan with a device.
    pub with_device: Option<usize>,
    /// Index in `ranked` of the best plan with a GPU.
    pub with_gpu: Option<usize>,
    /// Index in `ranked` of the best plan without a GPU.
    pub without_gpu: Option<usize>,
    /// The source of the joules of GPUs; `None` if no plan with one was considered.
    pub gpu_energy: Option<GpuEnergy>,
    /// Seconds of a batch on the device and of an epoch of the host alone, if the device was
    /// excluded because it prepares less than a batch in an epoch.
    pub slow_device: Option<[f64; 2]>,
    /// Whether the lead over the runner-up exceeds the errors of both.
    pub is_certain: bool,
    /// Changes that would lead to another choice.
    pub changes: Vec<Change>,
}

impl PlanChoice {
    /// The plan that was chosen.
    pub fn best(&self) -> &RankedAlternative {
        &self.ranked[0]
    }
}

fn cost(request: &Request, prediction: &Prediction, epochs: u32) -> f64 {
    match request.aim {
        Aim::Time => prediction.seconds(epochs),
        Aim::Energy => prediction.joules(epochs),
    }
}

fn refusal(request: &Request, of: &Alternative, prediction: &Prediction) -> Option<RefusedBecause> {
    if !request.allows_loss && !of.point.form.is_exact() {
        return Some(RefusedBecause::Lossy);
    }
    let over = |needed: f64, limit: Option<u64>| limit.filter(|limit| needed > *limit as f64);
    if let Some(limit) = over(prediction.storage_bytes, request.storage_limit) {
        return Some(RefusedBecause::Storage { needed: prediction.storage_bytes, limit });
    }
    let limit = over(prediction.memory_bytes, request.memory_limit)?;
    Some(RefusedBecause::Memory { needed: prediction.memory_bytes, limit })
}

/// Chooses a plan from the measurements of a profile.
pub fn choose(results: &[Measured], request: &Request) -> Result<PlanChoice, PlanError> {
    if request.epochs == 0 {
        return Err(PlanError::NoEpochs);
    }
    if !(request.confidence > 0.0 && request.confidence < 1.0) {
        return Err(PlanError::Confidence(request.confidence));
    }
    let (mut fitting, mut refused) = (Vec::new(), Vec::new());
    let mut slow_device = None;
    let all = alternatives(results, request)?;
    let has_gpu = all.iter().any(|it| it.gpu.is_some());
    let gpu_energy = GpuEnergy::of(results).filter(|_| has_gpu);
    if request.aim == Aim::Energy && gpu_energy == Some(GpuEnergy::Modelled) {
        check_watts(request)?;
    }
    for alternative in all {
        let prediction = match predict(results, request, &alternative) {
            Err(PlanError::SlowDevice { batch_seconds, epoch_seconds }) => {
                slow_device = Some([batch_seconds, epoch_seconds]);
                continue;
            }
            prediction => prediction?,
        };
        match refusal(request, &alternative, &prediction) {
            Some(because) => refused.push(Refused { alternative, prediction, because }),
            None => {
                let cost = cost(request, &prediction, request.epochs);
                fitting.push(RankedAlternative { alternative, prediction, cost });
            }
        }
    }
    let Some(least) = fitting.iter().map(|it| it.cost).reduce(f64::min) else {
        return Err(match slow_device.filter(|_| refused.is_empty()) {
            Some([batch_seconds, epoch_seconds]) => {
                PlanError::SlowDevice { batch_seconds, epoch_seconds }
            }
            None => nothing_fits(request, &refused),
        });
    };
    // Of equally good plans, the first one needs the fewest resources.
    let is_best = |it: &RankedAlternative| it.cost <= least * (1.0 + TIE);
    let best = fitting.iter().position(is_best).expect("the least is one of them");
    let mut best = fitting.remove(best);
    prefetch(results, request, &mut best)?;
    fitting.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    let ranked: Vec<RankedAlternative> = std::iter::once(best).chain(fitting).collect();
    Ok(PlanChoice { slow_device, gpu_energy, ..compare(request, ranked, refused) })
}

/// Raises the number of batches ahead if that is faster.
fn prefetch(
    results: &[Measured],
    request: &Request,
    best: &mut RankedAlternative,
) -> Result<(), PlanError> {
    if request.pins.prefetch.is_some() || best.alternative.workers == 0 {
        return Ok(());
    }
    for prefetch in PREFETCHES {
        let alternative = Alternative { prefetch, ..best.alternative.clone() };
        let prediction = predict(results, request, &alternative)?;
        let cost = cost(request, &prediction, request.epochs);
        let is_allowed = refusal(request, &alternative, &prediction).is_none();
        if is_allowed && cost < best.cost * (1.0 - TIE) {
            *best = RankedAlternative { alternative, prediction, cost };
        }
    }
    Ok(())
}

fn nothing_fits(request: &Request, refused: &[Refused]) -> PlanError {
    let fits_otherwise =
        refused.iter().filter(|it| request.allows_loss || it.alternative.point.form.is_exact());
    let needs = fits_otherwise.map(|it| (it.prediction.storage_bytes, it.prediction.memory_bytes));
    let least = needs.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let (storage_bytes, memory_bytes) = least.unwrap_or_default();
    PlanError::NothingFits { storage_bytes, memory_bytes }
}

/// Whether two plans differ in more than numbers of threads and batches.
fn differs(a: &Alternative, b: &Alternative) -> bool {
    let cached = |it: &Alternative| it.cache.as_ref().map(|cache| cache.point.clone());
    (&a.point, a.codec, a.strategy, a.gpu, cached(a))
        != (&b.point, b.codec, b.strategy, b.gpu, cached(b))
}

fn compare(request: &Request, ranked: Vec<RankedAlternative>, refused: Vec<Refused>) -> PlanChoice {
    let best = &ranked[0];
    let find = |is: &dyn Fn(&Alternative) -> bool| ranked.iter().position(|it| is(&it.alternative));
    let runner_up = find(&|it| differs(it, &best.alternative));
    let is_alone = |it: &Alternative| it.strategy == StrategyName::HostOnly && it.cache.is_none();
    let most = ranked.iter().map(|it| it.alternative.point.operations).max().unwrap_or(0);
    let nothing_offline = find(&|it| it.is_as_it_is && is_alone(it));
    let everything_offline = find(&|it| most > 0 && it.point.operations == most && is_alone(it));
    let with_device = find(&|it| it.strategy != StrategyName::HostOnly);
    let (with_gpu, without_gpu) = (find(&|it| it.gpu.is_some()), find(&|it| it.gpu.is_none()));
    let off = |it: &RankedAlternative| it.prediction.relative_off.map(|off| off * it.cost);
    let is_certain = runner_up.is_none_or(|index| {
        let next = &ranked[index];
        let offs = off(best).zip(off(next));
        offs.is_some_and(|(a, b)| next.cost - best.cost > a.hypot(b))
    });
    let changes = changes(request, &ranked, &refused);
    PlanChoice {
        runner_up,
        nothing_offline,
        everything_offline,
        with_device,
        with_gpu,
        without_gpu,
        gpu_energy: None,
        slow_device: None,
        is_certain,
        changes,
        ranked,
        refused,
    }
}

fn changes(request: &Request, ranked: &[RankedAlternative], refused: &[Refused]) -> Vec<Change> {
    let best = &ranked[0];
    let mut changes = Vec::new();
    let others = || (1..).zip(&ranked[1..]);
    let others = || others().filter(|(_, it)| differs(&it.alternative, &best.alternative));
    let is_better = |it: &RankedAlternative, epochs: u32| {
        cost(request, &it.prediction, epochs)
            < cost(request, &best.prediction, epochs) * (1.0 - TIE)
    };
    // Costs are linear in the number of epochs: finds the smallest number from which each plan is
    // better.
    let later = others().filter_map(|(index, it)| {
        first_epochs(request.epochs.checked_add(1)?, |epochs| is_better(it, epochs))
            .map(|epochs| (epochs, index))
    });
    if let Some((epochs, index)) = later.min() {
        changes.push(Change::EpochsAtLeast { epochs, index });
    }
    let earlier = others().filter_map(|(index, it)| {
        let most = last_epochs(request.epochs - 1, |epochs| is_better(it, epochs))?;
        Some((most, std::cmp::Reverse(index)))
    });
    if let Some((epochs, std::cmp::Reverse(index))) = earlier.max() {
        changes.push(Change::EpochsAtMost { epochs, index });
    }
    let (storage, memory) = (best.prediction.storage_bytes, best.prediction.memory_bytes);
    if let Some((index, _)) = others().find(|(_, it)| it.prediction.storage_bytes < storage) {
        changes.push(Change::StorageBelow { bytes: storage, index });
    }
    let is_smaller = |it: &RankedAlternative| it.prediction.memory_bytes < memory;
    if best.alternative.cache.is_some()
        && let Some((index, _)) = others().find(|(_, it)| is_smaller(it))
    {
        changes.push(Change::MemoryBelow { bytes: memory, index });
    }
    let mut raised: [Option<(f64, usize)>; 2] = [None, None];
    for (index, it) in refused.iter().enumerate() {
        let is_worth = cost(request, &it.prediction, request.epochs) < best.cost * (1.0 - TIE);
        let (at, needed) = match it.because {
            RefusedBecause::Storage { needed, .. } => (0, needed),
            RefusedBecause::Memory { needed, .. } => (1, needed),
            RefusedBecause::Lossy => continue,
        };
        if is_worth && raised[at].is_none_or(|(least, _)| needed < least) {
            raised[at] = Some((needed, index));
        }
    }
    let [storage, memory] = raised;
    changes.extend(storage.map(|(bytes, index)| Change::StorageAtLeast { bytes, index }));
    changes.extend(memory.map(|(bytes, index)| Change::MemoryAtLeast { bytes, index }));
    changes
}

/// The largest number of epochs, at most `to`, for which a linear relation holds.
fn last_epochs(to: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
    if to == 0 {
        return None;
    }
    if holds(to) {
        return Some(to);
    }
    let (mut yes, mut no) = (1, to);
    if !holds(yes) {
        return None;
    }
    while no - yes > 1 {
        let middle = yes + (no - yes) / 2;
        if holds(middle) { yes = middle } else { no = middle }
    }
    Some(yes)
}

/// The least number of epochs, at least `from`, for which a linear relation holds.
fn first_epochs(from: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
    if holds(from) {
        return Some(from);
    }
    let (mut no, mut yes) = (from, u32::MAX);
    if !holds(yes) {
        return None;
    }
    while yes - no > 1 {
        let middle = no + (yes - no) / 2;
        if holds(middle) { yes = middle } else { no = middle }
    }
    Some(yes)
}
