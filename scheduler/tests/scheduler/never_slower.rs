//! `auto` is never slower than the host alone by more than 1 %, whatever the devices do.

use meetpoint_scheduler::{
    AnyStrategy, Auto, Config, DeviceConfig, Goal, Holders, HostOnly, Learned, Order, Profile,
};

use crate::driver::{Faults, Random, Run, Scenario, Slowed, holders, run};

const MS: u64 = 1_000_000;

/// Beyond 1 %, an epoch may take as many more host batches as are open at once, for each time that
/// work is finally taken back from a device: once per device, and once at the end.
const BATCHES_MORE: u64 = 2;

/// Seeds of large epochs that failed once.
const FAILED_ONCE: [u64; 1] = [794];

/// The behaviour of devices.
fn misbehaviour(random: &mut Random) -> (u64, Faults) {
    let batch_ns = random.between(2 * MS, 40 * MS);
    let healthy = Faults { jitter: random.percent(50), ..Faults::default() };
    let faults = match random.below(8) {
        // Dead from the start, or after some batches.
        0 => Faults { dies_after: Some(random.small(0, 200)), ..healthy },
        // Far slower than configured.
        1 => return (batch_ns * 100, healthy),
        // Slower from some batch on.
        2 => {
            let slows_after = Some((random.small(0, 150), random.between(2, 40)));
            Faults { slows_after, ..healthy }
        }
        // Intermittent: silent, or with heartbeats only.
        3 => Faults { stalls: random.below(20), ..healthy },
        4 => Faults { stalls: random.below(20), lies: 100, ..healthy },
        // Loses, corrupts and delays its results.
        5 => Faults {
            fails: random.below(60),
            torn: random.below(60),
            late: random.below(40),
            ..healthy
        },
        _ => healthy,
    };
    (batch_ns, faults)
}

fn learned(random: &mut Random, truth: &Profile, devices: usize) -> Learned {
    match random.below(3) {
        0 => Learned::nothing(),
        1 => Learned::from_profile(truth, devices),
        // A device from a quarter of to four times its previous speed.
        _ => {
            let device_ns = truth.device_ns * random.between(25, 400) / 100;
            Learned::from_profile(&Profile { device_ns, ..*truth }, devices)
        }
    }
}

struct Case {
    config: Config,
    scenario: Scenario,
}

fn case(random: &mut Random, batches: u32) -> Case {
    let workers = random.small(0, 5);
    let devices = random.small(1, 4) as usize;
    let (host_ns, step_ns) = (random.between(5 * MS, 20 * MS), random.between(MS, 10 * MS));
    let behaviours: Vec<_> = (0..devices).map(|_| misbehaviour(random)).collect();
    let order = [Order::Any, Order::Replayable, Order::Baseline][random.below(3) as usize];
    let period = match u64::from(workers) {
        0 => host_ns + step_ns,
        workers => (host_ns / workers).max(step_ns),
    };
    let truth = Profile { host_ns: period, device_ns: behaviours[0].0, ready_ns: step_ns };
    let device = DeviceConfig {
        ahead: random.small(1, 5),
        spool_slots: random.small(2, 200),
        first_generation: 0,
    };
    let config = Config {
        batches,
        strategy: AnyStrategy::Auto(Auto { goal: Goal::Throughput, order }),
        host_ahead: (workers * 3).max(1),
        fetch_ahead: 4,
        devices: vec![device; devices],
        holders: if random.percent(50) {
            Holders::Shared
        } else {
            holders::scattered(random, batches, devices)
        },
        stall_timeout_ns: random.between(100, 2_000) * MS,
        stalls_max: 3,
        profile_batches: 4,
        learned: learned(random, &truth, devices),
        replay: None,
        ranks: 1,
        costs: None,
    };
    let scenario = Scenario {
        seed: random.next(),
        workers,
        host_ns,
        device_ns: behaviours.iter().map(|(batch_ns, _)| *batch_ns).collect(),
        step_ns,
        fetch_ns: MS / 2,
        jitter: false,
        varies: 0,
        faults: behaviours.into_iter().map(|(_, faults)| faults).collect(),
        kept: Vec::new(),
        run_ahead_ns: 0,
        slowed: Slowed::default(),
    };
    Case { config, scenario }
}

fn alone(case: &Case) -> Run {
    let config = Config { strategy: AnyStrategy::HostOnly(HostOnly), ..case.config.clone() };
    run(&config, &case.scenario)
}

fn check(seed: u64, case: &Case) -> f64 {
    let host_only = alone(case).ended_ns;
    let taken = run(&case.config, &case.scenario);
    let times = BATCHES_MORE * (case.config.devices.len() as u64 + 1);
    let more = times * (case.scenario.host_ns + case.scenario.step_ns);
    let bound = host_only + host_only / 100 + more;
    assert!(
        taken.ended_ns <= bound,
        "seed {seed}: {} ns against {host_only} ns of the host alone: {:?} {:?} {:?}",
        taken.ended_ns,
        taken.summary,
        case.config,
        case.scenario,
    );
    taken.ended_ns as f64 / host_only as f64
}

#[test]
fn auto_is_never_slower_whatever_the_devices_do() {
    let mut gains = 0;
    for seed in (0..200).chain(FAILED_ONCE) {
        let mut random = Random::new(seed ^ 0xa070);
        let case = case(&mut random, 1_500);
        gains += u32::from(check(seed, &case) < 0.97);
    }
    // The guard must not prevent the use of a good device.
    assert!(gains > 60, "only {gains} epochs were made shorter");
}

#[test]
fn small_epochs_take_a_constant_number_of_batches_more_at_most() {
    for seed in 0..1_000 {
        let mut random = Random::new(seed ^ 0x51a11);
        let batches = random.small(1, 60);
        let case = case(&mut random, batches);
        check(seed, &case);
    }
}
