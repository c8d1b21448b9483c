//! Names and types of the columns of a part, and the limits that readers may rely on.

use super::{Columns, ContentKind};
use arrow_schema::Schema;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Value of `format` in the manifest and of [`FORMAT_KEY`] in the schema.
pub const FORMAT: &str = "meetpoint-dataset";
/// Version of these conventions that is written.
pub const VERSION: u32 = 3;
/// Versions that are read.
pub const VERSIONS_READ: RangeInclusive<u32> = 1..=VERSION;
/// Key of the schema's metadata that holds [`FORMAT`].
pub const FORMAT_KEY: &str = "meetpoint.format";
/// Key of the schema's metadata that holds [`VERSION`] in decimal.
pub const VERSION_KEY: &str = "meetpoint.version";
/// Key of a column's metadata that says what it is: `image`, `audio`, `text`, `mask`, `boxes`,
/// `label`, `array`, …
pub const KIND_KEY: &str = "meetpoint.kind";
/// Key of a column's metadata that names its integers: a JSON list of strings.
pub const LABELS_KEY: &str = "meetpoint.labels";

/// Relative path of the source file, `/`-separated, UTF-8. Unique in a dataset. (`Utf8`)
pub const KEY: &str = "key";
/// The encoded image: a file, or the coefficient form of a JPEG; from version 3 on, where the
/// content is no image, the column has another name. (`LargeBinary`)
pub const IMAGE: &str = "image";
/// Index into the manifest's labels; null in a flat dataset. (`Int32`)
pub const LABEL: &str = "label";
/// CRC-32C of the image's bytes. (`UInt32`)
pub const CRC32C: &str = "crc32c";
/// Where decoding can start in the middle of the JPEG in [`IMAGE`]; null where there is no such
/// place. From version 2 on. (`Binary`)
pub const ENTRY_POINTS: &str = "entry_points";

/// Most rows that a writer puts into a record batch: what is indexed by one read of metadata.
pub const ROWS_PER_RECORD_BATCH: usize = 256;
/// Most rows of a record batch that a reader accepts.
pub const ROWS_PER_RECORD_BATCH_MAX: u32 = 1 << 16;
/// Bytes of content, entry points and further columns after which a writer begins the next record
/// batch (one row may have more).
pub const RECORD_BATCH_BYTES: u64 = 32 << 20;
/// Longest image in bytes.
pub const IMAGE_BYTES_MAX: u64 = 1 << 28;
/// Most bytes of entry points that a row has.
pub const ENTRY_POINTS_BYTES_MAX: u64 = 1 << 20;
/// Most bytes that the further columns of a row have.
pub const EXTRA_BYTES_MAX: u64 = 1 << 28;
/// Most columns beside those of every dataset.
pub const EXTRA_COLUMNS_MAX: usize = 256;
/// Deepest nesting of a column's type.
pub const NESTING_MAX: usize = 16;
/// Longest key in bytes.
pub const KEY_BYTES_MAX: usize = 4096;
/// Alignment in bytes of messages and buffers, relative to the file as to the body.
pub const ALIGNMENT: u64 = 64;

/// How many columns a reader of a version knows.
pub(super) fn columns_of(version: u32) -> usize {
    if version == 1 { 4 } else { COLUMNS.len() }
}

/// Holds the schema of a part's footer against that of its version, which is the answer with the
/// part's columns; an error says what differs.
pub(super) fn check(found: arrow_ipc::Schema<'_>) -> Result<(u32, Columns), String> {
    let pair = |key: &str| {
        let mut pairs = found.custom_metadata().into_iter().flatten();
        pairs.find(|pair| pair.key() == Some(key)).and_then(|pair| pair.value())
    };
    let version = match (pair(FORMAT_KEY), pair(VERSION_KEY)) {
        (Some(FORMAT), Some(text)) => {
            VERSIONS_READ.into_iter().find(|version| version.to_string() == text).ok_or_else(
                || format!("schema version is {text}, this program reads {}", versions_read()),
            )?
        }
        _ => return Err(format!("schema has no `{FORMAT_KEY}` = `{FORMAT}` with a version")),
    };
    if found.endianness() != arrow_ipc::Endianness::Little {
        return Err("written big-endian".to_owned());
    }
    let fields = found.fields().ok_or("schema has no columns")?;
    let columns = COLUMNS.into_iter().take(columns_of(version));
    for (index, (name, type_name, nullable)) in columns.enumerate() {
        if index >= fields.len() {
            return Err(format!("column {index} is missing, expected `{name}` {type_name}"));
        }
        let field = fields.get(index);
        // From version 3 on the content has the name that the dataset gives it.
        let has_name = field.name() == Some(name) || version > 2 && name == IMAGE;
        let fits = has_name
            && type_of(field) == type_name
            && field.dictionary().is_none()
            && field.nullable() == nullable;
        if !fits {
            return Err(format!(
                "column {index} is `{}` {}{}, expected `{name}` {type_name}",
                field.name().unwrap_or_default(),
                type_of(field),
                if field.nullable() { " nullable" } else { "" },
            ));
        }
    }
    if version < 3 { Ok((version, Columns::images())) } else { Ok((version, further(found)?)) }
}

/// The columns of a part from version 3 on: kind and name of the content, what comes after.
fn further(found: arrow_ipc::Schema<'_>) -> Result<Columns, String> {
    let fields = found.fields().ok_or("schema has no columns")?;
    let content = fields.get(1);
    let mut pairs = content.custom_metadata().into_iter().flatten().rev();
    let said = pairs.find(|pair| pair.key() == Some(KIND_KEY)).and_then(|pair| pair.value());
    let kind = ContentKind::ALL.into_iter().find(|kind| Some(kind.name()) == said);
    let kind = kind.ok_or_else(|| {
        let said = said.unwrap_or_default();
        format!("column 1 has `{KIND_KEY}` {said:?}, expected image, audio, text, bytes or none")
    })?;
    // Opening comes here for each part, so what has no further columns is not converted.
    let extra = match fields.len() > COLUMNS.len() {
        false => Schema::empty(),
        true => {
            let schema = arrow_ipc::convert::try_fb_to_schema(found);
            let schema = schema.map_err(|error| error.to_string())?;
            Schema::new(schema.fields().iter().skip(COLUMNS.len()).cloned().collect::<Vec<_>>())
        }
    };
    let name = content.name().unwrap_or_default().to_owned();
    let columns = Columns { kind, name, extra: Arc::new(extra) };
    columns.check()?;
    Ok(columns)
}

/// The versions that are read, in words.
pub(super) fn versions_read() -> String {
    format!("versions {} to {}", VERSIONS_READ.start(), VERSIONS_READ.end())
}

/// The columns that a reader needs, in order: name, type, whether it may be null.
const COLUMNS: [(&str, &str, bool); 5] = [
    (KEY, "Utf8", false),
    (IMAGE, "LargeBinary", false),
    (LABEL, "Int32", true),
    (CRC32C, "UInt32", false),
    (ENTRY_POINTS, "Binary", true),
];

fn type_of(field: arrow_ipc::Field<'_>) -> &'static str {
    match field.type_type() {
        arrow_ipc::Type::Utf8 => "Utf8",
        arrow_ipc::Type::LargeBinary => "LargeBinary",
        arrow_ipc::Type::Binary => "Binary",
        arrow_ipc::Type::Int => match field.type_as_int() {
            Some(int) if int.bitWidth() == 32 && int.is_signed() => "Int32",
            Some(int) if int.bitWidth() == 32 => "UInt32",
            _ => "an integer of another width",
        },
        _ => "of another type",
    }
}
