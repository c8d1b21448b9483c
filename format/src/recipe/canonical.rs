//! The two texts of a recipe: TOML for people, and the canonical form that is hashed.

use super::declaration::{Key, Presence};
use super::value::Value;
use super::{Operation, RecipeHash};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Precedes the canonical form in the hashed bytes; changes when the form does.
const HASH_PREFIX: &str = "meetpoint recipe 1\n";

/// The keys of an operation but its name, in alphabetical order.
fn keys(operation: &Operation) -> Vec<(&'static str, Value)> {
    let declared = operation.declaration().keys.iter();
    let is_written = |(key, value): &(&Key, Value)| {
        let is_default = || key.presence == Presence::Default(value.clone());
        *value != Value::Absent && !(key.is_omitted_by_default && is_default())
    };
    let written = declared.zip(operation.values()).filter(is_written);
    let mut keys: Vec<_> = written.map(|(key, value)| (key.name, value)).collect();
    keys.sort_by_key(|(name, _)| *name);
    keys
}

/// The recipe as TOML, one table per operation.
pub(super) fn to_toml(operations: &[Operation]) -> String {
    let mut text = String::new();
    for (index, operation) in operations.iter().enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        let name = operation.name();
        let rest: String = keys(operation)
            .iter()
            .map(|(key, value)| format!("{key} = {}\n", value.to_toml()))
            .collect();
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
    let members: Vec<String> =
        keys.iter().map(|(key, value)| format!("\"{key}\":{}", value.to_json())).collect();
    format!("{{{}}}", members.join(","))
}

/// SHA-256 over the prefix and the canonical form.
pub(super) fn hash(operations: &[Operation]) -> RecipeHash {
    let digest = Sha256::new().chain_update(HASH_PREFIX).chain_update(json(operations)).finalize();
    RecipeHash(digest.into())
}
