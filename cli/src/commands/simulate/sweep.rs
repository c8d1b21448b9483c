//! A scenario under every combination of the values that some of its parameters are to take.

use super::engine;
use super::load::Loaded;
use crate::surface::progress::Progress;
use anyhow::Context;
use meetpoint_sim::Outcome;
use meetpoint_sim::scenario::{Sweep, points};
use serde::Serialize;

/// One simulated scenario.
#[derive(Debug, Clone)]
pub(crate) struct Result {
    /// What was set, in the order of the sweeps; values as text.
    pub settings: Vec<(String, String)>,
    /// What it came to.
    pub outcome: Outcome,
}

/// A row of the CSV and of the JSON document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    /// Parameter and value.
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// The columns of the CSV, numbers as numbers.
    pub outcome: serde_json::Map<String, serde_json::Value>,
}

/// `host.workers=0,4,16`, as typed.
pub(crate) fn parse(text: &str) -> std::result::Result<Sweep, String> {
    let wrong = || {
        format!(
            "\"{text}\" is no sweep; write host.workers=0,4,16 or devices.0.preparation=1s,2s,4s"
        )
    };
    let (parameter, values) = text.split_once('=').ok_or_else(wrong)?;
    let values: Vec<toml::Value> = split(values)
        .into_iter()
        .map(str::trim)
        .filter(|value| !value.is_empty())
        .map(|value| {
            // What is no TOML value, as 20ms or wrr, is a text.
            let parsed = toml::from_str::<toml::Table>(&format!("value = {value}"));
            let value_of = |mut table: toml::Table| table.remove("value");
            parsed.ok().and_then(value_of).unwrap_or_else(|| toml::Value::String(value.to_owned()))
        })
        .collect();
    let parameter = parameter.trim();
    if parameter.is_empty() || values.is_empty() {
        return Err(wrong());
    }
    Ok(Sweep { parameter: parameter.to_owned(), values })
}

/// Parts between commas that stand outside of brackets and quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut start) = (0_i32, false, 0);
    let mut parts = Vec::new();
    for (place, letter) in text.char_indices() {
        match letter {
            '"' | '\'' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(&text[start..place]);
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Runs every combination; one without sweeps.
pub(crate) fn run(loaded: &Loaded, typed: &[Sweep], seed: u64) -> anyhow::Result<Vec<Result>> {
    // What is typed stands above what the file says.
    let sweeps = if typed.is_empty() { &loaded.scenario.sweep } else { typed };
    let parameters: Vec<&str> = sweeps.iter().map(|sweep| sweep.parameter.as_str()).collect();
    let swept = |names: &[&str]| (!names.is_empty()).then(|| names.join(", "));
    let all = points(&loaded.table, sweeps)
        .map_err(|error| loaded.fault(swept(&parameters).as_deref(), error))?;
    let total = all.len() as u64;
    let mut bar = Progress::new("simulating", "scenarios", total);
    let mut results = Vec::with_capacity(all.len());
    for (done, mut point) in all.into_iter().enumerate() {
        bar.set(done as u64, total);
        let names: Vec<String> =
            point.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let at = (!names.is_empty()).then(|| names.join(", "));
        loaded.complete(&mut point.scenario, at.as_deref())?;
        let outcome = engine::run(&point.scenario, seed)
            .with_context(|| format!("failed to simulate {}", loaded.path.display()))?;
        results.push(Result { settings: point.settings, outcome });
    }
    Ok(results)
}

impl Result {
    /// As a row with names.
    pub(crate) fn row(&self) -> Row {
        let value = |text: &str| match text.parse::<f64>() {
            _ if text.is_empty() => serde_json::Value::Null,
            Ok(number) => serde_json::json!(number),
            Err(_) => serde_json::Value::String(text.to_owned()),
        };
        let settings = self.settings.iter().map(|(name, text)| (name.clone(), value(text)));
        let cells = self.outcome.cells();
        let outcome = Outcome::COLUMNS
            .iter()
            .zip(&cells)
            .map(|(name, text)| (str::to_owned(name), value(text)));
        Row { settings: settings.collect(), outcome: outcome.collect() }
    }
}

/// The results as CSV: the swept parameters, then the outcome's columns.
pub(crate) fn csv(results: &[Result], seed: u64) -> String {
    let mut text = String::from("seed");
    let swept = results.first().map(|result| result.settings.as_slice()).unwrap_or_default();
    for name in swept.iter().map(|(name, _)| name.as_str()).chain(Outcome::COLUMNS) {
        text.push(',');
        text.push_str(&field(name));
    }
    text.push('\n');
    for result in results {
        text.push_str(&seed.to_string());
        let settings = result.settings.iter().map(|(_, value)| value.clone());
        for cell in settings.chain(result.outcome.cells()) {
            text.push(',');
            text.push_str(&field(&cell));
        }
        text.push('\n');
    }
    text
}

/// A field as RFC 4180 has it.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{field, parse};
    use toml::Value;

    #[test]
    fn a_sweep_is_read_as_toml_values_or_texts() {
        let sweep = parse("devices.0.preparation = 1s, 2s").unwrap();
        assert_eq!(sweep.parameter, "devices.0.preparation");
        assert_eq!(sweep.values, [Value::String("1s".into()), Value::String("2s".into())]);
        let values = parse("host.workers=0,4").unwrap().values;
        assert_eq!(values, [Value::Integer(0), Value::Integer(4)]);
        let tables =
            parse("accelerator.step={kind=\"uniform\",low=\"1s\",high=\"2s\"},3s").unwrap();
        assert!(tables.values[0].is_table() && tables.values.len() == 2);
        for wrong in ["host.workers", "=1", "host.workers=", "host.workers= , "] {
            let said = parse(wrong).unwrap_err();
            assert!(said.contains(wrong) && said.contains("host.workers=0,4,16"), "{said}");
        }
    }

    #[test]
    fn a_field_with_a_comma_is_quoted() {
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(field("wrr"), "wrr");
    }
}
