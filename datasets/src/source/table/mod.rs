//! Files that a table names: a folder with a CSV, TSV or JSON Lines file beside them.
//!
//! In reading order: `quotes` (is a field left open), `rows` (of the table), `types` (of its
//! columns). The table is gone through twice: for the types and the names of the classes, then for
//! the samples. Memory: the names of the classes, and one record batch of samples.

mod quotes;
mod rows;
mod types;

use super::columns::{Cell, Gather, Shape};
use super::gathered::{Advance, Gathered};
use super::links::{self, Links};
use super::names::{kind_of, relative_path};
use super::tar::WHOLE_KEY;
use super::{
    Content, ContentKind, Entry, Finished, Item, Size, Source, SourceOptions, SourceSchema, Whence,
};
use crate::{Error, LeftOut, natural_order};
use meetpoint_format::dataset::schema::{IMAGE_BYTES_MAX, KEY_BYTES_MAX};
use rows::{Format, Row, Rows, malformed};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use types::Columns;

/// What this is, for errors.
const WORDS: &str = "files that a table names";
/// Names of the column with the files, the likeliest first; `file_name` is that of Hugging Face.
const FILE_COLUMNS: [&str; 13] = [
    "file_name",
    "filename",
    "file",
    "path",
    "file_path",
    "filepath",
    "image",
    "image_path",
    "img",
    "img_path",
    "image_name",
    "audio",
    "audio_path",
];
/// Names of the column with the label, the likeliest first.
const LABEL_COLUMNS: [&str; 5] = ["label", "class", "category", "target", "class_name"];
/// Columns that every dataset has.
const RESERVED: [&str; 4] = ["key", "label", "crc32c", "entry_points"];
/// Entries of a folder that are looked at to find its table.
const FOLDER_ENTRIES_MAX: usize = 10_000;
/// Tables of a folder that are looked at to find out whether one names the files beside it.
const RECOGNISE_TABLES: usize = 16;
/// Longest row that is read for that.
const RECOGNISE_ROW_BYTES: u64 = 1 << 20;
/// Names of classes.
const CLASSES_MAX: usize = 1 << 20;

/// Says by what `path` is known to be a table of files, or a folder that holds one: the name of a
/// file, and that of a column.
///
/// A table in a folder that does not read is an error, since it may hold the labels of the files
/// beside it.
pub fn recognise(path: &Path) -> Result<Option<String>, Error> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            let mut tables = tables_in(path);
            if let Some(metadata) = tables.iter().position(|table| is_metadata(table)) {
                tables = vec![tables.swap_remove(metadata)];
            }
            for table in tables.iter().take(RECOGNISE_TABLES) {
                let found = look(table).map_err(|error| with_way_out(error, table))?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            Ok(None)
        }
        // What does not read as a table may be something else.
        Ok(metadata) if metadata.is_file() => Ok(look(path).unwrap_or(None)),
        _ => Ok(None),
    }
}

/// Looks at the names of the columns and the first row of a table.
fn look(table: &Path) -> Result<Option<String>, Error> {
    let Some(format) = Format::of(table) else {
        return Ok(None);
    };
    let shown = table.display().to_string();
    let wrong = |problem: String| malformed(&shown, "line 1".to_owned(), &problem);
    let mut rows = Rows::open_limited(table, format, RECOGNISE_ROW_BYTES)?;
    let mut columns = Columns::named(rows.columns().unwrap_or_default()).map_err(wrong)?;
    match rows.next()? {
        // Types do not matter here.
        Some(row) => drop(columns.absorb(&row)),
        None if rows.columns().is_none() => return Err(wrong("the table has no rows".to_owned())),
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

/// Adds to an error about a table beside other files how to do without the table.
fn with_way_out(error: Error, table: &Path) -> Error {
    match error {
        Error::Malformed { whence, problem } => {
            let name = table.file_name().unwrap_or_default().to_string_lossy();
            let problem = format!("{problem}; to pack without {name}, use --from folder");
            Error::Malformed { whence, problem }
        }
        error => error,
    }
}

fn no_file_column(columns: &Columns) -> String {
    format!(
        "no column with the names of the files, such as file_name; name it with --from table \
         --content: {}",
        names(columns)
    )
}

/// Tables at the top of a folder, in natural order.
fn tables_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(FOLDER_ENTRIES_MAX);
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let is_table = |path: &PathBuf| {
        let is_hidden = path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
        !is_hidden && Format::of(path).is_some() && path.is_file()
    };
    let mut tables: Vec<PathBuf> = paths.filter(is_table).collect();
    tables.sort_by(|left, right| natural_order(&left.to_string_lossy(), &right.to_string_lossy()));
    tables
}

/// Whether a table has the name that Hugging Face gives it.
fn is_metadata(table: &Path) -> bool {
    let name = table.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.split('.').next() == Some("metadata")
}

/// The column of one of these names.
fn named(columns: &Columns, names: &[&str]) -> Option<usize> {
    names.iter().find_map(|name| {
        columns.all.iter().position(|column| column.name.eq_ignore_ascii_case(name))
    })
}

/// Opens a table, or the one in a folder.
///
/// Options: `table` (its file, where a folder holds several), `root` (the folder that names are
/// relative to, else that of the table), `content` (the column with the names of the files),
/// `label`,
/// `key` (else `meetpoint.key`, else the name of the file), `kind`, `columns`.
pub fn open(path: &Path, options: &SourceOptions) -> Result<Box<dyn Source>, Error> {
    let known = ["content", "kind", "label", "key", "columns", "table", "root"];
    options.allow_only(WORDS, &known)?;
    let (table, root) = places(path, options)?;
    let links = Links::below(&root, options.follow_links)?;
    // One that the user names may lie anywhere.
    if table != *path
        && options.table.is_none()
        && let Some(target) = links.leads_out(&table)
    {
        return Err(Error::LinkLeadsOut { link: table, target });
    }
    let shown = table.display().to_string();
    let wrong = |problem: String| {
        let whence = Whence { file: shown.clone(), ..Whence::default() };
        Error::Malformed { whence: Box::new(whence), problem }
    };
    let format = Format::of(&table).ok_or_else(|| {
        wrong("no table by its name; expected .csv, .tsv, .jsonl or .ndjson".to_owned())
    })?;
    let plan = Plan::of(&table, format, options, &wrong)?;
    let columns: Vec<(String, Shape)> =
        plan.extra.iter().map(|column| (column.name.clone(), column.shape.clone())).collect();
    let gather = Gather::new(&columns);
    let name = match plan.kind {
        ContentKind::None => "",
        kind => kind.name(),
    };
    Ok(Box::new(Gathered::new(
        TableSource {
            schema: SourceSchema {
                kind: plan.kind,
                name: name.to_owned(),
                extra: gather.schema().clone(),
            },
            rows: Rows::open(&table, format)?,
            shown,
            root,
            links,
            plan,
        },
        gather,
    )))
}

/// The table, and the folder that names in it are relative to.
fn places(path: &Path, options: &SourceOptions) -> Result<(PathBuf, PathBuf), Error> {
    let failed = |source| Error::Source { path: path.to_path_buf(), source };
    let is_folder = std::fs::metadata(path).map_err(failed)?.is_dir();
    let table = match (&options.table, is_folder) {
        (Some(table), _) => table.clone(),
        (None, false) => path.to_path_buf(),
        (None, true) => {
            let tables = tables_in(path);
            let best = tables.iter().find(|table| is_metadata(table));
            let found = match (best, tables.as_slice()) {
                (Some(table), _) | (None, [table]) => Ok(table.clone()),
                (None, []) => Err("no table in it; name one with --table".to_owned()),
                (None, [first, second, ..]) => Err(format!(
                    "several tables in it, {} and {}; name one with --from table --table, or leave \
                     them out with --from folder",
                    first.display(),
                    second.display()
                )),
            };
            found.map_err(|problem| {
                let whence = Whence { file: path.display().to_string(), ..Whence::default() };
                Error::Malformed { whence: Box::new(whence), problem }
            })?
        }
    };
    let root = match &options.root {
        Some(root) => root.clone(),
        None if is_folder => path.to_path_buf(),
        None => table.parent().unwrap_or(Path::new("")).to_path_buf(),
    };
    Ok((table, root))
}

/// A further column.
struct Extra {
    index: usize,
    /// In the table.
    from: String,
    name: String,
    shape: Shape,
}

/// What is known of a table after the first pass.
struct Survey {
    columns: Columns,
    /// Texts of each column that may be the label.
    texts: HashMap<usize, BTreeSet<String>>,
    /// What the files of each column are that may name them.
    kinds: HashMap<usize, BTreeSet<&'static str>>,
    samples: u64,
}

impl Survey {
    /// Goes through a table.
    fn of(
        table: &Path,
        format: Format,
        options: &SourceOptions,
        wrong: &dyn Fn(String) -> Error,
    ) -> Result<Self, Error> {
        let mut rows = Rows::open(table, format)?;
        let shown = table.display().to_string();
        let mut columns = Columns::named(rows.columns().unwrap_or_default()).map_err(wrong)?;
        let mut texts: HashMap<usize, BTreeSet<String>> = HashMap::new();
        let mut kinds: HashMap<usize, BTreeSet<&'static str>> = HashMap::new();
        while let Some(row) = rows.next()? {
            let place = || format!("row {}", rows.count);
            columns.absorb(&row).map_err(|problem| malformed(&shown, place(), &problem))?;
            if let Some(index) = find(&columns, options.label.as_deref(), &LABEL_COLUMNS) {
                let texts = texts.entry(index).or_default();
                let text = types::text(&row, index, &columns.all[index].name);
                texts.extend(text.filter(|_| texts.len() <= CLASSES_MAX));
            }
            if let Some(index) = find(&columns, options.content.as_deref(), &FILE_COLUMNS)
                && let Some(file) = types::text(&row, index, &columns.all[index].name)
            {
                let kind = kind_of(super::names::extension(&file));
                kinds.entry(index).or_default().insert(kind.name());
            }
        }
        if rows.count == 0 {
            return Err(wrong("the table has no rows".to_owned()));
        }
        Ok(Self { columns, texts, kinds, samples: rows.count })
    }
}

/// What the columns of a table become.
struct Plan {
    file: (usize, String),
    key: Option<(usize, String)>,
    /// Whether the key of a row without one is the name of its file.
    may_lack_key: bool,
    label: Option<(usize, String)>,
    kind: ContentKind,
    /// Index of each class by its name; empty where labels are integers.
    classes: HashMap<String, i32>,
    labels: Vec<String>,
    extra: Vec<Extra>,
    samples: u64,
}

impl Plan {
    /// For what a first pass found.
    fn of(
        table: &Path,
        format: Format,
        options: &SourceOptions,
        wrong: &dyn Fn(String) -> Error,
    ) -> Result<Self, Error> {
        let Survey { columns, mut texts, mut kinds, samples } =
            Survey::of(table, format, options, wrong)?;
        let with_name = |index: usize| (index, columns.all[index].name.clone());
        let file = column(&columns, "content", options.content.as_deref(), &FILE_COLUMNS)
            .map_err(wrong)?
            .ok_or_else(|| wrong(no_file_column(&columns)))?;
        let key = column(&columns, "key", options.key.as_deref(), &[WHOLE_KEY]).map_err(wrong)?;
        let label = label(&columns, options, file).map_err(wrong)?;
        let texts = label.and_then(|index| texts.remove(&index)).unwrap_or_default();
        let mut labels = Vec::new();
        if label.is_some_and(|index| columns.all[index].shape() == Shape::Text) {
            if texts.len() > CLASSES_MAX {
                return Err(wrong(format!(
                    "more than {CLASSES_MAX} different labels; name another column with --label"
                )));
            }
            labels = texts.into_iter().collect();
            labels.sort_by(|left, right| natural_order(left, right));
        }
        let classes = labels.iter().enumerate().map(|(index, label)| {
            (label.clone(), i32::try_from(index).expect("at most 2^20 classes"))
        });
        let kinds = kinds.remove(&file).unwrap_or_default();
        let kind = options.kind.unwrap_or_else(|| match kinds.iter().next() {
            Some(kind) if kinds.len() == 1 => {
                let all = ContentKind::ALL.into_iter();
                all.into_iter().find(|known| known.name() == *kind).unwrap_or(ContentKind::Bytes)
            }
            _ => ContentKind::Bytes,
        });
        let taken = [Some(file), label, key];
        let extra = extras(&columns, &taken, kind.name(), options.columns.as_deref());
        Ok(Self {
            file: with_name(file),
            key: key.map(with_name),
            may_lack_key: options.key.is_none(),
            label: label.map(with_name),
            kind,
            classes: classes.collect(),
            labels,
            extra: extra.map_err(wrong)?,
            samples,
        })
    }
}

/// The column that was asked for, or the first of the usual names.
fn find(columns: &Columns, asked: Option<&str>, usual: &[&str]) -> Option<usize> {
    match asked {
        Some(asked) => columns.index(asked),
        None => named(columns, usual),
    }
}

/// The same, where it is an error that what was asked for is not there.
fn column(
    columns: &Columns,
    option: &str,
    asked: Option<&str>,
    usual: &[&str],
) -> Result<Option<usize>, String> {
    match (find(columns, asked, usual), asked) {
        (None, Some(asked)) => {
            Err(format!("no column {asked} (--{option}); there are {}", names(columns)))
        }
        (found, _) => Ok(found),
    }
}

fn label(columns: &Columns, options: &SourceOptions, file: usize) -> Result<Option<usize>, String> {
    let asked = options.label.as_deref();
    let found = column(columns, "label", asked, &LABEL_COLUMNS)?;
    let Some(index) = found.filter(|index| *index != file) else {
        return Ok(None);
    };
    match (columns.all[index].shape(), asked) {
        (Shape::Int | Shape::Text, _) => Ok(Some(index)),
        (_, None) => Ok(None),
        (shape, Some(asked)) => {
            Err(format!("{asked} is {}; a label is an integer or a name", shape.name()))
        }
    }
}

fn names(columns: &Columns) -> String {
    let names: Vec<&str> = columns.all.iter().map(|column| column.name.as_str()).collect();
    names.join(", ")
}

/// The columns that are nothing else, or those of them that were asked for.
fn extras(
    columns: &Columns,
    taken: &[Option<usize>],
    content: &str,
    asked: Option<&[String]>,
) -> Result<Vec<Extra>, String> {
    let extra = |index: usize| {
        let column = &columns.all[index];
        let is_reserved = RESERVED.contains(&column.name.as_str()) || column.name == content;
        let is_reserved = is_reserved || column.name.is_empty();
        let name = match is_reserved {
            true => format!("table.{}", column.name),
            false => column.name.clone(),
        };
        Extra { index, from: column.name.clone(), name, shape: column.shape() }
    };
    match asked {
        None => {
            let free = (0..columns.all.len()).filter(|index| !taken.contains(&Some(*index)));
            Ok(free.map(extra).collect())
        }
        Some(asked) => asked
            .iter()
            .map(|name| match columns.index(name) {
                Some(index) => Ok(extra(index)),
                None => Err(format!("no column {name} (--columns); there are {}", names(columns))),
            })
            .collect(),
    }
}

struct TableSource {
    schema: SourceSchema,
    rows: Rows,
    shown: String,
    root: PathBuf,
    links: Links,
    plan: Plan,
}

impl Advance for TableSource {
    fn schema(&self) -> &SourceSchema {
        &self.schema
    }

    fn size(&self) -> Size {
        Size { samples: Some(self.plan.samples), bytes: None }
    }

    fn advance(&mut self, to: &mut Gather) -> Result<bool, Error> {
        let Some(row) = self.rows.next()? else {
            return Ok(false);
        };
        match self.item(&row) {
            Ok((item, cells)) => {
                to.push(item, cells).map_err(|problem| self.changed(&problem))?;
            }
            Err(reason) => {
                let path = format!("{}, row {}", self.shown, self.rows.count);
                to.note(Entry::Unreadable(LeftOut { path, reason }));
            }
        }
        Ok(true)
    }

    fn changed(&self, problem: &str) -> Error {
        let problem = format!("{problem}; nothing may write to a source while it is packed");
        malformed(&self.shown, format!("row {}", self.rows.count), &problem)
    }

    fn finish(&mut self) -> Finished {
        Finished { labels: self.plan.labels.clone() }
    }
}

impl TableSource {
    /// The sample of a row; why it is none, in words.
    fn item(&mut self, row: &Row) -> Result<(Item, Vec<Cell>), String> {
        let plan = &self.plan;
        let text = |(index, name): &(usize, String)| types::text(row, *index, name);
        let named = text(&plan.file).ok_or_else(|| format!("no file in {}", plan.file.1))?;
        let file = relative_path(named.as_bytes()).map_err(|why| format!("{named}: {why}"))?;
        let key = match &plan.key {
            None => file.clone(),
            Some(column) => match text(column) {
                Some(key) => key,
                None if plan.may_lack_key => file.clone(),
                None => return Err(format!("no key in {}", column.1)),
            },
        };
        if key.len() > KEY_BYTES_MAX {
            return Err(format!("its key has {} bytes, the limit is {KEY_BYTES_MAX}", key.len()));
        }
        let path = self.root.join(&file);
        if let Some(target) = self.links.path_leads_out(&path) {
            return Err(format!("{file} is {}", links::words(&target)));
        }
        let metadata = std::fs::metadata(&path).map_err(|error| format!("{file}: {error}"))?;
        if !metadata.is_file() {
            return Err(format!("{file} is not a regular file"));
        }
        if metadata.len() > IMAGE_BYTES_MAX {
            let bytes = metadata.len();
            return Err(format!("{file} has {bytes} bytes, the limit is {IMAGE_BYTES_MAX}"));
        }
        let label = match plan.label.as_ref().and_then(&text) {
            None => None,
            Some(label) if plan.classes.is_empty() => {
                let number = label.parse::<i32>();
                Some(number.map_err(|_| format!("{label} is no label: an integer of 32 bits"))?)
            }
            Some(label) => Some(*plan.classes.get(&label).ok_or("its label came after the rest")?),
        };
        let cells = plan.extra.iter();
        let cells = cells.map(|extra| types::cell(row, extra.index, &extra.from, &extra.shape));
        let whence = Whence {
            file: self.shown.clone(),
            member: Some(format!("row {}", self.rows.count)),
            offset: None,
        };
        let content = Content::File { path, bytes: metadata.len() };
        Ok((Item { key, whence, content, label, extra: None }, cells.collect()))
    }
}
