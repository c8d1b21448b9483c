//! How many agents a training over many hosts needs, what limits it (hosts, agents, links), and how
//! its time compares with that of the hosts alone.
//!
//! Each host has accelerators that take a batch every [`Machine::step_ns`], workers that prepare
//! fewer, and agents that prepare the rest near the data and send it.

use meetpoint_scheduler::StrategyName;

use crate::scenario::{Bandwidth, Bytes, Device, Distribution, Scenario, Span, Stores};
use crate::{Error, Recording, Resource, ResourceUse, run_keeping};

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
};

/// Element type of prepared batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elements {
    /// Bytes.
    Uint8,
    /// Single precision.
    Float32,
}

impl Elements {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Uint8, Self::Float32];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uint8 => "uint8",
            Self::Float32 => "float32",
        }
    }

    /// Bytes of a batch: 256 pictures of 224 × 224 × 3.
    pub fn batch_bytes(self) -> u64 {
        let element_bytes = match self {
            Self::Uint8 => 1,
            Self::Float32 => 4,
        };
        element_bytes * 224 * 224 * 3 * u64::from(MACHINE.samples)
    }
}

/// Number of agents for each host, as the fraction `of` / `per`. Each host uses `of` agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentsPerHost {
    /// The numerator, at most [`AGENTS_EACH_MAX`].
    pub of: u32,
    /// The denominator, at least 1.
    pub per: u32,
}

/// The largest number of agents that each host uses.
pub const AGENTS_EACH_MAX: u32 = 12;

/// The highest number of hosts.
pub const HOSTS_MAX: u32 = 4_096;

/// The smallest number of batches of each host, whose middle half is measured.
pub const BATCHES_MIN: u32 = 16;

/// What is simulated: every combination of the lists. [`Selection::default`] is the table of
/// results in `docs/sizing.md`.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// Element types of prepared batches.
    pub elements: Vec<Elements>,
    /// Links of hosts and agents, in Mbit/s.
    pub links_mbit: Vec<u32>,
    /// Numbers of hosts, each at most [`HOSTS_MAX`].
    pub hosts: Vec<u32>,
    /// Agents for each host.
    pub agents: Vec<AgentsPerHost>,
    /// Batches of each host, at least [`BATCHES_MIN`].
    pub batches: u32,
    /// Number of seeds with which each row is simulated, at least 1: 0, 1, …
    pub seeds: u32,
}

impl Default for Selection {
    fn default() -> Self {
        let agents = [(0, 1), (1, 4), (1, 2), (3, 4), (1, 1), (5, 4), (3, 2)];
        Self {
            elements: Elements::ALL.to_vec(),
            links_mbit: vec![10_000, 25_000, 100_000],
            hosts: vec![1, 8, 64, 250, 1_000],
            agents: agents.map(|(of, per)| AgentsPerHost { of, per }).to_vec(),
            batches: 400,
            seeds: 1,
        }
    }
}

/// Accelerators that work for this share of the time are the limit, whatever else is busy.
pub const ACCELERATORS_LIMIT: f64 = 0.95;

/// The median of several seeds (the lower one of an even number), and the largest value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The largest.
    pub largest: f64,
}

/// One simulated machine. With several seeds, all figures but [`Ratios`] are those of the epoch
/// with the median ratio to the host alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostsRow {
    /// Element type of the prepared batches.
    pub elements: Elements,
    /// Number of hosts.
    pub hosts: u32,
    /// Number of agents, all together.
    pub agents: u32,
    /// Links of hosts and agents, in Mbit/s.
    pub link_mbit: u32,
    /// What was simulated.
    pub figures: Figures,
    /// The time relative to that of the host alone; `None` without agents.
    pub ratios: Option<Ratios>,
}

/// The figures of an epoch. All but `ends_seconds` are those of the middle half of the steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
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

/// The time of `auto`, divided by that of the host alone with the same seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratios {
    /// The whole epoch.
    pub epoch: Spread,
    /// The middle half of the steps.
    pub middle: Spread,
}

/// The scenario of a row. Each host uses `each` agents, which it shares with other hosts.
pub fn scenario(
    elements: Elements,
    hosts: u32,
    (agents, each): (u32, u32),
    link_mbit: u32,
    batches: u32,
) -> Scenario {
    let machine = MACHINE;
    let mean = Span(machine.core_ns);
    let cores = Distribution::Lognormal { mean, sigma: machine.sigma };
    let step = Distribution::constant_ns(machine.step_ns);
    let mut scenario = Scenario::new(batches, cores.clone(), step);
    let link = Some(Bandwidth(u64::from(link_mbit) * 125_000));
    scenario.strategy = if agents > 0 { StrategyName::Auto } else { StrategyName::HostOnly };
    scenario.host.workers = machine.workers;
    scenario.hosts.count = hosts;
    scenario.hosts.link_bandwidth = link;
    scenario.storage.read_bytes = Bytes(machine.read_bytes);
    scenario.storage.batch_bytes = Bytes(elements.batch_bytes());
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

/// A simulated epoch.
struct Simulated {
    figures: Figures,
    epoch_ns: f64,
    /// Mean time of a step of the middle half.
    middle_ns: f64,
}

fn simulate(scenario: &Scenario, seed: u64) -> Result<Simulated, Error> {
    let keep = Recording { middle_half: true, ..Recording::default() };
    let outcome = run_keeping(scenario, seed, keep)?;
    let half = outcome.middle_half.expect("it was recorded");
    let used = |resource| {
        let found = half.uses.iter().find(|it| it.resource == resource);
        found.map_or(0.0, |found| found.mean)
    };
    let enough =
        |it: &&ResourceUse| it.resource == Resource::Accelerators && it.mean >= ACCELERATORS_LIMIT;
    let most_used = || half.uses.iter().max_by(|a, b| a.mean.total_cmp(&b.mean));
    let busiest = half.uses.iter().find(enough).or_else(most_used);
    let middle_ns = half.total_ns as f64 / half.steps as f64;
    let epoch_ns = outcome.total_ns as f64;
    let figures = Figures {
        samples_per_second: f64::from(MACHINE.samples) / middle_ns * 1e9,
        stalled: (1.0 - MACHINE.step_ns as f64 / middle_ns).max(0.0),
        agents_busy: used(Resource::Devices),
        link_busy: used(Resource::HostLinks),
        ends_seconds: (epoch_ns - middle_ns * f64::from(scenario.batches)) / 1e9,
        limit: busiest.filter(|it| it.mean >= 0.9).map(|it| it.resource),
    };
    Ok(Simulated { figures, epoch_ns, middle_ns })
}

fn spread(mut values: Vec<f64>) -> Spread {
    values.sort_by(f64::total_cmp);
    Spread { median: values[(values.len() - 1) / 2], largest: values[values.len() - 1] }
}

/// The figures of the epoch with the median of `of`.
fn median(simulated: &[Simulated], of: impl Fn(usize) -> f64) -> Figures {
    let mut at: Vec<usize> = (0..simulated.len()).collect();
    at.sort_by(|&a, &b| of(a).total_cmp(&of(b)));
    simulated[at[(at.len() - 1) / 2]].figures
}

/// Rows with the same hosts and links, which are compared with the same epochs of the host alone.
struct Group {
    elements: Elements,
    link_mbit: u32,
    hosts: u32,
    /// Numbers of agents, and the number that each host uses.
    agents: Vec<(u32, u32)>,
}

impl Group {
    fn of(selection: &Selection, elements: Elements, link_mbit: u32, hosts: u32) -> Self {
        let mut agents: Vec<(u32, u32)> = Vec::new();
        for &AgentsPerHost { of, per } in &selection.agents {
            let count = (hosts * of).div_ceil(per);
            // One host cannot have a quarter of an agent.
            if agents.iter().all(|&(other, _)| other != count) {
                agents.push((count, of));
            }
        }
        Self { elements, link_mbit, hosts, agents }
    }

    /// Number of simulations for each seed.
    fn simulations(&self) -> usize {
        1 + self.agents.iter().filter(|(count, _)| *count > 0).count()
    }

    fn rows(&self, selection: &Selection, mut step: impl FnMut()) -> Result<Vec<HostsRow>, Error> {
        let mut all = |agents| -> Result<Vec<Simulated>, Error> {
            let &Self { elements, link_mbit, hosts, .. } = self;
            let scenario = scenario(elements, hosts, agents, link_mbit, selection.batches);
            let of = |seed| {
                let simulated = simulate(&scenario, u64::from(seed));
                step();
                simulated
            };
            (0..selection.seeds).map(of).collect()
        };
        let alone = all((0, 1))?;
        let mut rows = Vec::with_capacity(self.agents.len());
        for &(agents, each) in &self.agents {
            let (figures, ratios) = if agents == 0 {
                (median(&alone, |at| alone[at].epoch_ns), None)
            } else {
                let auto = all((agents, each))?;
                let of_epoch = |at: usize| auto[at].epoch_ns / alone[at].epoch_ns;
                let of_middle = |at: usize| auto[at].middle_ns / alone[at].middle_ns;
                let ratios = Ratios {
                    epoch: spread((0..auto.len()).map(of_epoch).collect()),
                    middle: spread((0..auto.len()).map(of_middle).collect()),
                };
                (median(&auto, of_epoch), Some(ratios))
            };
            let &Self { elements, link_mbit, hosts, .. } = self;
            rows.push(HostsRow { elements, hosts, agents, link_mbit, figures, ratios });
        }
        Ok(rows)
    }
}

/// All rows of a selection; `step` is called after each simulated epoch with the number of those
/// done and their total.
///
/// # Errors
///
/// If a scenario cannot be simulated.
pub fn many_hosts(
    selection: &Selection,
    mut step: impl FnMut(usize, usize),
) -> Result<Vec<HostsRow>, Error> {
    let mut groups = Vec::new();
    for &elements in &selection.elements {
        for &link_mbit in &selection.links_mbit {
            let of = |&hosts: &u32| Group::of(selection, elements, link_mbit, hosts);
            groups.extend(selection.hosts.iter().map(of));
        }
    }
    let simulations = groups.iter().map(Group::simulations).sum::<usize>();
    let total = simulations * selection.seeds as usize;
    let (mut rows, mut done) = (Vec::new(), 0);
    for group in groups {
        rows.extend(group.rows(selection, || {
            done += 1;
            step(done, total);
        })?);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples a second of a host: what its cores, its agents and its link can do.
    fn predicted(elements: Elements, agents_each: f64, link_mbit: u32) -> f64 {
        let second = 1e9;
        let host = f64::from(MACHINE.workers) * second / MACHINE.core_ns as f64;
        let agent = f64::from(MACHINE.cores) * second / MACHINE.core_ns as f64;
        let link = f64::from(link_mbit) * 125e3;
        let (read, batch) = (MACHINE.read_bytes as f64, elements.batch_bytes() as f64);
        let agents = (agents_each * agent).min((link - host * read).max(0.0) / batch);
        (host + agents).min(second / MACHINE.step_ns as f64) * f64::from(MACHINE.samples)
    }

    /// One row with 8 hosts.
    fn row(elements: Elements, (of, per): (u32, u32), link_mbit: u32, seeds: u32) -> HostsRow {
        let selection = Selection {
            elements: vec![elements],
            links_mbit: vec![link_mbit],
            hosts: vec![8],
            agents: vec![AgentsPerHost { of, per }],
            seeds,
            ..Selection::default()
        };
        let mut steps = Vec::new();
        let rows = many_hosts(&selection, |done, total| steps.push((done, total))).unwrap();
        let epochs = if of == 0 { 1 } else { 2 } * seeds as usize;
        assert_eq!(steps, (1..=epochs).map(|done| (done, epochs)).collect::<Vec<_>>());
        rows[0]
    }

    #[test]
    fn throughput_is_what_cores_agents_and_links_can_do() {
        for (elements, agents, link) in [
            (Elements::Uint8, (0, 1), 25_000),
            (Elements::Uint8, (1, 2), 25_000),
            (Elements::Uint8, (1, 1), 100_000),
            (Elements::Float32, (1, 1), 10_000),
        ] {
            let row = row(elements, agents, link, 1);
            let each = f64::from(agents.0) / f64::from(agents.1);
            let wanted = predicted(elements, each, link);
            let ratio = row.figures.samples_per_second / wanted;
            assert!((0.93..1.04).contains(&ratio), "{row:?}: {wanted}");
        }
    }

    #[test]
    fn ratios_are_those_of_the_same_seeds_of_the_host_alone() {
        let selection = Selection::default();
        let of = |agents, seed| {
            let scenario = scenario(Elements::Uint8, 8, agents, 25_000, selection.batches);
            simulate(&scenario, seed).unwrap()
        };
        let seeds = [0, 1, 2].map(|seed| (of((8, 1), seed), of((0, 1), seed)));
        let mut epochs = seeds.each_ref().map(|(auto, alone)| auto.epoch_ns / alone.epoch_ns);
        let mut middles = seeds.each_ref().map(|(auto, alone)| auto.middle_ns / alone.middle_ns);
        let row = row(Elements::Uint8, (1, 1), 25_000, 3);
        let by_ratio = |it: &&(Simulated, Simulated)| it.0.epoch_ns / it.1.epoch_ns;
        let shown = seeds.iter().find(|it| by_ratio(it) == row.ratios.unwrap().epoch.median);
        assert_eq!(row.figures, shown.expect("it is the ratio of a seed").0.figures);
        epochs.sort_by(f64::total_cmp);
        middles.sort_by(f64::total_cmp);
        let spread_of = |sorted: [f64; 3]| Spread { median: sorted[1], largest: sorted[2] };
        let wanted = Ratios { epoch: spread_of(epochs), middle: spread_of(middles) };
        assert_eq!(row.ratios, Some(wanted));
        assert!(epochs[2] < 0.75, "{epochs:?}");
    }
}
