//! The declarations of all operations, for other programs, people and documents.

use super::DECLARATIONS;
use super::declaration::{Declaration, Property, RandomParameter, Takes};
use serde::Serialize;
use std::fmt::Write;

/// Operations with their keys, as data that can be serialised.
#[derive(Debug, Serialize)]
pub struct Schema {
    /// Version of this structure.
    pub version: u32,
    /// The operations in the order of the documentation.
    pub operations: Vec<&'static Declaration>,
}

/// A header and rows of text.
pub type TextTable = (Vec<&'static str>, Vec<Vec<String>>);

/// The schema of all operations, or of one; `None` where there is none of this name.
pub fn schema(operation: Option<&str>) -> Option<Schema> {
    let is_asked = |it: &&&Declaration| operation.is_none_or(|name| it.name == name);
    let operations: Vec<_> = DECLARATIONS.iter().filter(is_asked).copied().collect();
    (!operations.is_empty()).then_some(Schema { version: 1, operations })
}

/// The operations as rows: name, input and output, random parameters, meaning.
pub fn operations_table(schema: &Schema) -> TextTable {
    let header = vec!["name", "takes", "gives", "random parameters", "meaning"];
    let rows = schema.operations.iter().map(|it| {
        let random: Vec<&str> =
            it.random.iter().map(|RandomParameter { name, .. }| *name).collect();
        vec![it.name.to_owned(), takes(it), gives(it), random.join(", "), it.about.to_owned()]
    });
    (header, rows.collect())
}

/// The keys of all operations as rows: operation, key, type, default, range, meaning.
pub fn keys_table(schema: &Schema) -> TextTable {
    let header = vec!["name", "key", "type", "default", "range", "meaning"];
    let rows = schema.operations.iter().flat_map(|it| {
        it.keys.iter().enumerate().map(|(index, key)| {
            let name = if index == 0 { it.name } else { "" };
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
        if it.kind == Takes::TENSOR.kind && *it != Takes::TENSOR {
            format!("{} of {}", it.kind.name(), it.dtypes.join(" or "))
        } else {
            it.kind.name().to_owned()
        }
    });
    types.collect::<Vec<_>>().join(" or ")
}

/// The kind, and what differs from the input.
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
