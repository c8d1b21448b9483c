//! TOML to recipe: every word, type and value is checked where it stands.

use super::error::{Problem, Subject};
use super::keys::{Keys, line_and_column};
use super::{Operation, RecipeError, Target, TargetKind};
use toml::de::{DeTable, DeValue};

/// The key that holds the operations.
const OPERATIONS: &str = "operation";

/// The key that holds the targets, by their columns.
const TARGETS: &str = "targets";

/// The key of an operation that holds the operations that it contains.
const CONTENT: &str = "operations";

/// The operations and targets of a recipe, the latter in alphabetical order of their columns.
/// `check` judges them together; what it finds is placed in the text.
pub(super) fn from_toml<T>(
    text: &str,
    check: impl FnOnce(Vec<Operation>, Vec<Target>) -> Result<T, Problem>,
) -> Result<T, RecipeError> {
    let at = |offset: usize| Some(line_and_column(text, offset));
    let document = DeTable::parse(text).map_err(|error| RecipeError {
        place: error.span().and_then(|span| at(span.start)),
        subject: Subject::Recipe,
        problem: format!("the recipe is not TOML: {}", error.message().replace('\n', ", ")),
        remedy: "correct the text; https://toml.io has the grammar".to_owned(),
    })?;
    let tables = operation_tables(text, document.get_ref())?;
    let read = |keys: &Keys<'_>| keys.read().map(|described| Operation::of(&described));
    let operations = tables.iter().map(read).collect::<Result<Vec<_>, RecipeError>>()?;
    let target_tables = target_tables(text, document.get_ref())?;
    let read = |keys: &Keys<'_>| {
        let kind = TargetKind::of(&keys.read_target()?);
        Ok(Target { column: keys.target.unwrap_or_default().to_owned(), kind })
    };
    let targets = target_tables.iter().map(read).collect::<Result<Vec<_>, RecipeError>>()?;
    check(operations, targets).map_err(|problem| {
        let key = problem.key.unwrap_or("name");
        let offset = match &problem.subject {
            Subject::Recipe => None,
            Subject::Operation(place) => offset_of(&tables, &place.path, key),
            Subject::Target { column, .. } => {
                let keys = target_tables.iter().find(|keys| keys.target == Some(&**column));
                keys.map(|keys| keys.offset_of(key))
            }
        };
        problem.at(at(offset.unwrap_or(0)))
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
    let remedy = "a recipe holds [[operation]] tables, and [targets.COLUMN] tables";
    let is_known = |key: &str| [OPERATIONS, TARGETS].contains(&key);
    let stranger = document.iter().filter(|(key, _)| !is_known(key.get_ref()));
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

/// The tables of `targets`, each with a kind, in alphabetical order of their columns.
fn target_tables<'t>(
    text: &'t str,
    document: &'t DeTable<'t>,
) -> Result<Vec<Keys<'t>>, RecipeError> {
    let Some(value) = document.get(TARGETS) else { return Ok(vec![]) };
    let remedy = "write a table for each column, such as [targets.mask] with kind = \"mask\"";
    let fault = |offset: usize, problem: String| {
        Problem::of_recipe(problem, remedy).at(Some(line_and_column(text, offset)))
    };
    let DeValue::Table(tables) = value.get_ref() else {
        let problem = format!("`{TARGETS}` is {}", super::keys::kind(value.get_ref()));
        return Err(fault(value.span().start, problem));
    };
    let mut found = Vec::new();
    for (column, table) in tables.iter() {
        let column = column.get_ref().as_ref();
        let DeValue::Table(entries) = table.get_ref() else {
            let problem =
                format!("the target {column:?} is {}", super::keys::kind(table.get_ref()));
            return Err(fault(table.span().start, problem));
        };
        found.push(Keys::of_target(text, column, table.span().start, entries)?);
    }
    found.sort_by_key(|keys| keys.target);
    Ok(found)
}
