//! How many agents a training over many hosts needs, and what limits it: hosts, agents, links.
//!
//! Each host has accelerators that take a batch every [`Machine::step_ns`], workers that prepare
//! fewer, and agents that prepare the rest near the data and send it.

use meetpoint_scheduler::StrategyName;

use crate::scenario::{Bandwidth, Bytes, Device, Distribution, Scenario, Span, Stores};
use crate::{Error, Recording, Resource, run_keeping};

/// What is the same in every row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Samples of a batch of a host.
    pub samples: u32,
    /// Bytes read for a batch.
    pub read_bytes: u64,
    /// Core time of a batch, at hosts and agents.
    pub core_ns: u64,
    /// Time of a step of the accelerators of a host.
    pub step_ns: u64,
    /// Workers of a host.
    pub workers: u32,
    /// Cores of an agent.
    pub cores: u32,
    /// σ of the lognormal core times.
    pub sigma: f64,
    /// Batches of each host.
    pub batches: u32,
}

/// A host whose accelerators take 8,000 samples a second and whose 16 cores prepare half of them;
/// agents with 16 cores. 256 JPEG files of 110 KB, decoded and cropped in 4 ms each.
pub const MACHINE: Machine = Machine {
    samples: 256,
    read_bytes: 28_160_000,
    core_ns: 1_024_000_000,
    step_ns: 32_000_000,
    workers: 16,
    cores: 16,
    sigma: 0.2,
    batches: 400,
};

/// Prepared batches: 256 pictures of 224 × 224 × 3 in uint8 and in float32.
pub const BATCHES: [(&str, u64); 2] = [("uint8", 38_535_168), ("float32", 154_140_672)];

/// Numbers of hosts, unless others are given.
pub const HOSTS: [u32; 5] = [1, 8, 64, 250, 1_000];

/// The highest number of hosts.
pub const HOSTS_MAX: u32 = 4_096;

/// Agents for each host, as a fraction.
pub const AGENTS: [(u32, u32); 7] = [(0, 1), (1, 4), (1, 2), (3, 4), (1, 1), (5, 4), (3, 2)];

/// Links of hosts and agents, in Gbit/s.
pub const LINKS: [u32; 3] = [10, 25, 100];

/// Accelerators that work for this share of the time are the limit, whatever else is busy.
pub const ACCELERATORS_LIMIT: f64 = 0.95;

/// One simulated machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostsRow {
    /// Element type of the prepared batches.
    pub elements: &'static str,
    /// Number of hosts.
    pub hosts: u32,
    /// Number of agents, all together.
    pub agents: u32,
    /// Links of hosts and agents, in Gbit/s.
    pub link_gbit: u32,
    /// Samples a second of each host.
    pub samples_per_second: f64,
    /// Share of the time in which accelerators wait.
    pub stalled: f64,
    /// Share of the time in which the cores of agents prepare.
    pub agents_busy: f64,
    /// Share of the bandwidth of the hosts' links that is used.
    pub link_busy: f64,
    /// Seconds that the epoch takes longer than at this throughput, because of its start and end.
    pub ends_seconds: f64,
    /// What limits the throughput; `None`: no resource is in use for nine tenths of the time.
    pub limit: Option<Resource>,
}

/// The scenario of a row. Each host uses `each` agents, which it shares with other hosts.
pub fn scenario(
    batch_bytes: u64,
    hosts: u32,
    (agents, each): (u32, u32),
    link_gbit: u32,
) -> Scenario {
    let machine = MACHINE;
    let mean = Span(machine.core_ns);
    let cores = Distribution::Lognormal { mean, sigma: machine.sigma };
    let step = Distribution::constant_ns(machine.step_ns);
    let mut scenario = Scenario::new(machine.batches, cores.clone(), step);
    let link = Some(Bandwidth(u64::from(link_gbit) * 125_000_000));
    scenario.strategy = if agents > 0 { StrategyName::Auto } else { StrategyName::HostOnly };
    scenario.host.workers = machine.workers;
    scenario.hosts.count = hosts;
    scenario.hosts.link_bandwidth = link;
    scenario.storage.read_bytes = Bytes(machine.read_bytes);
    scenario.storage.batch_bytes = Bytes(batch_bytes);
    scenario.storage.overlap = true;
    // Hosts read samples over their links; agents have them on drives.
    scenario.stores = Some(Stores::default());
    if agents > 0 {
        scenario.devices_per_rank = Some(each.min(agents));
        scenario.devices = vec![Device {
            count: agents,
            cores: machine.cores,
            ahead: 2 * machine.cores,
            spool_slots: Some(64 * hosts.div_ceil(agents)),
            link_bandwidth: link,
            read_bandwidth: Some(Bandwidth(7_000_000_000)),
            ..Device::new(cores)
        }];
    }
    scenario
}

/// Simulates one row. All figures but `ends_seconds` are those of the middle half
/// of the steps.
///
/// # Errors
///
/// If the scenario cannot be simulated.
pub fn row(
    (elements, batch_bytes): (&'static str, u64),
    hosts: u32,
    (agents, each): (u32, u32),
    link_gbit: u32,
) -> Result<HostsRow, Error> {
    let scenario = scenario(batch_bytes, hosts, (agents, each), link_gbit);
    let keep = Recording { middle_half: true, ..Recording::default() };
    let outcome = run_keeping(&scenario, 0, keep)?;
    let half = outcome.middle_half.expect("it was recorded");
    let seconds = half.total_ns as f64 / 1e9;
    let used = |resource| {
        let found = half.uses.iter().find(|it| it.resource == resource);
        found.map_or(0.0, |found| found.mean)
    };
    let enough = |it: &&crate::ResourceUse| {
        it.resource == Resource::Accelerators && it.mean >= ACCELERATORS_LIMIT
    };
    let most_used = || half.uses.iter().max_by(|a, b| a.mean.total_cmp(&b.mean));
    let busiest = half.uses.iter().find(enough).or_else(most_used);
    let most = MACHINE.step_ns as f64 * half.steps as f64 / half.total_ns as f64;
    Ok(HostsRow {
        elements,
        hosts,
        agents,
        link_gbit,
        samples_per_second: half.steps as f64 * f64::from(MACHINE.samples) / seconds,
        stalled: (1.0 - most).max(0.0),
        agents_busy: used(Resource::Devices),
        link_busy: used(Resource::HostLinks),
        ends_seconds: outcome.total_ns as f64 / 1e9
            - seconds / half.steps as f64 * f64::from(MACHINE.batches),
        limit: busiest.filter(|it| it.mean >= 0.9).map(|it| it.resource),
    })
}

/// All rows for these numbers of hosts; `step` is called after each with the rows done and their
/// total.
///
/// # Errors
///
/// As [`row`].
pub fn many_hosts(
    hosts_of: &[u32],
    mut step: impl FnMut(usize, usize),
) -> Result<Vec<HostsRow>, Error> {
    let mut all = Vec::new();
    for batch in BATCHES {
        for link in LINKS {
            for &hosts in hosts_of {
                let mut before = None;
                for (of, per) in AGENTS {
                    let agents = (hosts * of).div_ceil(per);
                    // One host cannot have a quarter of an agent.
                    if before.replace(agents) != Some(agents) {
                        all.push((batch, hosts, (agents, of), link));
                    }
                }
            }
        }
    }
    let total = all.len();
    let mut rows = Vec::with_capacity(total);
    for (done, (batch, hosts, agents, link)) in all.into_iter().enumerate() {
        rows.push(row(batch, hosts, agents, link)?);
        step(done + 1, total);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples a second of a host: what its cores, its agents and its link can do.
    fn predicted(batch_bytes: u64, agents_each: f64, link_gbit: u32) -> f64 {
        let second = 1e9;
        let host = f64::from(MACHINE.workers) * second / MACHINE.core_ns as f64;
        let agent = f64::from(MACHINE.cores) * second / MACHINE.core_ns as f64;
        let link = f64::from(link_gbit) * 125e6;
        let (read, batch) = (MACHINE.read_bytes as f64, batch_bytes as f64);
        let agents = (agents_each * agent).min((link - host * read).max(0.0) / batch);
        (host + agents).min(second / MACHINE.step_ns as f64) * f64::from(MACHINE.samples)
    }

    #[test]
    fn throughput_is_what_cores_agents_and_links_can_do() {
        for (batch, agents, link) in
            [(BATCHES[0], 0, 25), (BATCHES[0], 4, 25), (BATCHES[0], 8, 100), (BATCHES[1], 8, 10)]
        {
            let row = row(batch, 8, (agents, 1), link).unwrap();
            let wanted = predicted(batch.1, f64::from(agents) / 8.0, link);
            let ratio = row.samples_per_second / wanted;
            assert!((0.93..1.04).contains(&ratio), "{row:?}: {wanted}");
        }
    }
}
