//! The two texts of a recipe: TOML for people, and the canonical form that is hashed.

use super::targets::KIND;
use super::value::{Described, Value, quoted};
use super::{Operation, RecipeHash, Target};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Precedes the canonical form in the hashed bytes; changes when the form does.
const HASH_PREFIX: &str = "meetpoint recipe 1\n";

/// The recipe as TOML, one table per operation and one per target.
pub(super) fn to_toml(operations: &[Operation], targets: &[Target]) -> String {
    let mut text = String::new();
    for operation in operations {
        write_table("operation", &operation.describe(), &mut text);
    }
    for Target { column, kind } in targets {
        let described = kind.describe();
        let name = described.name;
        write!(text, "\n[targets.{}]\n{KIND} = \"{name}\"\n", quoted(column))
            .expect("a string takes every write");
        write_keys(&described, &mut text);
    }
    text
}

/// Writes the table of an operation, and then those of the operations that it contains.
fn write_table(path: &str, operation: &Described, text: &mut String) {
    let gap = if text.is_empty() { "" } else { "\n" };
    write!(text, "{gap}[[{path}]]\nname = \"{}\"\n", operation.name)
        .expect("a string takes every write");
    write_keys(operation, text);
    for (key, value) in operation.keys.iter() {
        if let Value::Operations(operations) = value {
            let path = format!("{path}.{key}");
            operations.iter().for_each(|operation| write_table(&path, operation, text));
        }
    }
}

/// Writes the keys whose values are no tables.
fn write_keys(described: &Described, text: &mut String) {
    let is_table = |value: &Value| matches!(value, Value::Operations(_));
    for (key, value) in described.keys.iter().filter(|(_, value)| !is_table(value)) {
        writeln!(text, "{key} = {}", value.to_toml()).expect("a string takes every write");
    }
}

/// The canonical form: JSON, keys sorted, no white space. Without targets, it is the array of the
/// operations alone.
pub(super) fn json(operations: &[Operation], targets: &[Target]) -> String {
    let operations: Vec<String> =
        operations.iter().map(|operation| operation.describe().to_json()).collect();
    let operations = format!("[{}]", operations.join(","));
    if targets.is_empty() {
        return operations;
    }
    let member = |Target { column, kind }: &Target| {
        format!("{}:{}", quoted(column), kind.describe().to_json_with(KIND))
    };
    let targets: Vec<String> = targets.iter().map(member).collect();
    format!("{{\"operations\":{operations},\"targets\":{{{}}}}}", targets.join(","))
}

/// SHA-256 over the prefix and the canonical form.
pub(super) fn hash(operations: &[Operation], targets: &[Target]) -> RecipeHash {
    let form = json(operations, targets);
    let digest = Sha256::new().chain_update(HASH_PREFIX).chain_update(form).finalize();
    RecipeHash(digest.into())
}
