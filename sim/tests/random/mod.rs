//! Random small scenarios: a seed gives one, always the same.

use meetpoint_format::split_mix::SplitMix64;
use meetpoint_scheduler::{Auto, Goal, Mte, Order, Split, StrategyName, Tail, Windowed};
use meetpoint_sim::scenario::{
    Bandwidth, Bytes, Cache, ChoiceName, Device, Distribution, Fault, FaultKind, Holders, Scenario,
    Serve, Span, Stores, When,
};

/// Seeded random numbers.
pub(crate) struct Random(SplitMix64);

const MS: u64 = 1_000_000;

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def0))
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// From `least` to `most`, both included.
    pub(crate) fn within(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    fn small(&mut self, least: u32, most: u32) -> u32 {
        u32::try_from(self.within(least.into(), most.into())).expect("between two of 32 bits")
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.within(1, n) == 1
    }

    pub(crate) fn among<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.within(0, of.len() as u64 - 1) as usize]
    }

    /// From a tenth of a millisecond to some ten seconds, each order of magnitude alike.
    fn time(&mut self) -> Span {
        let magnitude = 10_u64.pow(self.small(0, 4));
        Span(self.within(1, 9) * magnitude * MS / 10)
    }

    fn distribution(&mut self) -> Distribution {
        let mean = self.time();
        match self.within(0, 5) {
            0 => Distribution::Lognormal { mean, sigma: self.within(1, 10) as f64 / 10.0 },
            1 => Distribution::Uniform { low: Span(mean.0 / 2), high: mean },
            2 => Distribution::Burst {
                base: Box::new(Distribution::Constant(mean)),
                every: Span(mean.0 * 10),
                lasting: Span(mean.0 * 3),
                factor: self.within(2, 50) as f64,
            },
            _ => Distribution::Constant(mean),
        }
    }

    /// Any fault, early enough to have an effect.
    pub(crate) fn fault(&mut self, batches: u32, about: Span) -> Fault {
        let time = Span(about.0 * self.within(1, 40));
        let kind = match self.within(0, 6) {
            0 => FaultKind::Die,
            1 => FaultKind::DropLink,
            2 => FaultKind::Stall(None),
            3 => FaultKind::Stall(Some(time)),
            4 => FaultKind::Slow(self.among(&[0.5, 2.0, 4.0, 100.0])),
            5 => FaultKind::Lie,
            _ => FaultKind::Corrupt,
        };
        let batch = When::Batch(self.within(1, u64::from(batches / 2 + 1)));
        let by_time = kind != FaultKind::Corrupt && self.one_in(2);
        let at = Span(about.0 * self.within(0, u64::from(batches)));
        Fault { kind, when: if by_time { When::Time(at) } else { batch } }
    }

    fn device(&mut self, batches: u32) -> Device {
        let preparation = self.distribution();
        let about = Span(preparation.mean_ns() as u64);
        let mut device = Device::new(preparation);
        device.count = if self.one_in(3) { self.small(1, 3) } else { 1 };
        device.spool_slots = self.one_in(2).then(|| self.small(1, 12));
        device.ahead = self.small(1, 5);
        device.latency = if self.one_in(3) { Span(self.within(1, MS)) } else { Span(0) };
        match self.within(0, 5) {
            0 => device.drive_bandwidth = Some(Bandwidth(100_000_000)),
            1 => device.read_bandwidth = Some(Bandwidth(50_000_000)),
            2 => device.write_bandwidth = Some(Bandwidth(50_000_000)),
            _ => {}
        }
        if self.one_in(2) {
            let count = self.within(1, 2);
            device.faults = (0..count).map(|_| self.fault(batches, about)).collect();
        }
        device
    }

    fn strategy(&mut self, scenario: &mut Scenario) {
        scenario.strategy = self.among(&strategies());
        let split = match self.within(0, 2) {
            0 => Split::EqualFinish,
            1 => Split::Optimal,
            _ => Split::Fixed(self.small(0, scenario.batches)),
        };
        let tail = self.among(&[Tail::Ascending, Tail::Descending]);
        scenario.options.set(Mte { split, tail });
        scenario.options.set(Windowed { window: self.small(2, 20) });
        let order = self.among(&[Order::Any, Order::Replayable, Order::Baseline]);
        scenario.options.set(Auto { goal: Goal::Throughput, order });
    }
}

/// Every strategy. New ones are appended, so that a seed always gives the same scenario.
fn strategies() -> Vec<StrategyName> {
    use StrategyName::{Auto, DeviceOnly, HostOnly, Mte, MteFeedback, Windowed, Wrr, WrrFrozen};
    let mut all = vec![HostOnly, DeviceOnly, Mte, Wrr, WrrFrozen, MteFeedback, Windowed, Auto];
    let later: Vec<_> = StrategyName::ALL.into_iter().filter(|it| !all.contains(it)).collect();
    all.extend(later);
    all
}

/// The scenario of a seed.
pub(crate) fn scenario(seed: u64) -> Scenario {
    let mut random = Random::new(seed);
    let batches = random.small(1, 60);
    let mut scenario = Scenario::new(batches, random.distribution(), random.distribution());
    scenario.epochs = if random.one_in(4) { 2 } else { 1 };
    scenario.host.workers = random.among(&[0, 0, 1, 2, 4]);
    scenario.host.prefetch = random.small(1, 3);
    scenario.host.cores = random.one_in(4).then(|| random.small(1, 4));
    scenario.host.copy = if random.one_in(3) { random.time() } else { Span(0) };
    scenario.accelerator.direct_read = if random.one_in(3) { random.time() } else { Span(0) };
    scenario.accelerator.fetch_ahead = random.one_in(2).then(|| random.small(1, 5));
    let tables = random.within(1, 2);
    scenario.devices = (0..tables).map(|_| random.device(batches)).collect();
    random.strategy(&mut scenario);
    scenario.ranks.count = random.among(&[1, 1, 1, 2, 3, 4]);
    scenario.ranks.collective = !random.one_in(3);
    scenario.ranks.cost = if random.one_in(3) { Span(MS) } else { Span(0) };
    // Slow enough for everything here.
    scenario.ranks.timeout = Span(1_000_000_000 * MS);
    scenario.holders = random.among(&[Holders::Shared, Holders::Interleaved]);
    scenario.serve = random.among(&[Serve::AllRanks, Serve::OwnRanks]);
    if scenario.device_count() > batches as usize {
        scenario.holders = Holders::Shared;
    }
    if random.one_in(3) {
        scenario.storage.read_bytes = Bytes(1_000_000);
        scenario.storage.batch_bytes = Bytes(2_000_000);
        scenario.storage.host_read_bandwidth = Some(Bandwidth(200_000_000));
        scenario.storage.spool_read_bandwidth = Some(Bandwidth(200_000_000));
        scenario.storage.overlap = random.one_in(2);
    }
    scenario.profile.known = !random.one_in(3);
    scenario.profile.device_factor = random.among(&[1.0, 1.0, 0.25, 0.5, 2.0, 4.0]);
    scenario.stall_timeout = Span(1_000 * MS + random.time().0 * 10);
    scenario.stalls_max = random.small(1, 4);
    match random.within(0, 5) {
        0 | 1 => scenario.run_ahead = true,
        2 => scenario.reuse = true,
        3 if scenario.strategy != StrategyName::Auto => {
            scenario.choice = ChoiceName::Saving;
            scenario.storage.size_sigma = 0.5;
            scenario.host.by_size = 0.9;
        }
        _ => {}
    }
    scenario
}

/// The scenario of a seed with several hosts, agents with cores, links, stores, a cache and
/// failures.
pub(crate) fn many_hosts(seed: u64) -> Scenario {
    let mut scenario = scenario(seed);
    let mut random = Random::new(seed ^ 0x0005_7057);
    let bandwidth = |random: &mut Random| {
        random.one_in(2).then(|| Bandwidth(random.among(&[20_000_000, 200_000_000, 2_000_000_000])))
    };
    scenario.hosts.count = random.small(1, 4);
    scenario.hosts.together = random.one_in(2);
    scenario.hosts.link_bandwidth = bandwidth(&mut random);
    let step_ns = 1 + scenario.first_step_ns() as u64;
    if random.one_in(4) {
        scenario.hosts.time_to_failure = Some(Span(step_ns * 80));
        scenario.hosts.time_to_restart = Span(step_ns);
    }
    for device in &mut scenario.devices {
        device.cores = random.small(1, 4);
        device.link_bandwidth = bandwidth(&mut random);
        if random.one_in(4) {
            device.time_to_failure = Some(Span(1 + device.preparation.mean_ns() as u64 * 10));
            device.time_to_restart = random.time();
        }
    }
    scenario.network.core_bandwidth = bandwidth(&mut random);
    scenario.storage.read_bytes = Bytes(1_000_000);
    scenario.storage.batch_bytes = Bytes(2_000_000);
    if random.one_in(2) {
        scenario.storage.host_read_bandwidth = None;
        scenario.stores = Some(Stores {
            count: random.small(1, 3),
            bandwidth: bandwidth(&mut random),
            latency: random.time(),
            requests: random.small(1, 3),
            requests_per_second: random.one_in(2).then(|| random.small(5, 50)),
            ..Stores::default()
        });
        let rate = random.among(&[0.0, 0.3, 1.0]);
        scenario.cache = random.one_in(2).then(|| Cache {
            hit_rate: Some(rate),
            bandwidth: bandwidth(&mut random),
            ..Cache::default()
        });
    }
    scenario
}

/// A scenario for `auto`: a host and accelerator with little variation, and devices with any
/// behaviour. One batch is less than one per cent of the epoch.
pub(crate) fn any_devices(seed: u64) -> Scenario {
    let mut random = Random::new(seed ^ 0xd0d0_d0d0);
    let (preparation, step) = (random.within(20, 1_000), random.within(5, 600));
    let varied = |random: &mut Random, ms: u64| {
        let mean = Span(ms * MS);
        match random.within(0, 2) {
            0 => Distribution::Lognormal { mean, sigma: 0.3 },
            _ => Distribution::Constant(mean),
        }
    };
    let (preparation_law, step_law) = (varied(&mut random, preparation), varied(&mut random, step));
    let batches = random.small(1_000, 2_000);
    let mut scenario = Scenario::new(batches, preparation_law, step_law);
    scenario.host.workers = random.among(&[0, 0, 1, 2, 8]);
    scenario.accelerator.direct_read = Span(random.among(&[0, 0, 0, step / 4, preparation]) * MS);
    let (t_c_ns, _) = scenario.step_times_ns();
    let devices = random.among(&[1, 1, 1, 2, 3]);
    scenario.devices = (0..devices).map(|_| any_device(&mut random, t_c_ns, batches)).collect();
    scenario.strategy = StrategyName::Auto;
    let order = random.among(&[Order::Any, Order::Replayable, Order::Baseline]);
    scenario.options.set(Auto { goal: Goal::Throughput, order });
    scenario.epochs = random.among(&[1, 1, 2]);
    scenario.ranks.count = random.among(&[1, 1, 1, 1, 2, 4]);
    scenario.ranks.timeout = Span(1_000_000_000 * MS);
    scenario.holders = random.among(&[Holders::Shared, Holders::Interleaved]);
    scenario.serve = random.among(&[Serve::AllRanks, Serve::OwnRanks]);
    scenario.profile.known = !random.one_in(3);
    scenario.profile.device_factor = random.among(&[1.0, 1.0, 0.25, 0.5, 2.0, 4.0]);
    scenario
}

/// From much faster than the host to a hundred times slower, and with faults.
fn any_device(random: &mut Random, t_c_ns: f64, batches: u32) -> Device {
    let factor = random.among(&[0.3, 1.0, 1.5, 2.0, 4.0, 10.0, 100.0]);
    let mean = Span((t_c_ns * factor) as u64);
    let preparation = match random.within(0, 3) {
        0 => Distribution::Lognormal { mean, sigma: random.among(&[0.3, 1.0, 2.0]) },
        1 => Distribution::Burst {
            base: Box::new(Distribution::Constant(mean)),
            every: Span(mean.0 * random.within(3, 100)),
            lasting: Span(mean.0 * random.within(1, 3)),
            factor: random.within(2, 100) as f64,
        },
        _ => Distribution::Constant(mean),
    };
    let mut device = Device::new(preparation);
    device.spool_slots = random.one_in(2).then(|| random.small(1, 64));
    device.ahead = random.small(1, 8);
    if random.one_in(2) {
        let times = (f64::from(batches) / factor) as u32;
        let count = random.within(1, 2);
        device.faults = (0..count).map(|_| random.fault(times.max(4), mean)).collect();
    }
    device
}
