//! Determines which columns of a table are the key, the content and the label; the others are
//! further columns.
//!
//! The user's options take precedence, then Hugging Face's metadata, then customary names. A name
//! that the table lacks is an error that lists the columns.

use super::hugging_face::Features;
use super::table::ContentColumn;
use crate::Error;
use crate::message::Message;
use crate::source::unused_label::{LABEL_NAME, UnusedLabel};
use crate::source::{ContentKind, SampleOrigin, SourceOptions};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use meetpoint_diagnose::{Change, Remedy, Setting};
use meetpoint_kernels::decode::TIFF_MAGIC;
use std::sync::Arc;

/// Names of columns that are the key if they contain text.
const KEY_NAMES: [&str; 3] = ["key", "__key__", "image/filename"];
/// Names of columns that are the label if they contain integers or text; the first match is used.
const LABEL_NAMES: [&str; 10] = [
    "label",
    "labels",
    "class",
    "cls",
    "target",
    "y",
    "fine_label",
    "category",
    "image/class/label",
    "image/class/text",
];
/// Names of columns that are the content if they contain bytes; the first match is used.
const CONTENT_NAMES: [&str; 17] = [
    "image",
    "img",
    "jpg",
    "jpeg",
    "png",
    "webp",
    "picture",
    "image/encoded",
    "image_raw",
    "image_bytes",
    "audio",
    "wav",
    "flac",
    "mp3",
    "content",
    "bytes",
    "data",
];
/// Names of columns that are the content if they contain text and no other column is the content.
const TEXT_NAMES: [&str; 3] = ["text", "txt", "content"];
/// Reserved column names of a dataset.
const TAKEN_NAMES: [&str; 4] = ["key", "label", "crc32c", "entry_points"];
/// Key in a field's metadata for the kind of a column.
pub(crate) const KIND_METADATA: &str = "meetpoint.kind";
/// Key in a field's metadata for names of its integers.
pub(crate) const LABELS_METADATA: &str = "meetpoint.labels";

/// The source of a row's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyRole {
    /// In a column.
    Column(usize),
    /// The path beside the content.
    Path,
    /// The number of the row.
    Number,
}

/// The roles of the columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Roles {
    /// The content; `None` if there is none.
    pub(crate) content: Option<ContentColumn>,
    /// The key, if determined by name; [`KeyRole::Number`] may later be replaced by a path.
    pub(crate) key: KeyRole,
    /// The label.
    pub(crate) label: Option<usize>,
    /// Names of the labels, if the metadata contain them.
    pub(crate) label_names: Option<Vec<String>>,
    /// Columns that are named like a label but are not the label.
    pub(crate) unused_labels: Vec<UnusedLabel>,
    /// The further columns.
    pub(crate) extra: Vec<usize>,
}

/// Chooses from the columns of `schema`; `file` is named in errors.
pub(crate) fn choose(
    schema: &Schema,
    features: &Features,
    options: &SourceOptions,
    file: &str,
) -> Result<Roles, Error> {
    let content = content_column(schema, features, options, file)?;
    let is_free = |index: usize| content.is_none_or(|content| content.column != index);
    let key = match (&options.key, content) {
        (Some(name), Some(content))
            if content.path.is_some()
                && *name == format!("{}.path", schema.field(content.column).name()) =>
        {
            KeyRole::Path
        }
        // An empty name: rows are numbered.
        (Some(name), _) if name.is_empty() => KeyRole::Number,
        (Some(name), _) => KeyRole::Column(named(schema, name, Setting::Key, file)?),
        (None, _) => {
            let found = KEY_NAMES.iter().find_map(|name| {
                let (index, field) = schema.fields().find(name)?;
                (is_text(field.data_type()) && is_free(index)).then_some(index)
            });
            found.map_or(KeyRole::Number, KeyRole::Column)
        }
    };
    let is_free = |index: usize| is_free(index) && key != KeyRole::Column(index);
    let label = match &options.label {
        Some(name) => {
            let index = named(schema, name, Setting::Label, file)?;
            let data_type = schema.field(index).data_type();
            if !data_type.is_integer() && !is_text(data_type) {
                let problem = Message::from(format!(
                    "column {name:?} is of type {data_type}, and labels are integers or texts; \
                     name another with "
                )) + Setting::Label;
                return Err(bad(file, problem));
            }
            Some(index)
        }
        None => {
            let classes = features.classes.keys().map(String::as_str);
            let mut classes: Vec<usize> =
                classes.filter_map(|name| schema.index_of(name).ok()).collect();
            classes.sort_unstable();
            let customary = LABEL_NAMES.iter().filter_map(|name| schema.index_of(name).ok());
            // Among the class labels, customary names take precedence.
            let named_class = customary.clone().find(|index| classes.contains(index));
            named_class.into_iter().chain(classes.clone()).chain(customary).find(|&index| {
                let data_type = schema.field(index).data_type();
                is_free(index) && (data_type.is_integer() || is_text(data_type))
            })
        }
    };
    let label_names = label
        .and_then(|index| features.classes.get(schema.field(index).name()))
        .filter(|names| !names.is_empty())
        .cloned();
    let unused_labels = unused_labels(schema, label, &is_free);
    let is_free = |index: usize| is_free(index) && label != Some(index);
    let extra = match &options.columns {
        None => (0..schema.fields().len()).filter(|&index| is_free(index)).collect(),
        Some(names) => {
            let indices = names.iter().map(|name| named(schema, name, Setting::Columns, file));
            indices.collect::<Result<Vec<_>, _>>()?
        }
    };
    Ok(Roles { content, key, label, label_names, unused_labels, extra })
}

/// The column `label` if another one is the label; if there is no label, the first column with a
/// customary name.
fn unused_labels(
    schema: &Schema,
    label: Option<usize>,
    is_free: &dyn Fn(usize) -> bool,
) -> Vec<UnusedLabel> {
    let names = match label {
        Some(_) => &[LABEL_NAME][..],
        None => &LABEL_NAMES[..],
    };
    let found = names.iter().find_map(|name| {
        schema.index_of(name).ok().filter(|&index| label != Some(index) && is_free(index))
    });
    let class_label = label.map(|index| schema.field(index).name().clone());
    let unused = found.map(|index| {
        let field = schema.field(index);
        UnusedLabel::new(field.name(), field.data_type(), class_label)
    });
    unused.into_iter().collect()
}

fn content_column(
    schema: &Schema,
    features: &Features,
    options: &SourceOptions,
    file: &str,
) -> Result<Option<ContentColumn>, Error> {
    if let Some(name) = &options.content {
        let index = named(schema, name, Setting::Content, file)?;
        return match as_content(schema, index, true) {
            Some(content) => Ok(Some(content)),
            None => {
                let data_type = schema.field(index).data_type();
                let problem = Message::from(format!(
                    "column {name:?} is of type {data_type}, and content is bytes, text, or a \
                     struct with a field `bytes`"
                ))
                .remedy(Remedy::by(
                    "name another",
                    Setting::Content,
                    Change::Other,
                ));
                Err(bad(file, problem))
            }
        };
    }
    if options.kind == Some(ContentKind::None) {
        return Ok(None);
    }
    let by_feature = features.images.iter().chain(&features.audios).map(String::as_str);
    let by_name = CONTENT_NAMES.iter().copied();
    for name in by_feature.chain(by_name) {
        let index = schema.index_of(name).ok();
        if let Some(content) = index.and_then(|index| as_content(schema, index, false)) {
            return Ok(Some(content));
        }
    }
    let all: Vec<ContentColumn> =
        (0..schema.fields().len()).filter_map(|index| as_content(schema, index, false)).collect();
    if let [only] = all[..] {
        return Ok(Some(only));
    }
    if all.len() > 1 {
        let names: Vec<&str> =
            all.iter().map(|column| schema.field(column.column).name().as_str()).collect();
        let problem = Message::from(format!("several columns hold bytes ({})", names.join(", ")))
            .remedy(Remedy::by("name the content", Setting::Content, Change::Other).or_by(
                "take all of them as further columns",
                Setting::Kind,
                Change::To(ContentKind::None.name().to_owned()),
            ));
        return Err(bad(file, problem));
    }
    let text = TEXT_NAMES.iter().find_map(|name| {
        let (index, field) = schema.fields().find(name)?;
        is_text(field.data_type()).then_some(index)
    });
    Ok(text.and_then(|index| as_content(schema, index, true)))
}

/// The column as content, if its type allows it.
fn as_content(schema: &Schema, index: usize, with_text: bool) -> Option<ContentColumn> {
    let flat = ContentColumn { column: index, bytes: None, path: None };
    match schema.field(index).data_type() {
        data_type if is_bytes(data_type) => Some(flat),
        data_type if is_text(data_type) && with_text => Some(flat),
        DataType::Struct(children) => {
            let (bytes, _) = children.find("bytes").filter(|(_, f)| is_bytes(f.data_type()))?;
            let path = children.find("path").filter(|(_, f)| is_text(f.data_type()));
            Some(ContentColumn {
                column: index,
                bytes: Some(bytes),
                path: path.map(|(index, _)| index),
            })
        }
        _ => None,
    }
}

/// The kind of the content, from the user's options, the metadata, its type and its first bytes.
pub(crate) fn kind_of(
    schema: &Schema,
    content: Option<ContentColumn>,
    features: &Features,
    options: &SourceOptions,
    first_bytes: &[u8],
) -> ContentKind {
    let Some(content) = content else { return ContentKind::None };
    let field = schema.field(content.column);
    if let Some(kind) = options.kind {
        return kind;
    }
    if features.images.contains(field.name()) {
        return ContentKind::Image;
    }
    if features.audios.contains(field.name()) {
        return ContentKind::Audio;
    }
    if is_text(field.data_type()) {
        return ContentKind::Text;
    }
    match extension_of(first_bytes) {
        Some("wav" | "flac" | "ogg" | "mp3") => ContentKind::Audio,
        Some(_) => ContentKind::Image,
        // Whether such content really is pictures is decided per sample, by the decoder.
        None if ["image", "img", "jpg", "jpeg", "png", "webp", "picture", "image/encoded"]
            .contains(&field.name().as_str()) =>
        {
            ContentKind::Image
        }
        None => ContentKind::Bytes,
    }
}

/// The extension for the first bytes of a picture or a sound.
pub(crate) fn extension_of(bytes: &[u8]) -> Option<&'static str> {
    let begins = |magic: &[u8]| bytes.starts_with(magic);
    let fourth = bytes.get(8..12);
    Some(match () {
        () if begins(b"\xff\xd8\xff") => "jpg",
        () if begins(b"\x89PNG\r\n\x1a\n") => "png",
        () if begins(b"GIF87a") || begins(b"GIF89a") => "gif",
        () if TIFF_MAGIC.iter().any(|magic| begins(magic)) => "tif",
        () if begins(b"RIFF") && fourth == Some(b"WEBP") => "webp",
        () if begins(b"RIFF") && fourth == Some(b"WAVE") => "wav",
        () if begins(b"fLaC") => "flac",
        () if begins(b"OggS") => "ogg",
        () if begins(b"ID3") => "mp3",
        () => return None,
    })
}

/// Name of the content column in a dataset: its name in the table, unless reserved.
pub(crate) fn content_name(schema: &Schema, content: Option<ContentColumn>) -> String {
    let Some(content) = content else { return String::new() };
    let name = schema.field(content.column).name();
    if name.is_empty() || TAKEN_NAMES.contains(&name.as_str()) {
        return "content".to_owned();
    }
    name.clone()
}

/// The schema of the further columns. `_column` is appended to reserved names; pictures, sounds and
/// class names are recorded in the metadata.
pub(crate) fn extra_schema(
    schema: &Schema,
    roles: &Roles,
    features: &Features,
    path_name: Option<&str>,
) -> SchemaRef {
    let content = content_name(schema, roles.content);
    let extra = roles.extra.iter().map(|&index| {
        let field = schema.field(index);
        let mut metadata = field.metadata().clone();
        if features.images.contains(field.name()) {
            metadata.insert(KIND_METADATA.to_owned(), "image".to_owned());
        }
        if features.audios.contains(field.name()) {
            metadata.insert(KIND_METADATA.to_owned(), "audio".to_owned());
        }
        if let Some(names) = features.classes.get(field.name()) {
            let names = serde_json::Value::from(names.clone()).to_string();
            metadata.insert(LABELS_METADATA.to_owned(), names);
        }
        let taken = TAKEN_NAMES.contains(&field.name().as_str()) || *field.name() == content;
        let suffix = if taken { "_column" } else { "" };
        Field::new(format!("{}{suffix}", field.name()), field.data_type().clone(), true)
            .with_metadata(metadata)
    });
    let path = path_name.map(|name| Field::new(name, DataType::Utf8, true));
    Arc::new(Schema::new(extra.chain(path).collect::<Fields>()))
}

fn named(schema: &Schema, name: &str, option: Setting, file: &str) -> Result<usize, Error> {
    schema.index_of(name).map_err(|_| {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let problem = Message::from(format!("has no column {name:?} ("))
            + option
            + Message::from(")").remedy(format!("choose one of {}", names.join(", ")));
        bad(file, problem)
    })
}

fn bad(file: &str, problem: impl Into<Message>) -> Error {
    let origin = SampleOrigin { file: file.to_owned(), member: None, offset: None };
    Error::Malformed { origin: Box::new(origin), problem: problem.into() }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8)
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use meetpoint_diagnose::{Diagnose, Surface};

    fn schema(fields: &[(&str, DataType)]) -> Schema {
        Schema::new(
            fields
                .iter()
                .map(|(name, data_type)| Field::new(*name, data_type.clone(), true))
                .collect::<Vec<_>>(),
        )
    }

    fn image_struct() -> DataType {
        DataType::Struct(Fields::from(vec![
            Field::new("bytes", DataType::Binary, true),
            Field::new("path", DataType::Utf8, true),
        ]))
    }

    #[test]
    fn names_and_metadata_determine_the_roles_of_columns() {
        let schema = schema(&[
            ("id", DataType::Int64),
            ("mask", image_struct()),
            ("img", image_struct()),
            ("coarse", DataType::Int64),
            ("label", DataType::Int64),
        ]);
        let mut features = Features { images: vec!["img".into()], ..Features::default() };
        features.classes.insert("coarse".into(), vec!["x".into()]);
        features.classes.insert("label".into(), vec!["a".into(), "b".into()]);
        let roles = choose(&schema, &features, &SourceOptions::default(), "f").unwrap();
        assert_eq!(roles.content, Some(ContentColumn { column: 2, bytes: Some(0), path: Some(1) }));
        assert_eq!((roles.key.clone(), roles.label), (KeyRole::Number, Some(4)));
        assert_eq!(roles.label_names.clone().unwrap(), ["a", "b"]);
        assert_eq!(roles.extra, [0, 1, 3]);
        let extra = extra_schema(&schema, &roles, &features, Some("img_path"));
        assert_eq!(extra.field(2).metadata()[LABELS_METADATA], r#"["x"]"#);
        assert_eq!(extra.field(3).name(), "img_path");
    }

    #[test]
    fn what_is_open_or_not_there_is_an_error_that_says_what_is_there() {
        let schema = schema(&[("a", DataType::Binary), ("b", DataType::Binary)]);
        let features = Features::default();
        let with = |options: SourceOptions| {
            choose(&schema, &features, &options, "f.parquet")
                .map_err(|error| error.in_full(Surface::CommandLine))
        };
        let error = with(SourceOptions::default()).unwrap_err();
        assert!(error.contains("a, b") && error.contains("--content"), "{error}");
        let named = SourceOptions { label: Some("z".into()), ..SourceOptions::default() };
        let named = SourceOptions { content: Some("b".into()), ..named };
        let error = with(named).unwrap_err();
        assert!(error.contains("\"z\"") && error.contains("--label"), "{error}");
        let none = SourceOptions { kind: Some(ContentKind::None), ..SourceOptions::default() };
        assert_eq!(with(none).unwrap().extra, [0, 1]);
    }

    #[test]
    fn a_column_with_a_name_of_the_dataset_is_renamed() {
        let schema = schema(&[("label", DataType::Float64), ("key", DataType::Int8)]);
        let features = Features::default();
        let roles = choose(&schema, &features, &SourceOptions::default(), "f").unwrap();
        assert_eq!((roles.content, roles.label), (None, None));
        let extra = extra_schema(&schema, &roles, &features, None);
        let names: Vec<&String> = extra.fields().iter().map(|field| field.name()).collect();
        assert_eq!(names, ["label_column", "key_column"]);
    }
}
