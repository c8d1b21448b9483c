//! The strategies by name, and the options that a job has for each.

use super::JobError;
use super::table::Table;
use meetpoint_scheduler::{Goal, Order, Record, Split, Strategy, Tail, WINDOW_DEFAULT};
use toml::de::DeValue;

/// Most batches in a window.
const WINDOW_MAX: u32 = 1 << 20;
/// What a recorded epoch looks like, for remedies.
const RECORD: &str = "a record of a report, such as \"mte:812\"";

/// A strategy without its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StrategyName {
    /// Baseline.
    HostOnly,
    /// Everything at the device.
    DeviceOnly,
    /// A fixed split, the host's part first.
    Mte,
    /// As `mte`, the switch follows what the device really does.
    MteFeedback,
    /// Whatever is ready.
    Wrr,
    /// The interleave of `wrr`, computed beforehand.
    WrrFrozen,
    /// The epoch in windows, each from both ends.
    Windowed,
    /// Picks among them.
    Auto,
}

impl StrategyName {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::HostOnly,
        Self::DeviceOnly,
        Self::Mte,
        Self::MteFeedback,
        Self::Wrr,
        Self::WrrFrozen,
        Self::Windowed,
        Self::Auto,
    ];

    /// As job files and reports write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HostOnly => "host-only",
            Self::DeviceOnly => "device-only",
            Self::Mte => "mte",
            Self::MteFeedback => "mte-feedback",
            Self::Wrr => "wrr",
            Self::WrrFrozen => "wrr-frozen",
            Self::Windowed => "windowed",
            Self::Auto => "auto",
        }
    }

    /// Whether it cannot be run without a device.
    pub fn needs_device(self) -> bool {
        StrategyOptions::default().strategy(self).needs_device()
    }

    /// The strategy of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

/// What a job says of each strategy that has options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrategyOptions {
    /// How the device's share is found under `mte`. Default: `equal-finish`.
    pub split: Split,
    /// Order of the device's part under `mte`. Default: descending.
    pub tail: Tail,
    /// Batches in a window of `windowed`. Default: [`WINDOW_DEFAULT`].
    pub window: u32,
    /// What `auto` strives for. Default: throughput.
    pub goal: Goal,
    /// What the order must be under `auto`. Default: any.
    pub order: Order,
}

impl Default for StrategyOptions {
    fn default() -> Self {
        Self {
            split: Split::EqualFinish,
            tail: Tail::Descending,
            window: WINDOW_DEFAULT,
            goal: Goal::Throughput,
            order: Order::Any,
        }
    }
}

impl StrategyOptions {
    /// A strategy with these options.
    pub fn strategy(&self, name: StrategyName) -> Strategy {
        let Self { split, tail, window, goal, order } = *self;
        match name {
            StrategyName::HostOnly => Strategy::HostOnly,
            StrategyName::DeviceOnly => Strategy::DeviceOnly,
            StrategyName::Mte => Strategy::Mte { split, tail },
            StrategyName::MteFeedback => Strategy::MteFeedback,
            StrategyName::Wrr => Strategy::Wrr,
            StrategyName::WrrFrozen => Strategy::WrrFrozen,
            StrategyName::Windowed => Strategy::Windowed { window },
            StrategyName::Auto => Strategy::Auto { goal, order },
        }
    }

    /// Reads `[mte]`, `[windowed]` and `[auto]`.
    pub(super) fn read(table: &Table<'_>) -> Result<Self, JobError> {
        let mut options = Self::default();
        if let Some(mte) = table.table("mte")? {
            mte.allow(&["split", "tail"])?;
            let tails = [("descending", Tail::Descending), ("ascending", Tail::Ascending)];
            options.tail = mte.word("tail", &tails)?.unwrap_or(options.tail);
            options.split = split(&mte)?;
        }
        if let Some(windowed) = table.table("windowed")? {
            windowed.allow(&["window"])?;
            options.window = windowed.small("window", 1..=WINDOW_MAX, WINDOW_DEFAULT)?;
        }
        if let Some(auto) = table.table("auto")? {
            auto.allow(&["goal", "order"])?;
            let orders = [
                ("any", Order::Any),
                ("replayable", Order::Replayable),
                ("baseline", Order::Baseline),
            ];
            options.order = auto.word("order", &orders)?.unwrap_or(options.order);
            options.goal = goal(&auto)?;
        }
        Ok(options)
    }
}

fn split(mte: &Table<'_>) -> Result<Split, JobError> {
    match mte.value("split").map(|value| value.get_ref()) {
        None => Ok(Split::EqualFinish),
        Some(DeValue::String(text)) if text.as_ref() == "equal-finish" => Ok(Split::EqualFinish),
        Some(DeValue::String(text)) if text.as_ref() == "optimal" => Ok(Split::Optimal),
        Some(DeValue::Integer(_)) => Ok(Split::Fixed(mte.small("split", 0..=u32::MAX, 0)?)),
        Some(_) => {
            let remedy = "\"equal-finish\", \"optimal\" or the device's batches";
            Err(mte.wrong_at("split", remedy))
        }
    }
}

fn goal(auto: &Table<'_>) -> Result<Goal, JobError> {
    let remedy = "\"throughput\", \"energy\" or the share of time in a mix of both, {time = 0.7}";
    match auto.value("goal").map(|value| value.get_ref()) {
        None => Ok(Goal::Throughput),
        Some(DeValue::String(text)) if text.as_ref() == "throughput" => Ok(Goal::Throughput),
        Some(DeValue::String(text)) if text.as_ref() == "energy" => Ok(Goal::Energy),
        Some(DeValue::Table(_)) => {
            let mix = auto.table("goal")?.expect("it was seen to be a table");
            mix.allow(&["time"])?;
            let missing = || mix.missing("time", "it takes a number from 0 to 1");
            let time = mix.number("time", 0.0..=1.0)?.ok_or_else(missing)?;
            Ok(Goal::Mix { time_weight_ppm: (time * 1e6).round() as u32 })
        }
        Some(_) => Err(auto.wrong_at("goal", remedy)),
    }
}

/// Reads `strategy` and `replay`: with a record and no name, the record's strategy is meant.
pub(super) fn choice(
    table: &Table<'_>,
    has_device: bool,
) -> Result<(StrategyName, Vec<Record>), JobError> {
    let words = StrategyName::ALL.map(|name| (name.as_str(), name));
    let replay = replay(table)?;
    let recorded = replay.first().map(of_record);
    let name = match (table.word("strategy", &words)?, recorded) {
        (None, Some(recorded)) => recorded,
        (None, None) if has_device => StrategyName::Wrr,
        (None, None) => StrategyName::HostOnly,
        (Some(name), Some(recorded)) if name != recorded => {
            let (name, recorded) = (name.as_str(), recorded.as_str());
            let problem =
                format!("`replay` is a record of \"{recorded}\", and `strategy` is \"{name}\"");
            let remedy = format!("leave `strategy` out, or make it \"{recorded}\"");
            return Err(table.fault_at("replay", problem, remedy));
        }
        (Some(name), _) => name,
    };
    if name.needs_device() && !has_device {
        let problem = format!("strategy \"{}\" needs a device", name.as_str());
        let remedy = "add [device] with kind = \"emulated\", or use \"host-only\"";
        let key = if table.value("strategy").is_some() { "strategy" } else { "replay" };
        return Err(table.fault_at(key, problem, remedy));
    }
    Ok((name, replay))
}

/// The strategy that a record replays.
pub fn of_record(record: &Record) -> StrategyName {
    StrategyName::named(record.strategy()).expect("a record is of a strategy")
}

fn replay(table: &Table<'_>) -> Result<Vec<Record>, JobError> {
    let remedy = format!("{RECORD}, or a list with one for each epoch");
    let texts: Vec<&str> = match table.value("replay").map(|value| value.get_ref()) {
        None => return Ok(Vec::new()),
        Some(DeValue::String(text)) => vec![text.as_ref()],
        Some(DeValue::Array(_)) => {
            let read = |_: &Table<'_>, value: &toml::Spanned<DeValue<'_>>| match value.get_ref() {
                DeValue::String(text) => Some(text.as_ref().to_owned()),
                _ => None,
            };
            let listed = table.list("replay", read, &remedy)?.unwrap_or_default();
            let records = listed.iter().map(|text| record(table, text, &remedy));
            let records = records.collect::<Result<Vec<Record>, _>>()?;
            return check_records(table, records, &remedy);
        }
        Some(_) => return Err(table.wrong_at("replay", remedy)),
    };
    texts.into_iter().map(|text| record(table, text, &remedy)).collect()
}

fn record(table: &Table<'_>, text: &str, remedy: &str) -> Result<Record, JobError> {
    text.parse().map_err(|error| {
        let problem = format!("`replay` holds {text:?}, which is no record: {error}");
        table.fault_at("replay", problem, format!("it takes {remedy}"))
    })
}

fn check_records(
    table: &Table<'_>,
    records: Vec<Record>,
    remedy: &str,
) -> Result<Vec<Record>, JobError> {
    let Some(first) = records.first().map(of_record) else {
        return Err(table.wrong_at("replay", remedy));
    };
    match records.iter().map(of_record).find(|&name| name != first) {
        None => Ok(records),
        Some(other) => {
            let (first, other) = (first.as_str(), other.as_str());
            let problem = format!("`replay` mixes records of \"{first}\" and \"{other}\"");
            Err(table.fault_at("replay", problem, "the epochs of one run have one strategy"))
        }
    }
}
