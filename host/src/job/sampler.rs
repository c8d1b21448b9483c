//! The sampler of a job: a name, or a table with a name and options; `shuffle` abbreviates two.

use super::JobError;
use super::table::Table;
use meetpoint_format::sampler::{
    OptionType, Sampler, SamplerError, Sequential, Shuffled, Value, declaration_of,
};
use toml::Spanned;
use toml::de::DeValue;

/// The values that the key accepts.
const REMEDY: &str = "the name of a sampler, or a table: [sampler] with `name` and options";

/// Reads `sampler` and `shuffle`, which exclude each other.
pub(super) fn read(table: &Table<'_>) -> Result<Sampler, JobError> {
    let shuffle = table.flag("shuffle", true)?;
    let Some(value) = table.value("sampler") else {
        return Ok(if shuffle { Shuffled.into() } else { Sequential.into() });
    };
    if table.value("shuffle").is_some() {
        let problem = "`shuffle` and `sampler` both set the order of an epoch";
        let remedy = "leave `shuffle` out; samplers that can shuffle have an option for it";
        return Err(table.fault_at("shuffle", problem, remedy));
    }
    match value.get_ref() {
        DeValue::String(name) => Sampler::read(name, Vec::new())
            .map_err(|error| table.fault_at("sampler", error.to_string(), error.instruction())),
        DeValue::Table(_) => of_table(&table.table("sampler")?.expect("it is a table")),
        DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_) => Err(table.wrong_at("sampler", REMEDY)),
    }
}

fn of_table(table: &Table<'_>) -> Result<Sampler, JobError> {
    let fault = |error: SamplerError| {
        let key = error.option().unwrap_or("name");
        table.fault_at(key, error.to_string(), error.instruction())
    };
    let what = "the name of a sampler, such as \"weighted\"";
    let name = table.text("name", what)?;
    let name = name.ok_or_else(|| table.missing("name", what))?;
    let Some(declaration) = declaration_of(name) else {
        return Err(fault(SamplerError::unknown(name)));
    };
    let mut options = Vec::new();
    for key in table.keys().filter(|key| *key != "name") {
        let spec = declaration.options.iter().find(|spec| spec.name == key);
        let unknown =
            || SamplerError::UnknownOption { sampler: declaration.name, option: key.to_owned() };
        let spec = spec.ok_or_else(|| fault(unknown()))?;
        let given = table.value(key).map(|given| value(spec.takes, given.get_ref()));
        let given = given.flatten().filter(|given| spec.takes.accepts(given));
        options.push((key.to_owned(), given.ok_or_else(|| table.wrong_at(key, spec.takes))?));
    }
    Sampler::read(name, options).map_err(fault)
}

/// The value of an option; `None` if it is of another type.
fn value(takes: OptionType, given: &DeValue<'_>) -> Option<Value> {
    match (takes, given) {
        (OptionType::Whole { .. }, whole) => u64_of(whole).map(Value::Whole),
        (OptionType::Flag, DeValue::Boolean(flag)) => Some(Value::Flag(*flag)),
        (
            OptionType::Column | OptionType::Expression | OptionType::Weights | OptionType::Word(_),
            DeValue::String(text),
        ) => Some(Value::Text(text.as_ref().to_owned())),
        (OptionType::Indices, DeValue::Array(list)) => {
            let list: Option<Vec<u64>> = list.iter().map(|it| u64_of(it.get_ref())).collect();
            list.map(|list| Value::Wholes(list.into()))
        }
        (OptionType::Weights | OptionType::DatasetWeights, DeValue::Array(list)) => {
            let list: Option<Vec<f64>> = list.iter().map(f64_of).collect();
            list.map(|list| Value::Numbers(list.into()))
        }
        (
            OptionType::Flag
            | OptionType::Column
            | OptionType::Expression
            | OptionType::Indices
            | OptionType::Weights
            | OptionType::DatasetWeights
            | OptionType::Word(_),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_),
        ) => None,
    }
}

fn u64_of(given: &DeValue<'_>) -> Option<u64> {
    let DeValue::Integer(number) = given else { return None };
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// The sampler refuses negative values and NaN.
fn f64_of(given: &Spanned<DeValue<'_>>) -> Option<f64> {
    match given.get_ref() {
        DeValue::Float(number) => number.as_str().replace('_', "").parse().ok(),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|whole| whole as f64)
        }
        DeValue::String(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => None,
    }
}
