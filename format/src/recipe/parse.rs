//! TOML to recipe: every word, type and value is checked where it stands.

use super::error::Problem;
use super::keys::{Keys, line_and_column};
use super::{Operation, RecipeError};
use toml::de::{DeTable, DeValue};

/// The key that holds the operations.
const OPERATIONS: &str = "operation";

/// The key of an operation that holds the operations that it contains.
const CONTENT: &str = "operations";

/// The operations of a recipe. `check` judges them together; what it finds is placed in the text.
pub(super) fn from_toml<T>(
    text: &str,
    check: impl FnOnce(Vec<Operation>) -> Result<T, Problem>,
) -> Result<T, RecipeError> {
    let at = |offset: usize| Some(line_and_column(text, offset));
    let document = DeTable::parse(text).map_err(|error| RecipeError {
        place: error.span().and_then(|span| at(span.start)),
        operation: None,
        problem: format!("the recipe is not TOML: {}", error.message().replace('\n', ", ")),
        remedy: "correct the text; https://toml.io has the grammar".to_owned(),
    })?;
    let tables = operation_tables(text, document.get_ref())?;
    let read = |keys: &Keys<'_>| keys.read().map(|described| Operation::of(&described));
    let operations = tables.iter().map(read).collect::<Result<Vec<_>, RecipeError>>()?;
    check(operations).map_err(|problem| {
        let offset = offset_of(&tables, &problem.path, problem.key.unwrap_or("name")).unwrap_or(0);
        problem.at(at(offset))
    })
}

/// Where the value of a key of the operation at a path begins; `None` where there is no such
/// operation.
fn offset_of(tables: &[Keys<'_>], path: &[usize], key: &str) -> Option<usize> {
    let (first, rest) = path.split_first()?;
    let keys = tables.get(*first)?;
    if rest.is_empty() {
        return Some(keys.offset_of(key));
    }
    // The tables have been read once, so that reading them again finds no fault.
    offset_of(&keys.inner(CONTENT).ok()?, rest, key)
}

/// The tables of `[[operation]]`, each with a name that exists and no unknown key.
fn operation_tables<'t>(
    text: &'t str,
    document: &'t DeTable<'t>,
) -> Result<Vec<Keys<'t>>, RecipeError> {
    let fault = |offset: usize, problem: String, remedy: &str| {
        Problem::of_recipe(problem, remedy).at(Some(line_and_column(text, offset)))
    };
    let remedy = "a recipe holds [[operation]] tables and nothing else";
    let stranger = document.iter().filter(|(key, _)| key.get_ref() != OPERATIONS);
    if let Some((key, _)) = stranger.min_by_key(|(key, _)| key.span().start) {
        let problem = format!("unknown key `{}`", key.get_ref());
        return Err(fault(key.span().start, problem, remedy));
    }
    let Some(value) = document.get(OPERATIONS) else {
        return Ok(vec![]);
    };
    let DeValue::Array(tables) = value.get_ref() else {
        let problem = format!("`operation` is {}", super::keys::kind(value.get_ref()));
        return Err(fault(value.span().start, problem, "write [[operation]], with two brackets"));
    };
    let read = |(index, table): (usize, &'t toml::Spanned<DeValue<'t>>)| {
        let DeValue::Table(entries) = table.get_ref() else {
            let problem = format!("operation {} is not a table", index + 1);
            return Err(fault(table.span().start, problem, remedy));
        };
        Keys::new(text, index, table.span().start, entries)
    };
    tables.iter().enumerate().map(read).collect()
}
