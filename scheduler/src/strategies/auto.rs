//! `auto`: picks a strategy for a goal, under what the order must be, from what was learned.
//!
//! It predicts by the closed forms. Where nothing is known it picks what adapts by itself; the
//! guard of the epoch sees to it that no pick makes the epoch longer than the host alone by more
//! than 1 %.

use crate::closed_forms::{self, Inputs};
use crate::config::{Config, Goal, Order, Split, Strategy, Tail};
use crate::picked::{Picked, Why};
use crate::types::Profile;

/// A gain below this part of the host's time is none.
const GAIN_LEAST: f64 = 0.001;

/// Windows have at most so many batches.
const WINDOW_MAX: u32 = 256;

/// Device batches in a window, where the spool allows.
const WINDOW_SHARE: f64 = 16.0;

/// What is picked for an epoch.
pub(crate) fn pick(config: &Config, goal: Goal, order: Order) -> Picked {
    if config.devices.is_empty() {
        return Picked { strategy: Strategy::HostOnly, why: Why::NoDevice };
    }
    let profile = together(config);
    let known = profile.host_ns > 0 && profile.device_ns > 0 && profile.ready_ns > 0;
    let window = window(config, &profile, known);
    if config.ranks > 1 {
        // Every rank has to come to the same: what adapts, and goes along with the host alone.
        let strategy = match order {
            Order::Any => Strategy::Wrr,
            Order::Replayable => Strategy::MteFeedback,
            Order::Baseline => Strategy::HostOnly,
        };
        return Picked { strategy, why: Why::Adapts };
    }
    if !known {
        let strategy = match order {
            Order::Any => Strategy::Wrr,
            Order::Replayable => Strategy::MteFeedback,
            Order::Baseline => Strategy::Windowed { window },
        };
        return Picked { strategy, why: Why::NothingKnown };
    }
    let inputs = Inputs {
        batches: config.batches,
        background: config.background(),
        profile,
        spool_slots: config.spool_slots(),
    };
    match goal {
        Goal::Throughput => fastest(&inputs, order, window),
        Goal::Energy => cheapest(config, &inputs, order, window, 0),
        Goal::Mix { time_weight_ppm } => cheapest(config, &inputs, order, window, time_weight_ppm),
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
fn cheapest(config: &Config, inputs: &Inputs, order: Order, window: u32, weight: u32) -> Picked {
    let Some(costs) = config.costs else { return fastest(inputs, order, window) };
    let preparation_ns = match config.learned.preparation_ns {
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

/// t_c, t_g, and t_s of all devices together; 0 where not known.
fn together(config: &Config) -> Profile {
    let learned = &config.learned;
    let times = (0..config.devices.len()).map(|at| learned.device_ns(at));
    let rate: f64 = times.filter(|&time| time > 0).map(|time| 1.0 / time as f64).sum();
    Profile {
        host_ns: learned.host_ns,
        device_ns: if rate > 0.0 { ((1.0 / rate + 0.5) as u64).max(1) } else { 0 },
        ready_ns: learned.ready_ns,
    }
}

/// Enough batches for the devices to have some in each, and no more than the spools hold twice.
fn window(config: &Config, profile: &Profile, known: bool) -> u32 {
    let slots = f64::from(config.spool_slots());
    let share = (slots / 2.0).min(WINDOW_SHARE * config.devices.len() as f64).max(1.0);
    let each = if known && profile.ready_ns < profile.host_ns {
        let saved = (profile.host_ns - profile.ready_ns) as f64;
        (profile.device_ns as f64 + saved) / profile.host_ns as f64
    } else {
        2.0
    };
    ((share * each) as u32).clamp(2, WINDOW_MAX)
}
