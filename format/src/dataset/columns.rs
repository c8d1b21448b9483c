//! The columns of the samples of a dataset: their content, and any further columns.

use super::Prepared;
use super::schema::{
    CRC32C, ENTRY_POINTS, EXTRA_COLUMNS_MAX, FORMAT, FORMAT_KEY, IMAGE, KEY, KIND_KEY, LABEL,
    LABELS_KEY, NESTING_MAX, PREPARED_KEY, VERSION, VERSION_KEY,
};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, UnionMode};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// What the bytes of a sample are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentKind {
    /// An encoded picture; JPEGs may be stored in another form.
    Image,
    /// An encoded sound.
    Audio,
    /// A text in UTF-8.
    Text,
    /// Anything else.
    Bytes,
    /// Samples have columns only; their content has no bytes.
    None,
}

impl ContentKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Image, Self::Audio, Self::Text, Self::Bytes, Self::None];

    /// The kind of prepared content: pictures if they are JPEGs, otherwise arrays.
    pub fn of_prepared(prepared: &Prepared) -> Self {
        if prepared.jpeg_quality.is_some() { Self::Image } else { Self::Bytes }
    }

    /// The name in the manifest and in the metadata of the column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::None => "none",
        }
    }
}

/// The content and the further columns of samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// The kind of the content.
    pub kind: ContentKind,
    /// Name of the content, such as `image`, `jpg` or `audio`; may be empty, see
    /// [`Columns::content_name`].
    pub name: String,
    /// The columns besides key, content and label: any types except dictionaries, run-end encoded
    /// arrays and views. What a column is (a picture, a mask, boxes, …) is in its field's metadata
    /// under [`KIND_KEY`], names of its integers under [`LABELS_KEY`] (a JSON list of strings).
    /// Metadata of the schema as a whole is dropped.
    pub extra: SchemaRef,
    /// Which operations of a recipe were executed before samples were stored; `None` if the
    /// content is unchanged.
    pub prepared: Option<Prepared>,
}

impl Columns {
    /// Images without further columns.
    pub fn images() -> Self {
        let extra = Arc::new(Schema::empty());
        Self { kind: ContentKind::Image, name: IMAGE.to_owned(), extra, prepared: None }
    }

    /// Whether there are columns besides those of every dataset.
    pub fn has_extra(&self) -> bool {
        !self.extra.fields().is_empty()
    }

    /// Name of the column with the content: the given name, otherwise that of its kind (`content`
    /// if samples have no content).
    pub fn content_name(&self) -> &str {
        match (self.name.as_str(), self.kind) {
            ("", ContentKind::None) => "content",
            ("", kind) => kind.name(),
            (name, _) => name,
        }
    }

    /// The Arrow schema of a part as it is written.
    pub fn schema(&self) -> Schema {
        let metadata = BTreeMap::from([
            (FORMAT_KEY.to_owned(), FORMAT.to_owned()),
            (VERSION_KEY.to_owned(), VERSION.to_string()),
        ]);
        let mut kind = BTreeMap::from([(KIND_KEY.to_owned(), self.kind.name().to_owned())]);
        if let Some(prepared) = &self.prepared {
            let text = serde_json::to_string(prepared);
            let text = text.expect("strings and integers always serialise");
            kind.insert(PREPARED_KEY.to_owned(), text);
        }
        let content = Field::new(self.content_name(), DataType::LargeBinary, false);
        let mut fields: Vec<FieldRef> = vec![
            Arc::new(Field::new(KEY, DataType::Utf8, false)),
            Arc::new(content.with_metadata(kind)),
            Arc::new(Field::new(LABEL, DataType::Int32, true)),
            Arc::new(Field::new(CRC32C, DataType::UInt32, false)),
            Arc::new(Field::new(ENTRY_POINTS, DataType::Binary, true)),
        ];
        fields.extend(self.extra.fields().iter().cloned());
        Schema::new(fields).with_metadata(metadata)
    }

    /// Checks that a part can store these columns; the error names the column and the remedy.
    pub fn check(&self) -> Result<(), String> {
        let fields = self.extra.fields();
        if fields.len() > EXTRA_COLUMNS_MAX {
            let found = fields.len();
            return Err(format!("{found} further columns, the limit is {EXTRA_COLUMNS_MAX}"));
        }
        if let Some(prepared) = &self.prepared {
            prepared.beginning()?;
            let wanted = ContentKind::of_prepared(prepared);
            if wanted != self.kind {
                let (kind, wanted) = (self.kind.name(), wanted.name());
                return Err(format!("the content is {kind}, prepared samples are {wanted}"));
            }
        }
        let mut names = HashSet::from([KEY, LABEL, CRC32C, ENTRY_POINTS]);
        let own = [self.content_name()].into_iter();
        for name in own.chain(fields.iter().map(|field| field.name().as_str())) {
            if name.is_empty() || name.len() > 255 || name.contains('\0') {
                return Err(format!("column {name:?}: names have 1 to 255 bytes, none of them 0"));
            }
            if !names.insert(name) {
                return Err(format!("column `{name}` occurs twice; rename one"));
            }
        }
        for field in fields {
            let of_column = |problem: String| format!("column `{}`: {problem}", field.name());
            shape_of(field.data_type(), 0).map_err(of_column)?;
            labels_of(field).map_err(of_column)?;
        }
        Ok(())
    }
}

/// Names of a column's integers by index, from its field's metadata; `None` if it has none.
pub fn labels_of(field: &Field) -> Result<Option<Vec<String>>, String> {
    let Some(text) = field.metadata().get(LABELS_KEY) else { return Ok(None) };
    serde_json::from_str(text)
        .map(Some)
        .map_err(|error| format!("`{LABELS_KEY}` is not a JSON list of strings: {error}"))
}

/// One of the further columns as the manifest lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnEntry {
    /// Its name.
    pub name: String,
    /// Its Arrow type in words.
    #[serde(rename = "type")]
    pub type_words: String,
    /// What it is, if the source says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Names of its integers, if the source has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
}

impl ColumnEntry {
    /// The manifest's entry of a column.
    pub fn of(field: &Field) -> Self {
        let nullable = if field.is_nullable() { "" } else { "non-null " };
        Self {
            name: field.name().clone(),
            type_words: format!("{nullable}{}", field.data_type()),
            kind: field.metadata().get(KIND_KEY).cloned(),
            // Labels that do not parse are refused before anything is written or read.
            labels: labels_of(field).ok().flatten(),
        }
    }
}

/// The content as listed in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContentEntry {
    /// What it is.
    pub kind: ContentKind,
    /// Name of its column.
    pub column: String,
    /// Which operations of a recipe were executed before it was stored; absent if it is unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepared: Option<Prepared>,
}

/// How many nodes and buffers a column of a type has in a record batch, including those of its
/// children (Arrow columnar format, "Serialization and Interprocess Communication").
pub(super) fn shape_of(data_type: &DataType, depth: usize) -> Result<(usize, usize), String> {
    use DataType as T;
    if depth > NESTING_MAX {
        return Err(format!("nested more than {NESTING_MAX} deep"));
    }
    let with_children = |buffers: usize, children: &mut dyn Iterator<Item = &FieldRef>| {
        let mut sums = (1, buffers);
        for child in children {
            let (nodes, buffers) = shape_of(child.data_type(), depth + 1)?;
            sums = (sums.0 + nodes, sums.1 + buffers);
        }
        Ok(sums)
    };
    match data_type {
        T::Null => Ok((1, 0)),
        T::Utf8 | T::LargeUtf8 | T::Binary | T::LargeBinary => Ok((1, 3)),
        T::FixedSizeBinary(width) if *width >= 0 => Ok((1, 2)),
        T::List(child) | T::LargeList(child) | T::Map(child, _) => {
            with_children(2, &mut [child].into_iter())
        }
        T::FixedSizeList(child, length) if *length >= 0 => {
            with_children(1, &mut [child].into_iter())
        }
        T::Struct(children) => with_children(1, &mut children.iter()),
        T::Union(children, mode) => {
            let buffers = if *mode == UnionMode::Dense { 2 } else { 1 };
            with_children(buffers, &mut children.iter().map(|(_, child)| child))
        }
        T::Dictionary(_, values) => Err(refused("dictionaries", &values.to_string())),
        T::RunEndEncoded(_, values) => {
            Err(refused("run-end encoded columns", &values.data_type().to_string()))
        }
        T::Utf8View => Err(refused("views", "LargeUtf8")),
        T::BinaryView => Err(refused("views", "LargeBinary")),
        T::ListView(_) => Err(refused("views", "List")),
        T::LargeListView(_) => Err(refused("views", "LargeList")),
        plain if plain.is_primitive() || *plain == T::Boolean => Ok((1, 2)),
        other => Err(format!("type {other} is not supported")),
    }
}

fn refused(what: &str, remedy: &str) -> String {
    format!("{what} cannot be stored; cast it to {remedy}")
}
