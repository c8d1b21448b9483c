//! The two texts of a recipe: TOML for people, and the canonical form that is hashed.

use super::keys::DIVIDE;
use super::{Decode, Operation, RecipeHash, Scale, Size};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Stands before the canonical form in what is hashed; changes when the form does.
const HASH_PREFIX: &str = "meetpoint recipe 1\n";

/// The value of a key.
enum Value {
    Word(&'static str),
    Switch(bool),
    Integer(u32),
    Integers([u32; 2]),
    Number(f64),
    Numbers(Vec<f64>),
}

/// Every key of an operation but its name, in alphabetical order: defaults included, except those
/// of `decode`, which came later.
fn keys(operation: &Operation) -> Vec<(&'static str, Value)> {
    let pair = |(low, high): (f64, f64)| Value::Numbers(vec![low, high]);
    match *operation {
        Operation::Decode(decode) => decode_keys(decode),
        Operation::Resize { size, interpolation, antialias } => vec![
            ("antialias", Value::Switch(antialias)),
            ("interpolation", Value::Word(interpolation.name())),
            (
                "size",
                match size {
                    Size::ShorterSide(side) => Value::Integer(side),
                    Size::Exact { height, width } => Value::Integers([height, width]),
                },
            ),
        ],
        Operation::CenterCrop { height, width } => {
            vec![("size", Value::Integers([height, width]))]
        }
        Operation::RandomResizedCrop { height, width, scale, ratio, interpolation, antialias } => {
            vec![
                ("antialias", Value::Switch(antialias)),
                ("interpolation", Value::Word(interpolation.name())),
                ("ratio", pair(ratio)),
                ("scale", pair(scale)),
                ("size", Value::Integers([height, width])),
            ]
        }
        Operation::RandomHorizontalFlip { p } => vec![("p", Value::Number(p))],
        Operation::ToDtype { dtype, scale } => {
            let scale = match scale {
                Scale::None => Value::Switch(false),
                Scale::Multiply => Value::Switch(true),
                Scale::Divide => Value::Word(DIVIDE),
            };
            vec![("dtype", Value::Word(dtype.name())), ("scale", scale)]
        }
        Operation::Normalize { mean, std } => {
            vec![("mean", Value::Numbers(mean.to_vec())), ("std", Value::Numbers(std.to_vec()))]
        }
        Operation::Layout { layout } => vec![("layout", Value::Word(layout.name()))],
    }
}

/// The keys of `decode` that differ from their defaults.
fn decode_keys(decode: Decode) -> Vec<(&'static str, Value)> {
    let Decode { scaled, orient, on_error } = decode;
    let exact = Decode::EXACT;
    let switch = |value: bool, default: bool| (value != default).then_some(Value::Switch(value));
    let word = (on_error != exact.on_error).then_some(Value::Word(on_error.name()));
    [
        ("on_error", word),
        ("orient", switch(orient, exact.orient)),
        ("scaled", switch(scaled, exact.scaled)),
    ]
    .into_iter()
    .filter_map(|(key, value)| Some((key, value?)))
    .collect()
}

/// The recipe as TOML, one table an operation.
pub(super) fn to_toml(operations: &[Operation]) -> String {
    let mut text = String::new();
    for (index, operation) in operations.iter().enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        let name = operation.name();
        // `{:?}` of a float is the shortest text that reads back to it, and always a TOML float.
        let rest = keys(operation).into_iter().fold(String::new(), |rest, (key, value)| {
            let value = spell(&value, ", ", |number| format!("{number:?}"));
            rest + key + " = " + &value + "\n"
        });
        write!(text, "{gap}[[operation]]\nname = \"{name}\"\n{rest}")
            .expect("a string takes every write");
    }
    text
}

/// The canonical form: JSON, keys sorted, no white space.
pub(super) fn json(operations: &[Operation]) -> String {
    let operations: Vec<String> = operations.iter().map(json_operation).collect();
    format!("[{}]", operations.join(","))
}

fn json_operation(operation: &Operation) -> String {
    let mut keys = keys(operation);
    keys.push(("name", Value::Word(operation.name())));
    keys.sort_by_key(|(key, _)| *key);
    let members: Vec<String> = keys
        .iter()
        .map(|(key, value)| format!("\"{key}\":{}", spell(value, ",", plain_decimal)))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// SHA-256 over the prefix and the canonical form.
pub(super) fn hash(operations: &[Operation]) -> RecipeHash {
    let digest = Sha256::new().chain_update(HASH_PREFIX).chain_update(json(operations)).finalize();
    RecipeHash(digest.into())
}

/// The fewest digits that read back to the number, never with an exponent; both zeros are "0".
fn plain_decimal(number: f64) -> String {
    if number == 0.0 { "0".to_owned() } else { format!("{number}") }
}

/// A value as TOML and JSON both write it, but for the floats.
fn spell(value: &Value, comma: &str, float: impl Fn(f64) -> String) -> String {
    match value {
        Value::Word(word) => format!("\"{word}\""),
        Value::Switch(on) => on.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Integers([first, second]) => format!("[{first}{comma}{second}]"),
        Value::Number(number) => float(*number),
        Value::Numbers(numbers) => {
            let numbers: Vec<String> = numbers.iter().map(|number| float(*number)).collect();
            format!("[{}]", numbers.join(comma))
        }
    }
}
