//! A recipe with other values of some keys: `num_classes=10`, `resize.size=288`, or those of a
//! view, `local.count=6` and `local.random_resized_crop.size=64`.

use crate::recipe::declaration::Declaration;
use crate::recipe::error::RecipeError;
use crate::recipe::operations::DECLARATIONS;
use meetpoint_diagnose::{Diagnose, Remedy, known};
use std::str::FromStr;
use toml::{Table, Value};

/// Key of a view that is not one of its operations.
const COUNT: &str = "count";

/// Where a key was found, and its value.
#[derive(Debug, Clone, PartialEq)]
struct KeyMatch {
    /// Column of the view; `None`: outside of views.
    view: Option<String>,
    /// Name of the operation.
    operation: &'static str,
    value: Option<Value>,
}

/// A key and its new value, for all operations that have the key, for those of one name, or for
/// those of one view.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    target: Target,
    key: String,
    value: Value,
}

/// What a change applies to.
#[derive(Debug, Clone, PartialEq)]
enum Target {
    /// Operations, selected by the column of their view and by their name; `None` selects any.
    Operations { view: Option<String>, operation: Option<String> },
    /// The number of pictures of a view, by its column.
    Count { view: String },
}

/// Why a change cannot be applied to a recipe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The text is not `KEY=VALUE`.
    #[error("{0:?} is not KEY=VALUE, OPERATION.KEY=VALUE or VIEW.OPERATION.KEY=VALUE")]
    NotAChange(String),
    /// No operation of the recipe has the key.
    #[error("no operation of the recipe has the key `{key}`")]
    NoSuchKey {
        /// The key, with the operation if one was named.
        key: String,
        /// The keys that exist.
        known: Vec<String>,
    },
    /// Operations of different names have the key, with different values.
    #[error("several operations have the key `{key}`: {}", .operations.join(", "))]
    Ambiguous {
        /// The key.
        key: String,
        /// Their names.
        operations: Vec<&'static str>,
    },
    /// Operations of several views have the key, with different values.
    #[error("several views have the key `{operation}.{key}`: {}", .views.join(", "))]
    AmbiguousView {
        /// The operation.
        operation: &'static str,
        /// The key.
        key: String,
        /// Columns of the views.
        views: Vec<String>,
    },
    /// The recipe has no such view.
    #[error("the recipe has no view {view:?}")]
    NoSuchView {
        /// The column.
        view: String,
        /// Columns of the existing views.
        known: Vec<String>,
    },
    /// The recipe is not valid with these values.
    #[error("the changed recipe is invalid: {}", .0.located())]
    Refused(RecipeError),
}

impl Diagnose for ChangeError {
    fn cause(&self) -> &'static str {
        match self {
            Self::NotAChange(_) => "not_a_change",
            Self::NoSuchKey { .. } => "no_such_key",
            Self::Ambiguous { .. } | Self::AmbiguousView { .. } => "ambiguous_key",
            Self::NoSuchView { .. } => "no_such_view",
            Self::Refused(error) => error.cause(),
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::NotAChange(_) => Some("write it as num_classes=10".to_owned().into()),
            Self::NoSuchKey { key, known: keys } => {
                let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                Some(known(key, &keys).into())
            }
            Self::Ambiguous { key, operations } => {
                let name = operations.first().unwrap_or(&"");
                Some(format!("name the operation, such as {name}.{key}").into())
            }
            Self::AmbiguousView { operation, key, views } => {
                let view = views.first().map_or("", String::as_str);
                Some(format!("name the view, such as {view}.{operation}.{key}").into())
            }
            Self::NoSuchView { known: views, .. } if views.is_empty() => {
                Some("name an operation, such as resize.size".to_owned().into())
            }
            Self::NoSuchView { view, known: views } => {
                let views: Vec<&str> = views.iter().map(String::as_str).collect();
                Some(known(view, &views).into())
            }
            Self::Refused(error) => error.remedy(),
        }
    }
}

/// Parses `num_classes=10`; a value that is not TOML is taken as a string.
impl FromStr for Change {
    type Err = ChangeError;

    fn from_str(text: &str) -> Result<Self, ChangeError> {
        let wrong = || ChangeError::NotAChange(text.to_owned());
        let (name, value) = text.split_once('=').ok_or_else(wrong)?;
        let parts: Vec<&str> = name.split('.').map(str::trim).collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(wrong());
        }
        let operations = |view: Option<&str>, operation: Option<&str>| Target::Operations {
            view: view.map(str::to_owned),
            operation: operation.map(str::to_owned),
        };
        let (target, key) = match parts[..] {
            [key] => (operations(None, None), key),
            [view, COUNT] if !is_operation(view) => (Target::Count { view: view.into() }, COUNT),
            [operation, key] => (operations(None, Some(operation)), key),
            [view, operation, key] => (operations(Some(view), Some(operation)), key),
            _ => return Err(wrong()),
        };
        let parsed = format!("value = {value}").parse::<Table>();
        let parsed = parsed.ok().and_then(|mut table| table.remove("value"));
        let value = parsed.unwrap_or_else(|| Value::String(value.trim().to_owned()));
        Ok(Self { target, key: key.to_owned(), value })
    }
}

/// Whether an operation has this name.
fn is_operation(name: &str) -> bool {
    DECLARATIONS.iter().any(|it| it.name == name)
}

/// The text of a recipe with all defaults spelled out and some keys changed.
pub(super) fn apply(text: &str, changes: &[Change]) -> Result<String, ChangeError> {
    let mut document: Table = text.parse().expect("a recipe writes TOML");
    for change in changes {
        match &change.target {
            Target::Count { view } => change.set_count(view, &mut document)?,
            Target::Operations { view, operation } => {
                change.set((view.as_deref(), operation.as_deref()), &mut document)?;
            }
        }
    }
    Ok(toml::to_string(&document).expect("it was read as TOML"))
}

/// The declaration of the operation that a table describes; `None` for other tables.
fn declaration(table: &Table) -> Option<&'static Declaration> {
    let name = table.get("name")?.as_str()?;
    DECLARATIONS.iter().find(|it| it.name == name).copied()
}

/// The tables of the views, with their columns.
fn views(document: &mut Table) -> Vec<(String, &mut Table)> {
    let views = document.get_mut("views").and_then(Value::as_array_mut);
    let tables = views.into_iter().flatten().filter_map(Value::as_table_mut);
    let named = tables.map(|table| {
        let column = table.get("column").and_then(Value::as_str);
        (column.expect("a view has a column").to_owned(), table)
    });
    named.collect()
}

/// The lists of operations: the common ones, and those of each view.
fn lists(document: &mut Table) -> Vec<(Option<String>, &mut Value)> {
    let mut lists = Vec::new();
    let mut of_views = Vec::new();
    for (key, value) in document.iter_mut() {
        match key.as_str() {
            "operation" => lists.push((None, value)),
            "views" => of_views.extend(value.as_array_mut().into_iter().flatten()),
            _ => {}
        }
    }
    for view in of_views.into_iter().filter_map(Value::as_table_mut) {
        let column = view.get("column").and_then(Value::as_str).map(str::to_owned);
        lists.extend(view.get_mut("operations").map(|operations| (column, operations)));
    }
    lists
}

/// Calls a function with each operation of a list, including contained ones.
fn each(value: &mut Value, f: &mut dyn FnMut(&'static Declaration, &mut Table)) {
    match value {
        Value::Table(table) => {
            if let Some(operation) = declaration(table) {
                f(operation, table);
            }
            table.iter_mut().for_each(|(_, inner)| each(inner, f));
        }
        Value::Array(array) => array.iter_mut().for_each(|inner| each(inner, f)),
        Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_) => {}
    }
}

impl Change {
    /// Sets the number of pictures of a view.
    fn set_count(&self, view: &str, document: &mut Table) -> Result<(), ChangeError> {
        let mut views = views(document);
        match views.iter_mut().find(|(column, _)| column == view) {
            Some((_, table)) => {
                table.insert(COUNT.to_owned(), self.value.clone());
                Ok(())
            }
            None => {
                let known = views.into_iter().map(|(column, _)| column).collect();
                Err(ChangeError::NoSuchView { view: view.to_owned(), known })
            }
        }
    }

    /// Sets the value in all operations that the change applies to.
    fn set(
        &self,
        (view, operation): (Option<&str>, Option<&str>),
        document: &mut Table,
    ) -> Result<(), ChangeError> {
        if let Some(view) = view {
            let known: Vec<String> =
                views(document).into_iter().map(|(column, _)| column).collect();
            if !known.iter().any(|column| column == view) {
                return Err(ChangeError::NoSuchView { view: view.to_owned(), known });
            }
        }
        let is_named = |it: &Declaration| operation.is_none_or(|wanted| wanted == it.name);
        let is_about =
            |it: &Declaration| is_named(it) && it.keys.iter().any(|key| key.name == self.key);
        let (mut found, mut keys) = (Vec::new(), Vec::new());
        let mut lists = lists(document);
        lists.retain(|(column, _)| view.is_none_or(|view| column.as_deref() == Some(view)));
        for (column, list) in &mut lists {
            each(list, &mut |it, table| {
                keys.extend(it.keys.iter().map(|key| match operation {
                    Some(_) => format!("{}.{}", it.name, key.name),
                    None => key.name.to_owned(),
                }));
                if is_about(it) {
                    let value = table.get(&self.key).cloned();
                    found.push(KeyMatch { view: column.clone(), operation: it.name, value });
                }
            });
        }
        let Some(first) = found.first() else {
            let key = match operation {
                Some(operation) => format!("{operation}.{}", self.key),
                None => self.key.clone(),
            };
            keys.sort_unstable();
            keys.dedup();
            return Err(ChangeError::NoSuchKey { key, known: keys });
        };
        self.check(first, &found)?;
        for (_, list) in lists {
            each(list, &mut |it, table| {
                if is_about(it) {
                    table.insert(self.key.clone(), self.value.clone());
                }
            });
        }
        Ok(())
    }

    /// Checks that the operations have one name, or one view, or the same value.
    fn check(&self, first: &KeyMatch, found: &[KeyMatch]) -> Result<(), ChangeError> {
        let key = || self.key.clone();
        let differs = |it: &&KeyMatch| it.value != first.value;
        if found.iter().filter(differs).any(|it| it.operation != first.operation) {
            let mut operations = Vec::new();
            for it in found {
                if !operations.contains(&it.operation) {
                    operations.push(it.operation);
                }
            }
            return Err(ChangeError::Ambiguous { key: key(), operations });
        }
        if found.iter().filter(differs).any(|it| it.view != first.view) {
            let mut views: Vec<String> = found.iter().filter_map(|it| it.view.clone()).collect();
            views.dedup();
            let operation = first.operation;
            return Err(ChangeError::AmbiguousView { operation, key: key(), views });
        }
        Ok(())
    }
}
