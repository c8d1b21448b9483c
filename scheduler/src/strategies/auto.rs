//! `auto`: picks a strategy for a goal, under what the order must be, from what was learned.
//!
//! It predicts by the closed forms. Where nothing is known it picks what adapts by itself; the
//! guard of the epoch sees to it that no pick makes the epoch longer than the host alone by more
//! than 1 %.

use crate::closed_forms::{self, Inputs};
use crate::config::{Config, Costs, Goal, Order, Split, Strategy, Tail};
use crate::picked::{Picked, Why};
use crate::types::Profile;

/// A gain below this part of the host's time is none.
const GAIN_LEAST: f64 = 0.001;

/// Windows have at most so many batches.
const WINDOW_MAX: u32 = 256;

/// Device batches in a window, where the spool allows.
const WINDOW_SHARE: f64 = 16.0;

/// Slots of a rank's spools while not all ranks know those of all.
const SLOTS_UNKNOWN: u32 = 16;

/// What is picked for an epoch.
pub(crate) fn pick(config: &Config, goal: Goal, order: Order) -> Picked {
    if config.devices.is_empty() {
        return Picked { strategy: Strategy::HostOnly, why: Why::NoDevice };
    }
    let inputs = if config.ranks > 1 { of_all_ranks(config) } else { own(config) };
    let profile = inputs.profile;
    let is_known = profile.host_ns > 0 && profile.device_ns > 0 && profile.ready_ns > 0;
    // Every rank has to come to the same, whatever it has.
    let devices = if config.ranks > 1 { 1 } else { config.devices.len() };
    let window = window(&inputs, devices, is_known);
    if !is_known {
        let strategy = match order {
            Order::Any => Strategy::Wrr,
            Order::Replayable => Strategy::MteFeedback,
            Order::Baseline => Strategy::Windowed { window },
        };
        let why = if config.ranks > 1 { Why::Adapts } else { Why::NothingKnown };
        return Picked { strategy, why };
    }
    let preparation_ns = match (config.ranks > 1, config.learned.common) {
        (true, Some(common)) => common.preparation_ns,
        _ => config.learned.preparation_ns,
    };
    match goal {
        Goal::Throughput => fastest(&inputs, order, window),
        Goal::Energy => cheapest(config.costs, preparation_ns, &inputs, order, window, 0),
        Goal::Mix { time_weight_ppm: weight } => {
            cheapest(config.costs, preparation_ns, &inputs, order, window, weight)
        }
    }
}

fn fastest(inputs: &Inputs, order: Order, window: u32) -> Picked {
    let candidates: &[Strategy] = match order {
        Order::Any => &[Strategy::Wrr],
        Order::Replayable => &[Strategy::MteFeedback, Strategy::WrrFrozen],
        Order::Baseline => &[Strategy::Windowed { window }],
    };
    let alone = f64::from(inputs.batches) * inputs.profile.host_ns as f64;
    let predicted = candidates.iter().filter_map(|&strategy| {
        let found = closed_forms::predict(strategy, inputs).ok()?;
        Some((strategy, found.total_ns))
    });
    let best = predicted.min_by(|a, b| a.1.total_cmp(&b.1));
    match best {
        Some((strategy, total)) if total < alone * (1.0 - GAIN_LEAST) => Picked {
            strategy,
            why: Why::Fastest { expected_ns: total as u64, host_only_ns: alone as u64 },
        },
        _ => Picked { strategy: Strategy::HostOnly, why: Why::NoGain },
    }
}

/// λ·T/T0 + (1-λ)·E/E0 is linear between the shares at which it bends, so the best is one of these.
fn cheapest(
    costs: Option<Costs>,
    preparation_ns: u64,
    inputs: &Inputs,
    order: Order,
    window: u32,
    weight: u32,
) -> Picked {
    let Some(costs) = costs else { return fastest(inputs, order, window) };
    let preparation_ns = match preparation_ns {
        0 => inputs.profile.host_ns.saturating_sub(inputs.profile.ready_ns),
        known => known,
    };
    let Ok(best) = closed_forms::best_share(inputs, &costs, preparation_ns, weight) else {
        return Picked { strategy: Strategy::HostOnly, why: Why::NoGain };
    };
    let share = best.share;
    if share == 0 {
        return Picked { strategy: Strategy::HostOnly, why: Why::BestMix { share } };
    }
    let strategy = if best.waits {
        let tail = if order == Order::Baseline { Tail::Ascending } else { Tail::Descending };
        Strategy::Mte { split: Split::Fixed(share), tail }
    } else {
        fastest(inputs, order, window).strategy
    };
    Picked { strategy, why: Why::BestMix { share } }
}

/// What this rank knows: t_c, t_g, and t_s of all devices together; 0 where not known.
fn own(config: &Config) -> Inputs {
    let learned = &config.learned;
    let times = (0..config.devices.len()).map(|at| learned.device_ns(at));
    let rate: f64 = times.filter(|&time| time > 0).map(|time| 1.0 / time as f64).sum();
    let device_ns = if rate > 0.0 { ((1.0 / rate + 0.5) as u64).max(1) } else { 0 };
    Inputs {
        batches: config.batches,
        background: config.background(),
        profile: Profile { host_ns: learned.host_ns, device_ns, ready_ns: learned.ready_ns },
        spool_slots: config.spool_slots(),
    }
}

/// What every rank knows alike.
fn of_all_ranks(config: &Config) -> Inputs {
    let common = config.learned.common;
    Inputs {
        batches: config.batches,
        background: common.is_some_and(|it| it.background),
        profile: common.map_or(Profile::default(), |it| it.profile()),
        spool_slots: common.map_or(SLOTS_UNKNOWN, |it| it.spool_slots),
    }
}

/// Enough batches for the devices to have some in each, and no more than the spools hold twice.
fn window(inputs: &Inputs, devices: usize, is_known: bool) -> u32 {
    let (slots, profile) = (f64::from(inputs.spool_slots), inputs.profile);
    let share = (slots / 2.0).min(WINDOW_SHARE * devices as f64).max(1.0);
    let each = if is_known && profile.ready_ns < profile.host_ns {
        let saved = (profile.host_ns - profile.ready_ns) as f64;
        (profile.device_ns as f64 + saved) / profile.host_ns as f64
    } else {
        2.0
    };
    ((share * each) as u32).clamp(2, WINDOW_MAX)
}
