//! What is simulated: hosts, devices, storage, accelerators, ranks, what the scheduler knows of
//! them, and what goes wrong.
//!
//! A scenario is a TOML text with the names of job files; what a job measures, a scenario says.
//! In reading order: this file (the whole), `parts` (its tables), `strategy` and `options` (who
//! decides),
//! `distribution`, `fault`, `quantity` (the values), `check` (what is refused), `sweep` (many
//! scenarios from one).

mod check;
mod distribution;
mod error;
mod fault;
mod options;
mod parts;
mod quantity;
mod strategy;
mod sweep;

use meetpoint_scheduler::StrategyOptions;
use serde::{Deserialize, Deserializer};

pub use distribution::{Distribution, Values};
pub use error::{ScenarioError, Swept};
pub use fault::{Fault, FaultKind, NotAFault, RankFault, RankFaultKind, When};
pub use meetpoint_scheduler::StrategyName;
pub use parts::{Accelerator, Device, Holders, Host, Knowledge, Power, Ranks, Serve, Storage};
pub use quantity::{Bandwidth, Bytes, NotAQuantity, Span};
pub use strategy::ChoiceName;
pub use sweep::{Point, Sweep, points};

/// Everything that a simulation needs but its seed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Scenario {
    /// For readers.
    #[serde(default)]
    pub description: Option<String>,
    /// N: batches of an epoch at each rank.
    pub batches: u32,
    /// Epochs to run, one after the other.
    #[serde(default = "one")]
    pub epochs: u32,
    /// Who decides.
    #[serde(default = "strategy::unnamed")]
    pub strategy: StrategyName,
    /// The options of every strategy, each in a table of its name.
    #[serde(skip)]
    pub options: StrategyOptions,
    /// A device with work that says nothing for so long loses it to the host.
    #[serde(default = "stall_timeout")]
    pub stall_timeout: Span,
    /// After a given number of stalls a device gets no more work in the epoch.
    #[serde(default = "three")]
    pub stalls_max: u32,
    /// Batches of each end that are measured where nothing is known.
    #[serde(default = "three")]
    pub profile_batches: u32,
    /// Whether an epoch knows what the one before measured.
    #[serde(default = "yes")]
    pub learn: bool,
    /// Whether a device that has finished its part of an epoch begins the next.
    #[serde(default)]
    pub run_ahead: bool,
    /// Whether batches of devices are kept for other epochs: up to half of the spool, beyond what
    /// a device has ahead. Every epoch then has the same batches.
    #[serde(default)]
    pub reuse: bool,
    /// Which batches devices are given.
    #[serde(default)]
    pub choice: ChoiceName,
    /// A record that the epochs replay, as `mte:812`.
    #[serde(default)]
    pub replay: Option<String>,
    /// What `auto` goes by where energy counts.
    #[serde(default)]
    pub power: Option<Power>,
    /// What the scheduler knows of the machine before the first epoch.
    #[serde(default)]
    pub profile: Knowledge,
    /// The host that prepares.
    pub host: Host,
    /// The devices; none: the host is alone.
    #[serde(default)]
    pub devices: Vec<Device>,
    /// Which device may prepare which batch.
    #[serde(default)]
    pub holders: Holders,
    /// Which ranks a device works for.
    #[serde(default)]
    pub serve: Serve,
    /// What is read and written, and how fast.
    #[serde(default)]
    pub storage: Storage,
    /// What consumes, one a rank.
    pub accelerator: Accelerator,
    /// How many accelerators there are, and how they agree.
    #[serde(default)]
    pub ranks: Ranks,
    /// Parameters to vary; see [`points`]. A run of the scenario itself leaves them aside.
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
    /// A host alone, one rank, with defaults for everything else.
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
            sweep: Vec::new(),
        }
    }

    /// Reads a scenario. Files of traces that it names are still to be filled in
    /// ([`Scenario::fill_traces`]), and [`Scenario::check`] is still to be asked; [`crate::run`]
    /// asks it.
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

    /// The same from a tree, as sweeps change it.
    pub fn from_table(table: &toml::Table) -> Result<Self, ScenarioError> {
        <Self as Deserialize>::deserialize(table.clone()).map_err(|error| from_serde(&error))
    }

    /// Reads the fields; `options` reads the tables of strategies.
    fn of_fields<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Derived beside the trait, which is implemented there.
        Self::deserialize(deserializer)
    }

    /// Reads each file that a distribution names: `read` gives its times.
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

    /// Devices, each table as often as its `count` says.
    pub fn device_count(&self) -> usize {
        self.devices.iter().map(|device| device.count as usize).sum()
    }

    /// Most batches that the host may have claimed and not consumed at a rank, as the host's
    /// loader sets it.
    pub fn host_ahead(&self) -> u32 {
        match self.host.workers {
            0 => 1,
            workers => workers.saturating_mul(self.host.prefetch).max(workers + 1),
        }
    }
}

/// What serde found, as an error with a remedy.
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
    // serde names keys between backquotes, and the tree's path in a line of its own.
    let path = error.to_string();
    let path = path
        .lines()
        .find_map(|line| line.strip_prefix("in `"))
        .map(|rest| rest.trim_end_matches(['`', '\n']).to_owned());
    let named = problem.split('`').nth(1).map(str::to_owned);
    let key = path.or(named).unwrap_or_else(|| "the scenario".to_owned());
    ScenarioError::new(key, problem, remedy)
}

/// What stands where a name belongs.
const NO_NAME: &str = "wanted string or table";

/// What serde says is there, without its words for types.
fn in_words(problem: &str) -> String {
    if problem == NO_NAME {
        return "is no name".to_owned();
    }
    let found = problem.strip_prefix("invalid type: ").or(problem.strip_prefix("invalid value: "));
    let Some(found) = found else { return format!("is wrong: {problem}") };
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
            None => format!("is wrong: {problem}"),
        },
    }
}

/// What serde expects, without the names of types.
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

/// The key on the line of a byte, with the table that the line stands in.
fn key_at(text: &str, offset: usize) -> Option<String> {
    let before = text.get(..offset)?;
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[line_start..].lines().next()?;
    let key = line.split_once('=')?.0.trim();
    let header = text[..line_start].lines().rev().find(|line| line.starts_with('['));
    let table = header.map(|line| line.trim_matches(['[', ']', ' ']));
    Some(table.map_or_else(|| key.to_owned(), |table| format!("{table}.{key}")))
}
