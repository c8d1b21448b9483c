//! The strategy of a job, the options of all strategies, and the epochs to replay.

use super::JobError;
use super::table::Table;
use meetpoint_scheduler::{
    AcceptedValues, AnyStrategy, NoRecord, OptionSpec, Record, StrategyName, StrategyOptions, Value,
};
use toml::de::DeValue;

/// An example of a record, for remedies.
const RECORD: &str = "a record of a report, such as \"mte:812\"";

/// Keys of the tables of options: the strategies that have any.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    StrategyName::ALL
        .into_iter()
        .filter(|name| !name.options().is_empty())
        .map(StrategyName::as_str)
}

/// Reads the table of each strategy that has options.
pub(super) fn options(table: &Table<'_>) -> Result<StrategyOptions, JobError> {
    let mut all = StrategyOptions::default();
    for name in StrategyName::ALL {
        if let Some(options) = table.table(name.as_str())? {
            all.set(strategy(name, &options)?);
        }
    }
    Ok(all)
}

fn strategy(name: StrategyName, table: &Table<'_>) -> Result<AnyStrategy, JobError> {
    let mut strategy = name.with_defaults();
    let known: Vec<&OptionSpec> = name.options().into_iter().map(|(spec, _)| spec).collect();
    table.allow(&known.iter().map(|spec| spec.name).collect::<Vec<_>>())?;
    for spec in known {
        if let Some(value) = value(table, spec)? {
            let set = strategy.set(spec.name, value);
            set.map_err(|_| table.wrong_at(spec.name, &spec.takes))?;
        }
    }
    Ok(strategy)
}

fn value(table: &Table<'_>, spec: &OptionSpec) -> Result<Option<Value>, JobError> {
    let OptionSpec { name, takes, .. } = spec;
    let Some(given) = table.value(name) else { return Ok(None) };
    let found = match (given.get_ref(), &takes.share) {
        (DeValue::String(text), _) => takes.word(text),
        (DeValue::Integer(_), _) => table.whole_at(name).and_then(|number| takes.number(number)),
        (DeValue::Table(_), Some(share)) => Some(part(table, name, takes, share.key)?),
        (
            DeValue::Table(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_),
            _,
        ) => None,
    };
    found.map(Some).ok_or_else(|| table.wrong_at(name, takes))
}

/// A share between 0 and 1, in a separate table.
fn part(
    table: &Table<'_>,
    name: &str,
    takes: &AcceptedValues,
    key: &str,
) -> Result<Value, JobError> {
    let mix = table.table(name)?.expect("it is a table");
    mix.allow(&[key])?;
    let missing = || mix.missing(key, "a number from 0 to 1");
    let share = mix.number(key, 0.0..=1.0)?.ok_or_else(missing)?;
    takes.part(share).ok_or_else(|| table.wrong_at(name, takes))
}

/// Reads `strategy` and `replay`: a record without a name selects the record's strategy.
pub(super) fn choice(
    table: &Table<'_>,
    has_device: bool,
) -> Result<(StrategyName, Vec<Record>), JobError> {
    let words = StrategyName::ALL.map(|name| (name.as_str(), name));
    let replay = replay(table)?;
    let recorded = replay.first().map(Record::strategy);
    let name = match (table.word("strategy", &words)?, recorded) {
        (None, Some(recorded)) => recorded,
        (None, None) if has_device => StrategyName::Wrr,
        (None, None) => StrategyName::HostOnly,
        (Some(name), Some(recorded)) if name != recorded => {
            let problem =
                format!("`replay` is a record of \"{recorded}\", and `strategy` is \"{name}\"");
            let remedy = format!("leave `strategy` out, or make it \"{recorded}\"");
            return Err(table.fault_at("replay", problem, remedy));
        }
        (Some(name), _) => name,
    };
    if name.needs_device() && !has_device {
        let problem = format!("strategy \"{name}\" needs a device");
        let remedy = "add [device] with kind = \"emulated\", or use \"host-only\"";
        let key = if table.value("strategy").is_some() { "strategy" } else { "replay" };
        return Err(table.fault_at(key, problem, remedy));
    }
    Ok((name, replay))
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
    text.parse().map_err(|NoRecord { .. }| {
        let problem = format!("`replay` holds {text:?}, which is not a record");
        table.fault_at("replay", problem, format!("set `replay` to {remedy}"))
    })
}

fn check_records(
    table: &Table<'_>,
    records: Vec<Record>,
    remedy: &str,
) -> Result<Vec<Record>, JobError> {
    let Some(first) = records.first().map(Record::strategy) else {
        return Err(table.wrong_at("replay", remedy));
    };
    match records.iter().map(Record::strategy).find(|&name| name != first) {
        None => Ok(records),
        Some(other) => {
            let problem = format!("`replay` mixes records of \"{first}\" and \"{other}\"");
            Err(table.fault_at("replay", problem, "the epochs of one run have one strategy"))
        }
    }
}
