//! The declarations of all operations, for other programs, users and documents.

use super::declaration::{Declaration, InputType, Property, RandomParameter, TargetDeclaration};
use super::{DECLARATIONS, Key, TARGET_DECLARATIONS};
use serde::Serialize;
use std::fmt::Write;

/// Operations with their keys, as data that can be serialised.
#[derive(Debug, Serialize)]
pub struct Schema {
    /// Version of this structure.
    pub version: u32,
    /// The operations in the order of the documentation.
    pub operations: Vec<&'static Declaration>,
    /// The types of targets in the order of the documentation.
    pub targets: Vec<&'static TargetDeclaration>,
}

/// A header and rows of text.
pub type TextTable = (Vec<&'static str>, Vec<Vec<String>>);

/// The schema of all operations and targets, or of the one with the given name; `None` if the name
/// is unknown.
pub fn schema(name: Option<&str>) -> Option<Schema> {
    let is_asked = |it: &str| name.is_none_or(|name| it == name);
    let operations = DECLARATIONS.iter().filter(|it| is_asked(it.name)).copied();
    let targets = TARGET_DECLARATIONS.iter().filter(|it| is_asked(it.name)).copied();
    let (operations, targets): (Vec<_>, Vec<_>) = (operations.collect(), targets.collect());
    let is_found = !operations.is_empty() || !targets.is_empty();
    is_found.then_some(Schema { version: 1, operations, targets })
}

/// The operations as rows: name, input and output, targets, random parameters, meaning.
pub fn operations_table(schema: &Schema) -> TextTable {
    let header = vec!["name", "takes", "gives", "targets", "random parameters", "meaning"];
    let rows = schema.operations.iter().map(|it| {
        let random: Vec<&str> =
            it.random.iter().map(|RandomParameter { name, .. }| *name).collect();
        let targets = it.targets.name().to_owned();
        vec![it.name.to_owned(), takes(it), gives(it), targets, random.join(", "), it.about.into()]
    });
    (header, rows.collect())
}

/// The keys of all operations as rows: operation, key, type, default, range, meaning.
pub fn keys_table(schema: &Schema) -> TextTable {
    keys(schema.operations.iter().map(|it| (it.name, it.keys)))
}

/// The kinds of targets as rows: name, meaning.
pub fn targets_table(schema: &Schema) -> TextTable {
    let rows = schema.targets.iter().map(|it| vec![it.name.to_owned(), it.about.to_owned()]);
    (vec!["kind", "meaning"], rows.collect())
}

/// The keys of all kinds of targets as rows, as [`keys_table`].
pub fn target_keys_table(schema: &Schema) -> TextTable {
    keys(schema.targets.iter().map(|it| (it.name, it.keys)))
}

fn keys(declared: impl Iterator<Item = (&'static str, &'static [Key])>) -> TextTable {
    let header = vec!["name", "key", "type", "default", "range", "meaning"];
    let rows = declared.flat_map(|(name, keys)| {
        keys.iter().enumerate().map(move |(index, key)| {
            let name = if index == 0 { name } else { "" };
            let (kind, range) = (key.kind.type_text(), key.kind.range_text());
            let default = key.default_text();
            let [name, about] = [name, key.about].map(str::to_owned);
            vec![name, key.name.to_owned(), kind, default, range, about]
        })
    });
    (header, rows.collect())
}

fn takes(declaration: &Declaration) -> String {
    let types = declaration.takes.iter().map(|it| {
        if *it == InputType::ANY_IMAGE {
            format!("{} of any mode", it.kind.name())
        } else if *it == InputType::RGBA {
            "with alpha".to_owned()
        } else if *it == InputType::ELEMENTS || *it == InputType::FLOAT_IMAGE {
            format!("of {}", it.dtypes.join(" or "))
        } else if it.kind == InputType::TENSOR.kind && *it != InputType::TENSOR {
            format!("{} of {}", it.kind.name(), it.dtypes.join(" or "))
        } else {
            it.kind.name().to_owned()
        }
    });
    types.collect::<Vec<_>>().join(" or ")
}

/// The type, and the properties that differ from the input.
fn gives(declaration: &Declaration) -> String {
    let gives = declaration.gives;
    let mut text = gives.kind.name().to_owned();
    for (name, property) in
        [("type", gives.dtype), ("size", gives.size), ("channels", gives.channels)]
    {
        let how = match property {
            Property::Same => continue,
            Property::Variable => "of the file".to_owned(),
            Property::Key(key) => format!("by `{key}`"),
            Property::Is(value) => value.to_owned(),
        };
        write!(text, ", {name} {how}").expect("a string takes every write");
    }
    text
}
