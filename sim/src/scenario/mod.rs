//! The simulated machine: hosts, devices, storage, accelerators, ranks, what the scheduler knows
//! about them, and faults.
//!
//! A scenario is a TOML text with the same names as job files; it specifies what a job measures.
//! In reading order: this file (the whole), `parts` and `network` (its tables), `strategy` and
//! `options` (the strategy), `distribution`, `fault`, `quantity` (the values), `check`
//! (validation), `sweep` (many scenarios from one).

mod check;
mod distribution;
mod error;
mod fault;
mod network;
mod options;
mod parts;
mod quantity;
mod strategy;
mod sweep;

use meetpoint_scheduler::StrategyOptions;
use serde::{Deserialize, Deserializer};

pub use distribution::{Distribution, Values};
pub use error::{ScenarioError, SweptParameters};
pub use fault::{Fault, FaultKind, NotAFault, RankFault, RankFaultKind, When};
pub use meetpoint_scheduler::StrategyName;
pub use network::{Cache, Hosts, Network, Stores};
pub use parts::{Accelerator, Device, Holders, Host, Knowledge, Power, Ranks, Serve, Storage};
pub use quantity::{Bandwidth, Bytes, NotAQuantity, Span};
pub use strategy::ChoiceName;
pub use sweep::{Point, Sweep, points};

/// The input of a simulation, except its seed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Scenario {
    /// Description for readers; ignored.
    #[serde(default)]
    pub description: Option<String>,
    /// N: batches of an epoch at each rank.
    pub batches: u32,
    /// Epochs to run, one after the other.
    #[serde(default = "one")]
    pub epochs: u32,
    /// The strategy.
    #[serde(default = "strategy::unnamed")]
    pub strategy: StrategyName,
    /// The options of every strategy, each in a table of its name.
    #[serde(skip)]
    pub options: StrategyOptions,
    /// A device that has work but reports no progress for this time loses the work to the host.
    #[serde(default = "stall_timeout")]
    pub stall_timeout: Span,
    /// After this number of stalls, a device gets no more work in the epoch.
    #[serde(default = "three")]
    pub stalls_max: u32,
    /// Batches of each end that are measured if no times are known.
    #[serde(default = "three")]
    pub profile_batches: u32,
    /// Whether an epoch knows the times that the previous one measured.
    #[serde(default = "yes")]
    pub learn: bool,
    /// Whether a device that has finished its part of an epoch begins the next.
    #[serde(default)]
    pub run_ahead: bool,
    /// Whether batches of devices are kept for other epochs: up to half of the spool, in addition
    /// to the batches granted ahead. Every epoch then has the same batches.
    #[serde(default)]
    pub reuse: bool,
    /// Which batches devices prepare.
    #[serde(default)]
    pub choice: ChoiceName,
    /// A record that the epochs replay, such as `mte:812`.
    #[serde(default)]
    pub replay: Option<String>,
    /// Power figures for `auto`, for goals that include energy.
    #[serde(default)]
    pub power: Option<Power>,
    /// What the scheduler knows about the machine before the first epoch.
    #[serde(default)]
    pub profile: Knowledge,
    /// The host that prepares.
    pub host: Host,
    /// The devices; empty: the host alone.
    #[serde(default)]
    pub devices: Vec<Device>,
    /// Which device may prepare which batch.
    #[serde(default)]
    pub holders: Holders,
    /// Which ranks a device works for.
    #[serde(default)]
    pub serve: Serve,
    /// Bytes that are read and written, and bandwidths.
    #[serde(default)]
    pub storage: Storage,
    /// The accelerators, one per rank.
    pub accelerator: Accelerator,
    /// How many accelerators there are, and how they agree.
    #[serde(default)]
    pub ranks: Ranks,
    /// How many hosts there are, each with its ranks.
    #[serde(default)]
    pub hosts: Hosts,
    /// What hosts, devices and stores share.
    #[serde(default)]
    pub network: Network,
    /// The stores from which hosts, and devices without drives, read samples; absent: they read as
    /// `storage` says.
    #[serde(default)]
    pub stores: Option<Stores>,
    /// The cache of each host; absent: there is none.
    #[serde(default)]
    pub cache: Option<Cache>,
    /// Instead of `serve`: number of devices of each rank. Rank r uses this many, from r times this
    /// number on, modulo the number of devices.
    #[serde(default)]
    pub devices_per_rank: Option<u32>,
    /// Parameters to vary; see [`points`]. A run of the scenario itself ignores them.
    #[serde(default)]
    pub sweep: Vec<Sweep>,
}

fn one() -> u32 {
    1
}

fn three() -> u32 {
    3
}

fn yes() -> bool {
    true
}

fn stall_timeout() -> Span {
    Span(2_000_000_000)
}

impl Scenario {
    /// The host alone, with one rank and defaults for everything else.
    pub fn new(batches: u32, preparation: Distribution, step: Distribution) -> Self {
        Self {
            description: None,
            batches,
            epochs: one(),
            strategy: StrategyName::HostOnly,
            options: StrategyOptions::default(),
            stall_timeout: stall_timeout(),
            stalls_max: three(),
            profile_batches: three(),
            learn: yes(),
            run_ahead: false,
            reuse: false,
            choice: ChoiceName::default(),
            replay: None,
            power: None,
            profile: Knowledge::default(),
            host: Host::new(preparation),
            devices: Vec::new(),
            holders: Holders::default(),
            serve: Serve::default(),
            storage: Storage::default(),
            accelerator: Accelerator::new(step),
            ranks: Ranks::default(),
            hosts: Hosts::default(),
            network: Network::default(),
            stores: None,
            cache: None,
            devices_per_rank: None,
            sweep: Vec::new(),
        }
    }

    /// Parses a scenario. The caller must then read the trace files that it names
    /// ([`Scenario::fill_traces`]). It is not validated yet; [`crate::run`] calls
    /// [`Scenario::check`].
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        toml::from_str(text).map_err(|error| {
            let found = from_serde(&error);
            match error.span() {
                None => found,
                Some(span) => {
                    let key = key_at(text, span.start).unwrap_or(found.key);
                    let place = Some(place(text, span.start));
                    ScenarioError { place, key, ..found }
                }
            }
        })
    }

    /// The same from a table, which sweeps modify.
    pub fn from_table(table: &toml::Table) -> Result<Self, ScenarioError> {
        <Self as Deserialize>::deserialize(table.clone()).map_err(|error| from_serde(&error))
    }

    /// Reads the fields; `options` reads the tables of strategies.
    fn of_fields<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The derived function; the trait is implemented elsewhere.
        Self::deserialize(deserializer)
    }

    /// Fills in the times of each file that a distribution names, which `read` returns.
    pub fn fill_traces<E>(
        &mut self,
        mut read: impl FnMut(&str) -> Result<Vec<Span>, E>,
    ) -> Result<(), E> {
        let mut unread = Vec::new();
        self.host.preparation.unread(&mut unread);
        for device in &mut self.devices {
            device.preparation.unread(&mut unread);
        }
        self.accelerator.step.unread(&mut unread);
        for values in unread {
            values.values = read(values.file.as_deref().expect("unread ones name a file"))?;
        }
        Ok(())
    }

    /// Number of devices: the sum of the `count` of each table.
    pub fn device_count(&self) -> usize {
        self.devices.iter().map(|device| device.count as usize).sum()
    }

    /// Number of ranks of all hosts.
    pub fn rank_count(&self) -> u32 {
        self.hosts.count.saturating_mul(self.ranks.count)
    }

    /// Number of ranks that step together.
    pub fn ranks_together(&self) -> u32 {
        if self.hosts.together { self.rank_count() } else { self.ranks.count }
    }

    /// Mean time from the start of a host until its first step ends, without transfers, in
    /// nanoseconds: a batch is prepared, then the step runs, on a batch of the source for which it
    /// takes longer.
    pub fn first_step_ns(&self) -> f64 {
        let extra = self.host.copy.max(self.accelerator.direct_read);
        self.host.preparation.mean_ns() + self.accelerator.step.mean_ns() + extra.0 as f64
    }

    /// Share of the bytes of an epoch that a host reads from its cache, from 0 to 1.
    pub fn hit_rate(&self, epoch: u32) -> f64 {
        let Some(cache) = &self.cache else { return 0.0 };
        if epoch == 0 {
            return cache.first_hit_rate;
        }
        let all = u64::from(self.batches) * u64::from(self.rank_count());
        let all = all as f64 * self.storage.read_bytes.0 as f64;
        let sized = |bytes: Bytes| (bytes.0 as f64 / all.max(1.0)).min(1.0);
        cache.hit_rate.or(cache.bytes.map(sized)).unwrap_or(0.0)
    }

    /// Maximum number of batches that the host may have claimed and not consumed at a rank, as in
    /// the host's loader.
    pub fn host_ahead(&self) -> u32 {
        match self.host.workers {
            0 => 1,
            workers => workers.saturating_mul(self.host.prefetch).max(workers + 1),
        }
    }
}

/// Turns an error of serde into one with a remedy.
fn from_serde(error: &toml::de::Error) -> ScenarioError {
    let message = error.message();
    let (problem, remedy) = match message.split_once(", expected ") {
        Some((problem, remedy)) => (problem, remedy),
        None => (message, "what docs/simulation.md says"),
    };
    let remedy = match problem == NO_NAME {
        true => "a name in quotes, such as \"wrr\"".to_owned(),
        false => expected_in_words(remedy),
    };
    let problem = in_words(problem);
    // serde names keys between backquotes, and the path on a separate line.
    let path = error.to_string();
    let path = path
        .lines()
        .find_map(|line| line.strip_prefix("in `"))
        .map(|rest| rest.trim_end_matches(['`', '\n']).to_owned());
    let named = problem.split('`').nth(1).map(str::to_owned);
    let key = path.or(named).unwrap_or_else(|| "the scenario".to_owned());
    ScenarioError::new(key, problem, remedy)
}

/// The problem in the message of serde for a name that is not a string.
const NO_NAME: &str = "wanted string or table";

/// The found value in serde's message, without its names of types.
fn in_words(problem: &str) -> String {
    if problem == NO_NAME {
        return "is not a name".to_owned();
    }
    let found = problem.strip_prefix("invalid type: ").or(problem.strip_prefix("invalid value: "));
    let Some(found) = found else { return format!("is invalid: {problem}") };
    match found.split_once(' ').map_or((found, ""), |(kind, value)| (kind, value)) {
        ("map", _) => "is a table".to_owned(),
        ("sequence", _) => "is a list".to_owned(),
        ("string", text) => format!("is {text}"),
        (_, value) => match value.rsplit(' ').next().map(|last| last.trim_matches('`')) {
            // A number may have 300 digits.
            Some(value) => match value.parse::<f64>() {
                Ok(number) if value.len() > 20 => format!("is {number:e}"),
                _ => format!("is {value}"),
            },
            None => format!("is invalid: {problem}"),
        },
    }
}

/// The expected value in serde's message, without its names of types.
fn expected_in_words(expected: &str) -> String {
    match expected.strip_prefix("struct ").unwrap_or(expected) {
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" => "a whole number from 0".to_owned(),
        "f64" => "a number".to_owned(),
        "a boolean" | "bool" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        other if other.len() < expected.len() => "a table".to_owned(),
        other => other.to_owned(),
    }
}

/// Line and column of a byte, from 1; columns count characters.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The key on the line of a byte, with the table that contains the line.
fn key_at(text: &str, offset: usize) -> Option<String> {
    let before = text.get(..offset)?;
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[line_start..].lines().next()?;
    let key = line.split_once('=')?.0.trim();
    let header = text[..line_start].lines().rev().find(|line| line.starts_with('['));
    let table = header.map(|line| line.trim_matches(['[', ']', ' ']));
    Some(table.map_or_else(|| key.to_owned(), |table| format!("{table}.{key}")))
}
