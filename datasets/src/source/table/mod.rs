//! Files listed in a table: a CSV, TSV or JSON Lines file beside them.
//!
//! In reading order: `quotes` (unclosed quotes), `rows` (of the table), `types` (of its columns),
//! `locate` (finds the table), `unlisted` (files without a row). The table is read twice: for the
//! types and the names of the classes, then for the samples. Memory: the names of the classes, one
//! record batch of samples, and for a folder 16 bytes per row and its list of names.

mod locate;
mod quotes;
mod row;
mod rows;
mod types;
mod unlisted;

use super::columns::{Cell, Gather, Shape};
use super::json::whole_number;
use super::links::Links;
use super::names::{kind_of, relative_path};
use super::reader_source::{ReaderSource, SampleReader};
use super::tar::WHOLE_KEY;
use super::unused_label::{LABEL_NAME, UnusedLabel};
use super::{
    Content, ContentKind, Entry, Finished, Item, SampleOrigin, Size, Source, SourceOptions,
    SourceSchema,
};
use crate::error::link_leads_out;
use crate::message::Message;
use crate::store::{FileKind, StorePath};
use crate::{Error, LeftOut, natural_order};
pub use locate::recognise;
use locate::{Located, locate};
use meetpoint_diagnose::{Change, Remedy, Setting};
use meetpoint_format::dataset::schema::{IMAGE_BYTES_MAX, KEY_BYTES_MAX};
use row::TableRow;
use rows::{Format, TableRows, malformed};
use std::collections::{BTreeSet, HashMap};
use types::Columns;
use unlisted::UnlistedFiles;

/// Description for errors.
const WORDS: &str = "files that a table names";
/// Names of the column with the files, in order of precedence; Hugging Face uses `file_name`.
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
/// Names of the column with the label, in order of precedence.
const LABEL_COLUMNS: [&str; 5] = [LABEL_NAME, "class", "category", "target", "class_name"];
/// Columns that every dataset has.
const RESERVED: [&str; 4] = ["key", "label", "crc32c", "entry_points"];
/// Maximum number of names of classes.
const CLASSES_MAX: usize = 1 << 20;

fn no_file_column(columns: &Columns) -> Message {
    let purpose = format!("name it, one of {},", names(columns));
    Message::from("no column with the names of the files, such as file_name").remedy(
        Remedy::by(purpose, Setting::Content, Change::Other).or_by(
            "pack the table itself",
            Setting::From,
            Change::To("table".to_owned()),
        ),
    )
}

/// The first column with one of these names.
fn named(columns: &Columns, names: &[&str]) -> Option<usize> {
    names.iter().find_map(|name| {
        columns.all.iter().position(|column| column.name.eq_ignore_ascii_case(name))
    })
}

/// Opens a table, or the table in a folder.
///
/// Options: `table` (its file, if a folder contains several), `root` (the folder to which names are
/// relative, else that of the table), `split` (the sub-folder with the table), `content` (the
/// column with the names of the files), `label`, `key` (else `meetpoint.key`, else the name of the
/// file), `kind`, `columns`.
pub fn open(path: &StorePath, options: &SourceOptions) -> Result<Box<dyn Source>, Error> {
    let known = [
        Setting::Content,
        Setting::Kind,
        Setting::Label,
        Setting::Key,
        Setting::Columns,
        Setting::Split,
        Setting::Table,
        Setting::Root,
    ];
    options.allow_only(WORDS, &known)?;
    let Located { table, root, folder, bounds } = locate(path, options)?;
    let links = Links::below(&bounds, options.follow_links)?;
    // A table that the user names may be anywhere.
    if table.path() != path.path()
        && options.table.is_none()
        && let Some(target) = links.leads_out(&table)
    {
        return Err(Error::LinkLeadsOut { link: table.to_path_buf(), target });
    }
    let shown = table.display().to_string();
    let wrong = |problem: Message| {
        let origin = SampleOrigin { file: shown.clone(), ..SampleOrigin::default() };
        Error::Malformed { origin: Box::new(origin), problem }
    };
    let format = Format::of(table.path()).ok_or_else(|| {
        wrong("not a table by its name; expected .csv, .tsv, .jsonl or .ndjson".into())
    })?;
    let plan = TablePlan::of(&table, format, options, &wrong)?;
    let columns: Vec<(String, Shape)> =
        plan.extra.iter().map(|column| (column.name.clone(), column.shape.clone())).collect();
    let gather = Gather::new(&columns);
    let name = match plan.kind {
        ContentKind::None => "",
        kind => kind.name(),
    };
    Ok(Box::new(ReaderSource::new(
        TableSource {
            schema: SourceSchema {
                kind: plan.kind,
                name: name.to_owned(),
                extra: gather.schema().clone(),
                prepared: None,
            },
            rows: TableRows::open(&table, format)?,
            shown,
            root,
            links,
            unlisted: folder.map(|folder| UnlistedFiles::new(folder, &table)),
            follow_links: options.follow_links,
            plan,
        },
        gather,
    )))
}

/// A further column.
struct Extra {
    index: usize,
    /// Index in the table.
    from: String,
    name: String,
    shape: Shape,
}

/// The result of the first pass over a table.
struct Survey {
    columns: Columns,
    /// Distinct values of each column that may be the label.
    texts: HashMap<usize, BTreeSet<String>>,
    /// Kinds of the files named in each column that may contain names.
    kinds: HashMap<usize, BTreeSet<&'static str>>,
    samples: u64,
}

impl Survey {
    /// Reads a table.
    fn of(
        table: &StorePath,
        format: Format,
        options: &SourceOptions,
        wrong: &dyn Fn(Message) -> Error,
    ) -> Result<Self, Error> {
        let mut rows = TableRows::open(table, format)?;
        let shown = table.display().to_string();
        let mut columns = Columns::named(rows.columns().unwrap_or_default()).map_err(wrong)?;
        let mut texts: HashMap<usize, BTreeSet<String>> = HashMap::new();
        let mut kinds: HashMap<usize, BTreeSet<&'static str>> = HashMap::new();
        while let Some(row) = rows.next()? {
            let place = || format!("row {}", rows.count);
            columns.absorb(&row).map_err(|problem| malformed(&shown, place(), problem))?;
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
            return Err(wrong("the table has no rows".into()));
        }
        Ok(Self { columns, texts, kinds, samples: rows.count })
    }
}

/// The roles of a table's columns.
struct TablePlan {
    file: (usize, String),
    key: Option<(usize, String)>,
    /// Whether a row without a key is named by its file.
    may_lack_key: bool,
    label: Option<(usize, String)>,
    kind: ContentKind,
    /// Index of each class by its name; empty if labels are integers.
    classes: HashMap<String, i32>,
    labels: Vec<String>,
    unused_labels: Vec<UnusedLabel>,
    extra: Vec<Extra>,
    samples: u64,
}

impl TablePlan {
    /// Plans the roles from the result of the first pass.
    fn of(
        table: &StorePath,
        format: Format,
        options: &SourceOptions,
        wrong: &dyn Fn(Message) -> Error,
    ) -> Result<Self, Error> {
        let Survey { columns, mut texts, mut kinds, samples } =
            Survey::of(table, format, options, wrong)?;
        let with_name = |index: usize| (index, columns.all[index].name.clone());
        let file = column(&columns, Setting::Content, options.content.as_deref(), &FILE_COLUMNS)
            .map_err(wrong)?
            .ok_or_else(|| wrong(no_file_column(&columns)))?;
        let key =
            column(&columns, Setting::Key, options.key.as_deref(), &[WHOLE_KEY]).map_err(wrong)?;
        let label = label(&columns, options, file).map_err(wrong)?;
        let unused_labels = unused_labels(&columns, options, label, &[Some(file), key]);
        let texts = label.and_then(|index| texts.remove(&index)).unwrap_or_default();
        let mut labels = Vec::new();
        if label.is_some_and(|index| columns.all[index].shape() == Shape::Text) {
            if texts.len() > CLASSES_MAX {
                return Err(wrong(
                    Message::from(format!("more than {CLASSES_MAX} different labels"))
                        .remedy(Remedy::by("name another column", Setting::Label, Change::Other)),
                ));
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
            unused_labels,
            extra: extra.map_err(wrong)?,
            samples,
        })
    }
}

/// The requested column, or the first column with a usual name.
fn find(columns: &Columns, asked: Option<&str>, usual: &[&str]) -> Option<usize> {
    match asked {
        Some(asked) => columns.index(asked),
        None => named(columns, usual),
    }
}

/// Like [`find`], but a requested column that does not exist is an error.
fn column(
    columns: &Columns,
    option: Setting,
    asked: Option<&str>,
    usual: &[&str],
) -> Result<Option<usize>, Message> {
    match (find(columns, asked, usual), asked) {
        (None, Some(asked)) => Err(no_column(asked, option, columns)),
        (found, _) => Ok(found),
    }
}

fn label(
    columns: &Columns,
    options: &SourceOptions,
    file: usize,
) -> Result<Option<usize>, Message> {
    let asked = options.label.as_deref();
    let found = column(columns, Setting::Label, asked, &LABEL_COLUMNS)?;
    let Some(index) = found.filter(|index| *index != file) else {
        return Ok(None);
    };
    match (columns.all[index].is_label(), asked) {
        (true, _) => Ok(Some(index)),
        (false, None) => Ok(None),
        (false, Some(asked)) => {
            let problem = match columns.all[index].shape() {
                Shape::Float => "has numbers that are not whole".to_owned(),
                shape => format!("is {}", shape.name()),
            };
            Err(Message::from(format!("{asked} {problem}"))
                .remedy("name a column of integers or names"))
        }
    }
}

/// The column `label` if another one is the label; if there is no label, the first column with a
/// usual name.
fn unused_labels(
    columns: &Columns,
    options: &SourceOptions,
    label: Option<usize>,
    taken: &[Option<usize>],
) -> Vec<UnusedLabel> {
    let usual = match (label, &options.label) {
        (None, None) => &LABEL_COLUMNS[..],
        _ => &[LABEL_NAME][..],
    };
    let found = named(columns, usual).filter(|&index| label != Some(index));
    let found = found.filter(|&index| !taken.contains(&Some(index)));
    let class_label = label.map(|index| columns.all[index].name.clone());
    let unused = found.map(|index| {
        let column = &columns.all[index];
        column.shape().unused_label(&column.name, class_label)
    });
    unused.into_iter().collect()
}

/// The message that no column has the name in an option.
fn no_column(name: &str, option: Setting, columns: &Columns) -> Message {
    Message::from(format!("no column {name} ("))
        + option
        + Message::from(")").remedy(format!("choose one of {}", names(columns)))
}

fn names(columns: &Columns) -> String {
    let names: Vec<&str> = columns.all.iter().map(|column| column.name.as_str()).collect();
    names.join(", ")
}

/// The columns without another role, or the requested ones among them.
fn extras(
    columns: &Columns,
    taken: &[Option<usize>],
    content: &str,
    asked: Option<&[String]>,
) -> Result<Vec<Extra>, Message> {
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
                None => Err(no_column(name, Setting::Columns, columns)),
            })
            .collect(),
    }
}

struct TableSource {
    schema: SourceSchema,
    rows: TableRows,
    shown: String,
    root: StorePath,
    links: Links,
    /// Files without a row, until they are reported.
    unlisted: Option<UnlistedFiles>,
    follow_links: bool,
    plan: TablePlan,
}

impl SampleReader for TableSource {
    fn schema(&self) -> &SourceSchema {
        &self.schema
    }

    fn size(&self) -> Size {
        Size { samples: Some(self.plan.samples), bytes: None }
    }

    fn advance(&mut self, to: &mut Gather) -> Result<bool, Error> {
        let Some(row) = self.rows.next()? else {
            let Some(unlisted) = self.unlisted.take() else { return Ok(false) };
            let unlisted = unlisted.list(self.plan.kind, self.follow_links)?;
            unlisted.into_iter().for_each(|entry| to.note(entry));
            return Ok(true);
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
        let problem = Message::from(problem).remedy("pack again when no program writes to it");
        malformed(&self.shown, format!("row {}", self.rows.count), problem)
    }

    fn finish(&mut self) -> Finished {
        let TablePlan { labels, unused_labels, .. } = &self.plan;
        Finished { labels: labels.clone(), unused_labels: unused_labels.clone() }
    }
}

impl TableSource {
    /// The sample of a row; the error is why the row is not a sample.
    fn item(&mut self, row: &TableRow) -> Result<(Item, Vec<Cell>), Message> {
        let plan = &self.plan;
        let text = |(index, name): &(usize, String)| types::text(row, *index, name);
        let named = text(&plan.file).ok_or_else(|| format!("no file in {}", plan.file.1))?;
        let file = relative_path(named.as_bytes())
            .map_err(|why| Message::from(format!("{named}: ")) + why)?;
        let key = match &plan.key {
            None => file.clone(),
            Some(column) => match text(column) {
                Some(key) => key,
                None if plan.may_lack_key => file.clone(),
                None => return Err(format!("no key in {}", column.1).into()),
            },
        };
        if key.len() > KEY_BYTES_MAX {
            let bytes = key.len();
            return Err(format!("its key has {bytes} bytes, the limit is {KEY_BYTES_MAX}").into());
        }
        let path = self.root.join(&file);
        if let Some(unlisted) = &mut self.unlisted {
            unlisted.name(path.path());
        }
        if let Some(target) = self.links.path_leads_out(&path) {
            return Err(Message::from(format!("{file} is ")) + link_leads_out(&target));
        }
        let metadata = path.metadata().map_err(|error| format!("{file}: {error}"))?;
        if metadata.kind != FileKind::File {
            return Err(format!("{file} is not a regular file").into());
        }
        if metadata.bytes > IMAGE_BYTES_MAX {
            let bytes = metadata.bytes;
            return Err(format!("{file} has {bytes} bytes, the limit is {IMAGE_BYTES_MAX}").into());
        }
        let label = match plan.label.as_ref().and_then(&text) {
            None => None,
            Some(label) if plan.classes.is_empty() => {
                let number = whole_number(&label);
                Some(
                    number.ok_or_else(|| {
                        format!("{label} is not a label: expected a 32-bit integer")
                    })?,
                )
            }
            Some(label) => Some(*plan.classes.get(&label).ok_or("its label came after the rest")?),
        };
        let cells = plan.extra.iter();
        let cells = cells.map(|extra| types::cell(row, extra.index, &extra.from, &extra.shape));
        let origin = SampleOrigin {
            file: self.shown.clone(),
            member: Some(format!("row {}", self.rows.count)),
            offset: None,
        };
        let content = Content::File { path, bytes: metadata.bytes };
        Ok((Item { key, origin, content, label, extra: None }, cells.collect()))
    }
}
