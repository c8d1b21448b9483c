//! Many scenarios from one: any parameter varied, every combination of several.

use serde::Deserialize;
use toml::{Table, Value};

use super::{Scenario, ScenarioError};

/// Most scenarios of a sweep.
const POINTS_MAX: usize = 100_000;

/// A parameter and the values that it takes: `[[sweep]]` in a scenario.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Its path in the file: `host.workers`, `devices.0.preparation`, `devices.*.count`,
    /// `accelerator.step.sigma`, `strategy`.
    pub parameter: String,
    /// The values.
    pub values: Vec<Value>,
}

/// One scenario of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Each swept parameter with the value that it has here, as text.
    pub settings: Vec<(String, String)>,
    /// The scenario, validated except for trace files.
    pub scenario: Scenario,
}

/// Every combination of the values of `sweeps`, the last parameter varying fastest. Without sweeps:
/// the scenario itself.
///
/// # Errors
///
/// A path that does not exist, a sweep without values, more than 100,000 combinations, or a
/// combination that is not a valid scenario. The error names parameter and value.
pub fn points(scenario: &Table, sweeps: &[Sweep]) -> Result<Vec<Point>, ScenarioError> {
    let mut count = 1_usize;
    for sweep in sweeps {
        if sweep.values.is_empty() {
            let key = format!("sweep of {}", sweep.parameter);
            return Err(ScenarioError::new(key, "has no values", "a list of values"));
        }
        count = count.saturating_mul(sweep.values.len());
    }
    if count > POINTS_MAX {
        let problem = format!("has {count} scenarios");
        let remedy = format!("at most {POINTS_MAX}: fewer values");
        return Err(ScenarioError::new("sweep", problem, remedy));
    }
    (0..count).map(|index| point(scenario, sweeps, index)).collect()
}

fn point(scenario: &Table, sweeps: &[Sweep], index: usize) -> Result<Point, ScenarioError> {
    let mut tree = Value::Table(scenario.clone());
    let mut settings = vec![(String::new(), String::new()); sweeps.len()];
    let mut rest = index;
    for (setting, sweep) in settings.iter_mut().zip(sweeps).rev() {
        let value = &sweep.values[rest % sweep.values.len()];
        rest /= sweep.values.len();
        set(&mut tree, &sweep.parameter, &sweep.parameter, value)?;
        *setting = (sweep.parameter.clone(), show(value));
    }
    let Value::Table(table) = tree else { unreachable!("it began as a table") };
    match Scenario::from_table(&table) {
        Ok(scenario) => Ok(Point { settings, scenario }),
        Err(error) => Err(ScenarioError { swept: settings, ..error }),
    }
}

/// Sets the value at `path`. Missing tables are created; elements of arrays must exist.
fn set(tree: &mut Value, path: &str, whole: &str, value: &Value) -> Result<(), ScenarioError> {
    let (step, rest) = match path.split_once('.') {
        Some((step, rest)) => (step, Some(rest)),
        None => (path, None),
    };
    let nowhere = |problem: String| {
        ScenarioError::new(format!("sweep of {whole}"), problem, "the path of a parameter")
    };
    let put = |place: &mut Value| match rest {
        None => {
            *place = value.clone();
            Ok(())
        }
        Some(rest) => set(place, rest, whole, value),
    };
    match tree {
        Value::Table(table) if !step.is_empty() => {
            put(table.entry(step).or_insert_with(|| Value::Table(Table::new())))
        }
        Value::Array(elements) if step == "*" => elements.iter_mut().try_for_each(put),
        Value::Array(elements) => {
            let count = elements.len();
            let element = step.parse::<usize>().ok().and_then(|index| elements.get_mut(index));
            put(element.ok_or_else(|| {
                nowhere(format!("finds no element {step}: the list has {count}, from 0"))
            })?)
        }
        _ => Err(nowhere(format!("leads through a value that is not a table, at {step:?}"))),
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // A float is written out with all its zeros.
        Value::Float(number) if number.abs() >= 1e15 || (number.abs() < 1e-4 && *number != 0.0) => {
            format!("{number:e}")
        }
        other => other.to_string(),
    }
}
