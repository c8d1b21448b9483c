//! Scenarios from seeds.

use meetpoint_scheduler::{
    AnyStrategy, Auto, Config, Costs, DeviceConfig, DeviceOnly, Goal, Holders, HostOnly, Learned,
    Mte, MteFeedback, Order, Split, Tail, Windowed, Wrr, WrrFrozen,
};

use super::holders::{by_turns, scattered};
use super::{Faults, Random, Scenario, Slowed};

pub(crate) const MS: u64 = 1_000_000;

pub(crate) fn tail(random: &mut Random) -> Tail {
    if random.percent(50) { Tail::Descending } else { Tail::Ascending }
}

/// Any strategy.
pub(crate) fn strategy(random: &mut Random, batches: u32) -> AnyStrategy {
    match random.below(12) {
        0 => AnyStrategy::HostOnly(HostOnly),
        1 => AnyStrategy::DeviceOnly(DeviceOnly),
        2 => AnyStrategy::Mte(Mte { split: Split::EqualFinish, tail: tail(random) }),
        3 => AnyStrategy::Mte(Mte { split: Split::Optimal, tail: tail(random) }),
        4 => AnyStrategy::Mte(Mte {
            split: Split::Fixed(random.small(0, batches + 1)),
            tail: tail(random),
        }),
        5 | 6 => AnyStrategy::Wrr(Wrr),
        7 => AnyStrategy::WrrFrozen(WrrFrozen),
        8 => AnyStrategy::MteFeedback(MteFeedback),
        9 => AnyStrategy::Windowed(Windowed { window: random.small(1, 20) }),
        _ => auto(random),
    }
}

pub(crate) fn auto(random: &mut Random) -> AnyStrategy {
    let goal = match random.below(4) {
        0 => Goal::Energy,
        1 => Goal::Mix { time_weight_ppm: random.small(0, 1_000_001) },
        _ => Goal::Throughput,
    };
    let order = match random.below(3) {
        0 => Order::Any,
        1 => Order::Replayable,
        _ => Order::Baseline,
    };
    AnyStrategy::Auto(Auto { goal, order })
}

fn learned(random: &mut Random, devices: usize) -> Learned {
    let mut time = |chance| if random.percent(chance) { random.below(20 * MS) } else { 0 };
    let device_ns = (0..devices).map(|_| time(80)).collect();
    let (host_ns, ready_ns, preparation_ns) = (time(80), time(80), time(50));
    Learned { host_ns, ready_ns, preparation_ns, device_ns, ..Learned::nothing() }
}

/// A configuration for a number of devices.
pub(crate) fn config(random: &mut Random, devices: usize) -> Config {
    let batches = random.small(1, 48);
    let strategy = strategy(random, batches);
    let device = |random: &mut Random| DeviceConfig {
        ahead: random.small(1, 6),
        spool_slots: random.small(1, 12),
        first_generation: random.small(0, 100),
    };
    let holders = match random.below(4) {
        _ if devices == 0 => Holders::Shared,
        0 => scattered(random, batches, devices),
        1 => by_turns(batches, devices),
        _ => Holders::Shared,
    };
    let costs = Costs { base_uw: 50_000_000, host_core_uw: 9_000_000, device_uw: 2_000_000 };
    Config {
        batches,
        strategy: if devices == 0 { AnyStrategy::HostOnly(HostOnly) } else { strategy },
        host_ahead: random.small(1, 8),
        fetch_ahead: random.small(1, 5),
        devices: (0..devices).map(|_| device(random)).collect(),
        holders,
        stall_timeout_ns: random.between(5 * MS, 60 * MS),
        stalls_max: random.small(1, 4),
        profile_batches: random.small(1, 5),
        learned: if random.percent(50) { learned(random, devices) } else { Learned::nothing() },
        replay: None,
        ranks: 1,
        costs: random.percent(50).then_some(costs),
    }
}

pub(crate) fn faults(random: &mut Random) -> Faults {
    let mut chance = |most| random.below(most);
    Faults {
        jitter: true,
        fails: chance(40),
        torn: chance(40),
        duplicated: chance(40),
        late: chance(40),
        stalls: chance(30),
        lies: chance(100),
        nonsense: chance(40),
        dies_after: (chance(10) < 3).then(|| chance(30) as u32),
        absent: false,
        returns_after_ns: None,
        leaves_after: (chance(10) < 2).then(|| chance(30) as u32),
        slows_after: (chance(10) < 3).then(|| (chance(10) as u32, chance(100))),
    }
}

/// A scenario for a configuration; half of them have no faults.
pub(crate) fn scenario(random: &mut Random, config: &Config) -> Scenario {
    let devices = config.devices.len();
    let faulty = random.percent(50);
    let healthy = Faults { jitter: true, ..Faults::default() };
    let mut kept = Vec::new();
    if devices > 0 && random.percent(15) {
        for batch in (0..config.batches).rev().take(random.below(10) as usize) {
            if random.percent(70) {
                let device = match &config.holders {
                    Holders::Shared => random.below(devices as u64) as u16,
                    Holders::Interleaved(table) => {
                        table.holder(meetpoint_scheduler::BatchIndex(batch)).0.0
                    }
                };
                kept.push((device, batch));
            }
        }
    }
    Scenario {
        seed: random.next(),
        workers: random.small(0, 4),
        host_ns: random.between(MS / 10, 20 * MS),
        device_ns: (0..devices).map(|_| random.between(MS / 10, 20 * MS)).collect(),
        step_ns: random.below(10 * MS),
        fetch_ns: random.below(2 * MS),
        jitter: true,
        varies: 0,
        faults: (0..devices)
            .map(|_| if faulty { faults(random) } else { healthy.clone() })
            .collect(),
        kept,
        run_ahead_ns: if random.percent(20) { random.below(200 * MS) } else { 0 },
        slowed: Slowed::default(),
    }
}

/// Without workers the consumer holds one batch at a time.
pub(crate) fn fit(mut config: Config, scenario: &Scenario) -> Config {
    if scenario.workers == 0 {
        config.host_ahead = 1;
    }
    config
}
