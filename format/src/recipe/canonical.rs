//! The two texts of a recipe: TOML for people, and the canonical form that is hashed.

use super::value::{Described, Value};
use super::{Operation, RecipeHash};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Precedes the canonical form in the hashed bytes; changes when the form does.
const HASH_PREFIX: &str = "meetpoint recipe 1\n";

/// The recipe as TOML, one table per operation.
pub(super) fn to_toml(operations: &[Operation]) -> String {
    let mut text = String::new();
    for operation in operations {
        write_table("operation", &operation.describe(), &mut text);
    }
    text
}

/// Writes the table of an operation, and then those of the operations that it contains.
fn write_table(path: &str, operation: &Described, text: &mut String) {
    let gap = if text.is_empty() { "" } else { "\n" };
    write!(text, "{gap}[[{path}]]\nname = \"{}\"\n", operation.name)
        .expect("a string takes every write");
    let is_table = |value: &Value| matches!(value, Value::Operations(_));
    for (key, value) in operation.keys.iter().filter(|(_, value)| !is_table(value)) {
        writeln!(text, "{key} = {}", value.to_toml()).expect("a string takes every write");
    }
    for (key, value) in operation.keys.iter() {
        if let Value::Operations(operations) = value {
            let path = format!("{path}.{key}");
            operations.iter().for_each(|operation| write_table(&path, operation, text));
        }
    }
}

/// The canonical form: JSON, keys sorted, no white space.
pub(super) fn json(operations: &[Operation]) -> String {
    let operations: Vec<String> =
        operations.iter().map(|operation| operation.describe().to_json()).collect();
    format!("[{}]", operations.join(","))
}

/// SHA-256 over the prefix and the canonical form.
pub(super) fn hash(operations: &[Operation]) -> RecipeHash {
    let digest = Sha256::new().chain_update(HASH_PREFIX).chain_update(json(operations)).finalize();
    RecipeHash(digest.into())
}
