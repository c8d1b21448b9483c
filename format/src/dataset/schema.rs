//! Names and types of the columns of a part, and the limits that readers may rely on.

use arrow_schema::{DataType, Field, Schema};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Value of `format` in the manifest and of [`FORMAT_KEY`] in the schema.
pub const FORMAT: &str = "meetpoint-dataset";
/// Version of these conventions that is written.
pub const VERSION: u32 = 2;
/// Versions that are read.
pub const VERSIONS_READ: RangeInclusive<u32> = 1..=VERSION;
/// Key of the schema's metadata that holds [`FORMAT`].
pub const FORMAT_KEY: &str = "meetpoint.format";
/// Key of the schema's metadata that holds [`VERSION`] in decimal.
pub const VERSION_KEY: &str = "meetpoint.version";

/// Relative path of the source file, `/`-separated, UTF-8. Unique in a dataset. (`Utf8`)
pub const KEY: &str = "key";
/// The encoded image: a file, or the coefficient form of a JPEG. (`LargeBinary`)
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
/// Bytes of images and entry points after which a writer begins the next record batch (one row may
/// have more).
pub const RECORD_BATCH_BYTES: u64 = 32 << 20;
/// Longest image in bytes.
pub const IMAGE_BYTES_MAX: u64 = 1 << 28;
/// Most bytes of entry points that a row has.
pub const ENTRY_POINTS_BYTES_MAX: u64 = 1 << 20;
/// Longest key in bytes.
pub const KEY_BYTES_MAX: usize = 4096;
/// Alignment in bytes of messages and buffers, relative to the file as to the body.
pub const ALIGNMENT: u64 = 64;

/// The Arrow schema of a part as it is written.
///
/// A reader takes the columns of a part's version as the first ones, in this order, and lets
/// further columns after them pass. Version 1 has all but [`ENTRY_POINTS`].
pub fn schema() -> Schema {
    let metadata = BTreeMap::from([
        (FORMAT_KEY.to_owned(), FORMAT.to_owned()),
        (VERSION_KEY.to_owned(), VERSION.to_string()),
    ]);
    Schema::new(vec![
        Field::new(KEY, DataType::Utf8, false),
        Field::new(IMAGE, DataType::LargeBinary, false),
        Field::new(LABEL, DataType::Int32, true),
        Field::new(CRC32C, DataType::UInt32, false),
        Field::new(ENTRY_POINTS, DataType::Binary, true),
    ])
    .with_metadata(metadata)
}

/// How many columns a reader of a version knows.
pub(super) fn columns_of(version: u32) -> usize {
    if version == 1 { 4 } else { COLUMNS.len() }
}

/// Holds the schema of a part's footer against that of its version, which is the answer; an error
/// says what differs.
pub(super) fn check(found: arrow_ipc::Schema<'_>) -> Result<u32, String> {
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
        let fits = field.name() == Some(name)
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
    Ok(version)
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
