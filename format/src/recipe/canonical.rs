//! The two texts of a recipe: TOML for users, and the canonical form that is hashed.

use super::targets::KIND;
use super::value::{Described, Value, quoted};
use super::{Operation, Recipe, RecipeHash, Target, View};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Precedes the canonical form in the hashed bytes; changes when the form does.
const HASH_PREFIX: &str = "meetpoint recipe 1\n";

/// The recipe as TOML, one table per operation, view and target.
pub(super) fn to_toml(recipe: &Recipe) -> String {
    let mut text = String::new();
    for operation in recipe.operations() {
        write_table("operation", &operation.describe(), &mut text);
    }
    for View { column, count, operations } in recipe.views() {
        write!(text, "\n[[views]]\ncolumn = {}\ncount = {count}\n", quoted(column))
            .expect("a string takes every write");
        for operation in operations {
            write_table("views.operations", &operation.describe(), &mut text);
        }
    }
    for Target { column, kind } in recipe.targets() {
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

/// Writes the keys whose values are not tables.
fn write_keys(described: &Described, text: &mut String) {
    let is_table = |value: &Value| matches!(value, Value::Operations(_));
    for (key, value) in described.keys.iter().filter(|(_, value)| !is_table(value)) {
        writeln!(text, "{key} = {}", value.to_toml()).expect("a string takes every write");
    }
}

/// The canonical form: JSON, keys sorted, no white space. Without views and targets, it is the
/// array of the operations alone.
pub(super) fn json(recipe: &Recipe) -> String {
    form(recipe, hashed)
}

/// The same with the paths of all files; two recipes are equal if these texts are.
pub(super) fn whole(recipe: &Recipe) -> String {
    form(recipe, Operation::describe)
}

fn form(recipe: &Recipe, describe: fn(&Operation) -> Described) -> String {
    let array = |operations: &[Operation]| {
        let operations: Vec<String> = operations.iter().map(|it| describe(it).to_json()).collect();
        format!("[{}]", operations.join(","))
    };
    let own = array(recipe.operations());
    if recipe.targets().is_empty() && recipe.views().is_empty() {
        return own;
    }
    let mut members = vec![format!("\"operations\":{own}")];
    let member = |Target { column, kind }: &Target| {
        format!("{}:{}", quoted(column), kind.describe().to_json_with(KIND))
    };
    let targets: Vec<String> = recipe.targets().iter().map(member).collect();
    if !targets.is_empty() {
        members.push(format!("\"targets\":{{{}}}", targets.join(",")));
    }
    let view = |View { column, count, operations }: &View| {
        let (column, operations) = (quoted(column), array(operations));
        format!("{{\"column\":{column},\"count\":{count},\"operations\":{operations}}}")
    };
    let views: Vec<String> = recipe.views().iter().map(view).collect();
    if !views.is_empty() {
        members.push(format!("\"views\":[{}]", views.join(",")));
    }
    format!("{{{}}}", members.join(","))
}

/// An operation as it is hashed: the path of a file whose checksum is known is left out.
fn hashed(operation: &Operation) -> Described {
    let mut described = operation.describe();
    if operation.file().is_some_and(|file| file.sha256.is_some()) {
        let is_path = |value: &Value| matches!(value, Value::File(_));
        described.keys.to_mut().retain(|(_, value)| !is_path(value));
    }
    described
}

/// SHA-256 over the prefix and the canonical form.
pub(super) fn hash(recipe: &Recipe) -> RecipeHash {
    let form = json(recipe);
    let digest = Sha256::new().chain_update(HASH_PREFIX).chain_update(form).finalize();
    RecipeHash(digest.into())
}
