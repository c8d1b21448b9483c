//! Reads a recipe from TOML; every error has the line and column of the offending key or value.

use super::error::{Fault, Problem, Subject};
use super::keys::{Keys, line_and_column};
use super::views::VIEW_COUNT_MAX;
use super::{Operation, RecipeError, RecipeParts, Target, TargetKind, View};
use meetpoint_diagnose::nearest;
use toml::de::{DeTable, DeValue};

/// The key that holds the operations.
const OPERATIONS: &str = "operation";

/// The key that holds the targets, by their columns.
const TARGETS: &str = "targets";

/// The key that holds the views.
const VIEWS: &str = "views";

/// The keys of a view.
const VIEW_KEYS: [&str; 3] = ["column", "count", CONTENT];

/// The key of an operation or a view that holds the operations that it contains.
const CONTENT: &str = "operations";

/// The operations, views and targets of a recipe, the targets sorted by column name. `check` checks
/// them together; its problems are reported with their position in the text.
pub(super) fn from_toml<T>(
    text: &str,
    check: impl FnOnce(RecipeParts) -> Result<T, Problem>,
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
    let view_tables = view_tables(text, document.get_ref())?;
    let view = |table: &ViewTable<'_>| {
        let operations = table.operations.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(View { column: table.column.to_owned(), count: table.count, operations })
    };
    let views = view_tables.iter().map(view).collect::<Result<Vec<_>, RecipeError>>()?;
    let target_tables = target_tables(text, document.get_ref())?;
    let read = |keys: &Keys<'_>| {
        let kind = TargetKind::of(&keys.read_target()?);
        Ok(Target { column: keys.target.unwrap_or_default().to_owned(), kind })
    };
    let targets = target_tables.iter().map(read).collect::<Result<Vec<_>, RecipeError>>()?;
    check(RecipeParts { operations, views, targets }).map_err(|problem| {
        let key = problem.key.unwrap_or("name");
        let offset = match &problem.subject {
            Subject::Recipe => None,
            Subject::Operation(place) => {
                let of_view = place.view.as_ref().map(|(index, _)| &view_tables[*index].operations);
                offset_of(of_view.unwrap_or(&tables), &place.path, key)
            }
            Subject::View { index, .. } => {
                let table = &view_tables[*index];
                let value = table.entries.get(problem.key.unwrap_or("column"));
                Some(value.map_or(table.start, |value| value.span().start))
            }
            Subject::Target { column, .. } => {
                let keys = target_tables.iter().find(|keys| keys.target == Some(&**column));
                keys.map(|keys| keys.offset_of(key))
            }
        };
        problem.at(at(offset.unwrap_or(0)))
    })
}

/// The position of the value of a key of the operation at a path; `None` if there is no such
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
    let remedy = "a recipe holds [[operation]], [[views]] and [targets.COLUMN] tables";
    let is_known = |key: &str| [OPERATIONS, VIEWS, TARGETS].contains(&key);
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

/// One `[[views]]` table.
struct ViewTable<'t> {
    start: usize,
    column: &'t str,
    count: u32,
    operations: Vec<Keys<'t>>,
    entries: &'t DeTable<'t>,
}

/// The tables of `[[views]]`, each with a column and no unknown key.
fn view_tables<'t>(
    text: &'t str,
    document: &'t DeTable<'t>,
) -> Result<Vec<ViewTable<'t>>, RecipeError> {
    let Some(value) = document.get(VIEWS) else { return Ok(vec![]) };
    let at = |offset: usize| Some(line_and_column(text, offset));
    let DeValue::Array(tables) = value.get_ref() else {
        let problem = format!("`{VIEWS}` is {}", super::keys::kind(value.get_ref()));
        let remedy = "write [[views]], with two brackets";
        return Err(Problem::of_recipe(problem, remedy).at(at(value.span().start)));
    };
    let read = |(index, table): (usize, &'t toml::Spanned<DeValue<'t>>)| {
        let start = table.span().start;
        let DeValue::Table(entries) = table.get_ref() else {
            let problem = format!("view {} is not a table", index + 1);
            return Err(Problem::of_recipe(problem, "write [[views]] tables").at(at(start)));
        };
        view_table(text, (index, start), entries)
    };
    tables.iter().enumerate().map(read).collect()
}

/// One of these tables, at an index.
fn view_table<'t>(
    text: &'t str,
    (index, start): (usize, usize),
    entries: &'t DeTable<'t>,
) -> Result<ViewTable<'t>, RecipeError> {
    let wanted = "column = \"...\", such as column = \"global\"";
    let column = match entries.get("column").map(|value| (value, value.get_ref())) {
        Some((_, DeValue::String(column))) => column.as_ref(),
        Some((value, other)) => {
            let fault =
                Fault::of_value("column", format!("holds {}", super::keys::kind(other)), wanted);
            let place = line_and_column(text, value.span().start);
            return Err(fault.of_view(index, "?").at(Some(place)));
        }
        None => {
            let fault = Fault::new("the key `column` is missing", wanted);
            return Err(fault.of_view(index, "?").at(Some(line_and_column(text, start))));
        }
    };
    let refuse = |offset: usize, fault: Fault| {
        Err(fault.of_view(index, column).at(Some(line_and_column(text, offset))))
    };
    let unknown = entries.keys().filter(|key| !VIEW_KEYS.contains(&key.get_ref().as_ref()));
    if let Some(key) = unknown.min_by_key(|key| key.span().start) {
        let guess = nearest(key.get_ref(), &VIEW_KEYS);
        let guess = guess.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        let remedy = format!("{guess}its keys are {}", VIEW_KEYS.join(", "));
        let problem = format!("unknown key `{}`", key.get_ref());
        return refuse(key.span().start, Fault::new(problem, remedy));
    }
    let count = match entries.get("count").map(|value| (value, value.get_ref())) {
        None => 1,
        Some((value, found)) => {
            let whole = match found {
                DeValue::Integer(number) => {
                    u32::from_str_radix(number.as_str(), number.radix()).ok()
                }
                _ => None,
            };
            let Some(whole) = whole else {
                let problem = format!("holds {}", super::keys::kind(found));
                let remedy = format!("a whole number from 1 to {VIEW_COUNT_MAX}");
                return refuse(value.span().start, Fault::of_value("count", problem, remedy));
            };
            whole
        }
    };
    let remedy = "write [[views.operations]] tables after the view";
    let operations = match entries.get(CONTENT).map(|value| (value, value.get_ref())) {
        None => vec![],
        Some((_, DeValue::Array(tables))) => {
            let mut operations = Vec::new();
            for (own, table) in tables.iter().enumerate() {
                let at = table.span().start;
                let DeValue::Table(keys) = table.get_ref() else {
                    let problem = format!("operation {} is not a table", own + 1);
                    return refuse(at, Fault::new(problem, remedy));
                };
                operations.push(Keys::of_view(text, (index, column), (own, at), keys)?);
            }
            operations
        }
        Some((value, found)) => {
            let problem = format!("holds {}", super::keys::kind(found));
            return refuse(value.span().start, Fault::of_value(CONTENT, problem, remedy));
        }
    };
    Ok(ViewTable { start, column, count, operations, entries })
}

/// The tables of `targets`, each with a kind, sorted by column name.
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
