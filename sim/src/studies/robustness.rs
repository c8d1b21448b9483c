//! How each strategy performs with a wrong profile, a device that slows down, jitter, and several
//! ranks with and without collective decisions.

use meetpoint_scheduler::{AnyStrategy, StrategyName, Value};

use crate::scenario::{Device, Distribution, Fault, FaultKind, Scenario, Serve, Span, When};
use crate::{Error, run};

/// Batches of the base machine: t_g/t_c = 0.375 and t_s/t_c = 2 without workers, as the paper's
/// headline implies if it is a reduction of time.
const BATCHES: u32 = 1_000;
const T_C_NS: u64 = 800_000_000;
const T_G_NS: u64 = 300_000_000;
const T_S_NS: u64 = 1_600_000_000;

/// σ of jitter.
const SIGMA: f64 = 0.3;

/// Number of seeds over which random conditions are averaged.
const SEEDS: u64 = 5;

/// How the machine differs from the base machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Condition {
    /// Not at all: constants that equal the profile.
    AsProfiled,
    /// True t_s is a multiple of the t_s in the profile.
    MisProfiled(f64),
    /// The device halves its speed when half of the undisturbed epoch is over.
    HalvesMidEpoch,
    /// Host, device and step vary lognormally, σ = 0.3.
    Jitter,
    /// Several ranks, each with its own device, with jitter.
    Ranks {
        /// G, the number of ranks.
        count: u32,
        /// Whether they decide together.
        collective: bool,
    },
}

/// A strategy under a condition; means over seeds if the condition is random.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The condition.
    pub condition: Condition,
    /// T in seconds.
    pub total_s: f64,
    /// T of the host alone under the same condition and with the same random times, in seconds.
    pub host_only_s: f64,
    /// Share of the batches that devices prepared.
    pub device_share: f64,
    /// Time that accelerators waited, without preparation by the consumer; mean of the ranks, in
    /// seconds.
    pub wait_s: f64,
    /// Share of the steps in which ranks took batches from different kinds of source; `None` for
    /// one rank.
    pub mixed_steps: Option<f64>,
}

impl Row {
    /// T / T0: below 1 is faster than the host alone.
    pub fn against_host_only(&self) -> f64 {
        self.total_s / self.host_only_s
    }
}

/// A strategy under every condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The strategy, with its option if it has one.
    pub strategy: String,
    /// A row for each condition that the scheduler runs the strategy under.
    pub rows: Vec<Row>,
    /// Why the scheduler refused the strategy under some conditions; these have no row.
    pub refused: Option<String>,
}

impl Condition {
    /// Description for a table.
    pub fn describe(&self) -> String {
        match self {
            Self::AsProfiled => "constants, profile right".to_owned(),
            Self::MisProfiled(factor) => format!("true t_s {factor} × the profile"),
            Self::HalvesMidEpoch => "device halves its speed mid-epoch".to_owned(),
            Self::Jitter => format!("lognormal jitter {SIGMA}"),
            Self::Ranks { count, collective: true } => format!("{count} ranks, collective"),
            Self::Ranks { count, collective: false } => format!("{count} ranks, each alone"),
        }
    }

    fn has_chance(&self) -> bool {
        matches!(self, Self::Jitter | Self::Ranks { .. })
    }

    fn apply(&self, scenario: &mut Scenario) {
        match *self {
            Self::AsProfiled => {}
            Self::MisProfiled(factor) => {
                let true_ns = (T_S_NS as f64 * factor).round() as u64;
                scenario.devices[0].preparation = Distribution::constant_ns(true_ns);
                scenario.profile.device_factor = 1.0 / factor;
            }
            Self::HalvesMidEpoch => {
                // T of wrr, undisturbed: N·t_c·t_s/(t_s+t_c−t_g).
                let per_batch = T_C_NS as f64 * T_S_NS as f64 / (T_S_NS + T_C_NS - T_G_NS) as f64;
                let half = (f64::from(BATCHES) * per_batch / 2.0).round() as u64;
                let slower = Fault { kind: FaultKind::Slow(2.0), when: When::Time(Span(half)) };
                scenario.devices[0].faults = vec![slower];
            }
            Self::Jitter => jitter(scenario),
            Self::Ranks { count, collective } => {
                jitter(scenario);
                scenario.ranks.count = count;
                scenario.ranks.collective = collective;
                scenario.devices[0].count = count;
                scenario.serve = Serve::OwnRanks;
            }
        }
    }
}

/// Every condition, in the order of the tables.
pub fn conditions() -> Vec<Condition> {
    let mut all = vec![Condition::AsProfiled];
    all.extend([0.5, 2.0, 4.0].map(Condition::MisProfiled));
    all.extend([Condition::HalvesMidEpoch, Condition::Jitter]);
    for count in [2, 4, 8] {
        all.extend([true, false].map(|collective| Condition::Ranks { count, collective }));
    }
    all
}

/// A table for each strategy; `step` is called after each row with the rows done and their total.
///
/// # Errors
///
/// If a scenario cannot be simulated, which does not occur with these.
pub fn robustness(mut step: impl FnMut(usize, usize)) -> Result<Vec<Table>, Error> {
    let conditions = conditions();
    let strategies = strategies();
    let all = strategies.len() * conditions.len();
    let host_only = StrategyName::HostOnly.with_defaults();
    let alone: Vec<Measured> = conditions
        .iter()
        .map(|condition| measured(*condition, host_only))
        .collect::<Result<_, _>>()?;
    let mut tables = Vec::new();
    for (at, (name, strategy)) in strategies.into_iter().enumerate() {
        let mut table = Table { strategy: name, rows: Vec::new(), refused: None };
        for (row, condition) in conditions.iter().enumerate() {
            match measured(*condition, strategy) {
                Ok(found) => table.rows.push(found.row(*condition, alone[row].total_s)),
                Err(Error::Scheduler(error)) => {
                    table.refused.get_or_insert(error.to_string());
                }
                Err(error) => return Err(error),
            }
            step(at * conditions.len() + row + 1, all);
        }
        tables.push(table);
    }
    Ok(tables)
}

/// Every strategy that uses devices, with the name of its table; one for each word of `split`.
fn strategies() -> Vec<(String, AnyStrategy)> {
    let with_devices = StrategyName::ALL.into_iter().filter(|name| name.uses_devices());
    let each = with_devices.flat_map(|name| {
        let strategy = name.with_defaults();
        let options = strategy.options().into_iter();
        let splits = options.filter(|(spec, _)| spec.name == "split");
        let words: Vec<&str> = splits.flat_map(|(spec, _)| spec.takes.words).copied().collect();
        if words.is_empty() {
            return vec![(name.to_string(), strategy)];
        }
        let with = |word: &'static str| {
            let mut strategy = strategy;
            strategy.set("split", Value::Word(word)).expect("the option takes its own words");
            (format!("{name} ({word})"), strategy)
        };
        words.into_iter().map(with).collect()
    });
    each.collect()
}

fn machine() -> Scenario {
    let constant = Distribution::constant_ns;
    let mut scenario = Scenario::new(BATCHES, constant(T_C_NS - T_G_NS), constant(T_G_NS));
    scenario.devices = vec![Device::new(constant(T_S_NS))];
    scenario
}

fn jitter(scenario: &mut Scenario) {
    let varied = |ns: u64| Distribution::Lognormal { mean: Span(ns), sigma: SIGMA };
    scenario.host.preparation = varied(T_C_NS - T_G_NS);
    scenario.accelerator.step = varied(T_G_NS);
    scenario.devices[0].preparation = varied(T_S_NS);
}

/// Means over seeds.
#[derive(Debug, Clone, Copy, Default)]
struct Measured {
    total_s: f64,
    device_share: f64,
    wait_s: f64,
    mixed_steps: f64,
    ranks: u32,
}

impl Measured {
    fn row(self, condition: Condition, host_only_s: f64) -> Row {
        Row {
            condition,
            total_s: self.total_s,
            host_only_s,
            device_share: self.device_share,
            wait_s: self.wait_s,
            mixed_steps: (self.ranks > 1).then_some(self.mixed_steps),
        }
    }
}

fn measured(condition: Condition, strategy: AnyStrategy) -> Result<Measured, Error> {
    let mut scenario = machine();
    condition.apply(&mut scenario);
    scenario.choose(strategy);
    let seeds = if condition.has_chance() { SEEDS } else { 1 };
    let ranks = scenario.ranks.count;
    let mut mean = Measured { ranks, ..Measured::default() };
    for seed in 0..seeds {
        let keep = crate::Recording { sequence: ranks > 1, ..crate::Recording::default() };
        let outcome = match ranks {
            1 => run(&scenario, seed)?,
            _ => crate::run_keeping(&scenario, seed, keep)?,
        };
        let share = 1.0 / seeds as f64;
        mean.total_s += outcome.total_ns as f64 / 1e9 * share;
        mean.device_share += outcome.device_share() * share;
        let waited = outcome.sum(|rank| rank.wait_ns) as f64 / 1e9;
        mean.wait_s += waited / f64::from(ranks) * share;
        mean.mixed_steps += mixed_steps(&outcome.epochs[0]) * share;
    }
    Ok(mean)
}

/// Share of the steps in which one rank took a host batch and another a device batch.
fn mixed_steps(epoch: &crate::EpochOutcome) -> f64 {
    use meetpoint_scheduler::Source;
    let sequences: Vec<_> =
        epoch.ranks.iter().filter_map(|rank| rank.sequence.as_deref()).collect();
    let steps = sequences.iter().map(|it| it.len()).min().unwrap_or(0);
    let is_mixed = |step: &usize| {
        let from_host = sequences.iter().filter(|it| it[*step].1 == Source::Host).count();
        from_host != 0 && from_host != sequences.len()
    };
    (0..steps).filter(is_mixed).count() as f64 / steps.max(1) as f64
}
