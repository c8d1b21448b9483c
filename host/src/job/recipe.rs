//! The recipe of a job: a file or a shipped recipe that it names, or `[[recipe.operation]]` tables
//! in the job file, with those of its targets.

use super::JobError;
use super::table::{Source, Table};
use meetpoint_diagnose::{Diagnose, Remedy};
use meetpoint_format::recipe::{Recipe, RecipeError};
use meetpoint_prepare::{RecipeFileError, read_recipe, read_recipe_files};
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The form of a `recipe` key.
const REMEDY: &str =
    "the path of a recipe file, the name of a shipped recipe, or [[recipe.operation]] tables";

/// Refuses the tables of a recipe at the top level of a job: they belong below `recipe`.
pub(super) fn refuse_at_top(table: &Table<'_>) -> Result<(), JobError> {
    let spelled = [
        ("operation", "[[recipe.operation]]"),
        ("views", "[[recipe.views]]"),
        ("targets", "[recipe.targets.COLUMN]"),
    ];
    let Some((key, header)) = spelled.into_iter().find(|(key, _)| table.value(key).is_some())
    else {
        return Ok(());
    };
    let remedy = match table.value("recipe").map(Spanned::get_ref) {
        Some(DeValue::String(_)) => "leave it out, or put it into the recipe that `recipe` names",
        _ => return Err(unknown(table, key, format!("write {header}"))),
    };
    Err(unknown(table, key, remedy))
}

fn unknown(table: &Table<'_>, key: &str, remedy: impl Into<Remedy>) -> JobError {
    table.fault_at(key, format!("unknown key `{key}`"), remedy)
}

/// Reads the recipe of a job file; relative paths start at `folder`.
pub(super) fn read(table: &Table<'_>, folder: &Path) -> Result<Arc<Recipe>, JobError> {
    let Some(value) = table.value("recipe") else {
        return Err(table.missing("recipe", REMEDY));
    };
    match value.get_ref() {
        DeValue::String(name) => from_file(table, Path::new(name.as_ref()), folder),
        DeValue::Table(_) => with_files(table, from_tables(table)?, folder),
        _ => Err(table.wrong_at("recipe", REMEDY)),
    }
    .map(Arc::new)
}

/// Reads the files that a recipe in the job file needs; relative paths start at `folder`.
fn with_files(table: &Table<'_>, recipe: Recipe, folder: &Path) -> Result<Recipe, JobError> {
    let recipe = meetpoint_prepare::begin_files_at(recipe, folder);
    read_recipe_files(recipe).map_err(|error| {
        let offset = table.value("recipe").map_or(0, |value| value.span().start);
        let correct = || Remedy::advice("correct the path; it is relative to the job file");
        table.source.fault(offset, error.to_string(), error.remedy().unwrap_or_else(correct))
    })
}

fn from_file(table: &Table<'_>, name: &Path, folder: &Path) -> Result<Recipe, JobError> {
    read_recipe(name, folder).map_err(|error| {
        let cause = error.cause();
        let remedy = error.remedy();
        match error {
            RecipeFileError::Recipe { path, source } => JobError {
                file: path,
                place: source.place,
                cause,
                problem: source.located(),
                remedy: source.remedy.into(),
            },
            error => {
                let offset = table.value("recipe").map_or(0, |value| value.span().start);
                let correct = || Remedy::advice("correct the path; it is relative to the job file");
                let remedy = match &error {
                    RecipeFileError::NotRead { .. } => correct(),
                    RecipeFileError::Unknown { .. }
                    | RecipeFileError::Ambiguous { .. }
                    | RecipeFileError::File { .. }
                    | RecipeFileError::Recipe { .. } => remedy.unwrap_or_else(correct),
                };
                table.source.fault(offset, error.to_string(), remedy)
            }
        }
    })
}

/// One line of a recipe that was written out, and where its parts are in the job file.
struct Line {
    text: String,
    /// First byte of the key, or of the table.
    key_at: usize,
    /// First byte of the value.
    value_at: usize,
    /// Columns before the value.
    value_column: usize,
}

/// Writes the operations, views and targets out, one key per line, parses them with the recipe's
/// own parser, and maps its errors back to positions in the job file.
fn from_tables(table: &Table<'_>) -> Result<Recipe, JobError> {
    let recipe = table.table("recipe")?.expect("it was seen to be a table");
    recipe.allow(&["operation", "views", "targets"])?;
    let lines = write_out(&recipe)?;
    let text: String = lines.iter().map(|line| format!("{}\n", line.text)).collect();
    Recipe::from_toml(&text).map_err(|error| put_back(&table.source, &lines, error))
}

fn write_out(recipe: &Table<'_>) -> Result<Vec<Line>, JobError> {
    let mut lines = Vec::new();
    let source = recipe.source.text;
    for key in ["operation", "views"] {
        let remedy = &format!("tables: [[recipe.{key}]], with two brackets");
        let Some(tables) = recipe.value(key) else { continue };
        let DeValue::Array(tables) = tables.get_ref() else {
            return Err(recipe.wrong_at(key, remedy));
        };
        for table in tables {
            let DeValue::Table(entries) = table.get_ref() else {
                return Err(recipe.wrong_at(key, remedy));
            };
            write_table(format!("[[{key}]]"), table.span().start, entries, source, &mut lines);
        }
    }
    let remedy = "tables: [recipe.targets.COLUMN]";
    if let Some(targets) = recipe.value("targets") {
        let DeValue::Table(targets) = targets.get_ref() else {
            return Err(recipe.wrong_at("targets", remedy));
        };
        for (column, target) in targets {
            let DeValue::Table(entries) = target.get_ref() else {
                return Err(recipe.wrong_at("targets", remedy));
            };
            let header = format!("[targets.{}]", quoted(column.get_ref().as_ref()));
            write_table(header, target.span().start, entries, source, &mut lines);
        }
    }
    Ok(lines)
}

/// Writes a table that begins at a byte of the job file.
fn write_table(
    header: String,
    start: usize,
    entries: &DeTable<'_>,
    source: &str,
    lines: &mut Vec<Line>,
) {
    lines.push(Line { text: header, key_at: start, value_at: start, value_column: 0 });
    for (key, value) in entries {
        let before = format!("{} = ", quoted(key.get_ref().as_ref()));
        lines.push(Line {
            text: format!("{before}{}", on_one_line(value, source)),
            key_at: key.span().start,
            value_at: value.span().start,
            value_column: before.chars().count(),
        });
    }
}

/// A value as written in `source`, without line breaks.
fn on_one_line(value: &Spanned<DeValue<'_>>, source: &str) -> String {
    match value.get_ref() {
        DeValue::String(text) => quoted(text.as_ref()),
        DeValue::Array(elements) => {
            let elements = elements.iter().map(|element| on_one_line(element, source));
            format!("[{}]", elements.collect::<Vec<_>>().join(", "))
        }
        DeValue::Table(entries) => {
            let entries = entries.iter().map(|(key, value)| {
                format!("{} = {}", quoted(key.get_ref().as_ref()), on_one_line(value, source))
            });
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        // Numbers, booleans and dates are on one line.
        _ => source[value.span()].to_owned(),
    }
}

/// A quoted text, with the escapes that TOML requires.
fn quoted(text: &str) -> String {
    let escaped = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

fn put_back(source: &Source<'_>, lines: &[Line], error: RecipeError) -> JobError {
    let cause = error.cause();
    let problem = error.located();
    let RecipeError { place, remedy, .. } = error;
    let found = place.and_then(|(line, column)| Some((lines.get(line.checked_sub(1)?)?, column)));
    let offset = found.map(|(line, column)| match column > line.value_column {
        true => line.value_at,
        false => line.key_at,
    });
    JobError {
        file: source.file.to_path_buf(),
        place: offset.map(|offset| source.place(offset)),
        cause,
        problem,
        remedy: remedy.into(),
    }
}
