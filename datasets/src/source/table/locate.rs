//! Finds the table that describes a source: the given one, the one at the top of a folder, or that
//! of a split in a sub-folder.
//!
//! A file that is named like a table but cannot be read as one is an error, since it may contain
//! the labels of the files beside it.

use super::rows::{Format, TableRows, malformed};
use super::types::Columns;
use super::{FILE_COLUMNS, find, no_file_column};
use crate::message::Message;
use crate::source::SourceOptions;
use crate::source::malformed::malformed as malformed_file;
use crate::source::names::TableName;
use crate::store::{FileKind, StorePath};
use crate::{Error, natural_order};
use meetpoint_diagnose::{Change, Remedy, Setting};
use meetpoint_storage::is_of_the_file;

/// Maximum number of entries of a folder that are examined to find its table.
const FOLDER_ENTRIES_MAX: usize = 10_000;
/// Maximum number of tables of a folder that are examined for names of files.
const RECOGNISE_TABLES: usize = 16;
/// Maximum bytes of a row in this examination.
const RECOGNISE_ROW_BYTES: u64 = 1 << 20;
/// Stem of Hugging Face's name for a table of files.
const METADATA: &str = "metadata";
/// Extensions of such a table; JSON and Parquet are refused with a message.
const METADATA_EXTENSIONS: [&str; 7] = ["csv", "jsonl", "tsv", "tab", "ndjson", "json", "parquet"];
/// Additional extensions of compressed tables.
const COMPRESSED: [&str; 3] = ["", ".gz", ".zst"];
/// Maximum number of folders, each the only one in the one before, down to the tables of splits.
const OUTER_FOLDERS_MAX: usize = 16;

/// A table and the files that it describes.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) table: StorePath,
    /// The folder to which names in it are relative.
    pub(super) root: StorePath,
    /// The folder whose files all belong to the source; files without a row are reported.
    pub(super) folder: Option<StorePath>,
    /// The folder out of which links must not lead.
    pub(super) bounds: StorePath,
}

/// Returns the evidence that `path` is a table of files, or a folder with such a table: the names
/// of a file and of a column.
///
/// A table in a folder that cannot be read is an error.
pub fn recognise(path: &StorePath) -> Result<Option<String>, Error> {
    match path.metadata().map(|metadata| metadata.kind) {
        Ok(FileKind::Folder) => {
            let mut tables = metadata_in(path)?;
            if tables.is_empty() {
                tables = tables_in(path)?;
            }
            tables.truncate(RECOGNISE_TABLES);
            tables.iter().try_for_each(check)?;
            tables.extend(splits_of(path)?.into_iter().map(|split| split.table));
            for table in tables {
                let found = look(&table).map_err(|error| with_way_out(error, &table))?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            Ok(None)
        }
        Ok(FileKind::File) => match look(path) {
            Err(Error::Source { path, source }) if hides(&source) => {
                Err(Error::Source { path, source })
            }
            // A file that is not a table may be of another kind.
            Err(_) => Ok(None),
            found => found,
        },
        Ok(FileKind::Link | FileKind::Other) => Ok(None),
        Err(source) if hides(&source) => Err(Error::Source { path: path.to_path_buf(), source }),
        // A pattern is not a file.
        Err(_) => Ok(None),
    }
}

/// Finds the table of a source.
pub(super) fn locate(path: &StorePath, options: &SourceOptions) -> Result<Located, Error> {
    let failed = |source| Error::Source { path: path.to_path_buf(), source };
    let is_folder = path.metadata().map_err(failed)?.kind == FileKind::Folder;
    let beside = |table: &StorePath| match is_folder {
        true => path.clone(),
        false => table.folder(),
    };
    let named = match (&options.table, is_folder) {
        (Some(table), _) => Some(path.given(table)),
        (None, false) => Some(path.clone()),
        (None, true) => None,
    };
    if let Some(table) = named {
        if let Some(split) = &options.split {
            let problem = Message::from(format!("is one table, not the split {split:?}"));
            return Err(malformed_file(
                &table,
                None,
                problem.remedy(Remedy::set(Setting::Split, Change::Off)),
            ));
        }
        let given = options.root.as_ref().map(|root| path.given(root));
        let root = given.unwrap_or_else(|| beside(&table));
        return Ok(Located { table, bounds: root.clone(), root, folder: None });
    }
    let (table, folder, root) = match at_top(path, options)? {
        Some(table) => (table, path.clone(), path.clone()),
        None => {
            let Split { table, folder, .. } = chosen_split(path, options)?;
            let listed = if options.split.is_some() { &folder } else { path };
            (table, listed.clone(), folder)
        }
    };
    Ok(match &options.root {
        Some(root) => {
            let root = path.given(root);
            Located { table, bounds: root.clone(), root, folder: None }
        }
        None => Located { table, root, folder: Some(folder), bounds: path.clone() },
    })
}

/// The table at the top of a folder; `None` if its splits have the tables.
fn at_top(path: &StorePath, options: &SourceOptions) -> Result<Option<StorePath>, Error> {
    if options.split.is_some() {
        return Ok(None);
    }
    if let Some(table) = metadata_of(path)? {
        return Ok(Some(table));
    }
    let tables = tables_in(path)?;
    if !splits_of(path)?.is_empty() {
        let names_files = |table: &StorePath| matches!(look(table), Ok(Some(_)));
        if !tables.iter().any(names_files) {
            return Ok(None);
        }
    }
    match tables.as_slice() {
        [table] => Ok(Some(table.clone())),
        [] => {
            let remedy = Remedy::by("name one", Setting::Table, Change::Other);
            Err(malformed_file(path, None, Message::from("no table in it").remedy(remedy)))
        }
        [first, second, ..] => Err(malformed_file(path, None, several(first, second))),
    }
}

/// The change that reads the folder without a table.
fn as_folder() -> Change {
    Change::To("folder".to_owned())
}

/// The message about two tables.
fn several(first: &StorePath, second: &StorePath) -> Message {
    let (first, second) = (first.display(), second.display());
    let remedy = Remedy::by("name one", Setting::Table, Change::Other);
    Message::from(format!("several tables in it, {first} and {second}")).remedy(remedy.or_by(
        "leave them out",
        Setting::From,
        as_folder(),
    ))
}

/// Examines the names of the columns and the first row of a table.
fn look(table: &StorePath) -> Result<Option<String>, Error> {
    let Some(format) = Format::of(table.path()) else {
        return Ok(None);
    };
    let shown = table.display().to_string();
    let wrong = |problem: Message| malformed(&shown, "line 1".to_owned(), problem);
    let mut rows = TableRows::open_limited(table, format, RECOGNISE_ROW_BYTES)?;
    let mut columns = Columns::named(rows.columns().unwrap_or_default()).map_err(&wrong)?;
    match rows.next()? {
        // Types do not matter here.
        Some(row) => drop(columns.absorb(&row)),
        None if rows.columns().is_none() => return Err(wrong("the table has no rows".into())),
        None => {}
    }
    let name = table.file_name().unwrap_or_default().to_string_lossy();
    match find(&columns, None, &FILE_COLUMNS) {
        Some(index) => {
            Ok(Some(format!("the table {name} has a column {}", columns.all[index].name)))
        }
        None if is_metadata(table) => Err(wrong(no_file_column(&columns))),
        None => Ok(None),
    }
}

/// Adds to an error about a table beside other files how to read them without it.
fn with_way_out(error: Error, table: &StorePath) -> Error {
    match error {
        Error::Malformed { origin, problem } => {
            let name = table.file_name().unwrap_or_default().to_string_lossy();
            let purpose = format!("pack without {name}");
            let remedy = match problem.advice().cloned() {
                Some(remedy) => remedy.or_by(purpose, Setting::From, as_folder()),
                None => Remedy::by(purpose, Setting::From, as_folder()),
            };
            Error::Malformed { origin, problem: problem.remedy(remedy) }
        }
        error => error,
    }
}

/// Whether a failed read leaves unknown what the file or folder is.
fn hides(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::PermissionDenied || !is_of_the_file(error)
}

/// Tables at the top of a folder, in natural order.
fn tables_in(folder: &StorePath) -> Result<Vec<StorePath>, Error> {
    let paths = entries_of(folder)?.into_iter().map(|(path, _)| path);
    let is_table =
        |path: &StorePath| !is_hidden(path) && Format::of(path.path()).is_some() && path.is_file();
    let mut tables: Vec<StorePath> = paths.filter(is_table).collect();
    sort(&mut tables);
    Ok(tables)
}

/// The first entries of a folder.
fn entries_of(folder: &StorePath) -> Result<Vec<(StorePath, FileKind)>, Error> {
    let failed = |source| Error::Source { path: folder.to_path_buf(), source };
    let entries = folder.list().map_err(failed)?.take(FOLDER_ENTRIES_MAX);
    entries.collect::<Result<_, _>>().map_err(failed)
}

fn sort(paths: &mut [StorePath]) {
    paths.sort_by(|left, right| natural_order(&left.shown(), &right.shown()));
}

/// Whether a table has the name that Hugging Face gives it.
pub(super) fn is_metadata(table: &StorePath) -> bool {
    let name = table.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    TableName::of(name).is_some_and(|name| name.is_metadata)
}

/// All entries of a folder named `metadata.*`, in natural order, of any type.
fn metadata_in(folder: &StorePath) -> Result<Vec<StorePath>, Error> {
    let mut found = usual_metadata(folder);
    let entries = entries_of(folder)?.into_iter().map(|(path, _)| path);
    found.extend(entries.filter(is_metadata));
    sort(&mut found);
    found.dedup_by(|left, right| left.path() == right.path());
    Ok(found)
}

/// The table `metadata.*` of a folder, which must be the only one.
fn metadata_of(folder: &StorePath) -> Result<Option<StorePath>, Error> {
    let mut found = metadata_in(folder)?;
    if let [first, second, ..] = found.as_slice() {
        return Err(malformed_file(folder, None, several(first, second)));
    }
    let Some(table) = found.pop() else { return Ok(None) };
    check(&table).map(|()| Some(table))
}

/// Returns an error for a table that is not a regular file or has an unsupported format.
fn check(table: &StorePath) -> Result<(), Error> {
    let kind = table.metadata().map(|metadata| metadata.kind);
    let problem = match kind {
        Ok(FileKind::File) if Format::of(table.path()).is_some() => return Ok(()),
        Ok(FileKind::File) => Message::from(
            "tables of files are read from CSV, TSV and JSON Lines, plain, .gz or .zst",
        )
        .remedy("write it as metadata.csv or metadata.jsonl"),
        Ok(FileKind::Folder) => {
            Message::from("a folder that has the name of a table").remedy("rename it")
        }
        Ok(FileKind::Link | FileKind::Other) => {
            Message::from("a pipe, socket or device, not a regular file")
                .remedy("replace it with the table")
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Message::from("a link that leads nowhere").remedy("replace it with the table")
        }
        Err(source) => return Err(Error::Source { path: table.to_path_buf(), source }),
    };
    Err(with_way_out(malformed_file(table, None, problem), table))
}

/// The entries with one of the usual names of such a table, of any type. The names are tried one by
/// one, since a folder may have more entries than are examined.
fn usual_metadata(folder: &StorePath) -> Vec<StorePath> {
    let names = METADATA_EXTENSIONS.iter().flat_map(|extension| {
        COMPRESSED.iter().map(move |suffix| format!("{METADATA}.{extension}{suffix}"))
    });
    let paths = names.map(|name| folder.join(name));
    // A dangling link counts too.
    paths.filter(|path| path.exists() || path.is_link()).collect()
}

/// A sub-folder with a separate table, the layout of Hugging Face for splits of a folder of images.
#[derive(Debug)]
struct Split {
    name: String,
    folder: StorePath,
    table: StorePath,
}

/// The splits of a folder, in natural order: its sub-folders with a table. If it has none and its
/// only sub-folder is not one, those of that sub-folder, and so on.
fn splits_of(path: &StorePath) -> Result<Vec<Split>, Error> {
    let mut outer = path.clone();
    for _ in 0..OUTER_FOLDERS_MAX {
        let mut splits = Vec::new();
        let mut folders = folders_in(&outer)?;
        for folder in &folders {
            if let (Some(name), Some(table)) = (name_of(folder), metadata_of(folder)?) {
                splits.push(Split { name, folder: folder.clone(), table });
            }
        }
        match (splits.is_empty(), folders.pop()) {
            (true, Some(only)) if folders.is_empty() => outer = only,
            _ => return Ok(splits),
        }
    }
    Ok(Vec::new())
}

fn name_of(folder: &StorePath) -> Option<String> {
    folder.file_name()?.to_str().map(str::to_owned)
}

fn is_hidden(path: &StorePath) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Sub-folders that are not hidden, in natural order.
fn folders_in(path: &StorePath) -> Result<Vec<StorePath>, Error> {
    let is_folder = |(path, kind): &(StorePath, FileKind)| {
        let is_one = match kind {
            FileKind::Folder => true,
            FileKind::Link => path.is_dir(),
            FileKind::File | FileKind::Other => false,
        };
        is_one && !is_hidden(path)
    };
    let entries = entries_of(path)?.into_iter().filter(is_folder);
    let mut folders: Vec<StorePath> = entries.map(|(path, _)| path).collect();
    sort(&mut folders);
    Ok(folders)
}

/// The split to read: the one in the options, or the only sub-folder.
fn chosen_split(path: &StorePath, options: &SourceOptions) -> Result<Split, Error> {
    let mut splits = splits_of(path)?;
    let outer = splits.first().map_or_else(|| path.clone(), |split| split.folder.folder());
    let names: Vec<String> = splits.iter().map(|split| split.name.clone()).collect();
    let names = names.join(", ");
    match &options.split {
        Some(asked) => match splits.into_iter().find(|split| split.name == *asked) {
            Some(split) => Ok(split),
            None if names.is_empty() => {
                let remedy = Remedy::set(Setting::Split, Change::Off);
                Err(malformed_file(
                    path,
                    None,
                    Message::from("no sub-folder with a table in it").remedy(remedy),
                ))
            }
            None => {
                let problem = Message::from(format!("has no split {asked:?}"));
                Err(malformed_file(path, None, problem.remedy(format!("choose one of {names}"))))
            }
        },
        None => match (splits.pop(), folders_in(&outer)?.len()) {
            (Some(only), 1) => Ok(only),
            _ => Err(malformed_file(
                path,
                None,
                Message::from(format!(
                    "sub-folders have tables of their own ({names}), each a dataset"
                ))
                .remedy(
                    Remedy::by("choose one", Setting::Split, Change::Other).or_by(
                        "leave the tables out",
                        Setting::From,
                        as_folder(),
                    ),
                ),
            )),
        },
    }
}
