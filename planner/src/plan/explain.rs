//! Explains a plan: the choice, the reason for each value, and changes that would lead to another
//! choice.

use super::alternatives::Alternative;
use super::choose::{Change, PlanChoice, RankedAlternative};
use super::gpu::{GpuEnergy, competes, watts};
use super::model::EpochPrediction;
use super::{Aim, GpuPin, Request};
use crate::vocabulary::{Codec, Form};
use meetpoint_format::units::show_bytes;
use meetpoint_scheduler::StrategyName;

fn bytes(value: f64) -> String {
    show_bytes(value.max(0.0).round() as u64)
}

/// A duration with three digits.
fn seconds(value: f64) -> String {
    match value {
        value if value >= 7200.0 => format!("{:.1} h", value / 3600.0),
        value if value >= 120.0 => format!("{:.1} min", value / 60.0),
        value if value >= 1.0 => format!("{value:.2} s"),
        value => format!("{:.1} ms", value * 1000.0),
    }
}

fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn cost(request: &Request, value: f64) -> String {
    match request.aim {
        Aim::Time => seconds(value),
        Aim::Energy => format!("{value:.0} J (modelled)"),
    }
}

/// A short name of a plan.
pub fn name(of: &Alternative) -> String {
    let stored = match (of.is_as_it_is, of.codec) {
        (true, _) => "the dataset as it is".to_owned(),
        (false, Codec::None) => format!("stored as {}", of.point),
        (false, codec) => format!("stored as {} with {}", of.point, codec.name()),
    };
    let cache = match &of.cache {
        None => "no cache".to_owned(),
        Some(cache) => format!("a cache of {} after {}", show_bytes(cache.bytes), cache.point),
    };
    let workers = count(of.workers.into(), "worker");
    let gpu = of.gpu.map_or_else(String::new, |gpu| format!(" with {gpu}"));
    format!("{stored}, {cache}, {}, {workers}{gpu}", of.strategy.as_str())
}

/// The reason for each value, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reasons {
    /// Reason for the stored form.
    pub stored: String,
    /// Reason for the strategy.
    pub strategy: String,
    /// Reason for the number of workers.
    pub workers: String,
    /// Reason for the number of batches ahead.
    pub prefetch: String,
    /// Reason for the cache.
    pub cache: String,
    /// Reason for the GPU, or for none; `None` if no plan with one was considered.
    pub gpu: Option<String>,
}

/// The reasons of the best plan.
pub fn reasons(request: &Request, chosen: &PlanChoice) -> Reasons {
    let best = chosen.best();
    let pins = &request.pins;
    let all = count(request.epochs.into(), "epoch");
    let codec = pins.codec.map(|it| format!("the codec to {}", it.name()));
    let form = pins.stored.as_ref().map(|it| format!("the stored form to {it}"));
    let form: Vec<String> = form.into_iter().chain(codec).collect();
    let strategy_name = pins.strategy.map(|it| format!("the strategy to {}", it.as_str()));
    let cache_bytes = pins.cache.map(|it| match it {
        0 => "the cache to none".to_owned(),
        bytes => format!("the cache to {}", show_bytes(bytes)),
    });
    Reasons {
        stored: fixed((!form.is_empty()).then(|| form.join(" and ")))
            .unwrap_or_else(|| stored(request, chosen, &all)),
        strategy: fixed(strategy_name).unwrap_or_else(|| strategy(request, chosen)),
        workers: fixed(pins.workers.map(|it| format!("the background threads to {it}")))
            .unwrap_or_else(|| workers(request, best)),
        prefetch: fixed(pins.prefetch.map(|it| format!("the prefetched batches to {it}")))
            .unwrap_or_else(|| prefetch(best)),
        cache: fixed(cache_bytes).unwrap_or_else(|| cache(request, best)),
        gpu: match pins.gpu {
            Some(GpuPin::None) => fixed(Some("the GPU to none".to_owned())),
            Some(GpuPin::Gpu(gpu)) => fixed(Some(format!("the GPU to {gpu}"))),
            None => chosen.gpu_energy.map(|energy| gpu(request, chosen, energy)),
        },
    }
}

/// The reason for values that the user fixed.
fn fixed(values: Option<String>) -> Option<String> {
    values.map(|values| format!("The user fixed {values}."))
}

fn stored(request: &Request, chosen: &PlanChoice, epochs: &str) -> String {
    let best = chosen.best();
    let baseline = chosen.nothing_offline.map(|index| &chosen.ranked[index]);
    if best.alternative.is_as_it_is {
        let next = chosen.ranked.iter().find(|it| !it.alternative.is_as_it_is);
        return match next {
            None => "No other form of the dataset fits the limits.".to_owned(),
            Some(next) => format!(
                "Nothing is prepared in advance: the best other form, {}, takes {} for {epochs} \
                 with its offline part of {}.",
                next.alternative.point,
                cost(request, next.cost),
                seconds(next.prediction.offline_seconds)
            ),
        };
    }
    let offline = seconds(best.prediction.offline_seconds);
    let stored = bytes(best.prediction.storage_bytes);
    let gain = baseline.map_or_else(String::new, |baseline| {
        format!(" Used as it is, the dataset takes {}.", cost(request, baseline.cost))
    });
    format!(
        "Preparing {} in advance takes {offline} once and stores {stored}; {epochs} then take {} \
         in all.{gain}",
        best.alternative.point,
        cost(request, best.cost)
    )
}

fn strategy(request: &Request, chosen: &PlanChoice) -> String {
    let best = chosen.best();
    if request.device.is_none() {
        return "There is no device.".to_owned();
    }
    let device = chosen.with_device.map(|index| &chosen.ranked[index]);
    if best.alternative.strategy == StrategyName::HostOnly {
        return match device {
            None => match chosen.slow_device {
                Some([batch, epoch]) => format!(
                    "The device gets nothing: it takes {} for a batch, and the host {} for a \
                     whole epoch.",
                    seconds(batch),
                    seconds(epoch)
                ),
                None => "No plan with the device fits the limits.".to_owned(),
            },
            Some(device) => format!(
                "The device is not used: with it, {} takes {}, and without it {}.",
                device.alternative.strategy.as_str(),
                cost(request, device.cost),
                cost(request, best.cost)
            ),
        };
    }
    let share = |epoch: &EpochPrediction| {
        epoch.device_batches / (epoch.device_batches + epoch.host_batches).max(1.0)
    };
    let (first, later) = (share(&best.prediction.first), share(&best.prediction.later));
    format!(
        "The device prepares {} of the batches of the first epoch and {} of those of each later \
         one; in the simulation no other strategy finishes earlier.",
        percent(first),
        percent(later)
    )
}

/// Why the GPU is used or not, with its cost.
fn gpu(request: &Request, chosen: &PlanChoice, energy: GpuEnergy) -> String {
    let best = chosen.best();
    let ranked = |index: Option<usize>| index.map(|index| &chosen.ranked[index]);
    let Some(with) = ranked(chosen.with_gpu) else {
        return "No plan with a GPU fits the limits.".to_owned();
    };
    let name = with.alternative.gpu.map_or_else(String::new, |gpu| gpu.to_string());
    let compared = match ranked(chosen.without_gpu) {
        None => "No plan without it fits the limits".to_owned(),
        Some(without) => {
            let [with, without] = [with, without].map(|it| cost(request, it.cost));
            match best.alternative.gpu {
                Some(_) => format!("With it, the epochs take {with}, and without it {without}"),
                None => format!(
                    "It is not used: with it, the epochs take {with}, and without it {without}"
                ),
            }
        }
    };
    let later = &with.prediction.later;
    let mut said = format!(
        "{name} can prepare a share of each batch of the host. {compared}; it would be busy for {} \
         of each later epoch of {}.",
        seconds(later.gpu_seconds),
        seconds(later.seconds)
    );
    if competes(request, with.alternative.gpu) {
        said.push_str(" Steps are assumed to run on the same GPU and to wait meanwhile.");
    }
    if request.aim == Aim::Energy {
        said.push_str(&match (energy, later.gpu_joules) {
            (GpuEnergy::Measured, Some(joules)) => format!(
                " Its {joules:.0} J for that come from measured joules per sample; all others are \
                 modelled."
            ),
            (GpuEnergy::Measured | GpuEnergy::Modelled, _) => format!(
                " Its joules are modelled: {:.0} W more than idle while it is busy.",
                watts(request)
            ),
        });
    }
    said
}

fn workers(request: &Request, best: &RankedAlternative) -> String {
    let cores = count(request.cores.into(), "core");
    match best.alternative.workers {
        0 => format!("On {cores}, background threads gain nothing here."),
        workers => format!(
            "With {} on {cores}, a batch takes {} of the host.",
            count(workers.into(), "thread"),
            seconds(host_batch_seconds(best))
        ),
    }
}

/// Seconds between two batches that the host prepares.
fn host_batch_seconds(best: &RankedAlternative) -> f64 {
    best.prediction.later.seconds / best.prediction.later.host_batches.max(1.0)
}

fn prefetch(best: &RankedAlternative) -> String {
    let memory = bytes(best.prediction.memory_bytes);
    format!(
        "More prefetched batches gain nothing in the simulation; batches and cache take {memory}."
    )
}

fn cache(request: &Request, best: &RankedAlternative) -> String {
    match &best.alternative.cache {
        None if request.epochs == 1 => "A cache is read from the second epoch on.".to_owned(),
        None => {
            "A cache of prepared samples gains nothing, or exceeds the memory limit.".to_owned()
        }
        Some(cache) => format!(
            "The cache holds the results of {}: {} of the samples of each later epoch, which then \
             takes {} instead of {}.",
            cache.point,
            percent(cache.hit_share),
            seconds(best.prediction.later.seconds),
            seconds(best.prediction.first.seconds)
        ),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// The plan, its runner-up, and what would change it.
pub fn sentences(request: &Request, chosen: &PlanChoice) -> Vec<String> {
    let best = chosen.best();
    let all = count(request.epochs.into(), "epoch");
    let off = best.prediction.relative_off;
    let off = off.map_or_else(String::new, |off| format!(" ± {}", percent(off)));
    let mut said = vec![format!(
        "Best for {all}: {}. Predicted: {} in all{off}, {} for the first epoch and {} for each \
         later one.",
        name(&best.alternative),
        cost(request, best.cost),
        seconds(best.prediction.first.seconds),
        seconds(best.prediction.later.seconds)
    )];
    let reasons = reasons(request, chosen);
    said.extend([reasons.stored, reasons.cache, reasons.strategy]);
    said.extend(reasons.gpu);
    if let Some(next) = chosen.runner_up.map(|index| &chosen.ranked[index]) {
        let certainty = match chosen.is_certain {
            true => "the lead exceeds the errors of measurement",
            false => "the lead is within the errors of measurement",
        };
        said.push(format!(
            "Runner-up: {}, with {}; {certainty}.",
            name(&next.alternative),
            cost(request, next.cost)
        ));
    }
    for (what, index) in [
        ("nothing prepared in advance", chosen.nothing_offline),
        ("everything prepared in advance", chosen.everything_offline),
    ] {
        if let Some(index) = index.filter(|index| *index != 0) {
            said.push(format!("With {what}: {}.", cost(request, chosen.ranked[index].cost)));
        }
    }
    said.extend(changes(chosen));
    if best.alternative.point.form == Form::Jpeg {
        said.push("Batches differ from those of the dataset: JPEG loses detail.".to_owned());
    }
    said
}

fn changes(chosen: &PlanChoice) -> Option<String> {
    let ranked = |index: usize| name(&chosen.ranked[index].alternative);
    let refused = |index: usize| name(&chosen.refused[index].alternative);
    let parts: Vec<String> = chosen
        .changes
        .iter()
        .map(|change| match *change {
            Change::EpochsAtLeast { epochs, index } => {
                format!("from {} on, {}", count(epochs.into(), "epoch"), ranked(index))
            }
            Change::EpochsAtMost { epochs, index } => {
                format!("up to {}, {}", count(epochs.into(), "epoch"), ranked(index))
            }
            Change::StorageBelow { bytes: limit, index } => {
                format!("with a storage limit below {}, {}", bytes(limit), ranked(index))
            }
            Change::MemoryBelow { bytes: limit, index } => {
                format!("with a memory limit below {}, {}", bytes(limit), ranked(index))
            }
            Change::StorageAtLeast { bytes: limit, index } => {
                format!("with a storage limit of {} or more, {}", bytes(limit), refused(index))
            }
            Change::MemoryAtLeast { bytes: limit, index } => {
                format!("with a memory limit of {} or more, {}", bytes(limit), refused(index))
            }
        })
        .collect();
    (!parts.is_empty()).then(|| format!("Another plan would be the best: {}.", parts.join("; ")))
}
