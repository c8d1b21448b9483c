//! A scenario with every combination of the values of its swept parameters.

use super::load::Loaded;
use crate::{Error, Progress};
use meetpoint_sim::Outcome;
use meetpoint_sim::scenario::{Sweep, points};
use serde::Serialize;

/// One simulated scenario.
#[derive(Debug, Clone)]
pub struct Simulated {
    /// The swept parameters with their values as text, in the order of the sweeps.
    pub settings: Vec<(String, String)>,
    /// Its outcome.
    pub outcome: Outcome,
}

/// A row of the CSV and of the JSON document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Value of each parameter.
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// The columns of the CSV, numbers as numbers.
    pub outcome: serde_json::Map<String, serde_json::Value>,
}

/// Parses a sweep such as `host.workers=0,4,16`.
pub fn parse(text: &str) -> Result<Sweep, String> {
    let wrong = || {
        format!(
            "\"{text}\" is not a sweep; write host.workers=0,4,16 or \
             devices.0.preparation=1s,2s,4s"
        )
    };
    let (parameter, values) = text.split_once('=').ok_or_else(wrong)?;
    let values: Vec<toml::Value> = split(values)
        .into_iter()
        .map(str::trim)
        .filter(|value| !value.is_empty())
        .map(|value| {
            // Anything that is not a TOML value, such as 20ms or wrr, is a string.
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

/// Splits at commas outside of brackets and quotes.
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

/// Simulates every combination; without sweeps, the scenario itself.
pub fn run(
    loaded: &Loaded,
    typed: &[Sweep],
    seed: u64,
    progress: Progress<'_>,
) -> Result<Vec<Simulated>, Error> {
    // Sweeps on the command line replace those of the file.
    let sweeps = if typed.is_empty() { &loaded.scenario.sweep } else { typed };
    let all = points(&loaded.table, sweeps).map_err(|error| loaded.sweep_fault(error))?;
    let total = all.len() as u64;
    let mut results = Vec::with_capacity(all.len());
    for (done, mut point) in all.into_iter().enumerate() {
        progress(done as u64, total);
        loaded.complete(&mut point.scenario, &point.settings)?;
        let outcome = meetpoint_sim::run(&point.scenario, seed)
            .map_err(Error::simulating(loaded.path.display().to_string()))?;
        results.push(Simulated { settings: point.settings, outcome });
    }
    Ok(results)
}

impl Simulated {
    /// The row of the result.
    pub fn row(&self) -> Row {
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
pub fn csv(results: &[Simulated], seed: u64) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |cells: Vec<String>| writer.write_record(&cells).expect("memory takes rows");
    let swept = results.first().map(|result| result.settings.as_slice()).unwrap_or_default();
    let swept = swept.iter().map(|(name, _)| name.as_str());
    write(["seed"].into_iter().chain(swept).chain(Outcome::COLUMNS).map(str::to_owned).collect());
    for Simulated { settings, outcome } in results {
        let settings = settings.iter().map(|(_, value)| value.clone());
        write([seed.to_string()].into_iter().chain(settings).chain(outcome.cells()).collect());
    }
    let bytes = writer.into_inner().expect("memory takes rows");
    String::from_utf8(bytes).expect("text was written")
}

#[cfg(test)]
mod tests {
    use super::{parse, run};
    use crate::Error;
    use crate::simulate::load::Loaded;
    use toml::Value;

    #[test]
    fn a_swept_parameter_is_named_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        let text = "strategy = \"host-only\"\nbatches = 10\n[host]\npreparation = \"1s\"\n\
                    [accelerator]\nstep = \"1s\"\n";
        std::fs::write(&path, text).unwrap();
        let loaded = Loaded::read(&path).unwrap();
        // An unknown key, a value that the check refuses, and a path through a number.
        for (sweep, count) in [("host.wrokers=1,2", 1), ("epochs=0,1", 1), ("batches.of=1,2", 0)] {
            let error = run(&loaded, &[parse(sweep).unwrap()], 1, &mut |_, _| {}).unwrap_err();
            let said = error.to_string();
            let Error::Scenario(fault) = error else { panic!("{error:?}") };
            assert_eq!((fault.swept.len(), fault.place), (count, None), "{said}");
            assert_eq!(said.matches(" = ").count(), count, "{said}");
        }
    }

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
}
